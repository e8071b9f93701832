package clusters

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/env/kube"
	"github.com/cnibench/cnibench/internal/env/kube/recipe"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/outcome"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// inTurn is one cluster on which the profiles of a plan are installed one after the other. The baseline is measured
// with the first of them.
type inTurn struct {
	options   Options
	plan      plan.Plan
	installer *recipe.Installer
	stages    [][]plan.Variant
	// where is the cluster; messages use it in commands. patience bounds the removal of the run's pods.
	where    kube.Location
	patience time.Duration
	// at is the stage whose profile is installed, -1 for none. now is the cluster with the run's pods, nil for none.
	at  int
	now *Environment
	// gone notes that the installed profile was removed.
	gone func()
	// facts are the facts of the first stage, since a file has one header.
	facts facts.Facts
}

// OpenInTurn installs the first profile of a plan on a cluster, and creates the run's pods. It fails if the cluster has a
// CNI that another program installed.
func OpenInTurn(ctx context.Context, want plan.Plan, o Options) (*inTurn, plan.Plan, error) {
	e := &inTurn{options: o, plan: want, patience: env.CloseTimeout, at: -1}
	var names []string
	for _, name := range want.Profiles {
		if !bare(name) {
			e.stages, names = append(e.stages, []plan.Variant{name}), append(names, name.String())
		}
	}
	if len(e.stages) == 0 {
		return nil, want, &kube.ConfigError{Err: advice.With(errors.New("no profile to install"), "name profiles by --profiles (cnibench list recipes)")}
	}
	for _, name := range want.Measured() {
		if bare(name) {
			e.stages[0] = append(e.stages[0], name)
		}
	}
	e.where.Kubeconfig = o.Kubeconfig
	if len(want.Cluster.Contexts) > 0 {
		e.where.Context = want.Cluster.Contexts[0]
	}
	cluster, err := kube.Connect(kube.Options{Kubeconfig: e.where.Kubeconfig, Context: e.where.Context, Cluster: plan.Cluster{PullSecrets: want.Cluster.PullSecrets}, Say: o.Say})
	if err != nil {
		return nil, want, err
	}
	e.installer, err = recipe.NewInstaller(cluster.Config(), recipe.Options{
		Source: o.Charts, StopProxy: true, Say: o.Say, Image: imageOf(want, o.Version), PullSecrets: cluster.PullSecrets(),
	})
	if err != nil {
		return nil, want, &kube.ConfigError{Err: err}
	}
	if err := e.Enter(ctx, 0); err != nil {
		return nil, want, env.Close(ctx, e, err)
	}
	found, err := e.now.Facts(ctx)
	if err != nil {
		return nil, want, env.Close(ctx, e, err)
	}
	e.facts = found
	e.facts[facts.InTurn] = strings.Join(names, ", ") + ": installed one after the other; what the cluster does meanwhile is not cancelled out"
	return e, want, nil
}

// Enter changes to the profile of stage i: it removes the run's pods, uninstalls the previous profile even if the pods
// remain, installs the new profile, creates the run's pods again, and proves what runs.
func (e *inTurn) Enter(ctx context.Context, i int) error {
	if e.at == i && e.now != nil {
		return nil
	}
	if err := errors.Join(e.leave(ctx), e.uninstall(ctx)); err != nil {
		return err
	}
	name := e.stages[i][0]
	e.options.Say("installing %s", name)
	e.at = i // even if it fails: the profile is then uninstalled by name
	e.gone = e.options.Leaves(e.stillThere(name.Profile()))
	e.installer.Version, e.installer.Sets = name.Recipe()
	if err := e.installer.Install(ctx, name.Profile()); err != nil {
		return err
	}
	want := e.plan
	want.Profiles = []plan.Variant{name}
	var err error
	e.now, _, err = Open(ctx, want, e.options)
	return err
}

// stillThere returns a warning that a profile is installed, with how to remove it.
func (e *inTurn) stillThere(name string) string {
	return name + " is still installed: cnibench cni uninstall " + name + e.where.Flags()
}

// leave removes the run's pods. It fails after patience, because a finalizer may keep a namespace for ever.
func (e *inTurn) leave(ctx context.Context) error {
	if e.now == nil {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, e.patience)
	defer stop()
	if err := e.now.Close(ctx); err != nil {
		return err
	}
	e.now = nil
	return nil
}

// uninstall removes the installed profile and what it leaves on the nodes. It does nothing if no profile is installed.
func (e *inTurn) uninstall(ctx context.Context) error {
	if e.at < 0 {
		return nil
	}
	name := e.stages[e.at][0].Profile()
	e.options.Say("uninstalling %s", e.stages[e.at][0])
	err := e.installer.Uninstall(ctx, name)
	var nothing *recipe.NotInstalledError
	switch {
	case errors.As(err, &nothing): // the installation was refused: what is on the nodes belongs to others
		e.at = -1
		e.gone()
		return nil
	case err != nil:
		return errors.Join(fmt.Errorf("uninstall %s: %w", name, err), errors.New(e.stillThere(name)))
	}
	e.at = -1
	e.gone()
	left, err := e.installer.Survey(ctx)
	if err != nil {
		return err
	}
	return e.installer.Sweep(ctx, left.Left)
}

// Facts returns the facts of the first stage.
func (e *inTurn) Facts(context.Context) (facts.Facts, error) { return e.facts, nil }

// Profiles returns all variants of the plan. Those of the current stage have the reason if they are skipped.
func (e *inTurn) Profiles(ctx context.Context) ([]result.Profile, error) {
	here, err := e.now.Profiles(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range e.plan.Measured() {
		if !slices.ContainsFunc(here, func(q result.Profile) bool { return q.Name == name }) {
			here = append(here, result.Profile{Name: name})
		}
	}
	return here, nil
}

// Stages returns the profiles in the order of their installation.
func (e *inTurn) Stages() [][]plan.Variant { return e.stages }

// At returns the site of a variant under the installed profile. Without one, the site serves no route.
func (e *inTurn) At(v plan.Variant) env.Site {
	if e.now == nil {
		return nothing{}
	}
	return e.now.At(v)
}

// nothing is the site of a cluster without an installed profile.
type nothing struct{}

func (nothing) Endpoints(_ context.Context, r plan.Route) (control.Ends, error) {
	return control.Ends{}, &control.NotServedError{Profile: r.Variant, Path: r.Path.String(), Reason: "no profile is installed"}
}

// Conditions returns the conditions under the installed profile, the zero value without one.
func (e *inTurn) Conditions() outcome.Conditions {
	if e.now == nil {
		return outcome.Conditions{}
	}
	return e.now.Conditions()
}

// Close removes the run's pods and uninstalls the profile. The uninstallation has its own timeout, even after ctx ended.
func (e *inTurn) Close(ctx context.Context) error {
	left := e.leave(ctx)
	again, stop := context.WithTimeout(context.WithoutCancel(ctx), env.CloseTimeout)
	defer stop()
	return errors.Join(left, e.uninstall(again))
}
