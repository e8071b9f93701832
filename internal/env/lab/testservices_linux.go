package lab

import (
	"context"
	"net/netip"
)

// The Services that Options.TestServices adds. NoneService has no endpoints, and StickyService has session
// affinity. SharedService has up to maxShared pods as backends, without the client's.
const (
	NoneService   = "svc-none"
	StickyService = "svc-sticky"
	SharedService = "svc-shared"
)

const (
	maxShared      = 5
	sharedNodePort = 30204
)

// testServices describes the Services that only self-tests use.
func (s instanceSpec) testServices() []serviceSpec {
	list := []serviceSpec{
		{Name: NoneService, UDP: true},
		{Name: StickyService, Affinity: true, Backends: []PodRef{{0, 1}, {1, 0}}},
		{Name: SharedService, NodePort: sharedNodePort, Backends: s.sharedBackends()},
	}
	vip := s.net.forTests
	for i := range list {
		list[i].VIP, list[i].Port, list[i].TargetPort = vip, agentPort, agentPort
		vip = vip.Next()
	}
	return list
}

// sharedBackends returns the backends of SharedService: the first maxShared pods with different addresses, without the
// client's pod.
func (s instanceSpec) sharedBackends() []PodRef {
	var pods []PodRef
	seen := map[netip.Addr]bool{}
	for n, node := range s.Nodes {
		for p, pod := range node.Pods {
			if n+p > 0 && !seen[pod.Addr.Addr()] && len(pods) < maxShared {
				seen[pod.Addr.Addr()] = true
				pods = append(pods, PodRef{n, p})
			}
		}
	}
	return pods
}

// SetBackends replaces the backends of a Service on all nodes of a running instance. It does not affect established
// connections.
func (i *Instance) SetBackends(ctx context.Context, name string, backends []PodRef) error {
	spec, err := i.Spec.withBackends(name, backends)
	if err != nil {
		return err
	}
	i.Spec = spec
	i.Service(name).Backends = i.podsOf(backends)
	return i.updateServices(ctx, spec)
}
