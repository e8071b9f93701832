package cilium

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/cnibench/cnibench/internal/kernel/bpf/bpftest"
)

// world is two nodes with two pods and one, and a client outside.
type world struct {
	numbering
	nodes  [2]*bpftest.Node
	planes [2]*Node
	pods   [3]*bpftest.Pod // 0 and 1 on the first node
	client *bpftest.Node
}

// identities of the pods, by index.
var identities = [3]Identity{1001, 1002, 1003}

func newWorld(t *testing.T, where numbering, change func(*Options)) *world {
	t.Helper()
	top := bpftest.NewTopology(t, where.family == &ipv6)
	w := &world{numbering: where, client: top.Node(9)}
	var probe Options
	change(&probe)
	mtu := 1500
	if probe.Overlay != "" {
		mtu = 1500 - w.tunnels().overhead
	}
	for i := range w.nodes {
		w.nodes[i] = top.Node(byte(i + 1))
		if w.crossed {
			w.nodes[i].Address("eth0", w.tunnels().wirePrefix(byte(i+1)))
		}
		w.nodes[i].Veth("cilium_host", "cilium_net", true)
		w.nodes[i].Address("cilium_host", w.hostPrefix(w.gateway(i)))
		if probe.Overlay != "" {
			w.nodes[i].VXLAN(probe.Overlay, 8472)
		}
	}
	if probe.Encryption.WireGuard != "" {
		w.join(t, probe.Encryption.WireGuard)
	}
	for i, n := range w.nodes {
		other := 1 - i
		own, theirs := w.subnet(i), w.subnet(other)
		// IPv6 refuses a next hop that is the node's own address, and makes the route of the address itself.
		var via netip.Addr
		if w.version == 4 {
			via = w.gateway(i)
			n.Route(w.hostPrefix(via), netip.Addr{}, "cilium_host", 0)
		}
		n.Route(own, via, "cilium_host", 0)
		if probe.Overlay != "" {
			n.Route(theirs, via, "cilium_host", mtu)
		} else {
			n.Route(theirs, w.nodes[other].IP, "eth0", 0)
		}
	}
	for i, node := range []int{0, 0, 1} {
		w.pods[i] = w.nodes[node].Pod(w.pod(node, i), w.gateway(node), mtu)
	}
	for i := range w.planes {
		w.load(t, i, change)
	}
	return w
}

func (w *world) load(t *testing.T, i int, change func(*Options)) {
	t.Helper()
	o := Options{
		NS: w.nodes[i].NS, NodeIP: w.nodes[i].IP, Gateway: w.gateway(i), Wire: "eth0", Pair: [2]string{"cilium_host", "cilium_net"},
		Sizes: Sizes{FlowsTCP: 4096, FlowsAny: 4096, SNAT: 4096, Stats: 1024},
	}
	change(&o)
	n, err := Load(o)
	w.planes[i] = bpftest.Loaded(t, n, err)
	for id, node := range []int{0, 0, 1} {
		p := w.pods[id]
		var err error
		if node == i {
			err = n.AddEndpoint(Endpoint{ID: uint16(id + 1), Identity: identities[id], IP: p.IP, Device: p.Device, MAC: p.MAC})
		} else {
			err = n.SetIPCache(w.hostPrefix(p.IP), identities[id], w.tunnelTo(o, node))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	other := 1 - i
	if err := errors.Join(
		n.SetIPCache(w.hostPrefix(w.nodes[other].IP), RemoteNode, netip.Addr{}),
		n.SetIPCache(w.hostPrefix(w.gateway(other)), RemoteNode, w.tunnelTo(o, other)),
	); err != nil {
		t.Fatal(err)
	}
}

func (w *world) tunnelTo(o Options, node int) netip.Addr {
	if o.Overlay == "" {
		return netip.Addr{}
	}
	return w.tunnels().node(byte(node + 1))
}

// tunnels is the family of the packets between nodes.
func (w *world) tunnels() numbering {
	if w.crossed {
		return w.other()
	}
	return w.numbering
}

// modes are the ways in which packets leave a node.
var modes = []struct {
	name   string
	change func(*Options)
}{
	{"native", func(*Options) {}},
	{"native-legacy", func(o *Options) { o.Legacy = true }},
	{"vxlan", func(o *Options) { o.Overlay = "cilium_vxlan" }},
	{"vxlan-legacy", func(o *Options) { o.Overlay = "cilium_vxlan"; o.Legacy = true }},
	{"native-packet-lb", func(o *Options) { o.PacketLB = true }},
}

func TestTraffic(t *testing.T) { eachFamily(t, testTraffic) }

func testTraffic(t *testing.T, where numbering) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			w := newWorld(t, where, m.change)
			for _, p := range w.pods {
				bpftest.Serve(t, p.NS, w.wildcard(7000))
			}
			for _, n := range w.nodes {
				// Not the wildcard: a datagram's answer would leave from the address of cilium_host.
				bpftest.Serve(t, n.NS, netip.AddrPortFrom(n.IP, 7000))
			}
			defer w.explain(t)
			for _, network := range w.networks {
				for _, pair := range [][2]int{{0, 1}, {1, 0}, {0, 2}, {2, 0}} {
					from, to := w.pods[pair[0]], w.pods[pair[1]]
					saw, err := bpftest.Exchange(from.NS, network, netip.AddrPortFrom(to.IP, 7000), 20000)
					if err != nil || saw.Addr() != from.IP {
						t.Errorf("%s pod %d to pod %d: server saw %s, %v", network, pair[0], pair[1], saw, err)
					}
				}
				// Up to the node and down from it.
				if _, err := bpftest.Exchange(w.pods[0].NS, network, netip.AddrPortFrom(w.nodes[0].IP, 7000), 2000); err != nil {
					t.Errorf("%s pod to node: %v", network, err)
				}
				for i, p := range w.pods {
					if _, err := bpftest.Exchange(w.nodes[0].NS, network, netip.AddrPortFrom(p.IP, 7000), 2000); err != nil {
						t.Errorf("%s node to pod %d: %v", network, i, err)
					}
				}
			}
			w.noDrops(t)
		})
	}
}
