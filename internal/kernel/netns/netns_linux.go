// Package netns makes network namespaces that are owned by a file descriptor and never named in the file system. Code
// enters namespaces only through this package.
//
// A namespace made here is removed, with every link, route and rule in it, when its last descriptor is closed and the
// last process in it has ended: exit is cleanup, even after kill -9. Pass namespaces, handles and sockets around; there
// is no "current namespace" outside Do.
package netns

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kernel/thread"
)

// NS is a network namespace held by a descriptor. The zero value is not usable; create one with New, Current or Here.
type NS struct {
	f *os.File
	// here means that every thread of the process is in the namespace already.
	here bool
}

// threadNS is the namespace of the calling thread; /proc/self would be the main thread's.
const threadNS = "/proc/thread-self/ns/net"

// New makes an empty namespace with its loopback down. It needs CAP_SYS_ADMIN in the user namespace.
func New() (*NS, error) {
	var ns *NS
	err := runOnThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return os.NewSyscallError("unshare", err)
		}
		f, err := os.Open(threadNS)
		if err != nil {
			return err
		}
		ns = &NS{f: f}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("make network namespace: %w", err)
	}
	return ns, nil
}

// Current returns the namespace of the calling thread.
func Current() (*NS, error) {
	f, err := os.Open(threadNS)
	if err != nil {
		return nil, fmt.Errorf("open own network namespace: %w", err)
	}
	return &NS{f: f}, nil
}

// Here returns the namespace of this process, which must never enter another one. Its Do runs fn on the calling thread.
// So Do does not need the right to enter namespaces, which a pod lacks.
func Here() (*NS, error) {
	ns, err := Current()
	if err != nil {
		return nil, err
	}
	ns.here = true
	return ns, nil
}

// FromFile returns the namespace of f, for example a descriptor from another process. The namespace owns f afterwards.
func FromFile(f *os.File) *NS { return &NS{f: f} }

// FD returns the file descriptor, which is valid until Close.
func (n *NS) FD() int { return int(n.f.Fd()) }

// Inode returns the number that identifies the namespace on this machine while it exists.
func (n *NS) Inode() (uint64, error) {
	var st unix.Stat_t
	if err := unix.Fstat(n.FD(), &st); err != nil {
		return 0, os.NewSyscallError("fstat", err)
	}
	return st.Ino, nil
}

// Close closes the descriptor. The kernel removes the namespace when no process and no other descriptor holds it.
func (n *NS) Close() error {
	if n == nil || n.f == nil {
		return nil
	}
	return n.f.Close()
}

// Do runs fn on a thread that is inside n, and returns the error of fn. Goroutines that fn starts are not inside n. Sockets
// that fn makes stay in n and may be used from any thread. Files under /proc/sys/net and /proc/thread-self/net that fn
// opens belong to n.
func (n *NS) Do(fn func() error) error {
	if n.here {
		return fn()
	}
	return runOnThread(func() error {
		if err := unix.Setns(n.FD(), unix.CLONE_NEWNET); err != nil {
			return os.NewSyscallError("setns", err)
		}
		return fn()
	})
}

// runOnThread runs fn on a new thread. The thread is never unlocked, so the runtime destroys it when the goroutine ends:
// a thread that was in another namespace must not be used again.
func runOnThread(fn func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		// A panic in fn must reach the caller as an error, since it occurs in another goroutine.
		defer func() {
			if r := recover(); r != nil {
				done <- fmt.Errorf("panic in namespace: %v", r)
			}
		}()
		done <- fn()
	}()
	return <-done
}

// Starter starts processes inside namespaces from one thread that lives until Close. The kernel kills these processes
// when that thread ends: at Close, or when this program ends.
type Starter struct{ jobs chan job }

type job struct {
	ns   *NS
	cmd  *exec.Cmd
	cpus []int
	done chan error
}

// NewStarter returns a Starter, and starts its thread. Close kills the processes that still run.
func NewStarter() *Starter {
	s := &Starter{jobs: make(chan job)}
	go s.runJobs()
	return s
}

// Start starts cmd inside ns; nil means the namespace of this program. The caller must wait for cmd. The process gets
// SIGKILL at Close or when this program dies. It inherits the given CPUs; without CPUs, those of this program.
func (s *Starter) Start(ns *NS, cmd *exec.Cmd, cpus ...int) error {
	j := job{ns: ns, cmd: cmd, cpus: cpus, done: make(chan error, 1)}
	s.jobs <- j
	return <-j.done
}

// Close ends the thread. The kernel then kills every process that the thread started and that still runs.
func (s *Starter) Close() { close(s.jobs) }

func (s *Starter) runJobs() {
	runtime.LockOSThread() // never unlocked: the thread changes namespaces
	home, err := Current()
	for j := range s.jobs {
		if err != nil {
			j.done <- err
			continue
		}
		j.done <- j.startProcess(home)
	}
	if err == nil {
		// An error here has no remedy, and the thread ends here anyway.
		_ = home.Close()
	}
}

// startProcess starts the process of the job. Meanwhile it confines the thread to the CPUs of the job, which the process
// inherits.
func (j job) startProcess(home *NS) error {
	if len(j.cpus) == 0 {
		return startCommand(home, j.ns, j.cmd)
	}
	all, err := thread.CPUs()
	if err != nil {
		return err
	}
	if err := thread.SetCPUs(j.cpus); err != nil {
		return err
	}
	err = startCommand(home, j.ns, j.cmd)
	return errors.Join(err, thread.SetCPUs(all))
}

// startCommand starts cmd inside ns; nil means the current namespace. It then moves the thread back to home.
func startCommand(home, ns *NS, cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &unix.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = unix.SIGKILL
	if ns != nil {
		if err := unix.Setns(ns.FD(), unix.CLONE_NEWNET); err != nil {
			return os.NewSyscallError("setns", err)
		}
	}
	err := cmd.Start()
	if ns != nil {
		if back := unix.Setns(home.FD(), unix.CLONE_NEWNET); back != nil && err == nil {
			err = os.NewSyscallError("setns back", back)
		}
	}
	return err
}
