// Package combined measures the lab and clusters of the same machine as one environment, so that one run compares them
// interleaved.
package combined

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/conduct/control"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/outcome"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
)

// Parts open the two halves.
type Parts struct {
	// Clusters returns the plan with the detected names.
	Clusters func(ctx context.Context, want plan.Plan) (env.Environment, plan.Plan, error)
	// Groups makes the tree of CPU groups for the lab's agents, "" for none, and returns how to remove it.
	Groups func(ctx context.Context) (tree string, remove func() error, err error)
	// Lab starts its agents in that tree.
	Lab func(ctx context.Context, p plan.Plan, tree string) (env.Environment, error)
}

// Environment is the lab and clusters. Variants with a context belong to a cluster.
type Environment struct {
	lab, clusters env.Environment
	// grouped means that the lab's agents are in CPU groups like those of pods; remove removes the groups.
	grouped bool
	remove  func() error
}

// factAgent is how the lab's agents run.
const factAgent = "lab.agent"

// Open opens the clusters of a plan, and raises in the lab the profiles that were detected there. It returns the plan
// with the names of both.
func Open(ctx context.Context, want plan.Plan, parts Parts) (*Environment, plan.Plan, error) {
	clusters, there, err := parts.Clusters(ctx, clusterPlan(want))
	if err != nil {
		return nil, want, err
	}
	here := labPlan(want, there.Profiles)
	if err := here.Validate(); err != nil {
		return nil, want, env.Close(ctx, clusters, err)
	}
	tree, remove, err := parts.Groups(ctx)
	if err != nil {
		return nil, want, env.Close(ctx, clusters, err)
	}
	lab, err := parts.Lab(ctx, here, tree)
	if err != nil {
		return nil, want, env.Close(ctx, clusters, errors.Join(err, remove()))
	}
	there.Profiles = slices.Concat(here.Profiles, there.Profiles)
	there.Baseline, there.Twin = here.Baseline, here.Twin
	return &Environment{lab: lab, clusters: clusters, grouped: tree != "", remove: remove}, there, nil
}

// clusterPlan is the part of a plan for its clusters: what runs on each, and its bare node twice.
func clusterPlan(want plan.Plan) plan.Plan {
	want.Profiles = nil
	for _, c := range want.Cluster.Contexts {
		host := plan.Variant(profile.Host).At(c)
		want.Profiles = append(want.Profiles, plan.Variant(plan.Detected).At(c), host, host.Twin())
	}
	want.Baseline, want.Twin = plan.Variant(profile.Host).At(want.Cluster.Contexts[0]), false
	return want
}

// labPlan is the part for the lab: what was detected on the clusters, each once, and the bare node.
func labPlan(want plan.Plan, found []plan.Variant) plan.Plan {
	want.Environment, want.Cluster = plan.EnvLab, plan.Cluster{}
	want.Profiles, want.Baseline, want.Twin = nil, profile.Host, true
	for _, v := range found {
		if v = v.Local(); v.Profile() != profile.Host && !slices.Contains(want.Profiles, v) {
			want.Profiles = append(want.Profiles, v)
		}
	}
	return want
}

// of returns the environment of a variant.
func (e *Environment) of(v plan.Variant) env.Environment {
	if v.Context() != "" {
		return e.clusters
	}
	return e.lab
}

// Facts returns those of the machine and the lab, and what only the clusters have.
func (e *Environment) Facts(ctx context.Context) (facts.Facts, error) {
	all := facts.Facts{}
	for _, part := range []env.Environment{e.clusters, e.lab} {
		f, err := part.Facts(ctx)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, f)
	}
	all[factAgent] = "under seccomp"
	if e.grouped {
		all[factAgent] += ", in CPU groups as deep as a pod's"
	}
	return all, nil
}

// Profiles returns those of the lab, then those of the clusters.
func (e *Environment) Profiles(ctx context.Context) ([]result.Profile, error) {
	lab, err := e.lab.Profiles(ctx)
	if err != nil {
		return nil, err
	}
	clusters, err := e.clusters.Profiles(ctx)
	return slices.Concat(lab, clusters), err
}

// Endpoints returns the ends of a route.
func (e *Environment) Endpoints(ctx context.Context, r plan.Route) (control.Ends, error) {
	return e.of(r.Variant).Endpoints(ctx, r)
}

// Capabilities returns what each half can do for its variants.
func (e *Environment) Capabilities() env.Capabilities {
	lab := e.lab.Capabilities()
	return env.Capabilities{
		Renew: func(ctx context.Context, names []plan.Variant) map[plan.Variant]error {
			all := map[plan.Variant]error{}
			for _, half := range []env.Environment{e.clusters, e.lab} {
				own := slices.DeleteFunc(slices.Clone(names), func(v plan.Variant) bool { return e.of(v) != half })
				if len(own) > 0 {
					maps.Copy(all, half.Capabilities().Renew(ctx, own))
				}
			}
			return all
		},
		Renews: func(v plan.Variant) []plan.Variant {
			if renews := e.of(v).Capabilities().Renews; renews != nil {
				return renews(v)
			}
			return nil
		},
		Roll: func(ctx context.Context, b control.Backend, in bool) error {
			if roll := e.of(b.Route.Variant).Capabilities().Roll; roll != nil {
				return roll(ctx, b, in)
			}
			return errors.ErrUnsupported
		},
		Drops: func(v plan.Variant, p plan.Path) ([]sample.Drop, error) {
			if drops := e.of(v).Capabilities().Drops; drops != nil {
				return drops(v, p)
			}
			return nil, errors.ErrUnsupported
		},
		Full: func(v plan.Variant) (map[string]uint64, error) {
			if full := e.of(v).Capabilities().Full; full != nil {
				return full(v)
			}
			return nil, errors.ErrUnsupported
		},
		Dead: func(v plan.Variant) error {
			if dead := e.of(v).Capabilities().Dead; dead != nil {
				return dead(v)
			}
			return nil
		},
		Policies: func(ctx context.Context, v plan.Variant, p plan.Path) []string {
			if policies := e.of(v).Capabilities().Policies; policies != nil {
				return policies(ctx, v, p)
			}
			return nil
		},
		Sample: func(v plan.Variant, p plan.Path, length time.Duration) (env.Recording, error) {
			if record := e.of(v).Capabilities().Sample; record != nil {
				return record(v, p, length)
			}
			return env.Recording{}, errors.ErrUnsupported
		},
		Recover:      e.clusters.Capabilities().Recover, // the lab loses nothing
		VerifierLogs: lab.VerifierLogs,
	}
}

// Conditions returns the lab's: the clusters have the same machine and kernel, and their load runs on the same CPUs.
func (e *Environment) Conditions() outcome.Conditions { return e.lab.Conditions() }

// Close removes both halves.
func (e *Environment) Close(ctx context.Context) error {
	return errors.Join(e.lab.Close(ctx), e.remove(), e.clusters.Close(ctx))
}
