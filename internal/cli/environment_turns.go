package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/conduct/control"
	"github.com/cnibench/cnibench/internal/env/kube/recipe"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/outcome"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
)

// turnsEnvironment is one cluster on which the profiles of a plan are installed one after the other: a run.Stager. The
// baseline is measured with the first of them.
type turnsEnvironment struct {
	program   *program
	plan      plan.Plan
	say       func(string, ...any)
	installer *recipe.Installer
	stages    [][]plan.Variant
	// where leads a command to the cluster, patience is how long the run's pods have to go.
	where    clusterArgs
	patience time.Duration
	// at is the stage whose profile is installed, -1 for none; now is the cluster with the run's pods in it, nil for none.
	at  int
	now *clusterEnvironment
	// gone notes that the installed profile is so no longer.
	gone func()
	// facts are those of the first stage: a file has one header.
	facts facts.Facts
}

// raiseInTurn installs the first profile of a plan. Nothing may stand there that was not installed by this program.
func (p *program) raiseInTurn(ctx context.Context, want plan.Plan, say func(string, ...any)) (*turnsEnvironment, plan.Plan, error) {
	e := &turnsEnvironment{program: p, plan: want, say: say, patience: closing, at: -1}
	for _, name := range want.Profiles {
		if !bareProfile(name) {
			e.stages = append(e.stages, []plan.Variant{name})
		}
	}
	if len(e.stages) == 0 {
		return nil, want, usage(errors.New("there is no profile to install: name some by --profiles (cnibench cni list)"))
	}
	for _, name := range want.Measured() {
		if bareProfile(name) {
			e.stages[0] = append(e.stages[0], name)
		}
	}
	args := recipeArgs{own: podArgs{image: imageOf(want), pull: want.Cluster.PullSecrets}}
	if len(want.Cluster.Contexts) > 0 {
		args.where.context = want.Cluster.Contexts[0]
	}
	args.where.kubeconfig = p.kubeconfig
	e.where = args.where
	o := recipe.Options{Source: p.charts, StopProxy: true}
	var err error
	if e.installer, err = p.installer(args, o); err != nil {
		return nil, want, err
	}
	e.installer.Say = say
	if err := e.enter(ctx, 0); err != nil {
		return nil, want, takeDown(ctx, e, recipeError(err))
	}
	found, err := e.now.Facts(ctx)
	if err != nil {
		return nil, want, takeDown(ctx, e, err)
	}
	e.facts = found
	e.facts[facts.InTurn] = strings.Join(e.names(), ", ") + ": installed one after the other; what the cluster does meanwhile is not cancelled out"
	return e, want, nil
}

// names are the profiles in the order of their installation.
func (e *turnsEnvironment) names() []string {
	var all []string
	for _, stage := range e.stages {
		all = append(all, string(stage[0]))
	}
	return all
}

// Stages makes this a run.Stager.
func (e *turnsEnvironment) Stages() [][]plan.Variant { return e.stages }

// Enter makes this a run.Stager.
func (e *turnsEnvironment) Enter(ctx context.Context, i int) error {
	if e.at == i && e.now != nil {
		return nil
	}
	return e.enter(ctx, i)
}

// enter takes away what stands, installs the profile of stage i, and proves that this is what runs there.
func (e *turnsEnvironment) enter(ctx context.Context, i int) error {
	if err := e.clear(ctx); err != nil {
		return err
	}
	name := e.stages[i][0]
	e.say("installing %s", name)
	e.at = i // also if it comes to nothing: what was applied is taken away by its name
	e.gone = e.program.leaves(e.stillThere(string(name)))
	if err := e.installer.Install(ctx, string(name)); err != nil {
		return err
	}
	want := e.plan
	want.Profiles = []plan.Variant{name}
	var err error
	e.now, _, err = e.program.raiseCluster(ctx, want, e.program.kubeconfig, e.say)
	return err
}

// stillThere says of a profile that it is installed, and how to take it away.
func (e *turnsEnvironment) stillThere(name string) string {
	return name + " is still installed: cnibench cni uninstall " + name + e.where.words()
}

// clear removes the run's pods and then the profile that is installed, also where the pods would not go.
func (e *turnsEnvironment) clear(ctx context.Context) error {
	return errors.Join(e.leave(ctx), e.uninstall(ctx))
}

// leave removes the run's pods. A namespace may be held for ever: it has its time, and no more.
func (e *turnsEnvironment) leave(ctx context.Context) error {
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

// uninstall takes the profile away that is installed, with what that leaves on the nodes.
func (e *turnsEnvironment) uninstall(ctx context.Context) error {
	if e.at < 0 {
		return nil
	}
	name := e.stages[e.at][0]
	e.say("taking %s away", name)
	err := e.installer.Uninstall(ctx, string(name))
	var nothing *recipe.NotInstalledError
	switch {
	case errors.As(err, &nothing): // its installation was refused: what is on the nodes is somebody else's
		e.at = -1
		e.gone()
		return nil
	case err != nil:
		return errors.Join(fmt.Errorf("take %s away: %w", name, err), errors.New(e.stillThere(string(name))))
	}
	e.at = -1
	e.gone()
	left, err := e.installer.Survey(ctx)
	if err != nil {
		return err
	}
	return e.installer.Sweep(ctx, left.Left)
}

func (e *turnsEnvironment) Facts(context.Context) (facts.Facts, error) { return e.facts, nil }

// Profiles says of all profiles that they will stand, and of those of the stage whether they do.
func (e *turnsEnvironment) Profiles(ctx context.Context) ([]result.Profile, error) {
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

func (e *turnsEnvironment) Endpoints(ctx context.Context, name plan.Variant, p plan.Path) (client, server control.Endpoint, err error) {
	return e.now.Endpoints(ctx, name, p)
}

func (e *turnsEnvironment) Backends(ctx context.Context, name plan.Variant, p plan.Path, n int) (client control.Endpoint, servers []control.Endpoint, err error) {
	return e.now.Backends(ctx, name, p, n)
}

// Rolled makes this a run.Roller.
func (e *turnsEnvironment) Rolled(ctx context.Context, name plan.Variant, p plan.Path, n int) (client control.Endpoint, servers []control.Endpoint, err error) {
	return e.now.Rolled(ctx, name, p, n)
}

// Roll takes a backend out of its Service, or puts it back.
func (e *turnsEnvironment) Roll(ctx context.Context, b control.Backend, in bool) error {
	return e.now.Roll(ctx, b, in)
}

func (e *turnsEnvironment) Conditions() outcome.Conditions {
	if e.now == nil {
		return outcome.Conditions{}
	}
	return e.now.Conditions()
}

// Mend makes this a run.Mender.
func (e *turnsEnvironment) Mend(ctx context.Context) (wrong string, err error) {
	if e.now == nil {
		return "", nil
	}
	return e.now.Mend(ctx)
}

// Policies makes this a run.PolicyReader.
func (e *turnsEnvironment) Policies(ctx context.Context, name plan.Variant, p plan.Path) []string {
	return e.now.Policies(ctx, name, p)
}

// Close takes all away. What the pods use up of ctx is not at the cost of the profile, which has as much time again.
func (e *turnsEnvironment) Close(ctx context.Context) error {
	left := e.leave(ctx)
	again, stop := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer stop()
	return errors.Join(left, e.uninstall(again))
}
