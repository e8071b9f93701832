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
	// here means that every thread of the program is inside already.
	here bool
}

// threadNS is the namespace of the calling thread; /proc/self would be the main thread's.
const threadNS = "/proc/thread-self/ns/net"

// New makes an empty namespace with its loopback down. It needs CAP_SYS_ADMIN in the user namespace.
func New() (*NS, error) {
	var ns *NS
	err := onThread(func() error {
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

// Here returns the namespace of a program that enters no other: Do runs fn on the calling thread, and so does not need
// the right to enter namespaces, which a pod lacks.
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

// FD returns the descriptor, valid until Close.
func (n *NS) FD() int { return int(n.f.Fd()) }

// Inode returns the number that identifies the namespace on this machine while it exists.
func (n *NS) Inode() (uint64, error) {
	var st unix.Stat_t
	if err := unix.Fstat(n.FD(), &st); err != nil {
		return 0, os.NewSyscallError("fstat", err)
	}
	return st.Ino, nil
}

// Close closes the descriptor; the namespace is removed when it has no processes.
func (n *NS) Close() error {
	if n == nil || n.f == nil {
		return nil
	}
	return n.f.Close()
}

// Do runs fn on a thread that is inside n. fn must not start goroutines that expect to be inside. Sockets that fn
// makes stay in n for life and may be used from any thread; files under /proc/sys/net and /proc/thread-self/net
// that fn opens are n's.
func (n *NS) Do(fn func() error) error {
	if n.here {
		return fn()
	}
	return onThread(func() error {
		if err := unix.Setns(n.FD(), unix.CLONE_NEWNET); err != nil {
			return os.NewSyscallError("setns", err)
		}
		return fn()
	})
}

// onThread runs fn on its own thread. The thread is never unlocked, so the runtime destroys it when the goroutine ends:
// a thread that was in another namespace must not be used again.
func onThread(fn func() error) error {
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

// Starter starts processes inside namespaces from one thread that lives as long as the program. The kernel sends a
// parent-death signal when the starting *thread* ends, so here it means the end of the program. A nil *NS starts the
// process in the program's namespace.
type Starter struct{ jobs chan job }

type job struct {
	ns   *NS
	cmd  *exec.Cmd
	cpus []int
	done chan error
}

// NewStarter starts the thread. Close it only when its processes may be killed.
func NewStarter() *Starter {
	s := &Starter{jobs: make(chan job)}
	go s.loop()
	return s
}

// Start starts cmd inside ns; the process gets SIGKILL when this program dies. The caller waits for cmd. It begins on
// the given CPUs, and may move to others later. Without CPUs it may use the program's.
func (s *Starter) Start(ns *NS, cmd *exec.Cmd, cpus ...int) error {
	j := job{ns: ns, cmd: cmd, cpus: cpus, done: make(chan error, 1)}
	s.jobs <- j
	return <-j.done
}

// Close ends the thread, and with it every process that it started and that still runs.
func (s *Starter) Close() { close(s.jobs) }

func (s *Starter) loop() {
	runtime.LockOSThread() // never unlocked: the thread changes namespaces
	home, err := Current()
	for j := range s.jobs {
		if err != nil {
			j.done <- err
			continue
		}
		j.done <- j.startOn(home)
	}
	if err == nil {
		// An error here has no remedy, and the thread ends here anyway.
		_ = home.Close()
	}
}

// startOn confines the thread while it starts the process, which inherits the affinity.
func (j job) startOn(home *NS) error {
	if len(j.cpus) == 0 {
		return startIn(home, j.ns, j.cmd)
	}
	all, err := thread.CPUs()
	if err != nil {
		return err
	}
	if err := thread.SetCPUs(j.cpus); err != nil {
		return err
	}
	err = startIn(home, j.ns, j.cmd)
	return errors.Join(err, thread.SetCPUs(all))
}

func startIn(home, ns *NS, cmd *exec.Cmd) error {
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
