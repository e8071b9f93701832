package impair

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// ends are two hosts with a line between them.
type ends struct {
	near, far *netns.NS
	line      *Line
}

const (
	nearAddress = "10.77.0.1"
	farAddress  = "10.77.0.2"
)

func space(t *testing.T) (*netns.NS, *link.Handle) {
	t.Helper()
	ns, err := netns.New()
	if errors.Is(err, os.ErrPermission) {
		t.Skipf("no right to make a network namespace: %v", err)
	}
	must(t, err)
	t.Cleanup(func() { ns.Close() })
	// Frames that the stack sends of itself would be counted too.
	must(t, netns.SetSysctls(ns, []netns.Setting{
		{Name: "net/ipv6/conf/all/disable_ipv6", Value: "1", IfPresent: true}, {Name: "net/ipv6/conf/default/disable_ipv6", Value: "1", IfPresent: true},
	}))
	h, err := link.Open(ns)
	must(t, err)
	t.Cleanup(h.Close)
	return ns, h
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// joined connects two namespaces by a line in a third.
func joined(t *testing.T, o Options) ends {
	t.Helper()
	near, atNear := space(t)
	far, atFar := space(t)
	middle, at := space(t)
	for _, end := range []struct {
		h             *link.Handle
		port, address string
	}{{atNear, "a", nearAddress}, {atFar, "b", farAddress}} {
		must(t,
			end.h.Add(link.Veth{Name: "eth0", Peer: end.port, PeerIn: at, MTU: 1500}),
			end.h.Add(link.Address{Dev: "eth0", Addr: netip.PrefixFrom(netip.MustParseAddr(end.address), 24)}))
	}
	must(t, at.Up("a"), at.Up("b"))
	o.A, o.B = "a", "b"
	l, err := Open(middle, o)
	must(t, err)
	l.Impair()
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	// Neighbours find each other now, so that no frame of that comes later.
	mac := func(h *link.Handle) net.HardwareAddr {
		devices, err := h.Devices()
		must(t, err)
		for _, d := range devices {
			if d.Name == "eth0" {
				return d.MAC
			}
		}
		t.Fatal("there is no eth0")
		return nil
	}
	must(t,
		atNear.Add(link.StaticNeighbour{Dev: "eth0", Addr: netip.MustParseAddr(farAddress), MAC: mac(atFar)}),
		atFar.Add(link.StaticNeighbour{Dev: "eth0", Addr: netip.MustParseAddr(nearAddress), MAC: mac(atNear)}))
	return ends{near, far, l}
}

// socket opens a UDP socket in ns.
func socket(t *testing.T, ns *netns.NS, address string) net.PacketConn {
	t.Helper()
	var c net.PacketConn
	must(t, ns.Do(func() (err error) {
		c, err = net.ListenPacket("udp4", address+":7000")
		return err
	}))
	t.Cleanup(func() { c.Close() })
	return c
}

// TestLossIsEven sends datagrams one way, and some back: of the former each fortieth is missing. The last one arrives,
// so that all are counted by then.
func TestLossIsEven(t *testing.T) {
	e := joined(t, Options{Loss: 0.025})
	a, b := socket(t, e.near, nearAddress), socket(t, e.far, farAddress)
	deadline := time.Now().Add(20 * time.Second)
	must(t, a.SetReadDeadline(deadline), b.SetReadDeadline(deadline))
	room := make([]byte, 100)
	got := 0
	for i := range 1001 {
		_, err := a.WriteTo([]byte{byte(i)}, b.LocalAddr())
		must(t, err)
		if (i+1)%40 == 0 {
			continue // this one is lost
		}
		_, from, err := b.ReadFrom(room)
		if err != nil || room[0] != byte(i) {
			t.Fatalf("datagram %d: got %d, %v", i, room[0], err)
		}
		if got++; got%10 == 0 {
			_, err = b.WriteTo([]byte{1}, from)
			must(t, err)
			_, _, err = a.ReadFrom(room)
			must(t, err)
		}
	}
}

// TestDelayHolds: nothing arrives sooner than the delay, and in the order in which it was sent.
func TestDelayHolds(t *testing.T) {
	const delay = 20 * time.Millisecond
	e := joined(t, Options{Delay: delay})
	a, b := socket(t, e.near, nearAddress), socket(t, e.far, farAddress)
	must(t, b.SetReadDeadline(time.Now().Add(20*time.Second)))
	var sent [50]time.Time // few enough for the socket that is read only afterwards
	for i := range sent {
		sent[i] = time.Now()
		_, err := a.WriteTo([]byte{byte(i)}, b.LocalAddr())
		must(t, err)
	}
	room := make([]byte, 100)
	for i := range sent {
		_, _, err := b.ReadFrom(room)
		must(t, err)
		if took := time.Since(sent[i]); room[0] != byte(i) || took < delay {
			t.Fatalf("datagram %d came as number %d after %v", room[0], i, took)
		}
	}
}

// TestFramesStayWhole moves bytes by TCP, in super-packets and with checksums left to the device, through a line that
// loses some.
func TestFramesStayWhole(t *testing.T) {
	e := joined(t, Options{Loss: 0.001, Delay: time.Millisecond})
	content := bytes.Repeat([]byte("frames stay whole. "), 200_000)
	var server net.Listener
	must(t, e.far.Do(func() (err error) {
		server, err = net.Listen("tcp4", farAddress+":7000")
		return err
	}))
	defer server.Close()
	got := make(chan []byte, 1)
	go func() {
		c, err := server.Accept()
		if err != nil {
			got <- nil
			return
		}
		defer c.Close()
		b, _ := io.ReadAll(c) // what is missing shows
		got <- b
	}()
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	var c net.Conn
	must(t, e.near.Do(func() (err error) {
		c, err = (&net.Dialer{}).DialContext(ctx, "tcp4", farAddress+":7000")
		return err
	}))
	must(t, c.SetDeadline(time.Now().Add(20*time.Second)))
	_, err := c.Write(content)
	must(t, err, c.Close())
	if b := <-got; !bytes.Equal(b, content) {
		t.Errorf("%d bytes arrived of %d, or others", len(b), len(content))
	}
}

func TestOpenRefuses(t *testing.T) {
	ns, _ := space(t)
	for _, o := range []Options{{A: "lo", B: "lo", Loss: 1.1}, {A: "lo", B: "lo", Delay: -1}, {A: "lo", B: "nothere"}, {A: "nothere", B: "lo"}} {
		if l, err := Open(ns, o); err == nil {
			t.Errorf("%+v is taken", o)
			l.Close()
		}
	}
}
