package calico

import (
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/kernel/bpf/bpftest"
	"github.com/cnibench/cnibench/internal/kernel/capture"
	"github.com/cnibench/cnibench/internal/kernel/conntrack"
	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// TestChild is the other process of TestConnect.
func TestChild(t *testing.T) {
	if os.Getenv(bpftest.ChildVariable) == "" {
		return // there is nothing to test in this process
	}
	bpftest.RunCall()
}

func TestConnect(t *testing.T) { both(t, testConnect) }

func testConnect(t *testing.T, p *plan) {
	group := bpftest.Cgroup(t)
	w := newWorld(t, p, "vxlan.calico", false)
	defer w.explain(t)
	starter := netns.NewStarter()
	t.Cleanup(starter.Close)
	bpftest.SkipOrFail(t, w.planes[0].AttachCgroup(group))
	bpftest.Serve(t, w.pods[2].NS, p.anywhere(7000))
	vip, empty := netip.AddrPortFrom(p.vip(10), 80), netip.AddrPortFrom(p.vip(11), 80)
	for _, s := range []Service{
		{Frontend: vip, Proto: TCP, Remote: []netip.AddrPort{netip.AddrPortFrom(w.pods[2].IP, 7000)}},
		{Frontend: empty, Proto: TCP},
	} {
		if err := w.planes[0].SetService(s); err != nil {
			t.Fatal(err)
		}
	}
	seen := open(t, w.nodes[0], "")
	c := bpftest.Call{Network: "tcp" + p.digit, Addr: vip, Connected: true}
	server, _, failure := bpftest.Place(t, starter, w.pods[0].NS, group, c)
	if failure != "<nil>" || netip.MustParseAddrPort(server).Addr() != w.pods[0].IP {
		t.Errorf("server saw %s, %s", server, failure)
	}
	for _, f := range drain(t, seen) {
		if f.IP != nil && (f.IP.Source == vip.Addr() || f.IP.Destination == vip.Addr()) {
			t.Errorf("the service's address is on a device: %s", f.String())
		}
	}
	c.Addr = empty
	if _, _, failure := bpftest.Place(t, starter, w.pods[0].NS, group, c); !strings.Contains(failure, "no route to host") {
		t.Errorf("a service without backends: %s, want no route to host", failure)
	}
}

// TestServiceInPackets uses services from processes that no cgroup covers, as all UDP is.
func TestServiceInPackets(t *testing.T) { both(t, testServiceInPackets) }

func testServiceInPackets(t *testing.T, p *plan) {
	for _, tunnel := range []string{"", "vxlan.calico"} {
		t.Run("tunnel="+tunnel, func(t *testing.T) {
			w := newWorld(t, p, tunnel, false)
			defer w.explain(t)
			for i, port := range []uint16{0, 81, 82} {
				bpftest.Serve(t, w.pods[i].NS, p.anywhere(7000))
				for _, proto := range []Proto{TCP, UDP} {
					s := Service{Proto: proto, Frontend: netip.AddrPortFrom(p.vip(10), port)}
					backend := []netip.AddrPort{netip.AddrPortFrom(w.pods[i].IP, 7000)}
					switch i {
					case 0:
						continue
					case 1:
						s.Local = backend
					default:
						s.Remote = backend
					}
					if err := w.planes[0].SetService(s); err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, network := range []string{"udp" + p.digit, "tcp" + p.digit} {
				for _, port := range []uint16{81, 82} {
					at := netip.AddrPortFrom(p.vip(10), port)
					for range 3 {
						saw, err := bpftest.Exchange(w.pods[0].NS, network, at, 1000)
						if err != nil || saw.Addr() != w.pods[0].IP {
							t.Errorf("%s to %s: backend saw %s, %v", network, at, saw, err)
						}
					}
				}
			}
		})
	}
}

// sizes are what is sent by each protocol: a stream of many full packets, and a datagram of one.
var sizes = map[string]int{"tcp": 100_000, "udp": 1200}

func TestNodePort(t *testing.T) { both(t, testNodePort) }

func testNodePort(t *testing.T, p *plan) {
	for _, dsr := range []bool{false, true} {
		t.Run(map[bool]string{false: "tunnel", true: "dsr"}[dsr], func(t *testing.T) {
			w := newWorld(t, p, "vxlan.calico", dsr)
			defer w.explain(t)
			w.serveNodePorts(t)
			ingress, backend := open(t, w.nodes[0], "eth0"), open(t, w.nodes[1], "eth0")
			for _, network := range []string{"tcp" + p.digit, "udp" + p.digit} {
				for _, port := range []uint16{30001, 30002} {
					for range 3 {
						saw, err := bpftest.Exchange(w.client.NS, network, netip.AddrPortFrom(w.nodes[0].IP, port), sizes[network[:3]])
						if err != nil || saw.Addr() != w.client.IP {
							t.Errorf("%s to port %d: backend saw %s, want the client; %v", network, port, saw, err)
						}
					}
				}
			}
			w.checkWire(t, drain(t, ingress), drain(t, backend), dsr)
		})
	}
}

// serveNodePorts makes port 30001 lead to a pod of the first node and 30002 to one of the second, at both nodes.
func (w *world) serveNodePorts(t *testing.T) {
	t.Helper()
	local, remote := netip.AddrPortFrom(w.pods[0].IP, 7000), netip.AddrPortFrom(w.pods[2].IP, 7000)
	for _, pod := range w.pods {
		bpftest.Serve(t, pod.NS, w.anywhere(7000))
	}
	for i, plane := range w.planes {
		for _, node := range w.nodes {
			for _, proto := range []Proto{TCP, UDP} {
				first := Service{Frontend: netip.AddrPortFrom(node.IP, 30001), Proto: proto}
				second := Service{Frontend: netip.AddrPortFrom(node.IP, 30002), Proto: proto}
				if i == 0 {
					first.Local, second.Remote = []netip.AddrPort{local}, []netip.AddrPort{remote}
				} else {
					first.Remote, second.Local = []netip.AddrPort{local}, []netip.AddrPort{remote}
				}
				for _, s := range []Service{first, second} {
					if err := plane.SetService(s); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}

// checkWire looks at how questions and replies for the pod of the second node crossed the wire.
func (w *world) checkWire(t *testing.T, ingress, backend []capture.Frame, dsr bool) {
	t.Helper()
	wrapped, wrappedBack, direct := 0, 0, 0
	for _, f := range backend {
		if f.IP == nil || f.ICMP != nil {
			continue
		}
		if f.VXLAN != nil {
			in := f.Inner
			if f.VXLAN.VNI != 0xca11c0 || in == nil || in.IP == nil {
				t.Errorf("a strange tunnel packet: %s", f.String())
				continue
			}
			_, to := in.Ports()
			switch {
			case !f.Outgoing && in.IP.Source == w.client.IP && in.IP.Destination == w.nodes[0].IP && to == 30002:
				wrapped++
			case f.Outgoing && in.IP.Source == w.nodes[0].IP && in.IP.Destination == w.client.IP:
				wrappedBack++
			default:
				t.Errorf("inside the tunnel: %s", in.String())
			}
		} else if f.Outgoing && f.IP.Destination == w.client.IP {
			if from, _ := f.Ports(); f.IP.Source == w.nodes[0].IP && from == 30002 {
				direct++
			}
		}
	}
	if wrapped == 0 || dsr != (direct > 0) || dsr != (wrappedBack == 0) {
		t.Errorf("%d questions wrapped, %d replies wrapped, %d direct; DSR is %v", wrapped, wrappedBack, direct, dsr)
	}
	for _, f := range ingress {
		if from, _ := f.Ports(); dsr && f.Outgoing && f.IP != nil && f.IP.Destination == w.client.IP && from == 30002 {
			t.Errorf("a reply came back through the ingress node: %s", f.String())
		}
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

// TestNodesOwnDatagrams reaches UDP services from the node itself, by the device that the node routes them to.
func TestNodesOwnDatagrams(t *testing.T) { both(t, testNodesOwnDatagrams) }

func testNodesOwnDatagrams(t *testing.T, p *plan) {
	w := newWorld(t, p, "vxlan.calico", false)
	defer w.explain(t)
	n := w.nodes[0]
	n.Veth("bpfin.cali", "bpfout.cali", true)
	vip := p.vip(10)
	bpftest.In(t, n.NS, func() error {
		in, err := netlink.LinkByName("bpfin.cali")
		if err != nil {
			return err
		}
		return netlink.RouteAdd(&netlink.Route{
			LinkIndex: in.Attrs().Index, Scope: netlink.SCOPE_LINK, Src: n.IP.AsSlice(),
			Dst: &net.IPNet{IP: vip.AsSlice(), Mask: net.CIDRMask(p.addressBits(), p.addressBits())},
		})
	})
	o := w.planes[0].opts
	if err := w.planes[0].Close(); err != nil {
		t.Fatal(err)
	}
	o.ServiceDevice = "bpfout.cali"
	w.load(t, 0, o)
	for i, pod := range []int{0, 2} {
		bpftest.Serve(t, w.pods[pod].NS, p.anywhere(7000))
		s := Service{Frontend: netip.AddrPortFrom(vip, uint16(80+i)), Proto: UDP, Remote: []netip.AddrPort{netip.AddrPortFrom(w.pods[pod].IP, 7000)}}
		if err := w.planes[0].SetService(s); err != nil {
			t.Fatal(err)
		}
		saw, err := bpftest.Exchange(n.NS, "udp"+p.digit, s.Frontend, 500)
		if err != nil || saw.Addr() != n.IP {
			t.Errorf("service of pod %d: it saw %s, %v", pod, saw, err)
		}
	}
}

// TestOutgoing leaves the cluster through the node's masquerade rule, which the mark selects.
func TestOutgoing(t *testing.T) { both(t, testOutgoing) }

func testOutgoing(t *testing.T, p *plan) {
	w := newWorld(t, p, "vxlan.calico", false)
	defer w.explain(t)
	bpftest.Masquerade(t, w.nodes[0].NS, 0x3800000)
	if err := w.planes[0].detachWorkload(w.pods[0].Device); err != nil {
		t.Fatal(err)
	}
	if err := w.planes[0].AddWorkload(Workload{IP: w.pods[0].IP, Device: w.pods[0].Device, NATOutgoing: true}); err != nil {
		t.Fatal(err)
	}
	bpftest.Serve(t, w.client.NS, p.anywhere(7000))
	bpftest.Serve(t, w.pods[2].NS, p.anywhere(7000))
	for _, network := range []string{"tcp" + p.digit, "udp" + p.digit} {
		saw, err := bpftest.Exchange(w.pods[0].NS, network, netip.AddrPortFrom(w.client.IP, 7000), 1000)
		if err != nil || saw.Addr() != w.nodes[0].IP {
			t.Errorf("%s: the world saw %s, want the node; %v", network, saw, err)
		}
		saw, err = bpftest.Exchange(w.pods[0].NS, network, netip.AddrPortFrom(w.pods[2].IP, 7000), 1000)
		if err != nil || saw.Addr() != w.pods[0].IP {
			t.Errorf("%s: a pod saw %s, want the pod; %v", network, saw, err)
		}
	}
	// What is masqueraded is the only thing that the kernel tracks.
	list, err := conntrack.List(w.nodes[0].NS)
	if err != nil {
		t.Fatal(err)
	}
	out := 0
	for _, e := range list {
		if e.Original.Source == w.pods[0].IP && e.Original.Destination == w.client.IP {
			out++
		} else if e.Original.Source == w.pods[0].IP || e.Original.Destination == w.pods[0].IP {
			t.Errorf("the kernel tracks %+v", e)
		}
	}
	if out != 2 {
		t.Errorf("the kernel tracks %d flows to the world, want TCP's and UDP's", out)
	}
}

// TestSelf has a pod use a service that only it serves: the netfilter rule for the mark gives it the node's address, so
// that the answer has to come back through the node.
func TestSelf(t *testing.T) { both(t, testSelf) }

func testSelf(t *testing.T, p *plan) {
	for _, tunnel := range []string{"", "vxlan.calico"} {
		t.Run("tunnel="+tunnel, func(t *testing.T) {
			w := newWorld(t, p, tunnel, false)
			defer w.explain(t)
			bpftest.Masquerade(t, w.nodes[0].NS, 0x3600000)
			bpftest.Serve(t, w.pods[0].NS, p.anywhere(7000))
			front, backend := netip.AddrPortFrom(p.vip(10), 80), netip.AddrPortFrom(w.pods[0].IP, 7000)
			for _, proto := range []Proto{TCP, UDP} {
				s := Service{Proto: proto, Frontend: front, Local: []netip.AddrPort{backend}}
				if err := w.planes[0].SetService(s); err != nil {
					t.Fatal(err)
				}
			}
			for _, network := range []string{"udp" + p.digit, "tcp" + p.digit} {
				for range 3 {
					saw, err := bpftest.Exchange(w.pods[0].NS, network, front, 1000)
					if err != nil || saw.Addr() != w.nodes[0].IP && saw.Addr() != w.pool(0).Addr() {
						t.Errorf("%s: the pod saw %s, want the node; %v", network, saw, err)
					}
				}
			}
		})
	}
}
