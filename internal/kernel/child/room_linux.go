package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/kernel/thread"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// Temporary is the directory for temporary files in a room.
const Temporary = "/run/tmp"

// layers is the directory in a room that stores what is written to /var/lib and /etc.
const layers = "/run/.room"

// layered are the directories over which a room mounts a writable layer in memory.
var layered = []string{"/var/lib", "/etc"}

// Room runs the user's programs in a network namespace without letting them touch the machine's files:
//
//	r, err := child.OpenRoom(ns, cpus)
//	cmd := r.Command(ctx, "/opt/cni/bin/bridge")    dies with this program, and its children with its process group
//	err = r.Do(cmd.Start)                           on the thread of the room
//	r.Close()                                       ends what still runs, and drops what was written
//
// A room is a thread in the network namespace, with its own mount namespace. /run is empty there; /var/lib and /etc are
// the machine's with a layer of memory above them. So only programs of the same room see what programs write below
// these directories (addresses of IPAM, locks, sockets, subnet files). It is lost with the room, even after kill -9.
// Other directories are the machine's.
type Room struct {
	jobs chan func()
	once sync.Once
	// ended is closed when the thread has ended.
	ended chan struct{}
}

// OpenRoom makes a room in ns. Its programs may use the given CPUs; no CPUs means any.
func OpenRoom(ns *netns.NS, cpus []int) (*Room, error) {
	r := &Room{jobs: make(chan func()), ended: make(chan struct{})}
	opened := make(chan error)
	go r.runJobs(ns, cpus, opened)
	if err := <-opened; err != nil {
		return nil, fmt.Errorf("private directories of a node: %w", err)
	}
	return r, nil
}

// runJobs executes the jobs of the room until Close. Its thread is never unlocked, so the thread and its namespaces end
// with the goroutine.
func (r *Room) runJobs(ns *netns.NS, cpus []int, opened chan<- error) {
	runtime.LockOSThread()
	defer close(r.ended)
	err := enterNamespaces(ns)
	if err == nil && len(cpus) > 0 {
		err = thread.SetCPUs(cpus)
	}
	opened <- err
	if err != nil {
		return
	}
	for do := range r.jobs {
		do()
	}
}

// enterNamespaces moves the thread into ns and into a new mount namespace with an empty /run and the layers.
func enterNamespaces(ns *netns.NS) error {
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
		return os.NewSyscallError("unshare", err)
	}
	if err := unix.Setns(ns.FD(), unix.CLONE_NEWNET); err != nil {
		return os.NewSyscallError("setns", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return os.NewSyscallError("make mounts private", err)
	}
	if err := unix.Mount("cnibench", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
		return os.NewSyscallError("mount /run", err)
	}
	for _, dir := range []string{Temporary, "/run/lock", "/run/netns", layers} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	for _, dir := range layered {
		if err := mountLayer(dir); err != nil {
			return advice.With(fmt.Errorf("layer over %s: %w", dir, err), "run as root, on a kernel with overlayfs (CONFIG_OVERLAY_FS)")
		}
	}
	return nil
}

// mountLayer mounts a writable layer in memory over a directory. It does nothing if the machine lacks the directory.
func mountLayer(dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	own := filepath.Join(layers, strings.ReplaceAll(dir[1:], "/", "-"))
	upper, work := own+"/upper", own+"/work"
	if err := errors.Join(os.MkdirAll(upper, 0o755), os.MkdirAll(work, 0o755)); err != nil {
		return err
	}
	options := "lowerdir=" + dir + ",upperdir=" + upper + ",workdir=" + work
	err := unix.Mount("cnibench", dir, "overlay", 0, options)
	if err != nil { // in a user namespace
		err = unix.Mount("cnibench", dir, "overlay", 0, options+",userxattr")
	}
	return err
}

// ErrClosed is the error of a closed room.
var ErrClosed = errors.New("the node has ended")

// Do runs fn on the thread of the room, so that fn sees the files of the room. It returns fn's error, a panic of fn
// as an error, or ErrClosed.
func (r *Room) Do(fn func() error) (err error) {
	done := make(chan struct{})
	job := func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic in a room: %v", p)
			}
		}()
		err = fn()
	}
	defer func() {
		if recover() != nil { // the room was closed
			err = ErrClosed
		}
	}()
	r.jobs <- job
	<-done
	return err
}

// Command returns a command that runs in the room if it is started by Do(cmd.Start). When ctx ends, the command's
// process group is killed.
func (r *Room) Command(ctx context.Context, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL, Setpgid: true}
	cmd.Cancel = func() error { return Signal(cmd, unix.SIGKILL) }
	// A child that outlives the program may hold its pipes open.
	cmd.WaitDelay = time.Second
	return cmd
}

// Signal sends a signal to the process group of a command. It does nothing before the start, or if the group has
// no process left.
func Signal(cmd *exec.Cmd, signal syscall.Signal) error {
	if cmd.Process == nil {
		return nil
	}
	err := unix.Kill(-cmd.Process.Pid, signal)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// Close ends the thread, which kills the programs that it started, and removes the directories. A second Close does
// nothing.
func (r *Room) Close() {
	if r == nil {
		return
	}
	r.once.Do(func() { close(r.jobs) })
	<-r.ended
}
