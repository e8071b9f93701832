package sock

import (
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func TestAddrRoundTrip(t *testing.T) {
	for _, c := range []struct {
		in     string
		family int
		want   string
	}{
		{"10.1.2.3:7000", unix.AF_INET, "10.1.2.3:7000"},
		{"10.1.2.3:7000", unix.AF_INET6, "10.1.2.3:7000"}, // mapped
		{"[fd00::1]:65535", unix.AF_INET6, "[fd00::1]:65535"},
		{"[fe80::1%7]:1", unix.AF_INET6, "[fe80::1%7]:1"},
		{"[::]:0", unix.AF_INET6, "[::]:0"},
	} {
		a := NewAddr(netip.MustParseAddrPort(c.in), c.family)
		if got := a.AddrPort().String(); got != c.want || a.Family() != c.family {
			t.Errorf("%s as family %d came back as %s, family %d", c.in, c.family, got, a.Family())
		}
	}
	if Family(netip.MustParseAddr("::ffff:1.2.3.4")) != unix.AF_INET || Family(netip.MustParseAddr("::1")) != unix.AF_INET6 {
		t.Error("family of a mapped or an IPv6 address")
	}
}

// inNamespace runs fn in a namespace of its own with the loopback up.
func inNamespace(t *testing.T, fn func() error) {
	t.Helper()
	ns, err := netns.New()
	if err != nil {
		t.Skipf("needs a network namespace of its own: %v", err)
	}
	defer ns.Close()
	err = ns.Do(func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		if err := netlink.LinkSetUp(lo); err != nil {
			return err
		}
		return fn()
	})
	if err != nil {
		t.Fatal(err)
	}
}

// timeout is shorter than the 10 ms after which the Go scheduler sends a thread in a raw call a signal: each signal
// begins the wait anew.
const timeout = 4 * time.Millisecond

// again repeats a call that a signal of the Go scheduler interrupted, as the callers of raw calls must.
func again(call func() (int, syscall.Errno)) (int, syscall.Errno) {
	for {
		if n, e := call(); e != syscall.EINTR {
			return n, e
		}
	}
}

