package dataplane

import (
	"crypto/sha1"
	"encoding/hex"
	"net"
	"net/netip"
	"strconv"

	"github.com/cnibench/cnibench/internal/dataplane/policy"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/condition"
)

// NIC is the name of the node's device on the underlay, and of a pod's device in the pod.
const NIC = "eth0"

// Dataplane is one way to connect pods.
type Dataplane interface {
	// Arrange fills in PodCIDR, Blocks, Tunnel, Pods and Interfaces of the node with this number, counted from 1. All other
	// fields of n are set.
	Arrange(n *Node, number, pods int)
	// Prepare returns the node's own devices and settings. The lab has already enabled forwarding on the node.
	Prepare(n Node) []link.Thing
	// AttachPod returns the devices, addresses and routes that connect the pod to the node. The pod's namespace is in.
	AttachPod(n Node, p Pod, in *link.Handle) []link.Thing
	// JoinNodes returns the routes of from to the pods of to.
	JoinNodes(from, to Node) []link.Thing
	// Rules returns the dataplane's netfilter rules on n; others are all other nodes.
	Rules(n Node, others []Node) policy.Node
	// NotServed returns why the dataplane does not serve a path, "" if it does.
	NotServed(p plan.Path) string
}

// Switched is a Dataplane whose pods are connected to the switch and not to their node. PlugPod replaces AttachPod.
type Switched interface {
	// PlugPod returns the devices and addresses that connect the pod to the bridge of the switch. The pod's namespace is
	// in.
	PlugPod(bridge string, p Pod, in *link.Handle) []link.Thing
}

// Entry describes a profile in the lab. The folder of its family lists it.
type Entry struct {
	// Profile is the name of the profile.
	Profile string
	Dataplane
	Expect Expectation
	// Encrypted has the entry of the profile with encryption between nodes, by the kind of encryption.
	Encrypted map[condition.Encryption]Entry
}

// Node is the description of one node.
type Node struct {
	// Name is, for example, "node-1".
	Name string
	// Addr is the address on the underlay with its prefix length.
	Addr netip.Prefix
	// MAC is the MAC address of the NIC, MTU its MTU in bytes.
	MAC net.HardwareAddr
	MTU int
	// Cluster is the address range of the pods of all nodes.
	Cluster netip.Prefix
	// PodCIDR is the address range of the pods of this node. It is not valid if pods have addresses of the underlay.
	PodCIDR netip.Prefix
	// Blocks are the used parts of PodCIDR, if IPAM assigns blocks (Calico).
	Blocks []netip.Prefix
	// Tunnel is the device that encapsulates or encrypts; its Device is "" if there is none.
	Tunnel Tunnel
	// Below is the tunnel without encryption, if Tunnel encrypts; otherwise its Device is "".
	Below Tunnel
	// Allowed are the addresses that other nodes reach through this node's Tunnel, if Tunnel encrypts. They also accept these
	// addresses as sources of packets from it (AllowedIPs of WireGuard).
	Allowed []netip.Prefix
	Pods    []Pod
	// Interfaces are devices on the underlay besides the NIC. Their packets go to a router on the underlay.
	Interfaces []Interface
}

// Unencrypted returns the node with Below as its Tunnel, as the dataplane without encryption needs it.
func (n Node) Unencrypted() Node {
	n.Tunnel = n.Below
	return n
}

// Interface is a device of a node on the underlay besides its NIC. It has no route to the underlay: the node sends all its
// packets to the router, and the network delivers them, as in a VPC.
type Interface struct {
	// Name is, for example, "eth1".
	Name string
	// Addr is the address of the device with the prefix length of the underlay.
	Addr netip.Prefix
	MAC  net.HardwareAddr
	// Pods is the range of the pod addresses whose packets the network delivers to the device.
	Pods netip.Prefix
	// Branches are the interfaces of pods on the device, which is then a trunk. Dataplane.AttachPod makes their devices.
	Branches []Branch
	// Strict means that pods send through their branches alone, whatever the node's conntrack has translated.
	Strict bool
}

// Branch is the interface of one pod on a trunk: a VLAN whose packets the network delivers by the pod's address.
type Branch struct {
	// Name is the node's device for the VLAN, for example "vlan.eth.200".
	Name string
	// VLAN is the number of the VLAN on its trunk, 1 to 4094.
	VLAN int
	Addr netip.Addr
	MAC  net.HardwareAddr
}

// BranchOf returns the branch interface with the address of a pod. ok is false if the pod has none.
func BranchOf(on []Interface, pod netip.Addr) (b Branch, ok bool) {
	for _, d := range on {
		for _, b := range d.Branches {
			if b.Addr == pod {
				return b, true
			}
		}
	}
	return Branch{}, false
}

// Tunnel is a node's device that encapsulates or encrypts.
type Tunnel struct {
	Device string
	// Addr is the node's source address in the tunnel.
	Addr netip.Addr
	MAC  net.HardwareAddr
	// VNI is the network identifier, 0 if it differs by packet.
	VNI int
	// Port is the UDP destination port, 0 without UDP.
	Port int
	// MTU is the MTU of inner packets in bytes.
	MTU int
}

// Pod is the description of one pod.
type Pod struct {
	// Name is, for example, "node-1/pod-2".
	Name string
	// Addr has the prefix length of the pod's device.
	Addr netip.Prefix
	// MAC is the MAC address of the pod's device, nil for a device without one and for a host-network pod.
	MAC net.HardwareAddr
	// HostDevice is the node's end of the pod's veth, "" without one.
	HostDevice string
	// HostNetwork pods have no namespace of their own.
	HostNetwork bool
	// MTU is the MTU of the pod's device or, if that is smaller, of its default route, in bytes.
	MTU int
}

