package dataplane

import (
	"crypto/sha1"
	"encoding/hex"
	"net"
	"net/netip"
	"strconv"

	"github.com/cnibench/cnibench/internal/env/lab/expect"
	"github.com/cnibench/cnibench/internal/env/lab/policy"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/sysctl"
	"github.com/cnibench/cnibench/internal/plan"
)

// NIC is the name of the node's device on the underlay, and of a pod's device in the pod.
const NIC = "eth0"

// Dataplane is one way to connect pods.
type Dataplane interface {
	// Arrange decides what the node with this number, counted from 1, gives to this many pods: it fills in PodCIDR,
	// Blocks, Tunnel and Pods. The rest of n is set.
	Arrange(n *Node, number, pods int)
	// Prepare makes the node's own devices and settings in at.
	Prepare(n Node, at *link.Handle) error
	// AttachPod connects the pod, whose namespace is in, to the node, whose namespace is at.
	AttachPod(n Node, at *link.Handle, p Pod, in *link.Handle) error
	// JoinNodes teaches from, whose namespace is at, the way to the pods of to.
	JoinNodes(from Node, at *link.Handle, to Node) error
	// Rules returns what the dataplane keeps in the netfilter tables of n; others are the rest of the nodes.
	Rules(n Node, others []Node) policy.Node
	// NotServed says why there is no traffic on a path, and "" when there is.
	NotServed(p plan.Path) string
}

// Switched is what a dataplane is besides when its pods hang on the switch, beside their node and not on it. PlugPod is
// then called in place of AttachPod.
type Switched interface {
	// PlugPod connects the pod, whose namespace is in, to the switch.
	PlugPod(to Switch, p Pod, in *link.Handle) error
}

// Switch is what the nodes' NICs hang on.
type Switch struct {
	// At is a handle in its namespace, Bridge the device whose ports the NICs are.
	At     *link.Handle
	Bridge string
}

// Entry is what the lab knows of a profile: the folder of its family lists it.
type Entry struct {
	// Profile is the name.
	Profile string
	Dataplane
	// Expect is what an observer must find.
	Expect expect.Expectation
}

// Node is the description of one node.
type Node struct {
	// Name is, for example, "node-1".
	Name string
	// Addr is the address on the underlay with its prefix length, MAC that of the NIC, MTU in bytes.
	Addr netip.Prefix
	MAC  net.HardwareAddr
	MTU  int
	// Cluster holds the pods of all nodes.
	Cluster netip.Prefix
	// PodCIDR holds the pods of this node; not valid when pods have addresses of the underlay.
	PodCIDR netip.Prefix
	// Blocks are the parts of PodCIDR that are in use, where addresses are given out in blocks (Calico).
	Blocks []netip.Prefix
	// Tunnel has no Device when nothing is encapsulated.
	Tunnel Tunnel
	Pods   []Pod
}

// Tunnel is a node's device that encapsulates.
type Tunnel struct {
	Device string
	// Addr is the address from which the node itself sends into it.
	Addr netip.Addr
	MAC  net.HardwareAddr
	// VNI is the network identifier, 0 when each packet has its own; Port the UDP destination port, 0 without UDP; MTU
	// that of the packets through it, in bytes.
	VNI, Port, MTU int
}

// Pod is the description of one pod.
type Pod struct {
	// Name is, for example, "node-1/pod-2".
	Name string
	// Addr has the prefix length that the pod's device has.
	Addr netip.Prefix
	// MAC is that of the pod's device, nil for a host-network pod.
	MAC net.HardwareAddr
	// HostDevice is the node's end of the pod's veth, "" when the node has none.
	HostDevice string
	// HostNetwork pods have no namespace of their own.
	HostNetwork bool
	// MTU is of the pod's device, or of its default route where that is less, in bytes.
	MTU int
}

// Nothing is embedded by dataplanes that have no use for one of the verbs.
type Nothing struct{}

func (Nothing) Prepare(Node, *link.Handle) error                      { return nil }
func (Nothing) AttachPod(Node, *link.Handle, Pod, *link.Handle) error { return nil }
func (Nothing) JoinNodes(Node, *link.Handle, Node) error              { return nil }
func (Nothing) Rules(Node, []Node) policy.Node                        { return policy.Node{} }
func (Nothing) NotServed(plan.Path) string                            { return "" }

// FirstPod is the last byte of the first pod's address where the gateway has the first of the node's range.
const FirstPod = 2

// nodeBits is the length of a node's part of the cluster's range, by the length of an address.
var nodeBits = map[int]int{32: 24, 128: 64}

// Subnet returns the /24 of the cluster's /16 that belongs to a node, or in IPv6 the /64 of its /56.
func Subnet(cluster netip.Prefix, number int) netip.Prefix {
	b := cluster.Masked().Addr().AsSlice()
	bits := nodeBits[8*len(b)]
	b[bits/8-1] = byte(number)
	return netip.PrefixFrom(address(b), bits)
}

// Nth returns the address that is n above the first of p; n is below 256.
func Nth(p netip.Prefix, n int) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	b[len(b)-1] += byte(n)
	return address(b)
}

// address is the one with these 4 or 16 bytes.
func address(b []byte) netip.Addr {
	a, _ := netip.AddrFromSlice(b)
	return a
}

// IPv6 says whether the node and its pods have IPv6 addresses, and no others.
func (n Node) IPv6() bool { return n.Addr.Addr().Is6() }

// Gateway returns the node's own address in its pod range, where it has one.
func (n Node) Gateway() netip.Addr { return Nth(n.PodCIDR, 1) }

// PodName returns "node-1/pod-1" and so on.
func PodName(n *Node, i int) string { return n.Name + "/pod-" + strconv.Itoa(i+1) }

// MACOf makes a MAC address of two leading bytes and an address, so that it can be told in a capture whose it is. Of an
// IPv6 address it takes the numbers of the node, which stand in the range of its pods or before the pod's, and of the pod.
func MACOf(first, second byte, a netip.Addr) net.HardwareAddr {
	if a.Is6() {
		b := a.As16()
		return net.HardwareAddr{first, second, b[6] ^ b[12], b[7] ^ b[13], b[14], b[15]}
	}
	b := a.As4()
	return net.HardwareAddr{first, second, b[0], b[1], b[2], b[3]}
}

// PodMAC returns the MAC address that several plugins derive from the pod's address.
func PodMAC(a netip.Addr) net.HardwareAddr { return MACOf(0x0a, 0x58, a) }

// TunnelMAC returns a stand-in for the random address that a daemon chooses once and announces.
func TunnelMAC(n *Node) net.HardwareAddr { return MACOf(0x66, 0x00, n.Addr.Addr()) }

// VethName makes a device name from a prefix and as many characters of a hash of the pod's name as there is room for.
func VethName(prefix, pod string, digits int) string {
	sum := sha1.Sum([]byte("default." + pod))
	return prefix + hex.EncodeToString(sum[:])[:digits]
}

// Everywhere returns the default route's destination, in the version of IP of a.
func Everywhere(a netip.Addr) netip.Prefix {
	if a.Is6() {
		return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
}

// Single returns the prefix that holds a alone.
func Single(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// EnableForwarding makes a node forward packets between its devices.
func EnableForwarding(n Node, at *link.Handle) error {
	name := "net/ipv4/ip_forward"
	if n.IPv6() {
		name = "net/ipv6/conf/all/forwarding"
	}
	return sysctl.Set(at.NS(), []sysctl.Setting{{Name: name, Value: "1"}})
}

// Run calls steps in order until one fails.
func Run(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
