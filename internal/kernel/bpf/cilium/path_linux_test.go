package cilium

import (
	"errors"
	"net/netip"
	"sync"
	"testing"

	"github.com/cnibench/cnibench/internal/kernel/bpf/bpftest"
	"github.com/cnibench/cnibench/internal/kernel/capture"
	"github.com/cnibench/cnibench/internal/kernel/conntrack"
)

// TestPaths looks at which devices and which parts of the node's stack pod traffic touches.
func TestPaths(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			w := newWorld(t, m.change)
			var o Options
			m.change(&o)
			for _, p := range w.pods {
				bpftest.Serve(t, p.NS, netip.MustParseAddrPort("0.0.0.0:7000"))
			}
			var watches [2]*bpftest.Watch
			for i, n := range w.nodes {
				watches[i] = bpftest.WatchForward(t, n.NS)
			}
			door, wire := open(t, w.nodes[0], w.pods[1].Device), open(t, w.nodes[0], "eth0")
			w.exchange(t, 0, 1)
			same := watches[0].Packets(t)
			w.exchange(t, 0, 2)
			// Same node: never through the stack. redirect_peer leaves no trace on the host's end towards the pod.
			if same != 0 {
				t.Errorf("%d packets between pods of one node were forwarded by the stack", same)
			}
			into := outgoing(drain(t, door))
			if (into > 0) != o.Legacy {
				t.Errorf("%d frames left the host's end towards the pod, legacy is %v", into, o.Legacy)
			}
			stack := o.Legacy && o.Overlay == ""
			if n := watches[0].Packets(t); (n > 0) != stack {
				t.Errorf("%d packets between nodes were forwarded by the stack", n)
			}
			if n := w.tracked(t); (n > 0) != stack {
				t.Errorf("%d connections of pods are tracked by the kernel", n)
			}
			w.checkWireFormat(t, drain(t, wire), o.Overlay != "")
		})
	}
}

func (w *world) exchange(t *testing.T, from, to int) {
	t.Helper()
	for _, network := range []string{"tcp4", "udp4"} {
		if _, err := bpftest.Exchange(w.pods[from].NS, network, netip.AddrPortFrom(w.pods[to].IP, 7000), 5000); err != nil {
			t.Errorf("%s from pod %d to pod %d: %v", network, from, to, err)
		}
	}
}

// outgoing counts the IPv4 frames that the node sent out of a device.
func outgoing(frames []capture.Frame) (n int) {
	for _, f := range frames {
		if f.Outgoing && f.IP != nil && f.IP.Source.Is4() {
			n++
		}
	}
	return n
}

// tracked counts the kernel's connections that have a pod's address at either end.
func (w *world) tracked(t *testing.T) (n int) {
	t.Helper()
	entries, err := conntrack.List(w.nodes[0].NS)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		for _, p := range w.pods {
			if e.Original.Source == p.IP || e.Original.Destination == p.IP {
				n++
			}
		}
	}
	return n
}

func (w *world) checkWireFormat(t *testing.T, frames []capture.Frame, tunnel bool) {
	t.Helper()
	seen := 0
	for _, f := range frames {
		// Pods also try IPv6, which the dataplane drops, but neighbours of the switch do not.
		if f.IP == nil || !f.IP.Source.Is4() {
			continue
		}
		seen++
		if !tunnel {
			if f.VXLAN != nil || f.IP.TTL == 64 {
				t.Errorf("on the wire: %s", f.String())
			}
			continue
		}
		if f.VXLAN == nil || f.UDP.DestinationPort != 8472 || f.Inner == nil || f.Inner.IP == nil {
			t.Errorf("no tunnel packet: %s", f.String())
			continue
		}
		want := identities[0]
		if f.Inner.IP.Source == w.pods[2].IP {
			want = identities[2]
		}
		if f.VXLAN.VNI != uint32(want) {
			t.Errorf("VNI %d, want the sender's identity %d", f.VXLAN.VNI, want)
		}
	}
	if seen == 0 {
		t.Error("nothing crossed the wire")
	}
}

// TestPacketLB reaches services without a cgroup, the pod's own one among them.
func TestPacketLB(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.PacketLB = true })
	defer w.explain(t)
	vip := netip.MustParseAddr("10.96.0.10")
	for i, p := range w.pods {
		bpftest.Serve(t, p.NS, netip.MustParseAddrPort("0.0.0.0:7000"))
		for _, proto := range []Proto{TCP, UDP} {
			s := Service{
				Frontend: netip.AddrPortFrom(vip, uint16(80+i)), Proto: proto,
				Backends: []netip.AddrPort{netip.AddrPortFrom(p.IP, 7000)},
			}
			if err := w.planes[0].SetService(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, network := range []string{"tcp4", "udp4"} {
		for i := range w.pods {
			saw, err := bpftest.Exchange(w.pods[0].NS, network, netip.AddrPortFrom(vip, uint16(80+i)), 1000)
			want := w.pods[0].IP
			if i == 0 {
				want = netip.MustParseAddr("169.254.42.1")
			}
			if err != nil || saw.Addr() != want {
				t.Errorf("%s to the service of pod %d: it saw %s, want %s; %v", network, i, saw, want, err)
			}
		}
	}
}

// TestLifecycle adds and removes what a run does, and checks that nothing is left where it was.
func TestLifecycle(t *testing.T) {
	w := newWorld(t, func(*Options) {})
	n := w.planes[0]
	bpftest.Serve(t, w.pods[1].NS, netip.MustParseAddrPort("0.0.0.0:7000"))
	e := n.endpoints[1].Endpoint
	if err := n.AddEndpoint(e); err == nil {
		t.Error("an endpoint was added twice")
	}
	if err := n.SetPolicy(1, []Rule{{}}); err != nil {
		t.Fatal(err)
	}
	if _, err := bpftest.Exchange(w.pods[0].NS, "tcp4", netip.AddrPortFrom(w.pods[1].IP, 7000), 10); err == nil {
		t.Error("a pod without egress got through")
	}
	if err := n.RemoveEndpoint(1); err != nil {
		t.Fatal(err)
	}
	if err := n.SetPolicy(1, AllowAll()); err == nil {
		t.Error("a policy was set for an endpoint that is gone")
	}
	if err := n.AddEndpoint(e); err != nil {
		t.Fatal(err)
	}
	w.exchange(t, 0, 1)
	// Side by side, as a lab of many pods does it.
	known := []Endpoint{n.endpoints[1].Endpoint, n.endpoints[2].Endpoint}
	var both [2]error
	var wg sync.WaitGroup
	for i := range both {
		again := known[i]
		if err := n.RemoveEndpoint(again.ID); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() { both[i] = n.AddEndpoint(again) })
	}
	wg.Wait()
	if err := errors.Join(both[:]...); err != nil {
		t.Fatal(err)
	}
	w.exchange(t, 0, 1)
	for _, bad := range []Endpoint{
		{}, {ID: 9, Identity: 300, IP: e.IP, MAC: e.MAC, Device: "nosuch"}, {ID: 9, IP: e.IP, MAC: e.MAC, Device: e.Device},
		{ID: 9, Identity: 300, IP: netip.MustParseAddr("fd00::1"), MAC: e.MAC, Device: e.Device},
	} {
		if err := n.AddEndpoint(bad); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}
