package selftest

import (
	"fmt"
	"os"
	"testing"

	"github.com/cnibench/cnibench/internal/env/lab"
)

// program makes the test binary the program that a lab starts.
var program = []string{"/proc/self/exe"}

// TestMain lets the test binary be what a lab starts: the janitor, and who connects sockets in a node's cgroup.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 {
		os.Exit(m.Run())
	}
	var err error
	switch os.Args[1] {
	case lab.JanitorVerb:
		err = lab.Janitor(os.Args[2], os.Stdin)
	case lab.SocketsVerb:
		err = lab.ServeSockets(os.Stdin)
	case lab.WireGuardVerb:
		err = lab.ServeWireGuard(os.Args[2:], os.Stdin, os.Stdout)
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
