// Package clusters measures Kubernetes clusters: one, several interleaved, or one cluster on which each profile is
// installed in turn. It finds out which CNI runs, proves that from pods, and returns the run's pods as an environment.
package clusters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/env/image"
	"github.com/cnibench/cnibench/internal/env/kube"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/outcome"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Options are the options of Open that are not in a plan.
type Options struct {
	// Kubeconfig is the kubeconfig file; "" follows kubectl's rules.
	Kubeconfig string
	// Version is this program's version. It is a fact, and the tag of the default image.
	Version string
	// Charts is the directory or file of charts and manifests for Install. (optional)
	Charts string
	// Say reports progress.
	Say func(format string, args ...any)
	// Leaves records a message about something that would remain in the cluster if the process were killed. gone removes
	// the message.
	Leaves func(line string) (gone func())
	// Shared creates a Service with several backends that no trial uses, and forbids to replace the run's pods. A
	// diagnosis needs both. (optional)
	Shared bool
	// Settle bounds the wait for a first connection on each path; 0 is the default of package kube. (optional)
	Settle time.Duration
	// Beside raises the lab that is compared with the clusters. found is the plan with the detected profiles and the mode
	// of kube-proxy. Open calls Beside before it creates the run's pods. If Beside is set, Open fails for a cluster whose
	// profile the lab does not have, or that does not serve every path of the plan. (optional)
	Beside func(ctx context.Context, found plan.Plan) error
}

// Environment is one or several clusters with the pods of a run.
type Environment struct {
	options Options
	plan    plan.Plan
	// sites are in the order of the plan's contexts.
	sites []*site
}

// Open connects to the clusters of a plan, detects their CNIs, and creates the run's pods. It returns the environment, and
// the plan with the names of the detected profiles. If the plan is faulty, the error is position.Faults or a
// *kube.ConfigError.
func Open(ctx context.Context, want plan.Plan, o Options) (*Environment, plan.Plan, error) {
	contexts := want.Cluster.Contexts
	if len(contexts) == 0 {
		contexts = []string{""}
	}
	at := each.Of(contexts, func(name string) kube.Location { return kube.Location{Kubeconfig: o.Kubeconfig, Context: name} })
	return OpenAt(ctx, want, at, o)
}

// OpenAt does the same as Open for the clusters at the given locations, each with its own kubeconfig. It ignores
// o.Kubeconfig and the contexts of the plan.
func OpenAt(ctx context.Context, want plan.Plan, at []kube.Location, o Options) (*Environment, plan.Plan, error) {
	e := &Environment{options: o}
	found := map[string]string{}
	var faults []error
	for _, location := range at {
		s := &site{Location: location}
		faults = append(faults, s.withContext(s.connectAndDetect(ctx, want, o)))
		e.sites = append(e.sites, s)
		found[s.Context] = s.profile
	}
	if err := errors.Join(faults...); err != nil {
		return nil, want, err
	}
	e.distributePlan(want.Resolve(found))
	if o.Beside != nil {
		if err := e.checkComparable(ctx); err != nil {
			return nil, want, err
		}
	}
	if err := e.plan.Validate(); err != nil {
		return nil, want, err
	}
	if o.Beside != nil {
		if err := o.Beside(ctx, e.plan); err != nil {
			return nil, want, err
		}
	}
	for _, s := range e.sites {
		o.Leaves(s.leftoverMessage())
		if err := s.createAndProve(ctx, e.plan, s.localVariants(), o); err != nil {
			return nil, want, env.Close(ctx, e, s.withContext(err))
		}
	}
	return e, e.plan, nil
}

// distributePlan stores the plan, and in each site the variants that the site measures.
func (e *Environment) distributePlan(p plan.Plan) {
	e.plan = p
	for _, s := range e.sites {
		s.measured = slices.DeleteFunc(p.Measured(), func(v plan.Variant) bool { return e.siteOf(v) != s })
	}
}

// isHostProfile reports whether v is the profile host or its twin.
func isHostProfile(v plan.Variant) bool { return v.Profile() == profile.Host }

// imageOf returns the image of a plan, or if the plan names none, the default image of this version with the plan's tools.
func imageOf(want plan.Plan, version string) string {
	if len(want.Tools()) > 0 {
		return cmp.Or(want.Cluster.Image, image.ToolsName(version, want.Tools()).String())
	}
	return cmp.Or(want.Cluster.Image, image.DefaultName(version).String())
}

// At returns the cluster of a variant.
func (e *Environment) At(name plan.Variant) env.Site { return e.siteOf(name) }

// siteOf returns the site of a variant; the first site if its context is unknown.
func (e *Environment) siteOf(name plan.Variant) *site {
	context := name.Context()
	for _, s := range e.sites {
		if s.Context == context {
			return s
		}
	}
	return e.sites[0]
}

// Facts returns the facts of all clusters. With several clusters, a fact's value lists the values of all clusters, each after
// the cluster's context.
func (e *Environment) Facts(context.Context) (facts.Facts, error) {
	all := facts.Facts{facts.Version: e.options.Version}
	for _, s := range e.sites {
		for _, name := range s.facts.Names() {
			value := s.facts[name]
			if s.Context != "" && len(e.sites) > 1 {
				value = s.Context + ": " + value
			}
			if all[name] != "" && name != facts.Version {
				value = all[name] + "; " + value
			}
			all[name] = value
		}
	}
	return all, nil
}

// Profiles returns the measured variants. A variant is skipped if its cluster runs another profile, or if the proofs disproved
// a claim about the cluster.
func (e *Environment) Profiles(context.Context) ([]result.Profile, error) {
	var all []result.Profile
	for _, name := range e.plan.Measured() {
		q := result.Profile{Name: name}
		s := e.siteOf(name)
		switch {
		case isHostProfile(name):
		case name.Profile() != s.profile:
			q.Skipped = fmt.Sprintf("the cluster runs %s", s.profileWithSource())
		default:
			q.Skipped = s.broken
		}
		all = append(all, q)
	}
	return all, nil
}

// Conditions returns the CPUs of the load, and the other conditions that the facts show. With several clusters these other
// conditions are unknown, because each fact then lists the values of all clusters.
func (e *Environment) Conditions() outcome.Conditions {
	all, _ := e.Facts(context.Background()) // it has no error
	c := outcome.FromFacts(all)
	c.CPUs = slices.Clone(e.plan.Cluster.CPUs)
	return c
}

// Close removes the pods of the run and of its samplers from all clusters, all at once: one cluster that does not answer until
// ctx ends must not keep the others' objects.
func (e *Environment) Close(ctx context.Context) error {
	var removals []func() error
	for _, s := range e.sites {
		if s.samplers != nil {
			removals = append(removals, func() error { return s.withContext(s.samplers.post.Close(ctx)) })
		}
		if s.cluster != nil {
			removals = append(removals, func() error { return s.withContext(s.cluster.Close(ctx)) })
		}
	}
	return each.AtOnce(removals, func(_ int, remove func() error) error { return remove() })
}
