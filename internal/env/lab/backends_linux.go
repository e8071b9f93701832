package lab

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/condition"
)

// firstBackendsPort is the first node port of the Services with several backends.
const firstBackendsPort = 30211

// backendSet requests a pair of Services with several backends; see backendServices.
type backendSet struct {
	// Of is the number of backends, at least 2.
	Of int
	// Rolled means that Roll removes backends of these Services and adds them again.
	Rolled bool
}

// backendSets returns a backendSet for each entry of o.Backends, then for each entry of o.Rolled.
func (o Options) backendSets() []backendSet {
	var all []backendSet
	for i, n := range slices.Concat(o.Backends, o.Rolled) {
		all = append(all, backendSet{Of: n, Rolled: i >= len(o.Backends)})
	}
	return all
}

// withBackendPods returns l with enough pods per node for the client and the largest set of backends. It fails if the
// size of a set is out of range. It also fails if a node would get too many pods.
func withBackendPods(l plan.Lab, backends []backendSet) (plan.Lab, error) {
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
		return l, fmt.Errorf("%d backends on %d nodes need more than %d pods per node: use more nodes", most, l.Nodes, plan.MaxPodsPerNode)
	}
	return l, nil
}

// backendServices returns two Services for each entry of backends. The first backend of one Service is on the
// client's node, that of the other on the next node. A Service is left out if two of its backends would share an
// address.
func (s instanceSpec) backendServices(backends []backendSet) []serviceSpec {
	var list []serviceSpec
	vip := s.net.itself
	for _, b := range backends {
		for first, name := range []string{LocalService, RemoteService} {
			vip = vip.Next()
			if !s.haveDistinctAddrs(s.spreadPods(b.Of, first)) {
				continue
			}
			list = append(list, serviceSpec{
				Name: backendServiceName(name, b), VIP: vip, NodePort: firstBackendsPort + len(list), UDP: true, Backends: s.spreadPods(b.Of, first),
			})
		}
	}
	return list
}

// backendServiceName returns the name of a Service with several backends. name is LocalService if the first backend is on
// the client's node, RemoteService if it is on the next node.
func backendServiceName(name string, b backendSet) string {
	name = fmt.Sprintf("%s-%d", name, b.Of)
	if b.Rolled {
		name += "-rolled"
	}
	return name
}

// spreadPods picks n pods evenly over the nodes, the first on the node with index first. The client's pod is never among
// them.
func (s instanceSpec) spreadPods(n, first int) []PodRef {
	var pods []PodRef
	for i := range n {
		node, pod := (first+i)%len(s.Nodes), i/len(s.Nodes)
		if node == 0 {
			pod++
		}
		pods = append(pods, PodRef{node, pod})
	}
	return pods
}

// haveDistinctAddrs reports whether all pods have different addresses.
func (s instanceSpec) haveDistinctAddrs(pods []PodRef) bool {
	seen := map[netip.Addr]bool{}
	for _, r := range pods {
		seen[s.Nodes[r.Node].Pods[r.Pod].Addr.Addr()] = true
	}
	return len(seen) == len(pods)
}

// backendEndpoints returns the servers of a route to a Service with several backends. Each has the Service's address and port.
// It fails with a *control.NotServedError if the variant has no such route.
func (l *Lab) backendEndpoints(inst *Instance, r plan.Route) ([]control.Endpoint, error) {
	p := r.Path
	if !p.Shared() {
		return nil, inst.Spec.notServedError(p, "only a Service can have several backends")
	}
	if p.From == plan.External && inst.Spec.Lab.TrafficPolicy == condition.TrafficLocal {
		return nil, inst.Spec.notServedError(p, "externalTrafficPolicy Local: the entered node passes nothing to backends on other nodes")
	}
	// The backends are on both nodes, so both forms of the path must work.
	for _, form := range []plan.Locality{plan.Local, plan.Remote} {
		if _, err := inst.Spec.Ends(plan.Path{From: p.From, To: inst.Spec.nodePortPath(p).To, Locality: form}); err != nil {
			var not *control.NotServedError
			if errors.As(err, &not) {
				err = inst.Spec.notServedError(p, not.Reason)
			}
			return nil, err
		}
	}
	b := backendSet{Of: r.Servers, Rolled: r.Rolled}
	name := backendServiceName(serviceOf(p), b)
	i := slices.IndexFunc(inst.Spec.Services, func(svc serviceSpec) bool { return svc.Name == name })
	if i < 0 && slices.Contains(l.options.backendSets(), b) {
		return nil, inst.Spec.notServedError(p, fmt.Sprintf("its pods share the addresses of %d nodes, and %d backends need one each", len(inst.Spec.Nodes), b.Of))
	}
	if i < 0 {
		return nil, fmt.Errorf("the lab has no Service of %d backends", b.Of)
	}
	svc := inst.Spec.Services[i]
	var servers []control.Endpoint
	for _, ref := range svc.Backends {
		pod := inst.Spec.Nodes[ref.Node].Pods[ref.Pod].Name
		e := l.hostEndpoint(inst, pod)
		address, port := inst.Spec.dialAddress(svc, p)
		e.Address, e.Port = address.String(), port
		e.ListenAddress, e.ListenPort = inst.Host(pod).Addr.String(), svc.TargetPort
		servers = append(servers, e)
	}
	return servers, nil
}
