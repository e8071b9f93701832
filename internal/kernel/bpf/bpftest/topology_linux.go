// Package bpftest is the small world in which the eBPF dataplanes are tested: nodes on a switch, pods behind veth pairs,
// and traffic that says what its ends saw. It also crafts packets for runs of a single program.
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

	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// Topology is the switch and what hangs on it.
type Topology struct {
	t      *testing.T
	v6     bool
	Switch *netns.NS
}

// Node is a namespace with eth0 on the switch.
type Node struct {
	t    *testing.T
	NS   *netns.NS
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

// NewTopology makes the switch, or skips the test with the right that is missing.
func NewTopology(t *testing.T) *Topology {
	t.Helper()
	top := &Topology{t: t, Switch: NewNS(t)}
	In(t, top.Switch, func() error {
		br := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}}
		if err := netlink.LinkAdd(br); err != nil {
			return err
		}
		// Absent where br_netfilter is not loaded, which is as good.
		_ = os.WriteFile("/proc/sys/net/bridge/bridge-nf-call-iptables", []byte("0"), 0)
		return netlink.LinkSetUp(br)
	})
	return top
}

// NewTopology6 makes a switch whose nodes and pods have IPv6 addresses.
func NewTopology6(t *testing.T) *Topology {
	t.Helper()
	top := NewTopology(t)
	top.v6 = true
	return top
}

// NewNS makes a namespace with lo up, or skips the test. IPv6 addresses there are usable at once.
func NewNS(t *testing.T) *netns.NS {
	t.Helper()
	ns, err := netns.New()
	if errors.Is(err, os.ErrPermission) {
		t.Skipf("no right to make a network namespace: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	In(t, ns, func() error {
		// These links need no duplicate address detection; the settings are absent without IPv6.
		_, _ = Sysctl("net/ipv6/conf/all/accept_dad", "0"), Sysctl("net/ipv6/conf/default/accept_dad", "0")
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		return netlink.LinkSetUp(lo)
	})
	return ns
}

// In runs fn inside ns and ends the test if it fails.
func In(t *testing.T, ns *netns.NS, fn func() error) {
	t.Helper()
	if err := ns.Do(fn); err != nil {
		t.Fatal(err)
	}
}

// Node adds a node with the given last byte of its address. It forwards, does not filter by reverse path, and its
// default route leads to the switch.
func (top *Topology) Node(last byte) *Node {
	top.t.Helper()
	n := &Node{t: top.t, NS: NewNS(top.t), IP: netip.AddrFrom4([4]byte{10, 10, 0, last})}
	bits := 24
	if top.v6 {
		n.IP, bits = netip.AddrFrom16([16]byte{0: 0xfd, 3: 0x10, 5: 0x10, 15: last}), 64
	}
	port := fmt.Sprintf("p%d", last)
	In(top.t, top.Switch, func() error {
		if err := veth(port, "eth0", n.NS); err != nil {
			return err
		}
		return enslave(port)
	})
	In(top.t, n.NS, func() error {
		mac, err := address("eth0", netip.PrefixFrom(n.IP, bits))
		n.MAC = mac
		if top.v6 {
			err = errors.Join(err, Sysctl("net/ipv6/conf/all/forwarding", "1"))
		}
		return errors.Join(err, Sysctl("net/ipv4/ip_forward", "1"), Sysctl("net/ipv4/conf/all/rp_filter", "0"),
			Sysctl("net/ipv4/conf/default/rp_filter", "0"), Sysctl("net/ipv4/conf/eth0/rp_filter", "0"),
			Sysctl("net/ipv4/conf/all/accept_local", "1"))
	})
	return n
}

