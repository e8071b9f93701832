package thread

import (
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// onThread runs fn on a locked thread that ends with it.
func onThread(fn func()) {
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer close(done)
		fn()
	}()
	<-done
}

func TestClocksCountWork(t *testing.T) {
	onThread(func() {
		begin, process, wall := CPUTime(), ProcessCPUTime(), Monotonic()
		for CPUTime()-begin < int64(5*time.Millisecond) {
		}
		used := CPUTime() - begin
		if p := ProcessCPUTime() - process; p < used/2 {
			t.Errorf("the process used %d ns, the thread %d", p, used)
		}
		if w := Monotonic() - wall; w < int64(4*time.Millisecond) {
			t.Errorf("%d ns went by while %d ns were used", w, used)
		}
	})
}

// TestCPUTimeOfAnother reads the clock of another thread, and none of another process.
func TestCPUTimeOfAnother(t *testing.T) {
	ids, goOn := make(chan int), make(chan bool)
	go func() {
		runtime.LockOSThread() // ends with its goroutine
		ids <- ID()
		<-goOn
		for begin := CPUTime(); CPUTime()-begin < int64(5*time.Millisecond); {
		}
		ids <- ID()
		<-goOn
	}()
	id := <-ids
	before, ok := CPUTimeOf(id)
	if !ok || before < 0 {
		t.Fatalf("before: %d, %v", before, ok)
	}
	goOn <- true
	<-ids
	after, ok := CPUTimeOf(id)
	if !ok || after-before < int64(5*time.Millisecond) {
		t.Errorf("a thread that used 5 ms more used %d ns, %v", after-before, ok)
	}
	close(goOn)
	if _, ok := CPUTimeOf(os.Getppid()); ok {
		t.Error("the clock of another process can be read")
	}
}

func TestSleepUntilDoesNotReturnEarlyAndUsesNoCPU(t *testing.T) {
	onThread(func() {
		if err := SharpTimers(); err != nil {
			t.Error(err)
		}
		at, used := Monotonic()+int64(20*time.Millisecond), CPUTime()
		for Monotonic() < at {
			SleepUntil(at)
		}
		if used = CPUTime() - used; used > int64(10*time.Millisecond) {
			t.Errorf("sleeping used %d ns of CPU", used)
		}
		SleepUntil(-1) // the past returns at once
	})
}

// TestPulseInterruptsAndStops: a read that would block for ever returns EINTR, again and again, and on no other thread.
func TestPulseInterruptsAndStops(t *testing.T) {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[0])
	onThread(func() {
		p, err := StartPulse(time.Millisecond)
		if err != nil {
			t.Error(err)
			return
		}
		for range 3 {
			if _, err := unix.Read(pipe[0], make([]byte, 1)); err != unix.EINTR {
				t.Errorf("read: %v", err)
			}
		}
		p.Stop()
		at, slept := Monotonic()+int64(50*time.Millisecond), 0
		for Monotonic() < at {
			SleepUntil(at)
			slept++
		}
		if slept > 20 { // the Go scheduler sends signals of its own, each 10 ms
			t.Errorf("a sleep was interrupted %d times after the pulse had stopped", slept)
		}
	})
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		_, err := unix.Read(pipe[0], make([]byte, 1))
		done <- err
	}()
	onThread(func() {
		p, err := StartPulse(time.Millisecond)
		if err != nil {
			t.Error(err)
			return
		}
		defer p.Stop()
		at := Monotonic() + int64(30*time.Millisecond)
		for Monotonic() < at {
			SleepUntil(at)
		}
	})
	select {
	case err := <-done:
		t.Errorf("another thread's read ended: %v", err)
	default:
	}
	unix.Close(pipe[1])
	if err := <-done; err != nil {
		t.Errorf("read: %v", err)
	}
}

// TestOwnDescriptors: the thread keeps one socket and its files, others lose nothing, and what it opens is its own.
func TestOwnDescriptors(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	valid := func(fd int) bool {
		_, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		return err == nil
	}
	var kept, dropped, file bool
	opened := -1
	onThread(func() {
		if err = OwnDescriptors(pair[0]); err != nil {
			return
		}
		kept, dropped, file = valid(pair[0]), !valid(pair[1]), valid(1)
		opened, _ = unix.FcntlInt(uintptr(pair[0]), unix.F_DUPFD_CLOEXEC, 1000)
		_ = unix.Close(opened)
		_ = unix.Close(pair[0])
	})
	if err != nil {
		t.Skip("this kernel gives threads no descriptor table of their own: ", err)
	}
	if !kept || !dropped || !file || opened != 1000 {
		t.Errorf("kept %v, other socket dropped %v, stdout kept %v, opened %d", kept, dropped, file, opened)
	}
	if !valid(pair[0]) || !valid(pair[1]) {
		t.Error("the process lost a socket")
	}
	// The thread's copy does not hold the connection open.
	_ = unix.Close(pair[0])
	if n, err := unix.Read(pair[1], make([]byte, 1)); n != 0 || err != nil {
		t.Errorf("read %d bytes after the peer's end was closed: %v", n, err)
	}
	_ = unix.Close(pair[1])
}
