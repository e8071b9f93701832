package vpc

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kernel/bpf/bpftest"
	"github.com/cnibench/cnibench/internal/kernel/capture"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/kernel/sock"
)

// router opens one that knows a host, and two interfaces on a trunk.
func router(t *testing.T, trunk bool) *Router {
	t.Helper()
	r, err := Open(map[netip.Addr]Station{
		netip.MustParseAddr("10.0.0.2"): {MAC: net.HardwareAddr{2, 3, 4, 5, 6, 7}},
		netip.MustParseAddr("10.0.0.5"): {MAC: net.HardwareAddr{2, 0, 0, 0, 0, 5}, VLAN: 5},
		netip.MustParseAddr("10.0.0.6"): {MAC: net.HardwareAddr{2, 0, 0, 0, 0, 6}, VLAN: 6},
	}, trunk)
	if errors.Is(err, os.ErrPermission) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// TestRoute: a frame has the MAC address of the host with its destination. All else is as it was.
func TestRoute(t *testing.T) {
	for _, trunk := range []bool{false, true} {
		testRoute(t, router(t, trunk))
	}
}

func testRoute(t *testing.T, r *Router) {
	t.Helper()
	for name, tc := range map[string]struct {
		packet bpftest.Packet
		known  bool
	}{
		"known":        {bpftest.Packet{Src: "10.0.0.1", Dst: "10.0.0.2", Proto: 6}, true},
		"unknown":      {bpftest.Packet{Src: "10.0.0.2", Dst: "10.0.0.3", Proto: 17}, false},
		"IPv6":         {bpftest.Packet{Src: "fd00::1", Dst: "fd00::2", Proto: 6}, false},
		"IPv6, alike":  {bpftest.Packet{Src: "fd00:0:0:0:a00:2:0:1", Dst: "fd00::2", Proto: 6}, false},
		"time to live": {bpftest.Packet{Src: "10.0.0.1", Dst: "10.0.0.2", Proto: 6, TTL: 1}, true},
	} {
		in := tc.packet.Bytes()
		want := bytes.Clone(in)
		if tc.known {
			copy(want, []byte{2, 3, 4, 5, 6, 7})
		}
		verdict, out, err := r.program.Test(in)
		if err != nil {
			t.Fatal(err)
		}
		if int32(verdict) != next || !bytes.Equal(out, want) {
			t.Errorf("%s: verdict %d, %x\nwant %x", name, int32(verdict), out, want)
		}
	}
}

// TestTrunk: what a trunk sends in the VLAN of its source returns in the VLAN of its destination. The switch drops what
// has the tag of another interface, or none.
func TestTrunk(t *testing.T) {
	r := router(t, true)
	host, sw := bpftest.NewNS(t), bpftest.NewNS(t)
	trunk := net.HardwareAddr{2, 0, 0, 0, 0, 1}
	err := link.In(sw, func(at *link.Handle) error {
		return link.In(host, func(in *link.Handle) error {
			return at.Add(link.Bridge{Name: "br0", MTU: 1500}, link.Veth{Name: "port", Peer: "eth1", PeerMAC: trunk, PeerIn: in, MTU: 1500},
				link.Port{Bridge: "br0", Dev: "port", Hairpin: true},
				link.ForwardingEntry{Dev: "port", MAC: net.HardwareAddr{2, 0, 0, 0, 0, 5}}, link.ForwardingEntry{Dev: "port", MAC: net.HardwareAddr{2, 0, 0, 0, 0, 6}})
		})
	})
	if err == nil {
		err = r.Attach(sw, "port")
	}
	if err != nil {
		t.Fatal(err)
	}
	seen, err := capture.Open(host, capture.Options{Device: "eth1"})
	if err != nil {
		t.Fatal(err)
	}
	defer seen.Close()
	for _, tc := range []struct {
		src, dst string
		vlan     byte
		arrives  int // the VLAN, -1 for nothing
	}{
		{"10.0.0.5", "10.0.0.6", 5, 6}, {"10.0.0.6", "10.0.0.5", 6, 5},
		{"10.0.0.5", "10.0.0.6", 6, -1}, {"10.0.0.5", "10.0.0.6", 0, -1}, {"10.0.0.9", "10.0.0.6", 5, -1},
		{"10.0.0.9", "10.0.0.6", 0, 6},
	} {
		sendTagged(t, host, "eth1", bpftest.Packet{Src: tc.src, Dst: tc.dst, Proto: 17, DstPort: 7}, tc.vlan)
		// A frame that arrives surely follows.
		sendTagged(t, host, "eth1", bpftest.Packet{Src: "10.0.0.9", Dst: "10.0.0.5", Proto: 17, DstPort: 8}, 0)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		frames, err := seen.Until(ctx, func(f capture.Frame) bool { return !f.Outgoing && f.UDP != nil && f.UDP.DestinationPort == 8 })
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		got := -1
		for _, f := range frames {
			if f.Outgoing || f.UDP == nil || f.UDP.DestinationPort != 7 {
				continue
			}
			if got = f.Ethernet.VLAN; int(f.Ethernet.Destination[5]) != got {
				t.Errorf("%+v: it has the MAC address %v in VLAN %d", tc, f.Ethernet.Destination, got)
			}
		}
		if got != tc.arrives {
			t.Errorf("%+v: it arrives in VLAN %d", tc, got)
		}
	}
}

// sendTagged sends a packet in a VLAN, or without a tag.
func sendTagged(t *testing.T, ns *netns.NS, device string, p bpftest.Packet, vlan byte) {
	t.Helper()
	frame := p.Bytes()
	if vlan != 0 {
		frame = slices.Insert(frame, 12, 0x81, 0x00, 0, vlan)
	}
	err := ns.Do(func() error {
		d, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		fd, err := sock.OpenPacket(d.Index, 0, func(int) error { return nil })
		if err != nil {
			return err
		}
		_, err = unix.Write(fd, frame)
		return errors.Join(err, unix.Close(fd))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestAttach: a device that does not exist is an error, and Close needs none.
func TestAttach(t *testing.T) {
	r := router(t, true)
	ns, err := netns.New()
	if errors.Is(err, os.ErrPermission) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	if err := r.Attach(ns, "lo"); err != nil {
		t.Error(err)
	}
	if err := r.Attach(ns, "eth0"); err == nil {
		t.Error("attached to a device that does not exist")
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
