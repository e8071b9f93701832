package ipt

import (
	"context"
	"fmt"
	"os/exec"

	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// IPSet is the ipset program.
type IPSet struct {
	// Version is as the program prints it, for example "7.17".
	Version string
	path    string
}

// FindIPSet returns the ipset program of this machine.
func FindIPSet(ctx context.Context) (*IPSet, error) {
	path, err := lookPath("ipset")
	if err != nil {
		return nil, advice.With(fmt.Errorf("ipset: %w", ErrMissing), "install it: apt-get install ipset, or dnf install ipset")
	}
	version, _, err := versionOf(ctx, path)
	if err != nil {
		return nil, err
	}
	return &IPSet{Version: version, path: path}, nil
}

// Restore makes the sets and members that sets describes, in the format of ipset save, inside ns. Those that exist
// already are left as they are. A refusal names the line.
func (s *IPSet) Restore(ctx context.Context, ns *netns.NS, sets string) error {
	return run(ctx, ns, command{cmd: exec.CommandContext(ctx, s.path, "restore", "-exist"), input: sets})
}
