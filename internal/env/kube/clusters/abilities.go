package clusters

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/env/kube"
	"github.com/cnibench/cnibench/internal/env/kube/detect"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/mesh"
)

var _ interface {
	env.Meshed
	env.Renewer
	env.Roller
	env.PodMaker
	env.Rester
	env.Recoverer
	env.PolicyLister
	env.Sampler
	env.Looker
} = (*site)(nil)

// localVariants returns the variants to measure on the cluster, without their context. These are the profile host, its twin,
// and the variants of the detected profile.
func (s *site) localVariants() []plan.Variant {
	var names []plan.Variant
	for _, name := range s.measured {
		if isHostProfile(name) || name.Profile() == s.profile {
			names = append(names, name.Local())
		}
	}
	return names
}

// Endpoints returns the ends of a route. If the variant has a context, the names of the ends begin with it. It fails with a
// *control.NotServedError if the cluster does not serve the route, or if no connection was established on the route before
// the run or after the last Renew.
func (s *site) Endpoints(_ context.Context, r plan.Route) (control.Ends, error) {
	if silent := s.silent[r.Local()]; silent != nil {
		why := "it did not pass its proof before the run: " + strings.Join(strings.Fields(silent.Error()), " ")
		return control.Ends{}, &control.NotServedError{Profile: r.Variant, Path: r.Path.String(), Reason: why}
	}
	ends, err := s.cluster.Endpoints(r.Local())
	if context := r.Variant.Context(); context != "" {
		ends.Client.Name = context + "/" + ends.Client.Name
		for i := range ends.Servers {
			ends.Servers[i].Name = context + "/" + ends.Servers[i].Name
		}
	}
	return ends, err
}

func (s *site) mesh() kube.Mesh { return kube.Mesh{Cluster: s.cluster} }

// Nodes returns the nodes of a run over pairs.
func (s *site) Nodes(context.Context, plan.Variant) ([]mesh.Node, error) {
	return s.mesh().Nodes(), nil
}

// Away returns a node of the pair that cannot be measured now, and why. Both are "" if both nodes can be measured.
func (s *site) Away(ctx context.Context, p mesh.Pair, failed bool) (node, why string) {
	return s.mesh().Away(ctx, p, failed)
}

// Await waits for nodes whose pods are starting.
func (s *site) Await(ctx context.Context) { s.mesh().Await(ctx) }

// Renews returns the variants whose pods Renew replaces: all variants of the cluster, because they share its pods. It
// returns nil if the pods must not be replaced.
func (s *site) Renews(plan.Variant) []plan.Variant {
	if !s.renews {
		return nil
	}
	return slices.Clone(s.measured)
}

// Renew replaces the run's pods, which all variants of the cluster share. Then it waits, for a limited time, until a
// connection is established on every path again. It returns the same error for each of names, nil if it succeeded.
func (s *site) Renew(ctx context.Context, names []plan.Variant) map[plan.Variant]error {
	err := s.cluster.Renew(ctx)
	if err == nil {
		s.silent, err = s.cluster.Reach(ctx, s.localVariants())
	}
	why := map[plan.Variant]error{}
	for _, v := range names {
		why[v] = s.withContext(err)
	}
	return why
}

// Roll adds a backend to its Service if in is true, and removes it otherwise.
func (s *site) Roll(ctx context.Context, b control.Backend, in bool) error {
	b.Route = b.Route.Local()
	return s.withContext(s.cluster.Roll(ctx, b, in))
}

// NewPods creates pods at a rate and returns their observation when all of them are removed.
func (s *site) NewPods(ctx context.Context, a control.Arrivals) (*sample.Observation, error) {
	a.Route = a.Route.Local()
	seen, err := s.cluster.NewPods(ctx, a)
	return seen, s.withContext(err)
}

// LatePods returns true, because the cluster's scheduler and kubelets may delay a pod.
func (s *site) LatePods() bool { return true }

// Rest measures what the nodes of a path use during window, while the run sends nothing.
func (s *site) Rest(ctx context.Context, v plan.Variant, p plan.Path, window time.Duration) (*sample.Observation, error) {
	seen, err := s.cluster.Rest(ctx, plan.Single(v.Local(), p), window)
	return seen, s.withContext(err)
}

// Policies returns the names of the NetworkPolicies that select an end of a path.
func (s *site) Policies(ctx context.Context, v plan.Variant, p plan.Path) []string {
	return s.cluster.Policies(ctx, v.Local(), p)
}

// Places returns the client's and the server's pod of a path, then the run's host-network pods on the same nodes, if it has
// any. It fails if there is no client's or no server's pod.
func (s *site) Places(r plan.Route) ([]env.Place, error) {
	all := s.cluster.Ground(s.profile).Ends
	find := func(role string, host bool) []env.Place {
		i := slices.IndexFunc(all, func(e detect.End) bool { return e.Role == role && e.Host == host && e.Address.IsValid() })
		if i < 0 {
			return nil
		}
		return []env.Place{{Name: placeOf(all[i].Pod, all[i].Node), Node: all[i].Node, Pod: !host, Address: all[i].Address.String()}}
	}
	client, server := find("client", r.Path.From == plan.Host), find("server", r.Path.To == plan.Host)
	if client == nil || server == nil {
		return nil, errors.New("the run has no two pods to look from")
	}
	places := slices.Concat(client, server)
	if r.Path.From != plan.Host || r.Path.To != plan.Host {
		places = slices.Concat(places, find("client", true), find("server", true))
	}
	return places, nil
}

// onNode separates the names of the pod and the node in the name of a place.
const onNode = " on node "

func placeOf(pod, node string) string { return pod + onNode + node }

// sharedBackends is how many backends the Service of Shared has, one on each node of the path.
const sharedBackends = 2

// Shared returns the Service that is created if Options.Shared is set, or the zero value if it was not created.
func (s *site) Shared() env.Shared {
	ends, err := s.cluster.Endpoints(plan.Route{Path: plan.Path{From: plan.Pod, To: plan.Service, Locality: plan.Remote}, Servers: sharedBackends})
	if err != nil { // it was not made
		return env.Shared{}
	}
	first := ends.Servers[0]
	shared := env.Shared{Name: "the run's Service", Address: net.JoinHostPort(first.Address, strconv.Itoa(first.Port)), Port: first.ListenPort}
	for _, e := range s.cluster.Ground(s.profile).Ends {
		for _, server := range ends.Servers {
			if strings.TrimPrefix(server.Name, "/") == e.Pod {
				shared.Backends = append(shared.Backends, env.Place{Name: placeOf(e.Pod, e.Node), Node: e.Node, Pod: true, Address: server.ListenAddress})
			}
		}
	}
	return shared
}

// Look runs "cnibench look" in a pod.
func (s *site) Look(ctx context.Context, place string, args ...string) ([]byte, error) {
	pod, _, _ := strings.Cut(place, onNode)
	return s.cluster.Exec(ctx, pod, append([]string{"/cnibench", "look"}, args...))
}

// Recover waits until the run's pods are ready again. wrong is the first problem that it waited for, or "". Both wrong and the
// error begin with the context, if the cluster has one.
func (s *site) Recover(ctx context.Context) (wrong string, err error) {
	wrong, err = s.cluster.Recover(ctx)
	if err != nil {
		return "", s.withContext(err)
	}
	if wrong != "" && s.Context != "" {
		wrong = "context " + s.Context + ": " + wrong
	}
	return wrong, nil
}
