package lab

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/plan"
)

// The lab's load balancer is one of layer 2, as MetalLB's and Cilium's L2 announcements are: no host is in the way. One node
// answers for the address, and its Service rules or programs take what comes. Here the client outside simply knows which
// node that is; nobody has the address on a device.

// announcer is the index of the node that answers for the balancer's addresses: the first, or with the policy Local one that
// has a backend, which is the second.
func (s Spec) announcer() int {
	if s.Lab.TrafficPolicy == trafficPolicyLocal {
		return 1
	}
	return 0
}

// balance gives addresses to the Services whose first backend is on the second node.
func (s Spec) balance(services []ServiceSpec) {
	if s.ProxyIPVS() {
		return
	}
	next := s.net.balanced
	for i := range services {
		if services[i].Name == RemoteService || strings.HasPrefix(services[i].Name, RemoteService+"-") {
			services[i].Balanced, next = next, next.Next()
		}
	}
}

// unbalanced says why a path to a load balancer is not served whatever the dataplane does, "" for any other.
func (s Spec) unbalanced(p plan.Path) string {
	if p.To == plan.LoadBalancer && s.ProxyIPVS() {
		return "the lab does not model addresses of load balancers under kube-proxy in ipvs mode"
	}
	if p.To == plan.LoadBalancer && len(s.Services) > 0 && !s.Balanced() {
		return "the lab was raised without a load balancer"
	}
	return ""
}

// Balanced says whether a load balancer gave any Service an address.
func (s Spec) Balanced() bool {
	return slices.ContainsFunc(s.Services, func(svc ServiceSpec) bool { return svc.Balanced.IsValid() })
}

// withoutBalancer takes the addresses away: a node where nobody asked for one has no rules for them.
func (s Spec) withoutBalancer() Spec {
	s.Services = slices.Clone(s.Services)
	for i := range s.Services {
		s.Services[i].Balanced = netip.Addr{}
	}
	return s
}

// entered returns the path to a node port that enters and ends where p does, if p leads to a load balancer, and otherwise p.
func (s Spec) entered(p plan.Path) plan.Path {
	if p.To != plan.LoadBalancer {
		return p
	}
	p.To, p.Locality = plan.NodePort, plan.Remote
	if s.announcer() == 1 {
		p.Locality = plan.Local
	}
	return p
}
