package sock

import (
	"net/netip"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// listener returns a listening socket that does not wait, and its address.
func listener(t *testing.T) (int, Addr) {
	t.Helper()
	fd, e := Socket(unix.AF_INET, unix.SOCK_STREAM|NonBlocking, 0)
	if e != 0 {
		t.Fatal(e)
	}
	t.Cleanup(func() { Close(fd) })
	any := NewAddr(netip.MustParseAddrPort("127.0.0.1:0"), unix.AF_INET)
	if e := Bind(fd, &any); e != 0 {
		t.Fatal(e)
	}
	if e := Listen(fd, 8); e != 0 {
		t.Fatal(e)
	}
	at, err := Local(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fd, at
}

// reported waits for one report and fails the test if it is not about tag with one of what.
func reported(t *testing.T, p *Poll, what, tag uint32) {
	t.Helper()
	n, e := p.WaitPolite(5000)
	if e != 0 || n != 1 {
		t.Fatalf("%d reports, %v", n, e)
	}
	if gotWhat, gotTag := p.Report(0); gotWhat&what == 0 || gotTag != tag {
		t.Fatalf("%#x of tag %#x, want %#x of %#x", gotWhat, gotTag, what, tag)
	}
}

func TestPoll(t *testing.T) {
	inNamespace(t, func() error {
		p, err := OpenPoll(4)
		if err != nil {
			return err
		}
		defer p.Close()
		lfd, at := listener(t)
		const listening, client, server = 0xffff_ffff, 1, 2 // a tag may be anything
		if e := p.Add(lfd, Readable, listening); e != 0 {
			return e
		}
		if n, e := p.Wait(0); n != 0 || e != 0 {
			t.Errorf("%d reports of nothing, %v", n, e)
		}
		if _, e := AcceptNow(lfd, 0); e != syscall.EAGAIN {
			t.Errorf("accept of nothing: %v", e)
		}
		cfd, e := Socket(unix.AF_INET, unix.SOCK_STREAM|NonBlocking, 0)
		if e != 0 {
			return e
		}
		defer Close(cfd)
		if e := Connect(cfd, &at); e != 0 && e != syscall.EINPROGRESS {
			return e
		}
		reported(t, p, Readable, listening)
		sfd, e := AcceptNow(lfd, NonBlocking)
		if e != 0 {
			return e
		}
		defer Close(sfd)
		if e := p.Add(cfd, Writable, client); e != 0 {
			return e
		}
		reported(t, p, Writable, client)
		if e := Failure(cfd); e != 0 {
			t.Errorf("a connect that went well holds %v", e)
		}
		checkEdge(t, p, cfd, sfd, client, server)
		return nil
	})
}

// checkEdge: on an edge, unread data are reported once, new data and the end of the peer's direction once more.
func checkEdge(t *testing.T, p *Poll, cfd, sfd int, client, server uint32) {
	t.Helper()
	if e := p.Change(cfd, Readable, client); e != 0 {
		t.Fatal(e)
	}
	if e := p.Add(sfd, Readable|PeerClosed|Edge, server); e != 0 {
		t.Fatal(e)
	}
	for range 2 {
		if _, e := Send(cfd, []byte("ping"), 0); e != 0 {
			t.Fatal(e)
		}
		reported(t, p, Readable, server)
		if n, e := p.Wait(0); n != 0 || e != 0 {
			t.Errorf("unread data are reported again: %d, %v", n, e)
		}
	}
	Shutdown(cfd)
	n, e := p.WaitPolite(5000)
	if e != 0 || n == 0 {
		t.Fatal(n, e)
	}
	seen := false
	for i := range n {
		what, tag := p.Report(i)
		seen = seen || tag == server && what&PeerClosed != 0
	}
	if !seen {
		t.Error("the end of the peer is not reported")
	}
}

func TestFailureOfAConnect(t *testing.T) {
	inNamespace(t, func() error {
		lfd, at := listener(t)
		Close(lfd)
		fd, e := Socket(unix.AF_INET, unix.SOCK_STREAM|NonBlocking, 0)
		if e != 0 {
			return e
		}
		defer Close(fd)
		if e = Connect(fd, &at); e == syscall.EINPROGRESS {
			e = Failure(fd)
		}
		if e != syscall.ECONNREFUSED {
			t.Errorf("%v", e)
		}
		return nil
	})
}

func TestPollAllocatesNothing(t *testing.T) {
	p, err := OpenPoll(4)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	fd, e := Socket(unix.AF_UNIX, unix.SOCK_DGRAM|NonBlocking, 0)
	if e != 0 {
		t.Fatal(e)
	}
	defer Close(fd)
	if e := p.Add(fd, Writable, 1); e != 0 {
		t.Fatal(e)
	}
	if n := testing.AllocsPerRun(100, func() {
		if e := p.Change(fd, Writable, 7); e != 0 {
			t.Error(e)
		}
		if n, e := p.Wait(0); n != 1 || e != 0 {
			t.Error(n, e)
		}
		if _, tag := p.Report(0); tag != 7 {
			t.Error(tag)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestDescriptors(t *testing.T) {
	n, err := Descriptors()
	if err != nil || n < 3 {
		t.Errorf("%d, %v", n, err)
	}
}
