package cilium

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/bpf/bpftest"
	"github.com/cnibench/cnibench/internal/kernel/capture"
	"github.com/cnibench/cnibench/internal/kernel/conntrack"
	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// TestPaths looks at which devices and which parts of the node's stack pod traffic touches.
func TestPaths(t *testing.T) { eachFamily(t, testPaths) }

func testPaths(t *testing.T, where numbering) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			w := newWorld(t, where, m.change)
			var o Options
			m.change(&o)
			for _, p := range w.pods {
				bpftest.Serve(t, p.NS, w.wildcard(7000))
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
			into := w.outgoing(drain(t, door))
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
	for _, network := range w.networks {
		if _, err := bpftest.Exchange(w.pods[from].NS, network, netip.AddrPortFrom(w.pods[to].IP, 7000), 5000); err != nil {
			t.Errorf("%s from pod %d to pod %d: %v", network, from, to, err)
		}
	}
}

// outgoing counts the frames with a pod's packet that the node sent out of a device.
func (w *world) outgoing(frames []capture.Frame) (n int) {
	for _, f := range frames {
		if f.Outgoing && f.IP != nil && w.cluster.Contains(f.IP.Source) && !w.isNeighbourMessage(f) {
			n++
		}
	}
	return n
}

// isNeighbourMessage is a solicitation, an advertisement, or another of the messages that IPv6 neighbours exchange.
func (w *world) isNeighbourMessage(f capture.Frame) bool {
	return w.version == 6 && f.ICMP != nil
}

// tracked counts the first node's kernel's connections that have a pod's address, or the client's, at either end.
func (w *world) tracked(t *testing.T) (n int) {
	t.Helper()
	entries, err := conntrack.List(w.nodes[0].NS)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		for _, a := range []netip.Addr{w.pods[0].IP, w.pods[1].IP, w.pods[2].IP, w.client.IP} {
			if e.Original.Source == a || e.Original.Destination == a {
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
		// Neighbours of the switch talk IPv6 too, and a bridge may ask for groups at any time.
		if f.IP == nil || f.IP.Source.BitLen() != w.bits || w.isNeighbourMessage(f) || f.IP.Destination.IsMulticast() {
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

// TestTunnelsOfTheOtherFamily carries pods' packets between nodes that speak another protocol, as a cluster with both
// does.
func TestTunnelsOfTheOtherFamily(t *testing.T) {
	eachFamily(t, func(t *testing.T, where numbering) {
		where.crossed = true
		w := newWorld(t, where, func(o *Options) { o.Overlay = "cilium_vxlan" })
		defer w.explain(t)
		for _, p := range w.pods {
			bpftest.Serve(t, p.NS, w.wildcard(7000))
		}
		wire := open(t, w.nodes[0], "eth0")
		w.exchange(t, 0, 2)
		w.exchange(t, 2, 0)
		outer := 0
		for _, f := range drain(t, wire) {
			if f.VXLAN == nil || f.Inner == nil || f.Inner.IP == nil {
				continue
			}
			outer++
			if f.IP.Source.BitLen() != w.other().bits || f.Inner.IP.Source.BitLen() != w.bits || f.VXLAN.VNI < uint32(identities[0]) {
				t.Errorf("on the wire: %s", f.String())
			}
		}
		if outer == 0 {
			t.Error("no tunnel packet crossed the wire")
		}
		w.noDrops(t)
	})
}

// TestPing sends an echo request to a pod of the node and to one of the other node, in every mode.
func TestPing(t *testing.T) {
	eachFamily(t, func(t *testing.T, where numbering) {
		for _, m := range modes {
			t.Run(m.name, func(t *testing.T) {
				w := newWorld(t, where, m.change)
				defer w.explain(t)
				for _, to := range []netip.Addr{w.pods[1].IP, w.pods[2].IP, w.nodes[0].IP} {
					if err := w.ping(w.pods[0].NS, to); err != nil {
						t.Errorf("%s: %v", to, err)
					}
				}
			})
		}
	})
}

// ping sends one echo request and waits for the answer.
func (w *world) ping(ns *netns.NS, to netip.Addr) error {
	network, request, reply := "ip4:icmp", byte(8), byte(0)
	if w.version == 6 {
		network, request, reply = "ip6:ipv6-icmp", 128, 129
	}
	var c *net.IPConn
	if err := ns.Do(func() (err error) {
		c, err = net.DialIP(network, nil, &net.IPAddr{IP: to.AsSlice()})
		return err
	}); err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(bpftest.Patience))
	// IPv6 sockets write the checksum themselves.
	b := []byte{request, 0, 0, 0, 0x12, 0x34, 0, 1}
	binary.BigEndian.PutUint16(b[2:], bpftest.Sum(b))
	if _, err := c.Write(b); err != nil {
		return err
	}
	for {
		answer := make([]byte, 200)
		n, _, err := c.ReadFrom(answer) // unlike Read without the header
		if err != nil {
			return err
		}
		if n >= 8 && answer[0] == reply && answer[4] == 0x12 && answer[5] == 0x34 {
			return nil
		}
	}
}

// TestPacketLB reaches services without a cgroup, the pod's own one among them.
func TestPacketLB(t *testing.T) { eachFamily(t, testPacketLB) }

func testPacketLB(t *testing.T, where numbering) {
	w := newWorld(t, where, func(o *Options) { o.PacketLB = true })
	defer w.explain(t)
	for i, p := range w.pods {
		bpftest.Serve(t, p.NS, w.wildcard(7000))
		for _, proto := range []Proto{TCP, UDP} {
			s := Service{
				Frontend: netip.AddrPortFrom(w.vip, uint16(80+i)), Proto: proto,
				Backends: []netip.AddrPort{netip.AddrPortFrom(p.IP, 7000)},
			}
			if err := w.planes[0].SetService(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, network := range w.networks {
		for i := range w.pods {
			saw, err := bpftest.Exchange(w.pods[0].NS, network, netip.AddrPortFrom(w.vip, uint16(80+i)), 1000)
			want := w.pods[0].IP
			if i == 0 {
				want = w.loopback
			}
			if err != nil || saw.Addr() != want {
				t.Errorf("%s to the service of pod %d: it saw %s, want %s; %v", network, i, saw, want, err)
			}
		}
	}
}

// TestLifecycle adds and removes what a run does, and checks that nothing is left where it was.
func TestLifecycle(t *testing.T) { eachFamily(t, testLifecycle) }

func testLifecycle(t *testing.T, where numbering) {
	w := newWorld(t, where, func(*Options) {})
	n := w.planes[0]
	bpftest.Serve(t, w.pods[1].NS, w.wildcard(7000))
	e := n.endpoints[1].Endpoint
	if err := n.AddEndpoint(e); err == nil {
		t.Error("an endpoint was added twice")
	}
	if err := n.SetPolicy(1, []Rule{{}}); err != nil {
		t.Fatal(err)
	}
	if _, err := bpftest.Exchange(w.pods[0].NS, w.networks[0], netip.AddrPortFrom(w.pods[1].IP, 7000), 10); err == nil {
		t.Error("a pod without egress got through")
	}
	if err := n.remove(1); err != nil {
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
		if err := n.remove(again.ID); err != nil {
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
		{ID: 9, Identity: 300, IP: where.other().pod(0, 9), MAC: e.MAC, Device: e.Device},
	} {
		if err := n.AddEndpoint(bad); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}

// remove takes a pod's programs off.
func (n *Node) remove(id uint16) error {
	defer delete(n.endpoints, id)
	return n.endpoints[id].close()
}
