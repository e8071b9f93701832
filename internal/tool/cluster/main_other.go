//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "cluster: nodes are Linux namespaces; run it on Linux")
	os.Exit(1)
}
