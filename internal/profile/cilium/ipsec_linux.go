package cilium

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/dataplane/policy"
	"github.com/cnibench/cnibench/internal/kernel/bpf/cilium"
	"github.com/cnibench/cnibench/internal/kernel/link"
)

// ipsec is Cilium with IPsec between nodes, natively routed:
//
//	pod eth0 ── lxc [from_container_marked] ─ eth0 [to_netdev_ipsec] ─ cilium_net [to_host_ipsec] ─ FORWARD, encrypted ─ eth0 ── switch ── ...
//	... ── eth0 [from_netdev_ipsec] ─ node's stack, decrypted ─ eth0 [from_netdev_ipsec] ─ cilium_host [from_host] ─ lxc ── pod
//
// The program at eth0 marks packets from pods to other nodes, and returns them to the stack. The mark selects the kernel's
// XFRM policy and state: it has the number of the key and of the other node. The ends of ESP are the addresses of
// cilium_host. As with WireGuard, the addresses of nodes have no key.
type ipsec struct{ ciliumPlane }

// Settings of the agent's IPsec.
const (
	ipsecOverhead = 77
	ipsecKey      = 3
	ipsecRule     = 1
	ipsecTable    = 200
	decryptedMark = 0xd00
	// fromEgressProxy is the mark of packets that the agent's proxy sends for pods.
	fromEgressProxy = 0xb00
	// forwardPriority is the priority of the policy for packets that the node forwards. dropPriority is the priority of the
	// policy that drops marked packets which no other policy encrypts.
	forwardPriority, dropPriority = 0xb9f, 100
)

// Masks of the bits of a mark. States and policies compare the bits of outMask and inMask, and states set those of
// setOutMask.
const (
	outMask    = 0xffffff00
	inMask     = 0xffff0f00
	setOutMask = 0xffffff00
)

func (i ipsec) Arrange(n *dataplane.Node, number, pods int) {
	i.ciliumPlane.Arrange(n, number, pods)
	for at := range n.Pods {
		n.Pods[at].MTU -= ipsecOverhead
	}
}

// nodeNumber returns the number at the end of a node's name, in the upper 16 bits as in marks.
func nodeNumber(n dataplane.Node) uint32 {
	number, _ := strconv.Atoi(n.Name[strings.LastIndex(n.Name, "-")+1:])
	return uint32(number) << 16
}

var everywhere = netip.PrefixFrom(netip.IPv4Unspecified(), 0)

func (i ipsec) Prepare(n dataplane.Node) []link.Thing {
	things := append(i.ciliumPlane.Prepare(n), fromProxyRoutes(n, n.MTU-ipsecOverhead, fromProxy, fromEgressProxy)...)
	return append(things,
		link.Rule{Priority: ipsecRule, Mark: decryptedMark, Mask: markKind, Table: ipsecTable},
		link.LocalRoute{To: n.PodCIDR, Dev: dataplane.NIC, Table: ipsecTable},
		link.XFRMPolicy{Direction: "out", To: everywhere, Mark: encryptedMark, Mask: markKind, Priority: dropPriority, Drop: true},
		link.XFRMPolicy{Direction: "fwd", To: everywhere, Priority: forwardPriority},
		link.XFRMPolicy{Direction: "in", To: everywhere})
}

func (i ipsec) JoinNodes(from, to dataplane.Node) []link.Thing {
	here, there := from.Gateway(), to.Gateway()
	out := link.XFRMState{
		From: here, To: there, SPI: ipsecKey, Mark: encryptedMark | ipsecKey<<12 | nodeNumber(to), Mask: outMask,
		OutMark: encryptedMark, OutMask: setOutMask,
	}
	return append(i.ciliumPlane.JoinNodes(from, to), out,
		link.XFRMState{
			From: there, To: here, SPI: ipsecKey, Mark: decryptedMark | nodeNumber(to), Mask: inMask, OutMark: decryptedMark, OutMask: setOutMask,
		},
		link.XFRMPolicy{Direction: "out", To: to.PodCIDR, Mark: out.Mark, Mask: out.Mask, State: out},
		link.Route{To: to.PodCIDR, Dev: ciliumHost, MTU: from.MTU, Table: ipsecTable})
}

func (i ipsec) Rules(dataplane.Node, []dataplane.Node) policy.Node {
	return policy.Node{Cilium: &policy.CiliumConfig{IPsec: true}}
}

// addNodeNumbers adds the numbers of the other nodes to the programs' tables.
func addNodeNumbers(plane *cilium.Node, others []dataplane.Node) error {
	for _, o := range others {
		for _, a := range []netip.Addr{o.Addr.Addr(), o.Gateway()} {
			if err := plane.SetNode(a, uint16(nodeNumber(o)>>16)); err != nil {
				return err
			}
		}
	}
	return nil
}

// ipsecEntry returns the entry of a profile that encrypts with IPsec. x is its expectation with WireGuard.
func ipsecEntry(x dataplane.Expectation, plain ciliumPlane) dataplane.Entry {
	plain.ipsec = true
	programs := *x.Programs
	// Decrypted packets reach the pod from cilium_host, and the stack forwards packets that are encrypted.
	programs.Doorstep, programs.DoorstepSame, programs.Forwards = dataplane.AllPackets, dataplane.NoPackets, true
	routed := *x.Attach
	routed.CrossTTL = 61 // forwarded by a program, by the stack and by the other node's program
	x.Programs, x.Attach = &programs, &routed
	x.Diverted = "1 fwmark 0xd00/0xf00 lookup 200, 10 fwmark 0xa00/0xf00 lookup 2005, 10 fwmark 0xb00/0xf00 lookup 2005, 9 fwmark 0x200/0xf00 lookup main"
	return dataplane.Entry{Dataplane: ipsec{plain}, Expect: x}
}
