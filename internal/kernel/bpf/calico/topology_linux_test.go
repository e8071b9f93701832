package calico

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/kernel/bpf/bpftest"
	"github.com/cnibench/cnibench/internal/kernel/conntrack"
)

// plan is the addresses of a test in one family.
type plan struct {
	*family
	digit string // of network names: tcp4
	// gateway is what pods send everything to: of IPv4 nobody's, of IPv6 the address of the host's end of the pair.
	gateway netip.Addr
	all     netip.Prefix
	// overhead is what VXLAN takes of the MTU.
	overhead int
}

var (
	plan4 = &plan{
		ipv4, "4", netip.MustParseAddr("169.254.1.1"), netip.MustParsePrefix("0.0.0.0/0"), 50,
	}
	plan6 = &plan{
		ipv6, "6", netip.MustParseAddr("fe80::ecee:eeff:feee:eeee"), netip.MustParsePrefix("::/0"), 70,
	}
)

// both runs a test with each family.
func both(t *testing.T, test func(*testing.T, *plan)) {
	t.Helper()
	for _, p := range []*plan{plan4, plan6} {
		t.Run(p.name, func(t *testing.T) { test(t, p) })
	}
}

// at is 10.second.third.last, or fd00:10:second:third::last with the numbers as they look.
func (p *plan) at(second, third, last int) netip.Addr {
	if p.family == ipv4 {
		return netip.AddrFrom4([4]byte{10, byte(second), byte(third), byte(last)})
	}
	return netip.MustParseAddr(fmt.Sprintf("fd00:10:%d:%d::%d", second, third, last))
}

// pool is where the pods of a node have their addresses.
func (p *plan) pool(node int) netip.Prefix {
	return netip.PrefixFrom(p.at(20, node+1, 0), p.addressBits()*3/4).Masked()
}

func (p *plan) pod(node, id int) netip.Addr { return p.at(20, node+1, 10+id) }

// own is the address of a node.
func (p *plan) own(last int) netip.Addr { return p.at(10, 0, last) }

func (p *plan) vip(last int) netip.Addr { return p.at(96, 0, last) }

// anywhere is a port on every address.
func (p *plan) anywhere(port uint16) netip.AddrPort { return netip.AddrPortFrom(p.all.Addr(), port) }

// world is two nodes with two pods and one, and a client outside.
type world struct {
	*plan
	nodes  [2]*bpftest.Node
	planes [2]*Node
	pods   [3]*bpftest.Pod // 0 and 1 on the first node
	client *bpftest.Node
}

func newWorld(t *testing.T, p *plan, tunnel string, dsr bool) *world {
	t.Helper()
	top := bpftest.NewTopology(t, p.family == ipv6)
	w := &world{plan: p, client: top.Node(9)}
	mtu := 1500
	if tunnel != "" {
		mtu -= p.overhead
	}
	for i := range w.nodes {
		w.nodes[i] = top.Node(byte(i + 1))
		if tunnel != "" {
			w.nodes[i].VXLAN(tunnel, 4789)
			w.nodes[i].Address(tunnel, hostPrefix(p.pool(i).Addr()))
			bpftest.In(t, w.nodes[i].NS, func() error {
				l, err := netlink.LinkByName(tunnel)
				if err != nil {
					return err
				}
				return netlink.LinkSetARPOff(l)
			})
		}
	}
	for i, n := range w.nodes {
		// The kernel answers for the pods' gateway only if it has a route to it through another device.
		n.Route(p.all, w.client.IP, "eth0", 0)
		if tunnel != "" {
			n.Route(p.pool(1-i), netip.Addr{}, tunnel, mtu)
		} else {
			n.Route(p.pool(1-i), w.nodes[1-i].IP, "eth0", 0)
		}
	}
	for i, node := range []int{0, 0, 1} {
		n := w.nodes[node]
		w.pods[i] = n.Pod(p.pod(node, i), p.gateway, mtu)
		if p == plan6 {
			n.Address(w.pods[i].Device, netip.PrefixFrom(p.gateway, 64))
		}
		bpftest.In(t, n.NS, func() error {
			return errors.Join(bpftest.Sysctl("net/ipv4/conf/"+w.pods[i].Device+"/proxy_arp", "1"),
				bpftest.Sysctl("net/ipv4/neigh/"+w.pods[i].Device+"/proxy_delay", "0"))
		})
		n.Route(hostPrefix(w.pods[i].IP), netip.Addr{}, w.pods[i].Device, 0)
	}
	for i := range w.planes {
		w.load(t, i, Options{NS: w.nodes[i].NS, NodeIP: w.nodes[i].IP, Wire: "eth0", Tunnel: tunnel, DSR: dsr, Flows: 4096})
	}
	return w
}

func (w *world) load(t *testing.T, i int, o Options) {
	t.Helper()
	n, err := Load(o)
	w.planes[i] = bpftest.Loaded(t, n, err)
	other := 1 - i
	remote := Route{Prefix: w.pool(other), Kind: RemoteWorkload, NextHop: w.nodes[other].IP}
	if o.Tunnel != "" {
		remote.Kind = Tunneled
		own := Route{Prefix: hostPrefix(w.pool(i).Addr()), Kind: LocalHost}
		if err := n.SetRoute(own); err != nil {
			t.Fatal(err)
		}
	}
	err = errors.Join(n.SetRoute(remote),
		n.SetRoute(Route{Prefix: hostPrefix(w.nodes[other].IP), Kind: RemoteHost}))
	for id, node := range []int{0, 0, 1} {
		if node == i {
			err = errors.Join(err, n.AddWorkload(Workload{IP: w.pods[id].IP, Device: w.pods[id].Device}))
		}
	}
	bpftest.SkipOrFail(t, err)
}

