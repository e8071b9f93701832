package bare

import (
	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/plan"
)

// Profiles has the entries of the family's profiles in the lab.
var Profiles = []dataplane.Entry{
	{Profile: "raw", Dataplane: raw{}, Expect: dataplane.Expectation{
		Served: dataplane.Clients{dataplane.HostHostSame: dataplane.OwnAddress, dataplane.HostHostCross: dataplane.OwnAddress},
	}},
	{Profile: "host", Dataplane: host{}, Expect: dataplane.Expectation{
		Tracked: true,
		// Pods have the node's address, so every client is seen with its own address. Packets that are translated to the
		// node itself pass INPUT, and only POSTROUTING masquerades.
		Served: dataplane.Paths(dataplane.Direct, dataplane.Entering(dataplane.OwnAddress, dataplane.OwnAddress), dataplane.Unmasqueraded, dataplane.Clients{
			dataplane.PodExternal: dataplane.OwnAddress, dataplane.PodSelf: dataplane.OwnAddress, dataplane.ExtPortRemote: dataplane.NodeAddress,
		}),
	}},
}

// raw is two empty namespaces on a switch, the reference of every comparison:
//
//	node-1 eth0 ── switch ── eth0 node-2
type raw struct{ dataplane.Nothing }

func (raw) Arrange(*dataplane.Node, int, int) {}

func (raw) NotServed(p plan.Path) string {
	if p.From == plan.Host && p.To == plan.Host {
		return ""
	}
	return "raw has neither pods nor Services: it is two empty namespaces"
}

// host is the bare node: pods are host-network pods, so a packet between them takes the way of the nodes' own traffic
// and meets kubelet's and kube-proxy's rules:
//
//	process ─ OUTPUT ─ POSTROUTING ─ eth0 ── switch ── eth0 ─ PREROUTING ─ INPUT ─ process
type host struct{ dataplane.Nothing }

func (host) Arrange(n *dataplane.Node, _, pods int) {
	for i := range pods {
		n.Pods = append(n.Pods, dataplane.Pod{Name: dataplane.PodName(n, i), Addr: n.Addr, HostNetwork: true, MTU: n.MTU})
	}
}
