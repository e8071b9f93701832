// Package bpftest is a small network for tests of the eBPF dataplanes: nodes on a switch, pods behind veth pairs, and
// traffic whose ends report what they see. It also crafts packets for runs of a single program.
//
//	   switch (br0, 10.10.0.0/24)
//	     │           │          │
//	node 1 .1    node 2 .2   client .9, no dataplane
//	lxc1 lxc2     lxc1 …
//	 │    │        │
//	pods 10.20.1.x, 10.20.2.x; /32, gateway by the dataplane
//
// With IPv6 the switch is fd00:10:10::/64, nodes have the same last number, pods are /128.
//
// Namespaces live as long as the test.
package bpftest

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"

	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// Topology is the switch and the hosts connected to it.
type Topology struct {
	t      *testing.T
	v6     bool
	Switch *netns.NS
	at     *link.Handle
}

// Node is a namespace with eth0 on the switch.
type Node struct {
	t    *testing.T
	NS   *netns.NS
	at   *link.Handle
	IP   netip.Addr
	MAC  net.HardwareAddr // of eth0
	Pods []*Pod
}

// Pod is a namespace with eth0 behind a veth pair whose other end is Device in the node.
type Pod struct {
	NS     *netns.NS
	IP     netip.Addr
	MAC    net.HardwareAddr
	Device string
}

const bridge = "br0"

// NewTopology creates the switch. It skips the test if this process may not make namespaces. With v6, nodes and pods
// have IPv6 addresses.
func NewTopology(t *testing.T, v6 bool) *Topology {
	t.Helper()
	top := &Topology{t: t, v6: v6, Switch: NewNS(t)}
	top.at = openHandle(t, top.Switch)
	must(t, top.at.Add(link.Bridge{Name: bridge, MulticastSnooping: true}))
	In(t, top.Switch, func() error {
		// Missing if br_netfilter is not loaded, which has the same effect.
		_ = Sysctl("net/bridge/bridge-nf-call-iptables", "0")
		return nil
	})
	return top
}

// NewNS makes a namespace with lo up, for the duration of the test. It skips the test if this process may not make one.
// It switches duplicate address detection off, so IPv6 addresses are usable at once.
func NewNS(t *testing.T) *netns.NS {
	t.Helper()
	ns, err := netns.New()
	if errors.Is(err, os.ErrPermission) {
		t.Skipf("no right to make a network namespace: %v", err)
	}
	must(t, err)
	t.Cleanup(func() { ns.Close() })
	In(t, ns, func() error {
		// These links need no duplicate address detection; the settings are absent without IPv6.
		_, _ = Sysctl("net/ipv6/conf/all/accept_dad", "0"), Sysctl("net/ipv6/conf/default/accept_dad", "0")
		return nil
	})
	must(t, openHandle(t, ns).Up(link.Loopback))
	return ns
}

