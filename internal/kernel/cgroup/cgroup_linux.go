// Package cgroup makes groups in the cgroup v2 tree and removes them. A group here only marks processes that belong
// together, for BPF programs and CPU attribution. No controller is enabled, so nothing is limited.
//
//	root, err := cgroup.Root()                     // where cgroup v2 is mounted
//	path := cgroup.Name(root, "cnibench")
//	tree, err := cgroup.Claim(ctx, path)           // a tree of our own, locked for as long as we live
//	node, err := tree.Child("canal/node-1")
//	child.InCgroup(cmd, node.FD())
//	err = cgroup.Remove(ctx, path)
//
// A directory in the tree outlives the program that made it; nothing else in a lab does. So the owner locks it, and the
// kernel releases the lock when the owner dies. Sweep removes the trees whose lock is free.
package cgroup

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ErrNoMount means that cgroup v2 is not mounted.
var ErrNoMount = errors.New("cgroup v2 is not mounted")

// Root returns the directory where cgroup v2 is mounted: /sys/fs/cgroup, or a directory next to the v1 controllers on a
// hybrid machine. It fails with ErrNoMount if cgroup v2 is not mounted.
func Root() (string, error) { return mountPoint("cgroup2", "", ErrNoMount) }

// ErrNoHierarchy means that a controller has no cgroup v1 hierarchy: the controller is in the v2 tree, or does not exist.
var ErrNoHierarchy = errors.New("it has no cgroup v1 hierarchy")

// Hierarchy returns the directory where the cgroup v1 hierarchy of a controller, such as "cpu", is mounted. It fails
// with ErrNoHierarchy if there is none. Groups there have the controller's default limits: none for cpu. Unlike in the
// v2 tree, Remove cannot kill what runs in them.
func Hierarchy(controller string) (string, error) {
	return mountPoint("cgroup", controller, fmt.Errorf("controller %s: %w", controller, ErrNoHierarchy))
}

func mountPoint(kind, option string, absent error) (string, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return "", err
	}
	if at := findMount(mounts, kind, option); at != "" {
		return at, nil
	}
	return "", absent
}

// escapes decodes the octal escapes of /proc/mounts for spaces, tabs, newlines and backslashes.
var escapes = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// findMount returns the mount point of the first file system of type kind. If option is not "", the file system must
// have that option. It returns "" if there is none.
func findMount(mounts []byte, kind, option string) string {
	for line := range strings.Lines(string(mounts)) {
		f := strings.Fields(line)
		if len(f) >= 4 && f[2] == kind && (option == "" || slices.Contains(strings.Split(f[3], ","), option)) {
			return escapes.Replace(f[1])
		}
	}
	return ""
}

// Group is an open directory of the cgroup tree.
type Group struct {
	path string
	dir  *os.File
}

// Name returns a unique path for a tree in root: <root>/<prefix>-<pid>-<random>.
func Name(root, prefix string) string {
	return filepath.Join(root, fmt.Sprintf("%s-%d-%s", prefix, os.Getpid(), rand.Text()[:8]))
}

// Claim makes the tree at path and locks it. While another process has the lock, it tries again until ctx is done.
func Claim(ctx context.Context, path string) (*Group, error) {
	// Sweep in another process may remove the new tree between mkdir and lock, because its lock is free; then it is
	// made again.
	retry := time.NewTicker(time.Millisecond)
	defer retry.Stop()
	for {
		if g, err := tryClaim(path); g != nil || err != nil {
			return g, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("make cgroup %s: %w", path, ctx.Err())
		case <-retry.C:
		}
	}
}

// tryClaim makes one attempt to make and lock the tree at path. It returns neither a group nor an error if another process
// has the lock or removed the directory.
func tryClaim(path string) (*Group, error) {
	if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make cgroup: %w", err)
	}
	g, err := openGroup(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	locked, err := g.tryLock()
	if locked && g.isCurrent() {
		return g, nil
	}
	return nil, errors.Join(err, g.Close())
}

// isCurrent reports whether the directory of g is still the one at its path. Another process may have removed it, and
// a new one may have been made, between opening and locking it.
func (g *Group) isCurrent() bool {
	mine, err := g.dir.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(g.path)
	return err == nil && os.SameFile(mine, there)
}

func openGroup(path string) (*Group, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open cgroup: %w", err)
	}
	return &Group{path: path, dir: dir}, nil
}

// tryLock takes the lock on the directory. It returns false if another process has the lock.
func (g *Group) tryLock() (bool, error) {
	err := unix.Flock(int(g.dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, os.NewSyscallError("flock", err)
}

// Child makes the group at name below g, with every group between.
func (g *Group) Child(name string) (*Group, error) {
	path := filepath.Join(g.path, name)
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("make cgroup: %w", err)
	}
	return openGroup(path)
}

// Path returns the path of the directory.
func (g *Group) Path() string { return g.path }

// FD returns the descriptor of the directory, valid until Close.
func (g *Group) FD() int { return int(g.dir.Fd()) }

// Close closes the descriptor, which releases the lock of a claimed group; the directory stays. Closing a nil group
// does nothing.
func (g *Group) Close() error {
	if g == nil {
		return nil
	}
	return g.dir.Close()
}

// Remove kills the processes in the tree at path (cgroup v2 only), waits until they have ended, and removes the tree.
// It fails if ctx is done before. A missing tree is not an error.
func Remove(ctx context.Context, path string) error {
	if err := writeFile(filepath.Join(path, "cgroup.kill"), "1"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("kill what runs in %s: %w", path, err)
	}
	retry := time.NewTicker(5 * time.Millisecond)
	defer retry.Stop()
	for {
		err := removeTree(path)
		if err == nil || !errors.Is(err, unix.EBUSY) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("remove cgroup: %w", errors.Join(err, ctx.Err()))
		case <-retry.C:
		}
	}
}

// removeTree removes the directories of a tree, the deepest first. The kernel removes the files of a cgroup.
func removeTree(path string) error {
	var dirs []string
	err := filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if d.IsDir() {
			dirs = append(dirs, p)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, d := range slices.Backward(dirs) {
		if err := unix.Rmdir(d); err != nil && !errors.Is(err, unix.ENOENT) {
			return &os.PathError{Op: "rmdir", Path: d, Err: err}
		}
	}
	return nil
}

// Sweep removes every tree <root>/<prefix>-* whose owner has died. It returns the paths of the removed trees.
func Sweep(ctx context.Context, root, prefix string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(root, prefix+"-*"))
	if err != nil {
		return nil, err
	}
	var swept []string
	var errs []error
	for _, path := range paths {
		done, err := sweepTree(ctx, path)
		errs = append(errs, err)
		if done {
			swept = append(swept, path)
		}
	}
	return swept, errors.Join(errs...)
}

func sweepTree(ctx context.Context, path string) (bool, error) {
	g, err := openGroup(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer g.Close()
	free, err := g.tryLock()
	if err != nil || !free || !g.isCurrent() {
		return false, err
	}
	return true, Remove(ctx, path)
}

// Join moves this process, with all its threads, into the cgroup of a directory.
func Join(path string) error {
	if err := writeFile(filepath.Join(path, "cgroup.procs"), "0"); err != nil {
		return fmt.Errorf("join cgroup %s: %w", path, err)
	}
	return nil
}

func writeFile(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
