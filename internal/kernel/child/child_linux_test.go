package child

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/thread"
)

func run(t *testing.T, script string, o Options) *Process {
	t.Helper()
	o.Argv = []string{"/bin/sh", "-c", script}
	if o.Limit == 0 {
		o.Limit = 1 << 20
	}
	p, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

func TestProcess(t *testing.T) {
	cpus, err := thread.CPUs()
	if err != nil {
		t.Fatal(err)
	}
	last := cpus[len(cpus)-1]
	p := run(t, `echo "$A $B"; echo oh >&2; grep Cpus_allowed_list /proc/self/status; exit 3`, Options{Env: []string{"A=1", "PATH=/usr/bin:/bin"}, CPUs: []int{last}})
	<-p.Ended()
	want := fmt.Sprintf("1 \nCpus_allowed_list:\t%d\n", last)
	if got := string(p.Stdout()); got != want || string(p.Stderr()) != "oh\n" {
		t.Errorf("got %q and %q, want %q", got, p.Stderr(), want)
	}
	var exit *exec.ExitError
	if !errors.As(p.Err(), &exit) || exit.ExitCode() != 3 {
		t.Errorf("got %v", p.Err())
	}
	if cpu, err := p.CPU(); err != nil || cpu <= 0 {
		t.Errorf("%d ns, %v", cpu, err)
	}
	p.Kill() // it has ended
	if now, err := thread.CPUs(); err != nil || len(now) != len(cpus) {
		t.Errorf("this test may use CPUs %v now, %v", now, err)
	}
}

func TestTooMuch(t *testing.T) {
	p := run(t, "exec yes", Options{Env: []string{"PATH=/usr/bin:/bin"}, Limit: 1000})
	<-p.Ended()
	if !errors.Is(p.Err(), ErrTooMuch) || len(p.Stdout()) > 1000 {
		t.Errorf("%d bytes, %v", len(p.Stdout()), p.Err())
	}
}

// TestKillTakesChildren: the shell's child holds a FIFO open for writing, whose reader sees it start and die.
func TestKillTakesChildren(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "alive")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	p := run(t, "sleep 1000 >"+fifo+" & read x </dev/zero", Options{Env: []string{"PATH=/usr/bin:/bin"}})
	opened := make(chan *os.File)
	go func() {
		alive, _ := os.Open(fifo) // waits for the writer
		opened <- alive
	}()
	var alive *os.File
	select {
	case alive = <-opened:
	case <-p.Ended():
		t.Fatalf("it ended: %v %s", p.Err(), p.Stderr())
	}
	defer alive.Close()
	if cpu, err := p.CPU(); err != nil || cpu <= 0 {
		t.Errorf("while it runs: %d ns, %v", cpu, err)
	}
	p.Kill()
	<-p.Ended()
	if err := alive.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(alive); err != nil {
		t.Fatalf("its child lives: %v", err)
	}
}

func TestNoProgram(t *testing.T) {
	if _, err := Start(Options{Argv: []string{"/no/such"}}); err == nil || !strings.Contains(err.Error(), "start /no/such: ") {
		t.Error(err)
	}
	if _, err := Start(Options{Argv: []string{"/bin/true"}, CPUs: []int{1000}}); err == nil {
		t.Error("it runs on a CPU that is not there")
	}
}
