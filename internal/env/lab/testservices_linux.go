package lab

import (
	"context"
	"net/netip"
)

// The Services that Options.TestServices adds: one without endpoints, one that keeps a client with its backend, and one
// that is shared by as many pods as there are, up to maxShared, but for the client's.
const (
	NoneService   = "svc-none"
	StickyService = "svc-sticky"
	SharedService = "svc-shared"
)

const (
	maxShared      = 5
	sharedNodePort = 30204
)

// testServices describes them. They come last in the order of Services.
func (s Spec) testServices() []ServiceSpec {
	list := []ServiceSpec{
		{Name: NoneService, UDP: true},
		{Name: StickyService, Affinity: true, Backends: []PodRef{{0, 1}, {1, 0}}},
		{Name: SharedService, NodePort: sharedNodePort, Backends: s.sharing()},
	}
	vip := s.net.forTests
	for i := range list {
		list[i].VIP, list[i].Port, list[i].TargetPort = vip, Port, Port
		vip = vip.Next()
	}
	return list
}

// sharing are the first pods that have addresses of their own, but for the client's.
func (s Spec) sharing() []PodRef {
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

// SetBackends gives a Service other backends while the instance stands, as when pods come and go: every node's kube-proxy,
// or the programs in its place, learn of it. Connections that stand already are left alone.
func (i *Instance) SetBackends(ctx context.Context, name string, backends []PodRef) error {
	spec, err := i.Spec.withBackends(name, backends)
	if err != nil {
		return err
	}
	i.Spec = spec
	svc := i.Service(name)
	svc.Backends = nil
	for _, r := range backends {
		svc.Backends = append(svc.Backends, i.Nodes[r.Node].Pods[r.Pod])
	}
	return i.learn(ctx, spec)
}
