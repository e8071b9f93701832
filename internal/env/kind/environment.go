package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/env/image"
	"github.com/cnibench/cnibench/internal/env/kube"
	"github.com/cnibench/cnibench/internal/env/kube/clusters"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// environment is a kind cluster for each profile, made for the run.
type environment struct {
	*clusters.Environment
	made []*kindCluster
	// dir is the temporary directory with the kubeconfigs of the clusters.
	dir string
}

// Open makes a kind cluster for each profile of a plan and loads the image agents into it. All clusters exist at the same
// time, so that trials interleave. It returns the environment, and the plan with the contexts of the clusters. After an
// error it removes the clusters.
func Open(ctx context.Context, want plan.Plan, agents *image.Image, o clusters.Options) (*environment, plan.Plan, error) {
	names := clusterVariants(want)
	engine, err := findEngine()
	if err == nil {
		err = checkAbsent(engine, names...)
	}
	if err != nil {
		return nil, want, err
	}
	e := &environment{}
	if e.dir, err = os.MkdirTemp("", "cnibench-kind-"); err != nil {
		return nil, want, err
	}
	if err := e.makeClusters(ctx, engine, names, agents, o); err != nil {
		return nil, want, env.Close(ctx, e, err)
	}
	want, at := e.planWithContexts(want, names)
	if e.Environment, want, err = clusters.OpenAt(ctx, want, at, o); err != nil {
		return nil, want, env.Close(ctx, e, err)
	}
	return e, want, nil
}

// clusterVariants returns the variants of a plan that get their own cluster.
func clusterVariants(p plan.Plan) []plan.Variant {
	var names []plan.Variant
	for _, v := range p.Profiles {
		if v.Profile() != profile.Host {
			names = append(names, v)
		}
	}
	return names
}

// CheckPlan returns an error that lists the profiles of a plan for which Open cannot make a cluster. It returns nil
// if there are none. It fails for a plan without a profile to install.
func CheckPlan(p plan.Plan) error {
	names := clusterVariants(p)
	if len(names) == 0 {
		return errors.New("no profile to install: name one besides host")
	}
	return checkVariants(names...)
}

func (e *environment) makeClusters(ctx context.Context, engine containerEngine, names []plan.Variant, agents *image.Image, o clusters.Options) error {
	for _, name := range names {
		o.Leaves("kind cluster " + clusterName(name) + " may still be there; remove it: kind delete cluster --name " + clusterName(name))
		c, err := createCluster(ctx, engine, upOptions{
			Variant: name, Kubeconfig: filepath.Join(e.dir, clusterName(name)), Charts: o.Charts, Say: o.Say,
		})
		if err != nil {
			return err
		}
		e.made = append(e.made, c)
		o.Say("loading the image into %s", c.Name)
		if _, err := LoadImage(ctx, c.Name, agents); err != nil {
			return fmt.Errorf("kind cluster %s: %w", c.Name, err)
		}
	}
	return nil
}

// planWithContexts returns the plan, and the kubeconfigs of its clusters. For one profile the plan is unchanged. With
// several, each profile gets the context of its cluster, and the baseline is measured on every cluster.
func (e *environment) planWithContexts(want plan.Plan, names []plan.Variant) (plan.Plan, []kube.Location) {
	if len(names) == 1 {
		return want, []kube.Location{{Kubeconfig: e.made[0].Kubeconfig}}
	}
	var at []kube.Location
	want.Profiles, want.Cluster.Contexts = nil, nil
	for i, name := range names {
		context := "kind-" + e.made[i].Name // as kind names it
		at = append(at, kube.Location{Context: context, Kubeconfig: e.made[i].Kubeconfig})
		want.Cluster.Contexts = append(want.Cluster.Contexts, context)
		want.Profiles = append(want.Profiles, name.At(context))
		if i > 0 {
			want.Profiles = append(want.Profiles, want.Baseline.At(context))
		}
	}
	want.Baseline = want.Baseline.At(want.Cluster.Contexts[0])
	return want, at
}

// Close removes the clusters, with the run's pods in them, and their kubeconfigs.
func (e *environment) Close(ctx context.Context) error {
	return errors.Join(append(each.Of(e.made, func(c *kindCluster) error { return c.Close(ctx) }), os.RemoveAll(e.dir))...)
}