// Nothing implements each optional method of Dataplane without doing anything. Dataplanes embed it.
type Nothing struct{}

func (Nothing) Prepare(Node) []link.Thing                      { return nil }
func (Nothing) AttachPod(Node, Pod, *link.Handle) []link.Thing { return nil }
func (Nothing) JoinNodes(Node, Node) []link.Thing              { return nil }
func (Nothing) Rules(Node, []Node) policy.Node                 { return policy.Node{} }
func (Nothing) NotServed(plan.Path) string                     { return "" }

// FirstPod is the last byte of the first pod's address if the gateway has the first address of the range.
const FirstPod = 2

// nodeBits has the prefix length of a node's pod range, by the number of bits of an address.
var nodeBits = map[int]int{32: 24, 128: 64}

// Subnet returns the pod range of the node with this number: a /24 of the cluster's /16, or in IPv6 a /64 of its /56.
func Subnet(cluster netip.Prefix, number int) netip.Prefix {
	b := cluster.Masked().Addr().AsSlice()
	bits := nodeBits[8*len(b)]
	b[bits/8-1] = byte(number)
	return netip.PrefixFrom(addrFromSlice(b), bits)
}

// Nth returns address n of p, counted from 0; n must be below 256.
func Nth(p netip.Prefix, n int) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	b[len(b)-1] += byte(n)
	return addrFromSlice(b)
}

// addrFromSlice returns the address with these 4 or 16 bytes.
func addrFromSlice(b []byte) netip.Addr {
	a, _ := netip.AddrFromSlice(b)
	return a
}

// IPv6 reports whether the node and its pods have IPv6 addresses; otherwise they have IPv4 addresses.
func (n Node) IPv6() bool { return n.Addr.Addr().Is6() }

// Gateway returns the first address of the pod range.
func (n Node) Gateway() netip.Addr { return Nth(n.PodCIDR, 1) }

// PodName returns the name of pod i, counted from 0: "node-1/pod-1" for the first pod of node-1.
func PodName(n *Node, i int) string { return n.Name + "/pod-" + strconv.Itoa(i+1) }

// AddPods adds pods to n. The name of the node's end of a pod's veth is prefix and this number of hexadecimal digits of
// a hash. addr returns the address of pod i, counted from 0, with the prefix length of the pod's device. mtu is in
// bytes.
func (n *Node) AddPods(pods, mtu int, prefix string, digits int, addr func(i int) netip.Prefix) {
	for i := range pods {
		name, a := PodName(n, i), addr(i)
		n.Pods = append(n.Pods, Pod{Name: name, Addr: a, MAC: PodMAC(a.Addr()), HostDevice: vethName(prefix, name, digits), MTU: mtu})
	}
}

// MACOf returns a MAC address made of two leading bytes and bytes of an IP address, so that captures show its owner.
// From an IPv6 address it takes the bytes with the numbers of node and pod.
func MACOf(first, second byte, a netip.Addr) net.HardwareAddr {
	if a.Is6() {
		b := a.As16()
		return net.HardwareAddr{first, second, b[6] ^ b[12], b[7] ^ b[13], b[14], b[15]}
	}
	b := a.As4()
	return net.HardwareAddr{first, second, b[0], b[1], b[2], b[3]}
}

// UnderlayMAC returns the MAC address of the interface with an address of the underlay.
func UnderlayMAC(a netip.Addr) net.HardwareAddr { return MACOf(0x02, 0x00, a) }

// PodMAC returns the MAC address that several plugins derive from the pod's address.
func PodMAC(a netip.Addr) net.HardwareAddr { return MACOf(0x0a, 0x58, a) }

// TunnelMAC returns the MAC address of the node's tunnel device. In the products it is random.
func TunnelMAC(n *Node) net.HardwareAddr { return MACOf(0x66, 0x00, n.Addr.Addr()) }

// vethName returns a device name: a prefix and the first digits of a hash of the pod's name.
func vethName(prefix, pod string, digits int) string {
	sum := sha1.Sum([]byte("default." + pod))
	return prefix + hex.EncodeToString(sum[:])[:digits]
}

// Everywhere returns the destination of the default route, 0.0.0.0/0 or ::/0, in the IP version of a.
func Everywhere(a netip.Addr) netip.Prefix {
	if a.Is6() {
		return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
}

// Single returns the prefix with only a.
func Single(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// Run calls steps in order until one fails, and returns its error.
func Run(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// VXLANOverhead returns the overhead of VXLAN in bytes: IP 20 or 40, UDP 8, VXLAN 8, Ethernet 14.
func VXLANOverhead(n *Node) int {
	if n.IPv6() {
		return 70
	}
	return 50
}

// PrepareVXLAN returns the node's VXLAN device with its address.
func PrepareVXLAN(n Node) []link.Thing {
	t := n.Tunnel
	return []link.Thing{
		link.VXLAN{Name: t.Device, MAC: t.MAC, MTU: t.MTU, VNI: t.VNI, Port: t.Port, Parent: NIC, Local: n.Addr.Addr()},
		link.Address{Dev: t.Device, Addr: Single(t.Addr)},
	}
}

// JoinVXLAN returns the neighbour entry and the forwarding entry by which the VXLAN device of from reaches the VXLAN
// device of to.
func JoinVXLAN(from, to Node) []link.Thing {
	return []link.Thing{
		link.StaticNeighbour{Dev: from.Tunnel.Device, Addr: to.Tunnel.Addr, MAC: to.Tunnel.MAC},
		link.ForwardingEntry{Dev: from.Tunnel.Device, MAC: to.Tunnel.MAC, Outer: to.Addr.Addr()},
	}
}
