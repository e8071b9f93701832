package vpc

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"

	"github.com/cnibench/cnibench/internal/kernel/bpf/bpftest"
	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// router opens one that knows a single station.
func router(t *testing.T) *Router {
	t.Helper()
	r, err := Open(map[netip.Addr]net.HardwareAddr{netip.MustParseAddr("10.0.0.2"): {2, 3, 4, 5, 6, 7}})
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
	r := router(t)
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

// TestAttach: a device that does not exist is an error, and Close needs none.
func TestAttach(t *testing.T) {
	r := router(t)
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
