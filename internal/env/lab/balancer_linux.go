package lab

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/condition"
)

// The lab's load balancer works on layer 2, like MetalLB and Cilium's L2 announcements: no extra host is on the path.
// One node answers for the address, and its Service rules or programs accept the packets. In the lab the external
// client has a static neighbour entry for that node. No device has the address.

// announcerIndex returns the index of the node that answers for the load balancer addresses. This is the first
// node. With traffic policy Local it is the second node, which has the backend.
func (s instanceSpec) announcerIndex() int {
	if s.Lab.TrafficPolicy == condition.TrafficLocal {
		return 1
	}
	return 0
}

// setBalancerAddrs sets the load balancer address of each Service whose first backend is on the second node. It
// sets none under kube-proxy in ipvs mode, or if answersElsewhere returns true.
func (s instanceSpec) setBalancerAddrs(services []serviceSpec) {
	if s.ProxyIPVS() || answersElsewhere(s) {
		return
	}
	next := s.net.balanced
	for i := range services {
		if services[i].Name == RemoteService || strings.HasPrefix(services[i].Name, RemoteService+"-") {
			services[i].Balanced, next = next, next.Next()
		}
	}
}

// balancerRefusal returns why the lab cannot serve a path to a load balancer. It returns "" if it can, and for paths to other
// destinations.
func (s instanceSpec) balancerRefusal(p plan.Path) string {
	if p.To == plan.LoadBalancer && s.ProxyIPVS() {
		return "the lab does not model addresses of load balancers under kube-proxy in ipvs mode"
	}
	if p.To == plan.LoadBalancer && answersElsewhere(s) {
		return "externalTrafficPolicy Local: the answer leaves by the second interface, because only what enters at an address of the node has the mark; load balancers of AWS send to such an address"
	}
	if p.To == plan.LoadBalancer && len(s.Services) > 0 && !s.Balanced() {
		return "the lab has no load balancer"
	}
	return ""
}

// answersElsewhere reports whether pods would answer a load balancer's client through another interface than the one
// where the request arrived.
func answersElsewhere(s instanceSpec) bool {
	return s.Lab.TrafficPolicy == condition.TrafficLocal && hasInterface(s.Nodes, func(dataplane.Interface) bool { return true })
}

// Balanced reports whether any Service has a load balancer address.
func (s instanceSpec) Balanced() bool {
	return slices.ContainsFunc(s.Services, func(svc serviceSpec) bool { return svc.Balanced.IsValid() })
}

// withoutBalancer returns s without load balancer addresses, so that nodes have no rules for them.
func (s instanceSpec) withoutBalancer() instanceSpec {
	s.Services = slices.Clone(s.Services)
	for i := range s.Services {
		s.Services[i].Balanced = netip.Addr{}
	}
	return s
}

// nodePortPath returns, for a path to a load balancer, the node port path through the announcer to the same backend. It
// returns any other path unchanged.
func (s instanceSpec) nodePortPath(p plan.Path) plan.Path {
	if p.To != plan.LoadBalancer {
		return p
	}
	p.To, p.Locality = plan.NodePort, plan.Remote
	if s.announcerIndex() == 1 {
		p.Locality = plan.Local
	}
	return p
}
