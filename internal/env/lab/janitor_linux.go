package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/cgroup"
	"github.com/cnibench/cnibench/internal/kernel/child"
)

// treePrefix begins the name of every tree of cgroups that a lab makes: cnibench-<pid>-<random>.
const treePrefix = "cnibench"

// JanitorVerb is the word on the program's command line that must lead to Janitor, followed by a path.
const JanitorVerb = "janitor"

// patience is how long the janitor waits for killed processes to go.
const patience = 10 * time.Second

// Janitor waits until stdin ends, which is when the program at its other end does, however it ends; then it kills what
// is left in the tree of cgroups at path and removes it. A tree that is gone already is no error.
func Janitor(path string, stdin io.Reader) error {
	if !strings.HasPrefix(filepath.Base(path), treePrefix+"-") {
		return fmt.Errorf("%s is not a tree of cgroups of a lab", path)
	}
	if _, err := io.Copy(io.Discard, stdin); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return cgroup.Remove(ctx, path)
}

// watch is a janitor and the pipe whose end it waits for.
type watch struct {
	cmd  *exec.Cmd
	pipe *os.File
}

// claim takes away what dead labs left, then makes a tree for this one with a janitor beside it.
func (l *Lab) claim(ctx context.Context) error {
	root, err := cgroup.Root()
	if err != nil {
		return err
	}
	swept, err := cgroup.Sweep(ctx, root, treePrefix)
	if err != nil {
		// Somebody else's remains are no reason not to go on.
		l.log.Debug("sweep", "error", err)
	}
	for _, path := range swept {
		l.log.Debug("swept what a dead lab left", "cgroup", path)
	}
	path := cgroup.Name(root, treePrefix)
	// The janitor comes first: there must be no moment at which a kill leaves a tree that nobody watches.
	if len(l.options.Program) > 0 {
		if l.groups.janitor, err = hire(l.options.Program[0], path); err != nil {
			// The next lab sweeps what this one leaves if it is killed.
			l.log.Debug("no janitor", "error", err)
		}
	}
	if l.groups.tree, err = cgroup.Claim(ctx, path); err != nil {
		return errors.Join(err, l.dismiss())
	}
	return nil
}

// hire starts the janitor. It is out of reach of the terminal's Ctrl-C and, unlike everything else, outlives us.
func hire(program, path string) (*watch, error) {
	in, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, JanitorVerb, path)
	cmd.Stdin = in
	cmd.Env = []string{}
	child.Detach(cmd)
	err = cmd.Start()
	_ = in.Close() // ours only to hand over
	if err != nil {
		_ = out.Close()
		return nil, err
	}
	return &watch{cmd: cmd, pipe: out}, nil
}

// group makes the cgroup of a node; nil without cgroup v2.
func (l *Lab) group(name string) (*cgroup.Group, error) {
	if l.groups.tree == nil {
		return nil, nil
	}
	return l.groups.tree.Child(name)
}

// release removes the tree and dismisses the janitor.
func (l *Lab) release(ctx context.Context) error {
	var errs []error
	if l.groups.tree != nil {
		errs = append(errs, cgroup.Remove(ctx, l.groups.tree.Path()), l.groups.tree.Close())
	}
	return errors.Join(append(errs, l.dismiss())...)
}

// dismiss lets the janitor do its work, of which there is none left, and go.
func (l *Lab) dismiss() error {
	w := l.groups.janitor
	if w == nil {
		return nil
	}
	l.groups.janitor = nil
	_ = w.pipe.Close()
	return w.cmd.Wait()
}
