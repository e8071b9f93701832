package cilium

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
	"github.com/cnibench/cnibench/internal/kernel/bpf/bpftest"
	"github.com/cnibench/cnibench/internal/kernel/capture"
)

// setEverywhere makes a service on both nodes, at each node's own address and the same port.
func (w *world) setEverywhere(t *testing.T, s Service, port uint16) {
	t.Helper()
	for i, n := range w.planes {
		for _, node := range w.nodes {
			s.Frontend = netip.AddrPortFrom(node.IP, port)
			if err := n.SetService(s); err != nil {
				t.Fatalf("node %d: %v", i, err)
			}
		}
	}
}

// sizes are what is sent by each protocol: a stream of many full packets, and a datagram of one.
var sizes = []int{100_000, 1200}

func TestNodePort(t *testing.T) { eachFamily(t, testNodePort) }

func testNodePort(t *testing.T, where numbering) {
	tunnel := func(o *Options) { o.Overlay, o.NodePort = "cilium_vxlan", NodePortSNAT }
	for _, m := range []struct {
		name   string
		change func(*Options)
		// sees is who the backend on the other node sees.
		sees netip.Addr
		dsr  bool
	}{
		{"snat", func(o *Options) { o.NodePort = NodePortSNAT }, where.node(1), false},
		{"snat-legacy", func(o *Options) { o.NodePort, o.Legacy = NodePortSNAT, true }, where.node(1), false},
		{"snat-vxlan", tunnel, where.gateway(0), false},
		{"dsr-maglev", func(o *Options) { o.NodePort, o.Maglev = NodePortDSR, true }, where.node(9), true},
	} {
		t.Run(m.name, func(t *testing.T) {
			w := newWorld(t, where, m.change)
			defer w.explain(t)
			for _, p := range w.pods {
				bpftest.Serve(t, p.NS, w.wildcard(7000))
			}
			for _, proto := range []Proto{TCP, UDP} {
				local := netip.AddrPortFrom(w.pods[0].IP, 7000)
				remote := netip.AddrPortFrom(w.pods[2].IP, 7000)
				w.setEverywhere(t, Service{Proto: proto, NodePort: true, Backends: []netip.AddrPort{local}}, 30001)
				w.setEverywhere(t, Service{Proto: proto, NodePort: true, Backends: []netip.AddrPort{remote}}, 30002)
			}
			watch := bpftest.WatchForward(t, w.nodes[0].NS)
			ingress := open(t, w.nodes[0], "eth0")
			backend := open(t, w.nodes[1], "eth0")
			for i, network := range w.networks {
				for port, want := range map[uint16]netip.Addr{30001: w.client.IP, 30002: m.sees} {
					at := netip.AddrPortFrom(w.nodes[0].IP, port)
					for range 3 {
						saw, err := bpftest.Exchange(w.client.NS, network, at, sizes[i])
						if err != nil || saw.Addr() != want {
							t.Errorf("%s to %s: backend saw %s, want %s; %v", network, at, saw, want, err)
						}
					}
				}
			}
			w.checkReplies(t, drain(t, ingress), drain(t, backend), m.dsr)
			if forwarded, tracked := watch.Packets(t), w.tracked(t); forwarded+uint64(tracked) > 0 && m.name != "snat-legacy" {
				t.Errorf("the stack forwarded %d packets and tracks %d connections", forwarded, tracked)
			}
		})
	}
}

// checkReplies looks at where replies of the backend on the second node went, and at what told it the frontend.
func (w *world) checkReplies(t *testing.T, ingress, backend []capture.Frame, dsr bool) {
	t.Helper()
	direct, options := 0, 0
	for _, f := range backend {
		if f.IP == nil || f.IP.Protocol != 6 && f.IP.Protocol != 17 {
			continue
		}
		if f.Outgoing && f.IP.Source == w.nodes[0].IP && f.IP.Destination == w.client.IP {
			direct++
		}
		if !f.Outgoing && len(f.IP.Options) > 0 {
			if f.IP.Options[0] != w.dsrOption || f.TCP != nil && (!f.TCP.SYN || f.TCP.ACK) {
				t.Errorf("an option that should not be there: %s", f.String())
			}
			options++
		}
	}
	if dsr != (direct > 0) || dsr != (options > 0) {
		t.Errorf("%d direct replies and %d options at the backend's node, DSR is %v", direct, options, dsr)
	}
	for _, f := range ingress {
		if dsr && f.Outgoing && f.IP != nil && f.IP.Destination == w.client.IP {
			if src, _ := f.Ports(); src == 30002 {
				t.Errorf("a reply came back through the ingress node: %s", f.String())
			}
		}
	}
}

// TestMasquerade leaves the cluster, and goes to the other node: behind a tunnel that one has no way to a pod's
// address.
func TestMasquerade(t *testing.T) { eachFamily(t, testMasquerade) }

