package sock

import (
	"syscall"
	"testing"
	"time"
)

// TestAwait: it ends when bytes come, when there is room, and when the time is up; and DontWait never waits.
func TestAwait(t *testing.T) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer Close(pair[0])
	defer Close(pair[1])
	b := make([]byte, 8)
	if _, e := Recv(pair[0], b, DontWait); e != syscall.EAGAIN {
		t.Errorf("nothing is there, and Recv says %v", e)
	}
	begin := time.Now()
	e := Await(pair[0], Input, int64(2*time.Millisecond))
	for e == syscall.EINTR { // the runtime sends signals
		e = Await(pair[0], Input, int64(2*time.Millisecond))
	}
	if e != 0 || time.Since(begin) < 2*time.Millisecond {
		t.Errorf("Await of nothing: %v after %v", e, time.Since(begin))
	}
	const forever = int64(time.Minute)
	if e := Await(pair[0], Input|Output, forever); e != 0 {
		t.Errorf("there is room to send, and Await says %v", e)
	}
	if _, e := Send(pair[1], b, DontWait); e != 0 {
		t.Fatal(e)
	}
	if e := Await(pair[0], Input, forever); e != 0 {
		t.Errorf("bytes have come, and Await says %v", e)
	}
	if n, e := Recv(pair[0], b, DontWait); n != len(b) || e != 0 {
		t.Errorf("Recv: %d, %v", n, e)
	}
	if e := Await(-1, Input, 0); e != 0 {
		t.Errorf("a descriptor that is none is passed over, and a limit of 0 does not wait: %v", e)
	}
}
