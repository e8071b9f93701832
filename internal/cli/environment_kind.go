package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cnibench/cnibench/internal/env/image"
	"github.com/cnibench/cnibench/internal/env/kind"
	"github.com/cnibench/cnibench/internal/env/kind/nodeimage"
	"github.com/cnibench/cnibench/internal/env/kube/recipe"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// kindEnvironment is a kind cluster for each profile, made for the run.
type kindEnvironment struct {
	*clusterEnvironment
	clusters []*kind.Cluster
	// dir has the files that lead to them.
	dir string
}

// raiseKind makes a kind cluster for each profile of a plan, with this program's image in it. All stand at the same time,
// so that their trials interleave.
func (p *program) raiseKind(ctx context.Context, want plan.Plan, say func(string, ...any)) (*kindEnvironment, plan.Plan, error) {
	names := kindProfiles(want)
	engine, err := kind.Engine()
	if err == nil {
		err = kind.Absent(engine, names...)
	}
	if err != nil {
		return nil, want, err
	}
	e := &kindEnvironment{}
	if e.dir, err = os.MkdirTemp("", "cnibench-kind-"); err != nil {
		return nil, want, err
	}
	if err := e.raise(ctx, p, engine, names, say); err != nil {
		return nil, want, takeDown(ctx, e, err)
	}
	want, sites := e.sitesOf(want, names)
	if e.clusterEnvironment, want, err = p.raiseSites(ctx, want, sites, say); err != nil {
		return nil, want, takeDown(ctx, e, err)
	}
	return e, want, nil
}

// kindProfiles are those of a plan that get a cluster each.
func kindProfiles(p plan.Plan) []string {
	var names []string
	for _, v := range p.Profiles {
		if !bareProfile(v) {
			names = append(names, v.Profile())
		}
	}
	return names
}

// checkKind returns an error that names every profile of a plan that no kind cluster can be made for.
func checkKind(p plan.Plan) error {
	if p.Environment != plan.EnvKind {
		return nil
	}
	err := kind.Check(kindProfiles(p), kind.Options{})
	return advice.With(err, "make a cluster with what it needs (cnibench cni install --help), and measure it by --env kubernetes")
}

// raise makes the clusters.
func (e *kindEnvironment) raise(ctx context.Context, p *program, engine kind.Provider, names []string, say func(string, ...any)) error {
	built, err := ownImage()
	if err != nil {
		return err
	}
	for _, name := range names {
		p.leaves("kind cluster " + kind.Name(name) + " may still be there; remove it: kind delete cluster --name " + kind.Name(name))
		c, err := kind.Up(ctx, engine, kind.Options{
			Profile: name, Kubeconfig: filepath.Join(e.dir, name), Install: recipe.Options{Source: p.charts}, Say: say,
		})
		if err != nil {
			return err
		}
		e.clusters = append(e.clusters, c)
		say("loading the image into %s", c.Name)
		if _, err := nodeimage.Load(ctx, c.Name, built); err != nil {
			return fmt.Errorf("kind cluster %s: %w", c.Name, err)
		}
	}
	return nil
}

// sitesOf returns the clusters as sites of a run, and the plan in which each profile is called by its cluster, if there are
// several.
func (e *kindEnvironment) sitesOf(want plan.Plan, names []string) (plan.Plan, []*site) {
	if len(names) == 1 {
		return want, []*site{{kubeconfig: e.clusters[0].Kubeconfig}}
	}
	var sites []*site
	want.Profiles, want.Cluster.Contexts = nil, nil
	for i, name := range names {
		context := "kind-" + e.clusters[i].Name // as kind calls it
		sites = append(sites, &site{context: context, kubeconfig: e.clusters[i].Kubeconfig})
		want.Cluster.Contexts = append(want.Cluster.Contexts, context)
		want.Profiles = append(want.Profiles, plan.Variant(name).At(context))
		if i > 0 {
			want.Profiles = append(want.Profiles, want.Baseline.At(context))
		}
	}
	want.Baseline = want.Baseline.At(want.Cluster.Contexts[0])
	return want, sites
}

// Close removes the run's pods with their clusters.
func (e *kindEnvironment) Close(ctx context.Context) error {
	var errs []error
	for _, c := range e.clusters {
		errs = append(errs, c.Close(ctx))
	}
	return errors.Join(append(errs, os.RemoveAll(e.dir))...)
}

// ownImage is the image of this binary.
func ownImage() (*image.Image, error) {
	binary, err := ownBinary()
	if err != nil {
		return nil, err
	}
	return image.Build(image.Spec{Name: image.DefaultName(buildVersion()), Version: buildVersion(), Binaries: []image.Binary{binary}})
}
