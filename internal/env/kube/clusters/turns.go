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

// inTurn is an environment of one cluster, on which the profiles of a plan are installed one after the other. The profile host
// and its twin are measured in the first stage.
type inTurn struct {
	options   Options
	plan      plan.Plan
	installer *recipe.Installer
	// stages has a list of variants for each profile. The first variant of a list is the profile to install.
	stages [][]plan.Variant
	// where is the cluster.
	where kube.Location
	// patience bounds the removal of the run's pods.
	patience time.Duration
	// at is the index of the stage whose profile is installed, or partly installed; -1 if no profile is.
	at int
	// now is the environment of the run's pods, nil if there are no pods.
	now *Environment
	// gone removes the warning that the installed profile is still there.
	gone func()
	// facts are the facts of the first stage, because a result file has only one set of facts.
	facts facts.Facts
}

// OpenInTurn installs the first profile of a plan on a cluster, and creates the run's pods. It fails with a
// *recipe.RefusedError if the cluster already has a CNI. After an error it uninstalls the profile.
func OpenInTurn(ctx context.Context, want plan.Plan, o Options) (*inTurn, plan.Plan, error) {
	e := &inTurn{options: o, plan: want, patience: env.CloseTimeout, at: -1}
	var names []string
	for _, name := range want.Profiles {
		if !isHostProfile(name) {
			e.stages, names = append(e.stages, []plan.Variant{name}), append(names, name.String())
		}
	}
	if len(e.stages) == 0 {
		return nil, want, &kube.ConfigError{Err: advice.With(errors.New("no profile to install"), "name profiles by --profiles (cnibench list recipes)")}
	}
	for _, name := range want.Measured() {
		if isHostProfile(name) {
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

// Enter changes to the profile of stage i. It removes the run's pods and uninstalls the previous profile. Then it installs the
// new profile, creates the run's pods again, and proves what runs. If the pods cannot be removed, it uninstalls the profile
// nevertheless, and fails. It does nothing if stage i is set up already.
func (e *inTurn) Enter(ctx context.Context, i int) error {
	if e.at == i && e.now != nil {
		return nil
	}
	if err := errors.Join(e.removePods(ctx), e.uninstall(ctx)); err != nil {
		return err
	}
	name := e.stages[i][0]
	e.options.Say("installing %s", name)
	e.at = i // even if it fails half-way: the profile is then uninstalled by name
	e.gone = e.options.Leaves(e.installedWarning(name.Profile()))
	e.installer.Version, e.installer.Sets = name.Recipe()
	if err := e.installer.Install(ctx, name.Profile()); err != nil {
		if !e.installer.Begun { // an earlier installation of this profile is not ours
			e.at = -1
			e.gone()
		}
		return err
	}
	want := e.plan
	want.Profiles = []plan.Variant{name}
	var err error
	e.now, _, err = Open(ctx, want, e.options)
	return err
}

// installedWarning returns a warning that a profile is installed, with the command that removes it.
func (e *inTurn) installedWarning(name string) string {
	return name + " is still installed: cnibench cni uninstall " + name + e.where.Flags()
}

// removePods removes the run's pods, if there are any. It fails after patience: a finalizer may keep a namespace for ever.
func (e *inTurn) removePods(ctx context.Context) error {
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
	case errors.As(err, &nothing): // the installation failed before its record
		e.at = -1
		e.gone()
		return nil
	case err != nil:
		return errors.Join(fmt.Errorf("uninstall %s: %w", name, err), errors.New(e.installedWarning(name)))
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

// Profiles returns all variants of the plan. It must not be called while no profile is installed. Variants of other stages
// are never marked as skipped.
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

// Stages returns the variants of each stage, in the order in which their profiles are installed.
func (e *inTurn) Stages() [][]plan.Variant { return e.stages }

// At returns the site of a variant in the current stage. If no profile is installed, the site serves no route.
func (e *inTurn) At(v plan.Variant) env.Site {
	if e.now == nil {
		return nothing{}
	}
	return e.now.At(v)
}

// nothing is the site of a cluster on which no profile is installed.
type nothing struct{}

func (nothing) Endpoints(_ context.Context, r plan.Route) (control.Ends, error) {
	return control.Ends{}, &control.NotServedError{Profile: r.Variant, Path: r.Path.String(), Reason: "no profile is installed"}
}

// Conditions returns the conditions of the current stage; the zero value if no profile is installed.
func (e *inTurn) Conditions() outcome.Conditions {
	if e.now == nil {
		return outcome.Conditions{}
	}
	return e.now.Conditions()
}

// Close removes the run's pods and uninstalls the profile. ctx bounds only the removal of the pods; the uninstallation has
// its own timeout, CloseTimeout, and runs even after ctx has ended.
func (e *inTurn) Close(ctx context.Context) error {
	left := e.removePods(ctx)
	again, stop := context.WithTimeout(context.WithoutCancel(ctx), env.CloseTimeout)
	defer stop()
	return errors.Join(left, e.uninstall(again))
}
