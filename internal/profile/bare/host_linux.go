package bare

import (
	"github.com/cnibench/cnibench/internal/env/lab/dataplane"
)

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