// open opens a socket with a timeout, bound to a port of the kernel's choice.
func open(t *testing.T, kind int) (int, Addr) {
	t.Helper()
	fd, e := Socket(unix.AF_INET, kind, 0)
	if e != 0 {
		t.Fatal(e)
	}
	t.Cleanup(func() { Close(fd) })
	if err := SetTimeouts(fd, timeout); err != nil {
		t.Fatal(err)
	}
	local := NewAddr(netip.MustParseAddrPort("127.0.0.1:0"), unix.AF_INET)
	if e := Bind(fd, &local); e != 0 {
		t.Fatal(e)
	}
	local, err := Local(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fd, local
}

func TestBatchCarriesEachDatagram(t *testing.T) {
	inNamespace(t, func() error {
		a, aAddr := open(t, unix.SOCK_DGRAM)
		b, bAddr := open(t, unix.SOCK_DGRAM)
		if e := ConnectPolite(a, &bAddr); e != 0 {
			return e
		}
		out, in := NewBatch(5, 100), NewBatch(8, 60)
		for i := range out.Cap() {
			out.Buffer(i)[0] = byte(i)
		}
		if n, e := out.Send(a, 3); n != 3 || e != 0 {
			t.Errorf("sent %d, %v", n, e)
		}
		n, e := again(func() (int, syscall.Errno) { return in.Recv(b) })
		if n != 3 || e != 0 {
			t.Fatalf("received %d, %v", n, e)
		}
		for i := range n {
			if got := in.Received(i); len(got) != 60 || got[0] != byte(i) {
				t.Errorf("datagram %d: %d bytes, first %d", i, len(got), got[0])
			}
		}
		if _, e := again(func() (int, syscall.Errno) { return in.Recv(b) }); e != syscall.EAGAIN {
			t.Errorf("receive of nothing: %v", e)
		}
		if _, e := Send(b, []byte("x"), 0); e != syscall.EDESTADDRREQ {
			t.Errorf("send without a destination: %v", e)
		}
		if _, e := Send(a, []byte("from"), 0); e != 0 {
			return e
		}
		buffer := make([]byte, 10)
		n, from, e := RecvFromPolite(b, buffer)
		if e != 0 || string(buffer[:n]) != "from" || from.AddrPort() != aAddr.AddrPort() {
			t.Errorf("%q from %v, %v", buffer[:n], from.AddrPort(), e)
		}
		return nil
	})
}

func TestConnectionInheritsFromTheListener(t *testing.T) {
	inNamespace(t, func() error {
		l, addr := open(t, unix.SOCK_STREAM)
		if err := SetCongestion(l, "reno"); err != nil {
			return err
		}
		if err := SetNoDelay(l); err != nil {
			return err
		}
		if e := Listen(l, 1); e != 0 {
			return e
		}
		c, _ := open(t, unix.SOCK_STREAM)
		if e := ConnectPolite(c, &addr); e != 0 {
			return e
		}
		s, e := Accept(l)
		if e != 0 {
			return e
		}
		defer Close(s)
		if cc, err := Congestion(s); err != nil || cc != "reno" {
			t.Errorf("congestion control %q, %v", cc, err)
		}
		if on, err := unix.GetsockoptInt(s, unix.IPPROTO_TCP, unix.TCP_NODELAY); err != nil || on == 0 {
			t.Errorf("TCP_NODELAY %d, %v", on, err)
		}
		if _, e := again(func() (int, syscall.Errno) { return Recv(s, make([]byte, 1), 0) }); e != syscall.EAGAIN { // would hang without a timeout
			t.Errorf("receive of nothing: %v", e)
		}
		if _, e := Send(c, []byte("abc"), 0); e != 0 {
			return e
		}
		b := make([]byte, 3)
		if n, e := Recv(s, b, Peek|WaitAll); n != 3 || e != 0 {
			t.Errorf("peek: %d, %v", n, e)
		}
		if n, e := Recv(s, b, Trunc); n != 3 || e != 0 {
			t.Errorf("discard: %d, %v", n, e)
		}
		state, err := State(c)
		if err != nil || state.SegmentsOut < 2 || state.MSS == 0 || state.RTT == 0 {
			t.Errorf("%+v, %v", state, err)
		}
		return nil
	})
}

// TestAbortAndUnreadDataReset: closing with a reset, or with unread data, is seen as a reset by the peer.
func TestAbortAndUnreadDataReset(t *testing.T) {
	for name, spoil := range map[string]func(c, s int) error{
		"abort": func(c, _ int) error { return SetAbort(c) },
		"unread": func(_, s int) error {
			_, e := Send(s, []byte("response"), 0)
			if e != 0 {
				return e
			}
			return nil
		},
	} {
		inNamespace(t, func() error {
			l, addr := open(t, unix.SOCK_STREAM)
			if e := Listen(l, 1); e != 0 {
				return e
			}
			c, e := Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
			if e != 0 {
				return e
			}
			if e := ConnectPolite(c, &addr); e != 0 {
				return e
			}
			s, e := Accept(l)
			if e != 0 {
				return e
			}
			defer Close(s)
			if err := spoil(c, s); err != nil {
				return err
			}
			Close(c)
			if _, e := again(func() (int, syscall.Errno) { return Recv(s, make([]byte, 1), 0) }); e != syscall.ECONNRESET {
				t.Errorf("%s: the peer sees %v", name, e)
			}
			return nil
		})
	}
}

func TestSendFile(t *testing.T) {
	inNamespace(t, func() error {
		file, err := MemoryFile([]byte("0123456789"))
		if err != nil {
			return err
		}
		defer Close(file)
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		defer Close(pair[0])
		defer Close(pair[1])
		offset := int64(4)
		if n, e := SendFile(pair[0], file, &offset, 100); n != 6 || e != 0 || offset != 10 {
			t.Errorf("sent %d, offset %d, %v", n, offset, e)
		}
		b := make([]byte, 10)
		if n, _ := Recv(pair[1], b, 0); string(b[:n]) != "456789" {
			t.Errorf("received %q", b[:n])
		}
		return nil
	})
}

// TestEchoIsFiltered: in a fresh namespace unprivileged ICMP is not allowed, so this is the raw socket; it must not see
// our own requests, which the loopback delivers too.
func TestEchoIsFiltered(t *testing.T) {
	for _, address := range []string{"127.0.0.1", "::1"} {
		inNamespace(t, func() error {
			ip := netip.MustParseAddr(address)
			to := NewAddr(netip.AddrPortFrom(ip, 0), Family(ip))
			echo, err := OpenEcho(&to)
			if err != nil {
				return err
			}
			defer Close(echo.FD)
			if err := SetTimeouts(echo.FD, timeout); err != nil {
				return err
			}
			// Checksum of an IPv4 echo request with identifier 1, sequence 1; of ICMPv6 the kernel writes it.
			request := []byte{echo.Request, 0, 0xf7, 0xfd, 0, 1, 0, 1}
			if _, e := Send(echo.FD, request, 0); e != 0 {
				return e
			}
			b := make([]byte, 100)
			n, e := again(func() (int, syscall.Errno) { return Recv(echo.FD, b, 0) })
			if e != 0 {
				return e
			}
			if echo.Raw && ip.Is4() {
				b, n = b[20:], n-20
			}
			if n != len(request) || b[0] != echo.Reply {
				t.Errorf("%s: received % x", address, b[:n])
			}
			if n, e := again(func() (int, syscall.Errno) { return Recv(echo.FD, b, 0) }); e != syscall.EAGAIN {
				t.Errorf("%s: a second packet of %d bytes, %v", address, n, e)
			}
			return nil
		})
	}
}

func TestRawCallsDoNotAllocate(t *testing.T) {
	inNamespace(t, func() error {
		a, aAddr := open(t, unix.SOCK_DGRAM)
		if e := ConnectPolite(a, &aAddr); e != 0 {
			return e
		}
		b, batch := make([]byte, 64), NewBatch(4, 64)
		if n := testing.AllocsPerRun(100, func() {
			Send(a, b, 0)
			Recv(a, b, 0)
			batch.Send(a, 4)
			batch.Recv(a)
			fd, _ := Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
			ConnectPolite(fd, &aAddr)
			Close(fd)
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
		return nil
	})
}
