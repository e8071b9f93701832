package aws

import (
	"fmt"
	"maps"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/dataplane/policy"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// branch is the AWS VPC CNI with security groups for pods: each pod has an interface of its own, a branch of the node's
// trunk interface, and the VPC applies its security groups there. The VPC tells the branches of a trunk apart by VLAN:
//
//	pod eth0 ── vlan1a2b3c4d5e6 ─ node's stack, ip rules, table 100 + VLAN ─ vlan.eth.200 on eth1 ── VPC ── … ── eth0 pod
//
// In strict mode, rules before all others send what a pod sends to the table of its branch, and what its branch receives
// to the pod. So the node delivers nothing to a pod by itself: packets to another pod of the node, or to the node, leave
// it and return. In standard mode only packets to other hosts do. The rules are then those of second, with a table for
// each pod, and connections with AWSMark use the first interface.
type branch struct {
	second
	strict bool
}

const (
	// branchTable plus a VLAN is the number of the routing table of its branch.
	branchTable = 100
	// firstVLAN times the node's number is the VLAN of its first pod. AWS counts from 1 on every trunk. Here the VLANs of
	// two nodes differ, so that a tag which the VPC does not replace is found. No table is one of the kernel's, 253 to 255.
	firstVLAN = 200
	// strictVeth is the prefix of the names of the node's ends of pods' devices in strict mode. Rules for AWSVeth, which
	// mark connections, do not match it.
	strictVeth = "vlan"
)

// Priorities of routing rules in strict mode, and the number of the table of local addresses.
const (
	branchRule = 10
	localRule  = 20
	localTable = 255
)

func (b branch) Arrange(n *dataplane.Node, number, count int) {
	prefix := policy.AWSVeth
	if b.strict {
		prefix = strictVeth
	}
	addPods(n, number, count, prefix)
	trunk := secondInterface(n, number)
	trunk.Strict = b.strict
	for i, p := range n.Pods {
		vlan := firstVLAN*number + i
		trunk.Branches = append(trunk.Branches, dataplane.Branch{
			Name: fmt.Sprintf("vlan.eth.%d", vlan), VLAN: vlan, Addr: p.Addr.Addr(), MAC: dataplane.UnderlayMAC(p.Addr.Addr()),
		})
	}
	n.Interfaces = []dataplane.Interface{trunk}
}

// Prepare switches early demultiplexing of TCP off in strict mode, as AWS asks for where the kubelet probes such pods.
// With it, the node drops what a pod sends to a connection of the node's own.
func (b branch) Prepare(n dataplane.Node) []link.Thing {
	things := b.second.Prepare(n)
	if !b.strict {
		return things
	}
	return append(things,
		link.Settings{netns.Setting{Name: "net/ipv4/tcp_early_demux", Value: "0"}},
		link.Rule{Priority: localRule, Table: localTable},
		link.Step(link.Rule{Table: localTable}.Remove),
	)
}

func (b branch) AttachPod(n dataplane.Node, p dataplane.Pod, in *link.Handle) []link.Thing {
	own, _ := dataplane.BranchOf(n.Interfaces, p.Addr.Addr()) // Arrange gave each pod one
	router, table := dataplane.Nth(n.Addr, 1), branchTable+own.VLAN
	things := append([]link.Thing{
		link.VLAN{Name: own.Name, Parent: secondDevice, ID: own.VLAN, MAC: own.MAC},
		link.StaticNeighbour{Dev: own.Name, Addr: router, MAC: dataplane.UnderlayMAC(router)},
	}, routerRoutes(n, own.Name, table)...)
	if !b.strict {
		return append(append(things, b.vpc.AttachPod(n, p, in)...), link.Rule{Priority: fromPodRule, From: p.Addr, Table: table})
	}
	return append(append(things, connect(p, in)...),
		link.Route{To: p.Addr, Dev: p.HostDevice, LinkScope: true, Table: table},
		link.Rule{Priority: branchRule, In: own.Name, Table: table},
		link.Rule{Priority: branchRule, In: p.HostDevice, Table: table},
		neighbour(n, p),
	)
}

func (branch) JoinNodes(_, to dataplane.Node) []link.Thing {
	return each.Of(to.Pods, func(p dataplane.Pod) link.Thing { return neighbour(to, p) })
}

// neighbour returns the entry for a pod of node n on a node's first interface, in place of the VPC's answer to ARP.
func neighbour(n dataplane.Node, p dataplane.Pod) link.Thing {
	own, _ := dataplane.BranchOf(n.Interfaces, p.Addr.Addr())
	return link.StaticNeighbour{Dev: dataplane.NIC, Addr: own.Addr, MAC: own.MAC}
}

func (b branch) NotServed(p plan.Path) string {
	if b.strict && p == dataplane.HostPodSame {
		return "the node drops datagrams of its pod to a connected socket of its own: early demultiplexing finds the socket before the pod's routing rule applies"
	}
	return ""
}

// firstBranch and nextBranch are the devices of the first node for the branch interfaces of its first two pods.
const firstBranch, nextBranch = "vlan.eth.200", "vlan.eth.201"

// strictExpectation returns the expectation for pods with branch interfaces in strict mode. The node forwards a packet
// for a pod of its own twice. Pods keep their address outside the VPC, and only connections from outside have a mark.
func strictExpectation() dataplane.Expectation {
	x := podExpectation(dataplane.Signs{PodRules: true, Agent: true, PodTable: secondTable, Branches: true, Strict: true})
	x.Attach.SameTTL = 62
	x.Served[dataplane.PodExternal] = dataplane.OwnAddress
	delete(x.Served, dataplane.HostPodSame)
	x.Marks = maps.Clone(marks)
	x.Marks[dataplane.PodExternal] = 0
	x.Leave = leaveBy(firstBranch)
	x.Leave[dataplane.PodPodSame], x.Leave[dataplane.PodSvcLocal] = firstBranch+", "+nextBranch, firstBranch+", "+nextBranch
	x.Leave[dataplane.PodHostSame] = dataplane.NIC + ", " + firstBranch
	x.Leave[dataplane.HostSvcLocal], x.Leave[dataplane.ExtPortLocal] = dataplane.NIC+", "+nextBranch, dataplane.NIC+", "+nextBranch
	x.Leave[dataplane.PodExternal] = firstBranch
	return x
}