func openHandle(t *testing.T, ns *netns.NS) *link.Handle {
	t.Helper()
	h, err := link.Open(ns)
	must(t, err)
	t.Cleanup(h.Close)
	return h
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// In runs fn inside ns, and ends the test if fn fails.
func In(t *testing.T, ns *netns.NS, fn func() error) {
	t.Helper()
	must(t, ns.Do(fn))
}

// Node adds a node whose address ends with last. The node forwards packets and does not filter by reverse path. It
// has no default route.
func (top *Topology) Node(last byte) *Node {
	top.t.Helper()
	n := &Node{t: top.t, NS: NewNS(top.t), IP: netip.AddrFrom4([4]byte{10, 10, 0, last})}
	n.at = openHandle(top.t, n.NS)
	bits := 24
	if top.v6 {
		n.IP, bits = netip.AddrFrom16([16]byte{0: 0xfd, 3: 0x10, 5: 0x10, 15: last}), 64
	}
	port := fmt.Sprintf("p%d", last)
	must(top.t,
		top.at.Add(link.Veth{Name: port, Peer: "eth0", PeerIn: n.at}), top.at.Add(link.Port{Bridge: bridge, Dev: port}),
		n.at.Add(link.Address{Dev: "eth0", Addr: netip.PrefixFrom(n.IP, bits)}))
	n.MAC = eth0MAC(top.t, n.at)
	In(top.t, n.NS, func() (err error) {
		if top.v6 {
			err = Sysctl("net/ipv6/conf/all/forwarding", "1")
		}
		return errors.Join(err, Sysctl("net/ipv4/ip_forward", "1"), Sysctl("net/ipv4/conf/all/rp_filter", "0"),
			Sysctl("net/ipv4/conf/default/rp_filter", "0"), Sysctl("net/ipv4/conf/eth0/rp_filter", "0"),
			Sysctl("net/ipv4/conf/all/accept_local", "1"))
	})
	return n
}

// Pod adds a pod to the node. The pod gets the address as /32 or /128, a route to the gateway on the link, and a
// default route via the gateway. The default route has the given MTU.
func (n *Node) Pod(ip, gateway netip.Addr, mtu int) *Pod {
	n.t.Helper()
	p := &Pod{NS: NewNS(n.t), IP: ip, Device: fmt.Sprintf("lxc%d", len(n.Pods)+1)}
	in := openHandle(n.t, p.NS)
	everywhere := netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	if ip.Is6() {
		everywhere = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	}
	must(n.t,
		n.at.Add(link.Veth{Name: p.Device, Peer: "eth0", PeerIn: in}),
		in.Add(link.Address{Dev: "eth0", Addr: netip.PrefixFrom(ip, ip.BitLen())}),
		in.Add(link.Route{To: netip.PrefixFrom(gateway, gateway.BitLen()), Dev: "eth0", LinkScope: true}),
		in.Add(link.Route{To: everywhere, Via: gateway, Dev: "eth0", MTU: mtu}))
	In(n.t, n.NS, func() error { return Sysctl("net/ipv4/conf/"+p.Device+"/rp_filter", "0") })
	p.MAC = eth0MAC(n.t, in)
	n.Pods = append(n.Pods, p)
	return p
}

// eth0MAC returns the MAC address of eth0.
func eth0MAC(t *testing.T, h *link.Handle) net.HardwareAddr {
	t.Helper()
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

// Veth makes a veth pair inside the node, with both ends up.
func (n *Node) Veth(a, b string, noARP bool) {
	n.t.Helper()
	must(n.t, n.at.Add(link.Veth{Name: a, Peer: b, NoARP: noARP}))
	In(n.t, n.NS, func() error {
		var errs []error
		for _, name := range []string{a, b} {
			errs = append(errs, Sysctl("net/ipv4/conf/"+name+"/rp_filter", "0"),
				Sysctl("net/ipv4/conf/"+name+"/accept_local", "1"), Sysctl("net/ipv4/conf/"+name+"/forwarding", "1"))
		}
		return errors.Join(errs...)
	})
}

// Address gives a device of the node an address.
func (n *Node) Address(device string, p netip.Prefix) {
	n.t.Helper()
	must(n.t, n.at.Add(link.Address{Dev: device, Addr: p}))
}

// Route adds a route to the node. If via is invalid, the destinations are on the link. mtu 0 means the device's MTU.
func (n *Node) Route(dst netip.Prefix, via netip.Addr, device string, mtu int) {
	n.t.Helper()
	must(n.t, n.at.Add(link.Route{To: dst, Via: via, Dev: device, MTU: mtu, LinkScope: !via.IsValid()}))
}

// VXLAN makes a VXLAN device without a parent on the node: BPF programs set VNI and outer addresses.
func (n *Node) VXLAN(name string, port int) {
	n.t.Helper()
	must(n.t, n.at.Add(link.VXLAN{Name: name, MTU: 1500, Port: port}))
	In(n.t, n.NS, func() error { return Sysctl("net/ipv4/conf/"+name+"/rp_filter", "0") })
}

// Sysctl writes a kernel parameter of the calling thread's namespace; key is its path below /proc/sys.
func Sysctl(key, value string) error {
	return os.WriteFile("/proc/sys/"+key, []byte(value), 0)
}
