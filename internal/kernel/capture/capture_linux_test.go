package capture

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// pair is two namespaces joined by a veth pair named eth0 at both ends, 10.0.0.1 and 10.0.0.2.
func pair(t *testing.T) (a, b *netns.NS) {
	t.Helper()
	ends := [2]*netns.NS{}
	for i := range ends {
		ns, err := netns.New()
		if errors.Is(err, os.ErrPermission) {
			t.Skipf("no right to make a network namespace: %v", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ns.Close() })
		ends[i] = ns
	}
	must(t, ends[0].Do(func() error {
		return netlink.LinkAdd(&netlink.Veth{
			LinkAttrs: netlink.LinkAttrs{Name: "eth0"}, PeerName: "eth0", PeerNamespace: netlink.NsFd(ends[1].FD()),
		})
	}))
	for i, address := range []string{"10.0.0.1/24", "10.0.0.2/24"} {
		must(t, ends[i].Do(func() error {
			link, err := netlink.LinkByName("eth0")
			if err != nil {
				return err
			}
			addr, err := netlink.ParseAddr(address)
			if err != nil {
				return err
			}
			if err := netlink.AddrAdd(link, addr); err != nil {
				return err
			}
			return netlink.LinkSetUp(link)
		}))
	}
	return ends[0], ends[1]
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, ns *netns.NS, o Options) *Capture {
	t.Helper()
	c, err := Open(ns, o)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// sender returns a UDP socket in ns that is connected to 10.0.0.2:port.
func sender(t *testing.T, ns *netns.NS, port int) net.Conn {
	t.Helper()
	var conn net.Conn
	must(t, ns.Do(func() (err error) {
		conn, err = net.DialUDP("udp4", nil, &net.UDPAddr{IP: net.IPv4(10, 0, 0, 2), Port: port})
		return err
	}))
	t.Cleanup(func() { conn.Close() })
	return conn
}

func send(t *testing.T, c net.Conn, size int) {
	t.Helper()
	// An ICMP "port unreachable" for an earlier datagram is reported here; the datagram of this call is sent only then.
	if _, err := c.Write(make([]byte, size)); err != nil {
		if _, err = c.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func to(port uint16) func(Frame) bool {
	return func(f Frame) bool { return f.UDP != nil && f.UDP.DestinationPort == port }
}

func TestCaptureSeesBothDirections(t *testing.T) {
	a, b := pair(t)
	out, in := open(t, a, Options{Device: "eth0"}), open(t, b, Options{})
	send(t, sender(t, a, 4000), 1000)
	for _, tc := range []struct {
		c        *Capture
		outgoing bool
	}{{out, true}, {in, false}} {
		frames, err := tc.c.Until(within(t, 5*time.Second), to(4000))
		if err != nil {
			t.Fatal(err)
		}
		f := frames[len(frames)-1]
		if f.Outgoing != tc.outgoing || f.Device != "eth0" || f.Length != 14+20+8+1000 || f.IP.Source.String() != "10.0.0.1" || f.IP.TTL != 64 {
			t.Errorf("outgoing %v: got %s", tc.outgoing, &f)
		}
		// IPv6 may have announced itself on the fresh pair at any moment.
		const arp = 0x0806
		frames = slices.DeleteFunc(frames, func(f Frame) bool { return f.Ethernet.Type != arp && f.UDP == nil })
		if frames[0].Ethernet.Type != arp {
			t.Errorf("the first frame of a fresh pair asks for the address, got %s", &frames[0])
		}
	}
}

func TestMark(t *testing.T) {
	a, b := pair(t)
	c := open(t, b, Options{Device: "eth0", Mark: []byte("find me")})
	conn := sender(t, a, 4004)
	send(t, conn, 10)
	if _, err := conn.Write([]byte("here: find me.")); err != nil {
		// The first datagram's refusal is reported here.
		if _, err := conn.Write([]byte("here: find me.")); err != nil {
			t.Fatal(err)
		}
	}
	frames, err := c.Until(within(t, 5*time.Second), func(f Frame) bool { return f.Marked })
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range frames {
		if f.Marked != (i == len(frames)-1) {
			t.Errorf("frame %d of %d: marked %v: %s", i+1, len(frames), f.Marked, &f)
		}
	}
}

func TestDrainReturnsWhatIsThereAndNoMore(t *testing.T) {
	a, b := pair(t)
	c := open(t, b, Options{Device: "eth0"})
	conn := sender(t, a, 4001)
	send(t, conn, 10)
	if _, err := c.Until(within(t, 5*time.Second), to(4001)); err != nil {
		t.Fatal(err)
	}
	// The link is warm: from here a frame is queued before the write that sends it returns.
	if _, err := c.Drain(); err != nil {
		t.Fatal(err)
	}
	send(t, conn, 20)
	if _, err := c.Until(within(t, 5*time.Second), func(f Frame) bool { return to(4001)(f) && f.Length == 62 }); err != nil {
		t.Fatal(err)
	}
	frames, err := c.Drain()
	must(t, err)
	for _, f := range frames {
		if to(4001)(f) {
			t.Errorf("drained a frame for the second time: %s", &f)
		}
	}
}

func TestUntilEndsWithItsContextAndCanBeCalledAgain(t *testing.T) {
	a, b := pair(t)
	c := open(t, b, Options{})
	_, err := c.Until(within(t, time.Millisecond), func(Frame) bool { return false })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v, want the context's error", err)
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.Until(cancelled, to(4002)); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want the context's error", err)
	}
	send(t, sender(t, a, 4002), 1)
	if _, err := c.Until(within(t, 5*time.Second), to(4002)); err != nil {
		t.Errorf("after a timeout: %v", err)
	}
}

func TestOverflowIsReported(t *testing.T) {
	a, b := pair(t)
	c := open(t, b, Options{Buffer: 4096})
	conn := sender(t, a, 4003)
	for range 200 {
		send(t, conn, 1400)
	}
	var lost *LostError
	// The frames cross in soft interrupts that may end after the last write: the first of them is waited for.
	_, err := c.Until(within(t, 5*time.Second), to(4003))
	if err == nil {
		_, err = c.Drain()
	}
	if !errors.As(err, &lost) || lost.Frames == 0 {
		t.Errorf("200 frames in 4 KiB: got %v, want a *LostError", err)
	}
}

func TestOpenNamesTheDevice(t *testing.T) {
	a, _ := pair(t)
	if _, err := Open(a, Options{Device: "nosuch"}); err == nil {
		t.Error("a device that is not there can be captured on")
	} else if want := "capture on nosuch: "; len(err.Error()) < len(want) || err.Error()[:len(want)] != want {
		t.Errorf("error %q does not begin with %q", err, want)
	}
}

func TestCloseEndsUntil(t *testing.T) {
	_, b := pair(t)
	c := open(t, b, Options{})
	done := make(chan error, 1)
	go func() {
		_, err := c.Until(context.Background(), to(1))
		done <- err
	}()
	must(t, c.Close())
	select {
	case err := <-done:
		if err == nil {
			t.Error("Until found a frame that nobody sent")
		}
	case <-time.After(10 * time.Second):
		t.Error("Until outlived Close")
	}
}
