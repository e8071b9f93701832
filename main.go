// Command cnibench measures what a Kubernetes network costs, compared with another and with the bare host.
package main

import (
	"os"
	"runtime"

	"github.com/cnibench/cnibench/internal/cli"
)

// The main thread never enters a namespace: a goroutine that locks its thread and calls setns could otherwise land on
// it, and then /proc/self/net and /proc/self/ns/net would silently show the lab's network instead of the host's.
func init() { runtime.LockOSThread() }

func main() {
	os.Exit(cli.Main(os.Args, os.Stdin, os.Stdout, os.Stderr))
}
