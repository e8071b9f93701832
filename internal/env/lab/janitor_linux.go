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

// treePrefix is the prefix of the cgroup trees of labs: cnibench-<pid>-<random>.
const treePrefix = "cnibench"

// JanitorVerb is the command-line word, followed by a path, for which the program must call Janitor.
const JanitorVerb = "janitor"

// patience is how long the janitor waits for killed processes to end.
const patience = 10 * time.Second

// Janitor waits until stdin is closed, which happens when the lab's program ends. It then kills the processes in the
// cgroup tree at path and removes the tree. A missing tree is not an error.
func Janitor(path string, stdin io.Reader) error {
	if !strings.HasPrefix(filepath.Base(path), treePrefix+"-") {
		return fmt.Errorf("%s is not a cgroup tree of a lab", path)
	}
	if _, err := io.Copy(io.Discard, stdin); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return cgroup.Remove(ctx, path)
}

// janitorProcess is a running janitor and its stdin.
type janitorProcess struct {
	cmd  *exec.Cmd
	pipe *os.File
}

// claimTree removes the cgroup trees of dead labs, then makes a tree and a janitor for this lab.
func (l *Lab) claimTree(ctx context.Context) error {
	root, err := cgroup.Root()
	if err != nil {
		return err
	}
	_, _ = cgroup.Sweep(ctx, root, treePrefix) // the trees of other labs must not stop this lab
	path := cgroup.Name(root, treePrefix)
	// The janitor must start before the tree exists. Otherwise a kill in between would leave the tree behind.
	if len(l.options.Program) > 0 {
		l.groups.janitor, _ = startJanitor(l.options.Program[0], path) // without it, the next lab removes the tree if this one is killed
	}
	if l.groups.tree, err = cgroup.Claim(ctx, path); err != nil {
		return errors.Join(err, l.dismissJanitor())
	}
	return nil
}

// startJanitor starts the janitor in its own session, so that Ctrl-C does not end it.
func startJanitor(program, path string) (*janitorProcess, error) {
	in, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, JanitorVerb, path)
	cmd.Stdin = in
	cmd.Env = []string{}
	child.Detach(cmd)
	err = cmd.Start()
	_ = in.Close() // the child has a copy
	if err != nil {
		_ = out.Close()
		return nil, err
	}
	return &janitorProcess{cmd: cmd, pipe: out}, nil
}

// makeCgroup makes the cgroup of a node. It returns nil without cgroup v2.
func (l *Lab) makeCgroup(name string) (*cgroup.Group, error) {
	if l.groups.tree == nil {
		return nil, nil
	}
	return l.groups.tree.Child(name)
}

// releaseTree removes the tree and ends the janitor.
func (l *Lab) releaseTree(ctx context.Context) error {
	var errs []error
	if l.groups.tree != nil {
		errs = append(errs, cgroup.Remove(ctx, l.groups.tree.Path()), l.groups.tree.Close())
	}
	return errors.Join(append(errs, l.dismissJanitor())...)
}

// dismissJanitor ends the janitor, which then finds no tree.
func (l *Lab) dismissJanitor() error {
	w := l.groups.janitor
	if w == nil {
		return nil
	}
	l.groups.janitor = nil
	_ = w.pipe.Close()
	return w.cmd.Wait()
}
