package child

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/proc"
	"github.com/cnibench/cnibench/internal/kernel/thread"
)

// ErrTooMuch is the error of a process that was killed because it wrote more than its limit.
var ErrTooMuch = errors.New("it wrote too much")

// Options define which program runs, and how.
type Options struct {
	// Argv is the program's path and its arguments.
	Argv []string
	// Env is its complete environment.
	Env []string
	// CPUs are the CPUs that it may use; empty means those of the calling process.
	CPUs []int
	// Limit is the maximum output in bytes, for stdout and for stderr separately.
	Limit int
}

// Process is a running program.
type Process struct {
	cmd            *exec.Cmd
	stdout, stderr Bounded
	// ended is closed when the process has been waited for; err may be read after that.
	ended chan struct{}
	err   error
}

// Start starts the program, which gets SIGKILL when this process dies. It fails if the program or one of its CPUs
// does not exist.
func Start(o Options) (*Process, error) {
	p := &Process{cmd: exec.Command(o.Argv[0], o.Argv[1:]...), ended: make(chan struct{})}
	p.stdout, p.stderr = Bounded{Limit: o.Limit, Burst: p.Kill}, Bounded{Limit: o.Limit, Burst: p.Kill}
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = o.Env, &p.stdout, &p.stderr
	// Its own process group, so that the program's children can be killed with it.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	// Children that outlive the program may hold its pipes open.
	p.cmd.WaitDelay = time.Second
	started := make(chan error)
	go p.startAndWait(o.CPUs, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", o.Argv[0], err)
	}
	return p, nil
}

// startAndWait starts the process and waits for it on one thread: the kernel sends the parent-death signal when the thread
// that started the process ends. The thread ends with the goroutine, because its CPU affinity differs.
func (p *Process) startAndWait(cpus []int, started chan<- error) {
	runtime.LockOSThread()
	if len(cpus) > 0 {
		if err := thread.SetCPUs(cpus); err != nil {
			started <- err
			return
		}
	}
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	started <- nil
	p.err = p.cmd.Wait()
	// Processes that the program started may still run in its group.
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	close(p.ended)
}

// Ended returns a channel that is closed when the process has ended and has been waited for.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Err returns how the process ended: nil for success, ErrTooMuch, or the error of the wait, such as an
// *exec.ExitError. Call it after the end.
func (p *Process) Err() error {
	if p.stdout.Over() || p.stderr.Over() {
		return ErrTooMuch
	}
	return p.err
}

// Kill kills the process and its process group. It does nothing after the end of the process.
func (p *Process) Kill() {
	select {
	case <-p.ended:
	default:
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	}
}

// Stdout returns what the process has written to its standard output, at most Limit bytes.
func (p *Process) Stdout() []byte { return p.stdout.Bytes() }

// Stderr returns what the process has written to its standard error, at most Limit bytes.
func (p *Process) Stderr() []byte { return p.stderr.Bytes() }

// CPU returns the CPU time in ns of all threads of the process. After the end of the process, it includes the children
// that the process waited for.
func (p *Process) CPU() (int64, error) {
	select {
	case <-p.ended:
		s := p.cmd.ProcessState
		return int64(s.UserTime() + s.SystemTime()), nil
	default:
		return proc.ProcessCPU(p.cmd.Process.Pid)
	}
}

// Bounded keeps what is written to it, up to Limit bytes. It calls Burst once, at the first write that exceeds the
// limit.
type Bounded struct {
	Limit int
	Burst func()
	mu    sync.Mutex
	buf   bytes.Buffer
	burnt bool
}

// Write keeps p. If that would exceed Limit, it keeps nothing of p and fails; the first time it also calls Burst.
func (b *Bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.buf.Len()+len(p) > b.Limit {
		if !b.burnt {
			b.burnt = true
			b.Burst()
		}
		return 0, io.ErrShortBuffer
	}
	return b.buf.Write(p)
}

// Bytes returns a copy of the kept bytes.
func (b *Bounded) Bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.buf.Bytes())
}

// Over reports whether more than the limit was written.
func (b *Bounded) Over() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.burnt
}

// Detach makes cmd start in its own session, so that Ctrl-C in the terminal does not end it.
func Detach(cmd *exec.Cmd) { sysProcAttr(cmd).Setsid = true }

// InCgroup makes cmd start in the cgroup whose directory is open as fd.
func InCgroup(cmd *exec.Cmd, fd int) {
	a := sysProcAttr(cmd)
	a.UseCgroupFD, a.CgroupFD = true, fd
}

// Chroot makes cmd start with root as its root directory.
func Chroot(cmd *exec.Cmd, root string) { sysProcAttr(cmd).Chroot = root }

// Replace replaces this process by the program at path. It returns only on failure.
func Replace(path string, argv, env []string) error {
	return os.NewSyscallError("execve", syscall.Exec(path, argv, env))
}

func sysProcAttr(cmd *exec.Cmd) *syscall.SysProcAttr {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	return cmd.SysProcAttr
}