func testMasquerade(t *testing.T, where numbering) {
	for _, overlay := range []string{"", "cilium_vxlan"} {
		t.Run("overlay="+overlay, func(t *testing.T) {
			w := newWorld(t, where, func(o *Options) { o.Overlay, o.Masquerade = overlay, where.cluster })
			defer w.explain(t)
			bpftest.Serve(t, w.client.NS, w.wildcard(7000))
			bpftest.Serve(t, w.nodes[1].NS, netip.AddrPortFrom(w.nodes[1].IP, 7000))
			for _, network := range w.networks {
				for i := range 3 {
					saw, err := bpftest.Exchange(w.pods[i].NS, network, netip.AddrPortFrom(w.client.IP, 7000), 1000)
					want := w.nodes[i/2].IP
					if err != nil || saw.Addr() != want {
						t.Errorf("%s from pod %d: the world saw %s, want %s; %v", network, i, saw, want, err)
					}
				}
				want := w.pods[0].IP
				if overlay != "" {
					want = w.nodes[0].IP
				}
				saw, err := bpftest.Exchange(w.pods[0].NS, network, netip.AddrPortFrom(w.nodes[1].IP, 7000), 1000)
				if err != nil || saw.Addr() != want {
					t.Errorf("%s: the other node saw %s, want %s; %v", network, saw, want, err)
				}
			}
		})
	}
}

func TestLocalTrafficPolicy(t *testing.T) { eachFamily(t, testLocalTrafficPolicy) }

func testLocalTrafficPolicy(t *testing.T, where numbering) {
	w := newWorld(t, where, func(o *Options) { o.NodePort = NodePortSNAT })
	defer w.explain(t)
	bpftest.Serve(t, w.pods[2].NS, w.wildcard(7000))
	remote := []netip.AddrPort{netip.AddrPortFrom(w.pods[2].IP, 7000)}
	for i, n := range w.planes {
		s := Service{Frontend: netip.AddrPortFrom(w.nodes[i].IP, 30003), Proto: TCP, NodePort: true, Local: true, Backends: remote}
		if i == 1 {
			s.LocalBackends = remote
		}
		if err := n.SetService(s); err != nil {
			t.Fatal(err)
		}
	}
	saw, err := bpftest.Exchange(w.client.NS, w.networks[0], netip.AddrPortFrom(w.nodes[1].IP, 30003), 100)
	if err != nil || saw.Addr() != w.client.IP {
		t.Errorf("at the backend's node: saw %s, %v", saw, err)
	}
	if saw, err = bpftest.Exchange(w.client.NS, w.networks[0], netip.AddrPortFrom(w.nodes[0].IP, 30003), 100); err == nil {
		t.Errorf("a node without a backend served %s", saw)
	}
	if n := w.counter(t, 0, "service has no backend"); n == 0 {
		t.Error("the refusal is not counted")
	}
}

func open(t *testing.T, n *bpftest.Node, device string) *capture.Capture {
	t.Helper()
	c, err := capture.Open(n.NS, capture.Options{Device: device})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func drain(t *testing.T, c *capture.Capture) []capture.Frame {
	t.Helper()
	frames, err := c.Drain()
	if err != nil {
		t.Fatal(err)
	}
	return frames
}

// counter sums what a node counted under an outcome.
func (w *world) counter(t *testing.T, node int, outcome string) (sum uint64) {
	t.Helper()
	list, err := w.planes[node].Counters()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		if c.Outcome == outcome {
			sum += c.Packets
		}
	}
	return sum
}

// noDrops wants nothing to have been dropped on either node.
func (w *world) noDrops(t *testing.T) {
	t.Helper()
	for i, n := range w.planes {
		list, err := n.Counters()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list {
			// Of IPv6, which pods speak unasked, an IPv4 plane knows nothing.
			if c.Drop && c.Outcome != "unknown network protocol" {
				t.Errorf("node %d dropped %d packets: %s", i+1, c.Packets, c.Outcome)
			}
		}
	}
}

// explain prints the counters of a failed test.
func (w *world) explain(t *testing.T) {
	if !t.Failed() {
		return
	}
	for i, n := range w.planes {
		list, err := n.Counters()
		t.Log(fmt.Sprintf("node %d: %+v", i+1, list), err)
	}
}

// TestPortsRunOut opens more flows to one server than there are ports to translate to: what finds none is dropped, and
// counted as what it is.
func TestPortsRunOut(t *testing.T) { eachFamily(t, testPortsRunOut) }

func testPortsRunOut(t *testing.T, where numbering) {
	const ports = 4
	w := newWorld(t, where, func(o *Options) { o.Masquerade, o.Sizes.Ports = where.cluster, ports })
	defer w.explain(t)
	bpftest.Serve(t, w.client.NS, w.wildcard(7000))
	served := 0
	for served <= ports {
		// Each comes from a port of its own.
		if _, err := bpftest.Exchange(w.pods[0].NS, w.networks[1], netip.AddrPortFrom(w.client.IP, 7000), 100); err != nil {
			break
		}
		served++
	}
	list, err := w.planes[0].Counters()
	if err != nil {
		t.Fatal(err)
	}
	var full []attach.Counter
	for _, c := range list {
		if c.Full {
			full = append(full, c)
		}
	}
	if served == 0 || served > ports || len(full) != 1 || !full[0].Drop || full[0].Packets == 0 || full[0].Outcome != "no free port for source translation" {
		t.Errorf("%d of at most %d flows were served; counted as full: %+v", served, ports, full)
	}
}
