// Command deploy writes the generated files under deploy/; `make generate` runs it.
package main

import (
	"fmt"
	"os"

	"github.com/cnibench/cnibench/internal/env/kube/deploy"
)

func main() {
	changed, err := deploy.Write(os.Args[1])
	for _, name := range changed {
		fmt.Println(name)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "deploy:", err)
		os.Exit(1)
	}
}
