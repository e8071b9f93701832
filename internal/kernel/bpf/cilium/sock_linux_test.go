package cilium

import (
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/bpf/bpftest"
	"github.com/cnibench/cnibench/internal/kernel/capture"
	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// TestChild is the other process of TestSocketLB.
func TestChild(t *testing.T) {
	if os.Getenv(bpftest.ChildVariable) == "" {
		return // there is nothing to test in this process
	}
	bpftest.RunCall()
}

func TestSocketLB(t *testing.T) { eachFamily(t, testSocketLB) }

func testSocketLB(t *testing.T, where numbering) {
	group := bpftest.Cgroup(t)
	w := newWorld(t, where, func(*Options) {})
	starter := netns.NewStarter()
	t.Cleanup(starter.Close)
	if err := w.planes[0].AttachCgroup(group); err != nil {
		bpftest.SkipOrFail(t, err)
	}
	bpftest.Serve(t, w.pods[2].NS, w.wildcard(7000))
	vip, empty := netip.AddrPortFrom(w.vip, 80), netip.AddrPortFrom(w.vip.Next(), 80)
	backend := netip.AddrPortFrom(w.pods[2].IP, 7000)
	for _, proto := range []Proto{TCP, UDP} {
		for _, s := range []Service{
			{Frontend: vip, Proto: proto, Backends: []netip.AddrPort{backend}, Affinity: 10 * time.Second},
			{Frontend: empty, Proto: proto},
		} {
			if err := w.planes[0].SetService(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	seen, err := capture.Open(w.nodes[0].NS, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer seen.Close()
	from := w.pods[0]
	calls := []bpftest.Call{
		{Network: w.networks[0], Addr: vip, Connected: true},
		{Network: w.networks[1], Addr: vip, Connected: true},
		{Network: w.networks[1], Addr: vip},
	}
	for _, c := range calls {
		server, peer, failure := bpftest.Place(t, starter, from.NS, group, c)
		if failure != "<nil>" || !strings.HasPrefix(server, strings.TrimSuffix(netip.AddrPortFrom(from.IP, 0).String(), "0")) || peer != vip.String() {
			t.Errorf("%+v: server saw %s, the socket's peer is %s, %s", c, server, peer, failure)
		}
	}
	frames, err := seen.Drain()
	if err != nil {
		t.Fatal(err)
	}
	if len(frames) == 0 {
		t.Error("the capture saw nothing")
	}
	for _, f := range frames {
		if f.IP != nil && (f.IP.Source == vip.Addr() || f.IP.Destination == vip.Addr()) {
			t.Errorf("the service's address is on a device: %s", f.String())
		}
	}
	c := bpftest.Call{Network: w.networks[0], Addr: empty, Connected: true}
	if _, _, failure := bpftest.Place(t, starter, from.NS, group, c); !strings.Contains(failure, "no route to host") {
		t.Errorf("a service without backends: %s, want no route to host", failure)
	}
	if err := w.planes[0].SetService(Service{Frontend: vip, Proto: TCP}); err != nil {
		t.Fatal(err)
	}
	if n := len(w.planes[0].services.backends); n != 1 {
		t.Errorf("%d backends are known, want the one of UDP", n)
	}
}
