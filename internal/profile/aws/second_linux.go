package aws

import (
	"net/netip"
	"slices"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/kernel/link"
)

// second is the AWS VPC CNI with pods on the node's second interface:
//
//	pod eth0 ── eni1a2b3c4d5e6 ─ node's stack, ip rules, table 2 ─ eth1 ── router of the VPC ── eth1 ─ … ── eth0 pod
//
// A second routing rule for each pod sends the pod's packets to the table of the interface. That table has only a
// default route by the VPC's router. Packets for the pod arrive at eth1. Connections with AWSMark still use the first
// interface, because the rule for the mark precedes those of the pods.
type second struct{ vpc }

// The second interface: its device, and its routing table, which has the number of the interface.
const (
	secondDevice = "eth1"
	secondTable  = 2
)

func (s second) Arrange(n *dataplane.Node, number, count int) {
	s.vpc.Arrange(n, number, count)
	d := secondInterface(n, number)
	d.Pods = podRange(number)
	n.Interfaces = []dataplane.Interface{d}
}

// secondInterface returns the second interface of the node with this number, without pods.
func secondInterface(n *dataplane.Node, number int) dataplane.Interface {
	own := dataplane.Nth(podRange(number), 1)
	return dataplane.Interface{Name: secondDevice, Addr: netip.PrefixFrom(own, n.Addr.Bits()), MAC: dataplane.UnderlayMAC(own)}
}

func (s second) Prepare(n dataplane.Node) []link.Thing {
	return slices.Concat(s.vpc.Prepare(n), routerRoutes(n, secondDevice, secondTable), []link.Thing{
		link.Rule{Priority: interfaceRule, From: dataplane.Single(n.Interfaces[0].Addr.Addr()), Table: secondTable},
	})
}

// routerRoutes returns the routes of a table whose packets all go to the VPC's router through a device.
func routerRoutes(n dataplane.Node, device string, table int) []link.Thing {
	router := dataplane.Nth(n.Addr, 1)
	return []link.Thing{
		link.Route{To: dataplane.Single(router), Dev: device, LinkScope: true, Table: table},
		link.Route{To: dataplane.Everywhere(router), Via: router, Dev: device, Table: table},
	}
}

func (s second) AttachPod(n dataplane.Node, p dataplane.Pod, in *link.Handle) []link.Thing {
	return append(s.vpc.AttachPod(n, p, in), link.Rule{Priority: fromPodRule, From: p.Addr, Table: secondTable})
}

func (second) JoinNodes(_, to dataplane.Node) []link.Thing {
	return podNeighbours(to, to.Interfaces[0].MAC)
}
