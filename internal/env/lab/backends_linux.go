package lab

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/cnibench/cnibench/internal/conduct/control"
	"github.com/cnibench/cnibench/internal/plan"
)

// firstBackendsPort is the first node port of the Services with several backends.
const firstBackendsPort = 30211

// Backends asks for Services with so many backends, more than one.
type Backends struct {
	Of int
	// Rolled makes them Services whose backends Roll takes out and puts back.
	Rolled bool
}

// backends are those that the options ask for.
func (o Options) backends() []Backends {
	var all []Backends
	for i, n := range slices.Concat(o.Backends, o.Rolled) {
		all = append(all, Backends{Of: n, Rolled: i >= len(o.Backends)})
	}
	return all
}

// withRoomFor returns l with pods enough for the largest number of backends, besides the client's.
func withRoomFor(l plan.Lab, backends []Backends) (plan.Lab, error) {
	if len(backends) == 0 {
		return l, nil
	}
	least, most := backends[0].Of, backends[0].Of
	for _, b := range backends {
		least, most = min(least, b.Of), max(most, b.Of)
	}
	if least < 2 || most > plan.MaxBackends {
		return l, fmt.Errorf("%d to %d backends of a Service: want 2 to %d", least, most, plan.MaxBackends)
	}
	l.PodsPerNode = max(l.PodsPerNode, 1+(most+l.Nodes-1)/l.Nodes)
	if l.PodsPerNode > plan.MaxPodsPerNode {
		return l, fmt.Errorf("%d backends on %d nodes are more than the %d pods that a node may have: take more nodes", most, l.Nodes, plan.MaxPodsPerNode)
	}
	return l, nil
}

// severalBackends describes the Services with several backends: for each number one whose first backend is on the
// client's node, and one whose first is on the next. Where pods share their node's address, and so its ports, there are
// none with more backends than nodes.
func (s Spec) severalBackends(backends []Backends) []ServiceSpec {
	var list []ServiceSpec
	vip := s.net.itself
	for _, b := range backends {
		for first, name := range []string{LocalService, RemoteService} {
			vip = vip.Next()
			if !s.distinct(s.spread(b.Of, first)) {
				continue
			}
			list = append(list, ServiceSpec{
				Name: backendsService(name, b), VIP: vip, NodePort: firstBackendsPort + len(list), Backends: s.spread(b.Of, first),
			})
		}
	}
	return list
}

// backendsService is the name of such a Service; name says where its first backend is.
func backendsService(name string, b Backends) string {
	name = fmt.Sprintf("%s-%d", name, b.Of)
	if b.Rolled {
		name += "-rolled"
	}
	return name
}

// spread picks n pods evenly over the nodes, the first on node first. The client's pod is never among them.
func (s Spec) spread(n, first int) []PodRef {
	var pods []PodRef
	for i := range n {
		node := (first + i) % len(s.Nodes)
		pod := i / len(s.Nodes)
		if node == 0 {
			pod++
		}
		pods = append(pods, PodRef{node, pod})
	}
	return pods
}

// distinct says whether each of pods has an address of its own.
func (s Spec) distinct(pods []PodRef) bool {
	seen := map[netip.Addr]bool{}
	for _, r := range pods {
		seen[s.Nodes[r.Node].Pods[r.Pod].Addr.Addr()] = true
	}
	return len(seen) == len(pods)
}

// Backends returns the client's end of a path to a Service with n backends under a profile, and the n servers. Each has
// the Service's address and port. The error is a *wire.NotServedError when the profile has no such path.
func (l *Lab) Backends(profile plan.Variant, p plan.Path, n int) (client control.Endpoint, servers []control.Endpoint, err error) {
	return l.several(profile, p, Backends{Of: n})
}

// several returns the ends of a path to the Service with these backends.
func (l *Lab) several(profile plan.Variant, p plan.Path, b Backends) (client control.Endpoint, servers []control.Endpoint, err error) {
	client, single, err := l.Endpoints(profile, p)
	if err != nil {
		return client, nil, err
	}
	inst := l.Instance(profile)
	if !p.Shared() {
		return client, nil, inst.Spec.notServed(p, "several backends stand behind a Service alone")
	}
	if p.From == plan.External && inst.Spec.Lab.TrafficPolicy == trafficPolicyLocal {
		return client, nil, inst.Spec.notServed(p, "externalTrafficPolicy Local: the backends on other nodes get nothing from this one")
	}
	// There are backends on either side, so both forms of the path have to work.
	for _, form := range []plan.Locality{plan.Local, plan.Remote} {
		if _, err := inst.Spec.Ends(plan.Path{From: p.From, To: inst.Spec.entered(p).To, Locality: form}); err != nil {
			var not *control.NotServedError
			if errors.As(err, &not) {
				err = inst.Spec.notServed(p, not.Reason)
			}
			return client, nil, err
		}
	}
	name := backendsService(ServiceOf(p), b)
	i := slices.IndexFunc(inst.Spec.Services, func(svc ServiceSpec) bool { return svc.Name == name })
	if i < 0 && slices.Contains(l.options.backends(), b) {
		return client, nil, inst.Spec.notServed(p, fmt.Sprintf("its pods share the addresses of %d nodes, and %d backends need one each", len(inst.Spec.Nodes), b.Of))
	}
	if i < 0 {
		return client, nil, fmt.Errorf("the lab was raised without a Service of %d backends", b.Of)
	}
	svc := inst.Spec.Services[i]
	for _, r := range svc.Backends {
		pod := inst.Spec.Nodes[r.Node].Pods[r.Pod].Name
		e := l.endpoint(inst, pod)
		e.Address, e.Port = svc.VIP.String(), svc.Port
		if p.To == plan.NodePort {
			e.Address, e.Port = single.Address, svc.NodePort
		}
		if p.To == plan.LoadBalancer {
			e.Address = svc.Balanced.String()
		}
		e.ListenAddress, e.ListenPort = inst.Host(pod).Addr.String(), svc.TargetPort
		servers = append(servers, e)
	}
	return client, servers, nil
}