// Pod adds a pod: its address as /32 or /128, the gateway on the link, and everything else behind it.
func (n *Node) Pod(ip, gateway netip.Addr, mtu int) *Pod {
	n.t.Helper()
	p := &Pod{NS: NewNS(n.t), IP: ip, Device: fmt.Sprintf("lxc%d", len(n.Pods)+1)}
	In(n.t, n.NS, func() error {
		return errors.Join(veth(p.Device, "eth0", p.NS), Sysctl("net/ipv4/conf/"+p.Device+"/rp_filter", "0"))
	})
	In(n.t, p.NS, func() (err error) {
		if p.MAC, err = address("eth0", netip.PrefixFrom(ip, ip.BitLen())); err != nil {
			return err
		}
		dev, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		link := &netlink.Route{LinkIndex: dev.Attrs().Index, Scope: netlink.SCOPE_LINK, Dst: prefix(netip.PrefixFrom(gateway, gateway.BitLen()))}
		all := &netlink.Route{LinkIndex: dev.Attrs().Index, Gw: gateway.AsSlice(), MTU: mtu}
		return errors.Join(netlink.RouteAdd(link), netlink.RouteAdd(all))
	})
	n.Pods = append(n.Pods, p)
	return p
}

// Veth makes a pair inside the node, both ends up.
func (n *Node) Veth(a, b string, noARP bool) {
	n.t.Helper()
	In(n.t, n.NS, func() error {
		if err := veth(a, b, nil); err != nil {
			return err
		}
		for _, name := range []string{a, b} {
			l, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			if noARP {
				if err := netlink.LinkSetARPOff(l); err != nil {
					return err
				}
			}
			if err := errors.Join(netlink.LinkSetUp(l), Sysctl("net/ipv4/conf/"+name+"/rp_filter", "0"),
				Sysctl("net/ipv4/conf/"+name+"/accept_local", "1"), Sysctl("net/ipv4/conf/"+name+"/forwarding", "1")); err != nil {
				return err
			}
		}
		return nil
	})
}

// Address gives a device of the node an address.
func (n *Node) Address(device string, p netip.Prefix) {
	n.t.Helper()
	In(n.t, n.NS, func() error {
		_, err := address(device, p)
		return err
	})
}

// Route adds a route to the node. via may be invalid, for what is on the link.
func (n *Node) Route(dst netip.Prefix, via netip.Addr, device string, mtu int) {
	n.t.Helper()
	In(n.t, n.NS, func() error {
		l, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		r := &netlink.Route{LinkIndex: l.Attrs().Index, Dst: prefix(dst), MTU: mtu}
		if via.IsValid() {
			r.Gw = via.AsSlice()
		} else {
			r.Scope = netlink.SCOPE_LINK
		}
		return netlink.RouteAdd(r)
	})
}

// VXLAN makes an external VXLAN device on the node.
func (n *Node) VXLAN(name string, port int) {
	n.t.Helper()
	In(n.t, n.NS, func() error {
		v := &netlink.Vxlan{LinkAttrs: netlink.LinkAttrs{Name: name, MTU: 1500}, FlowBased: true, Port: port, Learning: false}
		if err := netlink.LinkAdd(v); err != nil {
			return err
		}
		return errors.Join(Sysctl("net/ipv4/conf/"+name+"/rp_filter", "0"), netlink.LinkSetUp(v))
	})
}

// Sysctl writes a key of the calling thread's namespace, a path below /proc/sys.
func Sysctl(key, value string) error {
	return os.WriteFile("/proc/sys/"+key, []byte(value), 0)
}

// veth makes a pair; the peer goes to ns unless that is nil.
func veth(name, peer string, ns *netns.NS) error {
	v := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: peer}
	if ns != nil {
		v.PeerNamespace = netlink.NsFd(ns.FD())
	}
	if err := netlink.LinkAdd(v); err != nil {
		return fmt.Errorf("veth %s: %w", name, err)
	}
	return netlink.LinkSetUp(v)
}

func enslave(port string) error {
	l, err := netlink.LinkByName(port)
	if err != nil {
		return err
	}
	br, err := netlink.LinkByName("br0")
	if err != nil {
		return err
	}
	return netlink.LinkSetMaster(l, br)
}

func address(device string, p netip.Prefix) (net.HardwareAddr, error) {
	l, err := netlink.LinkByName(device)
	if err != nil {
		return nil, err
	}
	if err := netlink.AddrAdd(l, &netlink.Addr{IPNet: prefix(p)}); err != nil {
		return nil, fmt.Errorf("address %s: %w", p, err)
	}
	return l.Attrs().HardwareAddr, netlink.LinkSetUp(l)
}

func prefix(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