// explain prints the counters of a failed test.
func (w *world) explain(t *testing.T) {
	t.Helper()
	if !t.Failed() {
		return
	}
	for i, n := range w.planes {
		list, err := n.Counters()
		for _, c := range list {
			if c.Packets > 0 {
				t.Logf("node %d: %s: %d", i+1, c.Outcome, c.Packets)
			}
		}
		if err != nil {
			t.Log(err)
		}
	}
}

// TestCloseAfterNamespace closes a node whose namespace was dropped first, devices, pods and all.
func TestCloseAfterNamespace(t *testing.T) {
	ns := bpftest.NewNS(t)
	bpftest.In(t, ns, func() error {
		for _, pair := range [][2]string{{"eth0", "switch"}, {"cali1", "pod"}} {
			v := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: pair[0]}, PeerName: pair[1]}
			if err := netlink.LinkAdd(v); err != nil {
				return err
			}
		}
		return nil
	})
	n, err := Load(Options{NS: ns, NodeIP: plan6.own(1), Wire: "eth0", Flows: 64})
	bpftest.SkipOrFail(t, err)
	if err := n.AddWorkload(Workload{IP: plan6.pod(0, 0), Device: "cali1"}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(ns.Close(), n.Close()); err != nil {
		t.Error(err)
	}
}

func TestTraffic(t *testing.T) { both(t, testTraffic) }

func testTraffic(t *testing.T, p *plan) {
	for _, tunnel := range []string{"", "vxlan.calico"} {
		t.Run("tunnel="+tunnel, func(t *testing.T) {
			w := newWorld(t, p, tunnel, false)
			defer w.explain(t)
			for _, pod := range w.pods {
				bpftest.Serve(t, pod.NS, p.anywhere(7000))
			}
			for _, n := range w.nodes {
				bpftest.Serve(t, n.NS, netip.AddrPortFrom(n.IP, 7000))
			}
			for _, network := range []string{"tcp" + p.digit, "udp" + p.digit} {
				for _, pair := range [][2]int{{0, 1}, {1, 0}, {0, 2}, {2, 0}} {
					from, to := w.pods[pair[0]], w.pods[pair[1]]
					saw, err := bpftest.Exchange(from.NS, network, netip.AddrPortFrom(to.IP, 7000), 1000)
					if err != nil || saw.Addr() != from.IP {
						t.Errorf("%s pod %d to pod %d: server saw %s, %v", network, pair[0], pair[1], saw, err)
					}
				}
				if _, err := bpftest.Exchange(w.pods[0].NS, network, netip.AddrPortFrom(w.nodes[0].IP, 7000), 1000); err != nil {
					t.Errorf("%s pod to node: %v", network, err)
				}
				if _, err := bpftest.Exchange(w.nodes[0].NS, network, netip.AddrPortFrom(w.nodes[1].IP, 7000), 1000); err != nil {
					t.Errorf("%s node to node: %v", network, err)
				}
				for i, pod := range w.pods {
					if _, err := bpftest.Exchange(w.nodes[0].NS, network, netip.AddrPortFrom(pod.IP, 7000), 1000); err != nil {
						t.Errorf("%s node to pod %d: %v", network, i, err)
					}
				}
			}
		})
	}
}

// TestPaths looks at which devices and which parts of the node's stack pod traffic touches.
func TestPaths(t *testing.T) { both(t, testPaths) }

func testPaths(t *testing.T, p *plan) {
	for _, tunnel := range []string{"", "vxlan.calico"} {
		t.Run("tunnel="+tunnel, func(t *testing.T) {
			w := newWorld(t, p, tunnel, false)
			defer w.explain(t)
			for _, pod := range w.pods {
				bpftest.Serve(t, pod.NS, p.anywhere(7000))
			}
			watch := bpftest.WatchForward(t, w.nodes[0].NS)
			door, wire := open(t, w.nodes[0], w.pods[1].Device), open(t, w.nodes[0], "eth0")
			for _, to := range []int{1, 2} {
				if _, err := bpftest.Exchange(w.pods[0].NS, "tcp"+p.digit, netip.AddrPortFrom(w.pods[to].IP, 7000), 5000); err != nil {
					t.Error(err)
				}
			}
			if n := watch.Packets(t); n != 0 {
				t.Errorf("%d packets were forwarded by the stack", n)
			}
			entries, err := conntrack.List(w.nodes[0].NS)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if e.Original.Source == w.pods[0].IP || e.Original.Destination == w.pods[0].IP {
					t.Errorf("the kernel tracks %+v", e)
				}
			}
			openers := 0
			for _, f := range drain(t, door) {
				if f.TCP == nil || !f.Outgoing {
					continue
				}
				if openers++; !f.TCP.SYN {
					t.Errorf("a packet of an open flow passed the host's end: %s", f.String())
				}
			}
			if openers == 0 {
				t.Error("the opener did not pass to_workload")
			}
			crossed := 0
			for _, f := range drain(t, wire) {
				// Devices look for IPv6 neighbours on their own.
				if f.IP == nil || f.ICMP != nil || !p.has(f.IP.Source) || f.IP.Destination.IsMulticast() {
					continue
				}
				crossed++
				if tunnel != "" && (f.VXLAN == nil || f.VXLAN.VNI != 4096 || f.UDP.DestinationPort != 4789) || tunnel == "" && f.VXLAN != nil {
					t.Errorf("on the wire: %s", f.String())
				}
			}
			if crossed == 0 {
				t.Error("nothing crossed the wire")
			}
		})
	}
}
