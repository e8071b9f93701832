package env

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/outcome"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Parts has the functions that open the two halves of a combined environment.
type Parts struct {
	// Clusters opens the clusters of the plan want. It returns their environment, and the plan with the detected
	// profiles. Before it creates the run's pods, it calls beside with that plan.
	Clusters func(ctx context.Context, want plan.Plan, beside func(ctx context.Context, found plan.Plan) error) (Environment, plan.Plan, error)
	// Groups creates the tree of CPU groups for the lab's agents. It returns the tree's path, or "" if this machine
	// has no CPU groups. remove deletes the tree.
	Groups func(ctx context.Context) (tree string, remove func() error, err error)
	// Lab opens the lab for p. Its agents run in the CPU groups of tree, or in no group if tree is "".
	Lab func(ctx context.Context, p plan.Plan, tree string) (Environment, error)
}

// combined is an Environment that joins the lab and clusters of the same machine. A run interleaves their trials, so that
// they can be compared. A variant with a context belongs to a cluster; the others belong to the lab.
type combined struct {
	lab, clusters Environment
	// grouped means that the lab's agents are in CPU groups, nested as deeply as the CPU groups of pods.
	grouped bool
	// remove deletes these groups.
	remove func() error
}

// factAgent names the fact that describes how the lab's agents run.
const factAgent = "lab.agent"

// Combine detects the profiles of a plan's clusters and raises the same profiles in the lab. Then it creates the
// run's pods in the clusters. It returns the environment, and the plan with the profiles of both. If the lab cannot
// raise a profile, it fails with a *RefusedError and creates no pods of the run.
func Combine(ctx context.Context, want plan.Plan, parts Parts) (*combined, plan.Plan, error) {
	e := &combined{remove: func() error { return nil }}
	var here plan.Plan
	beside := func(ctx context.Context, found plan.Plan) (err error) {
		here = labPlan(want, found)
		if err := here.Validate(); err != nil {
			return err
		}
		return e.raiseLab(ctx, here, parts)
	}
	clusters, there, err := parts.Clusters(ctx, clusterPlan(want), beside)
	if err != nil {
		return nil, want, e.closeLab(ctx, err)
	}
	e.clusters = clusters
	there.Profiles = slices.Concat(here.Profiles, there.Profiles)
	there.Baseline, there.Twin = here.Baseline, here.Twin
	return e, there, nil
}

// RefusedError lists the profiles that the lab could not raise, and why.
type RefusedError struct{ Profiles []result.Profile }

func (e *RefusedError) Error() string {
	return "the lab of this machine cannot raise what the clusters run: " + strings.Join(each.Of(e.Profiles, func(p result.Profile) string {
		return p.Name.String() + ": " + p.Skipped
	}), "; ")
}

// raiseLab creates the CPU groups and opens the lab for the plan here. It fails with a *RefusedError if the lab skips a
// profile.
func (e *combined) raiseLab(ctx context.Context, here plan.Plan, parts Parts) error {
	tree, remove, err := parts.Groups(ctx)
	if err != nil {
		return err
	}
	e.grouped, e.remove = tree != "", remove
	if e.lab, err = parts.Lab(ctx, here, tree); err != nil {
		return err
	}
	all, err := e.lab.Profiles(ctx)
	if err != nil {
		return err
	}
	if all = slices.DeleteFunc(all, func(p result.Profile) bool { return p.Skipped == "" }); len(all) > 0 {
		return advice.With(&RefusedError{all}, "cnibench doctor says what this kernel lacks; take a machine whose kernel has it")
	}
	return nil
}

// closeLab closes the lab, if it is open, and deletes the CPU groups. It returns err joined with their errors.
func (e *combined) closeLab(ctx context.Context, err error) error {
	if e.lab != nil {
		err = Close(ctx, e.lab, err)
	}
	return errors.Join(err, e.remove())
}

// clusterPlan returns the part of a plan for its clusters. On each cluster it measures the detected profile, the profile
// host, and a twin of host.
func clusterPlan(want plan.Plan) plan.Plan {
	want.Profiles = nil
	for _, c := range want.Cluster.Contexts {
		host := plan.VariantOf(profile.Host).At(c)
		want.Profiles = append(want.Profiles, plan.VariantOf(plan.Detected).At(c), host, host.Twin())
	}
	want.Baseline, want.Twin = plan.VariantOf(profile.Host).At(want.Cluster.Contexts[0]), false
	return want
}

// labPlan returns the part of a plan for the lab. It has each profile that was detected on the clusters, once. The
// baseline is the profile host with its twin. Services use the clusters' mode of kube-proxy.
func labPlan(want, found plan.Plan) plan.Plan {
	want.Environment, want.Cluster, want.Lab.ServiceProxy = plan.EnvLab, plan.Cluster{}, found.Lab.ServiceProxy
	want.Profiles, want.Baseline, want.Twin = nil, plan.VariantOf(profile.Host), true
	for _, v := range found.Profiles {
		if v = v.Local(); v.Profile() != profile.Host && !slices.Contains(want.Profiles, v) {
			want.Profiles = append(want.Profiles, v)
		}
	}
	return want
}

// At returns the site of a variant from the half that it belongs to.
func (e *combined) At(v plan.Variant) Site {
	if v.Context() != "" {
		return e.clusters.At(v)
	}
	return e.lab.At(v)
}

// Facts returns the facts of the lab and of the clusters, and how the lab's agents run. For a fact that both have, the
// lab's value is used.
func (e *combined) Facts(ctx context.Context) (facts.Facts, error) {
	all := facts.Facts{}
	for _, part := range []Environment{e.clusters, e.lab} {
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

// Profiles returns the profiles of the lab, then those of the clusters.
func (e *combined) Profiles(ctx context.Context) ([]result.Profile, error) {
	lab, err := e.lab.Profiles(ctx)
	if err != nil {
		return nil, err
	}
	clusters, err := e.clusters.Profiles(ctx)
	return slices.Concat(lab, clusters), err
}

// Conditions returns the conditions of the lab, which also hold for the clusters. These have the same machine and
// kernel, and their load runs on the same CPUs.
func (e *combined) Conditions() outcome.Conditions { return e.lab.Conditions() }

// Close removes the lab, its CPU groups and the run's objects in the clusters.
func (e *combined) Close(ctx context.Context) error {
	return errors.Join(e.lab.Close(ctx), e.remove(), e.clusters.Close(ctx))
}
