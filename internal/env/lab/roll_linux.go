package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/kernel/nft"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Roll removes a backend from its Service, or adds it again if in is true. It changes all nodes concurrently, and
// returns when their rules or programs have changed. All other backends must be in the Service.
func (l *Lab) Roll(ctx context.Context, b control.Backend, in bool) error {
	inst, err := l.raisedInstance(b.Route.Variant)
	if err != nil {
		return err
	}
	backends := inst.Spec.spreadPods(b.Route.Servers, b.Route.Path.ServerNode())
	if b.Index >= len(backends) {
		return fmt.Errorf("Service has no backend %d: it has %d", b.Index+1, b.Route.Servers)
	}
	if !in {
		backends = slices.Delete(backends, b.Index, b.Index+1)
	}
	// inst.Spec stays: it describes the Service between two trials.
	spec, err := inst.Spec.withBackends(backendServiceName(serviceOf(b.Route.Path), backendSet{Of: b.Route.Servers, Rolled: true}), backends)
	if err != nil {
		return err
	}
	return inst.updateServices(ctx, spec)
}

// withBackends returns s with other backends of the Service called name. It fails if there is no such Service.
func (s instanceSpec) withBackends(name string, backends []PodRef) (instanceSpec, error) {
	at := slices.IndexFunc(s.Services, func(svc serviceSpec) bool { return svc.Name == name })
	if at < 0 {
		return s, fmt.Errorf("profile %q has no Service %s", s.Name, name)
	}
	s.Services = slices.Clone(s.Services)
	s.Services[at].Backends = backends
	return s, nil
}

// updateServices makes all nodes serve the Services of spec instead of the present ones.
func (i *Instance) updateServices(ctx context.Context, spec instanceSpec) error {
	return each.AtOnce(i.Nodes, func(k int, n *Node) error {
		if err := i.updateNodeServices(ctx, spec, k); err != nil {
			return fmt.Errorf("profile %q: %s: Services: %w", i.Name, n.Name, err)
		}
		return nil
	})
}

// updateNodeServices makes one node serve the Services of spec instead of the present ones.
func (i *Instance) updateNodeServices(ctx context.Context, spec instanceSpec, node int) error {
	n := i.Nodes[node]
	if n.programs.Serve != nil {
		return n.programs.Serve(spec.proxyServices(node))
	}
	if spec.Profile.Services == FileServices {
		return n.runServiceCommands(ctx, spec, node)
	}
	rules := spec.Netfilter(node)
	if rules.ProxyNFT {
		return nft.Replace(ctx, n.NS, rules.Tables()[0])
	}
	if rules.ProxyIPVS {
		if err := serveIPVS(n.NS, *rules.Services); err != nil {
			return err
		}
	}
	return errors.Join(i.lab.tools.loadRules(ctx, n.NS, rules), i.restoreRules(ctx, node))
}
