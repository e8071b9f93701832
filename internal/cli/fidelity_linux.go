package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/conduct/control"
	"github.com/cnibench/cnibench/internal/conduct/run"
	"github.com/cnibench/cnibench/internal/judge/fidelity"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/outcome"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/report"
)

const fidelityLong = `Measure the lab and real clusters of this machine in one run, interleaved, and print how far the lab is true: the part
of docs/lab.md between its two markers. Each cluster is a context of the kubeconfig; the lab raises the profile that is
found there. With a result file of an earlier run it measures nothing.`

type fidelityArgs struct {
	plan           planArgs
	output, format string
	verbose, quiet bool
}

// fidelityCommand is for those who work on cnibench: make fidelity runs it.
func (p *program) fidelityCommand() *cobra.Command {
	var a fidelityArgs
	cmd := &cobra.Command{
		Use: "fidelity [RESULT]", Short: "Compare the lab with real clusters", Long: fidelityLong, Hidden: true, Args: cobra.MaximumNArgs(1),
		Example: "  sudo cnibench fidelity --context vxlan,hostgw --nic ideal --cpu one --load-cpus 1 --workloads 'rr,crr'",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := knownFormat(cmd, a.format, pageNames); err != nil {
				return err
			}
			if len(args) == 1 {
				return p.fidelityOf(a.format, args[0])
			}
			return p.fidelity(cmd, &a)
		},
	}
	a.plan.declare(cmd)
	f := cmd.Flags()
	f.StringVarP(&a.output, "output", "o", "fidelity.jsonl", "result `file`")
	f.StringVar(&a.format, "format", "text", "`format`: "+strings.Join(pageNames, ", "))
	f.BoolVarP(&a.verbose, "verbose", "v", false, "print a line for each trial to stderr")
	f.BoolVarP(&a.quiet, "quiet", "q", false, "print only errors to stderr")
	f.StringVar(&p.kubeconfig, "kubeconfig", "", "`file` that says how to reach the clusters; default as for kubectl")
	return cmd
}

func (p *program) fidelity(cmd *cobra.Command, a *fidelityArgs) error {
	began := time.Now()
	if err := cmd.Flags().Set("env", plan.EnvKubernetes); err != nil {
		return err
	}
	a.plan.labToo = true
	want, err := a.plan.plan(cmd)
	if err != nil {
		return err
	}
	if len(want.Cluster.Contexts) == 0 {
		return usageOf(cmd, errors.New("which clusters? want --context"))
	}
	out, err := result.Create(a.output)
	if err != nil {
		if errors.Is(err, os.ErrExist) {
			err = usage(err)
		}
		return err
	}
	s := p.newStory(a.verbose, a.quiet)
	end, err := p.grounds().measure(cmd.Context(), want, out, run.Options{Began: began, Progress: s.event}, s.step)
	s.clear()
	if err := errors.Join(err, out.Close()); err != nil {
		return err
	}
	if end.Reason == run.Interrupted {
		return &exitError{code: exitInterrupted, err: fmt.Errorf("interrupted; what was measured is in %s", a.output)}
	}
	return p.fidelityOf(a.format, a.output)
}

// fidelityOf prints the page of a result.
func (p *program) fidelityOf(format, name string) error {
	c, err := result.Load(name)
	if err != nil {
		return usage(err)
	}
	page, err := fidelity.Assess(c.Header, c.Records)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return p.write(format, report.BuildFidelity(page))
}

// grounds raises the two places of a comparison.
type grounds struct {
	// clusters returns the plan with the names of what was found.
	clusters func(ctx context.Context, want plan.Plan, say func(string, ...any)) (run.Environment, plan.Plan, error)
	// groups makes the tree of CPU groups that the lab's agents are put into, "" for none, and says how to remove it.
	groups func(ctx context.Context) (tree string, remove func() error, err error)
	// lab starts its agents by the command line agent.
	lab func(ctx context.Context, p plan.Plan, agent []string, say func(string, ...any)) (run.Environment, error)
}

// grounds are real clusters, and the lab of this machine.
func (p *program) grounds() grounds {
	clusters := func(ctx context.Context, want plan.Plan, say func(string, ...any)) (run.Environment, plan.Plan, error) {
		e, found, err := p.raiseCluster(ctx, want, p.kubeconfig, say)
		if err != nil {
			return nil, want, err // and not e, which would be no nil as an interface
		}
		return e, found, nil
	}
	return grounds{clusters: clusters, groups: claimGroups, lab: raiseLabWith}
}

// measure raises the lab and the pods on the clusters, runs the plan on all of them and takes them down again.
func (g grounds) measure(ctx context.Context, want plan.Plan, out *result.Writer, o run.Options, say func(string, ...any)) (end result.End, err error) {
	env, want, err := g.raise(ctx, want, say)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return end, err
	}
	defer func() { err = takeDown(ctx, env, err) }()
	return run.Run(ctx, env, want, out, o)
}

// raise puts the run's pods into the clusters of a plan, and raises in the lab the profiles that were found there. On an
// error nothing is left standing. The plan that it returns has the names of both.
func (g grounds) raise(ctx context.Context, want plan.Plan, say func(string, ...any)) (run.Environment, plan.Plan, error) {
	clusters, there, err := g.clusters(ctx, planThere(want), say)
	if err != nil {
		return nil, want, err
	}
	here := planHere(want, there.Profiles)
	if err := here.Validate(); err != nil {
		return nil, want, takeDown(ctx, clusters, usage(err))
	}
	tree, remove, err := g.groups(ctx)
	if err != nil {
		return nil, want, takeDown(ctx, clusters, err)
	}
	stands, err := g.lab(ctx, here, []string{thisProgram, containedVerb, tree}, say)
	if err != nil {
		return nil, want, takeDown(ctx, clusters, errors.Join(err, remove()))
	}
	return &twoPlaces{lab: stands, clusters: clusters, surroundings: tree != "", remove: remove}, planOfBoth(here, there), nil
}

// planThere is the part of a plan that is measured on its clusters: what runs on each, its bare node, and that once more.
func planThere(want plan.Plan) plan.Plan {
	want.Profiles = nil
	for _, c := range want.Cluster.Contexts {
		host := plan.Variant(profile.Host).At(c)
		want.Profiles = append(want.Profiles, plan.Variant(plan.Detected).At(c), host, host.Twin())
	}
	want.Baseline, want.Twin = plan.Variant(profile.Host).At(want.Cluster.Contexts[0]), false
	return want
}

// planHere is the part that is measured in the lab: what was found on the clusters, each once, beside the bare node.
func planHere(want plan.Plan, found []plan.Variant) plan.Plan {
	want.Environment, want.Cluster = plan.EnvLab, plan.Cluster{}
	want.Profiles, want.Baseline, want.Twin = nil, profile.Host, true
	for _, name := range found {
		if base := name.Local(); !bareProfile(base) && !slices.Contains(want.Profiles, base) {
			want.Profiles = append(want.Profiles, base)
		}
	}
	return want
}

// planOfBoth has the names of both: those of the clusters have their context.
func planOfBoth(here, there plan.Plan) plan.Plan {
	there.Profiles = slices.Concat(here.Profiles, there.Profiles)
	there.Baseline, there.Twin = here.Baseline, here.Twin
	return there
}

// twoPlaces is the lab and clusters as one environment. What a name with a context means is in a cluster; all of it is on
// this machine.
type twoPlaces struct {
	lab, clusters run.Environment
	// surroundings says that the lab's agents are in CPU groups as those of pods are; remove takes these groups away.
	surroundings bool
	remove       func() error
}

// factAgent is how the lab's agents run.
const factAgent = "lab.agent"

// of returns the place of a profile.
func (e *twoPlaces) of(profile plan.Variant) run.Environment {
	if profile.Context() != "" {
		return e.clusters
	}
	return e.lab
}

// Facts are those of the machine and the lab, and what the clusters have besides.
func (e *twoPlaces) Facts(ctx context.Context) (facts.Facts, error) {
	all := facts.Facts{}
	for _, place := range []run.Environment{e.clusters, e.lab} {
		f, err := place.Facts(ctx)
		if err != nil {
			return nil, err
		}
		for name, value := range f {
			all[name] = value
		}
	}
	all[factAgent] = "under seccomp"
	if e.surroundings {
		all[factAgent] += ", in CPU groups as deep as a pod's"
	}
	return all, nil
}

func (e *twoPlaces) Profiles(ctx context.Context) ([]result.Profile, error) {
	var all []result.Profile
	for _, place := range []run.Environment{e.lab, e.clusters} {
		some, err := place.Profiles(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

func (e *twoPlaces) Endpoints(ctx context.Context, name plan.Variant, p plan.Path) (client, server control.Endpoint, err error) {
	return e.of(name).Endpoints(ctx, name, p)
}

func (e *twoPlaces) Backends(ctx context.Context, name plan.Variant, p plan.Path, n int) (client control.Endpoint, servers []control.Endpoint, err error) {
	return e.of(name).Backends(ctx, name, p, n)
}

// Rolled and Roll make it a run.Roller, where the place is one.
func (e *twoPlaces) Rolled(ctx context.Context, name plan.Variant, p plan.Path, n int) (client control.Endpoint, servers []control.Endpoint, err error) {
	if roller, ok := e.of(name).(run.Roller); ok {
		return roller.Rolled(ctx, name, p, n)
	}
	return client, nil, errors.ErrUnsupported
}

// Roll takes a backend out of its Service, or puts it back.
func (e *twoPlaces) Roll(ctx context.Context, b control.Backend, in bool) error {
	if roller, ok := e.of(b.Profile).(run.Roller); ok {
		return roller.Roll(ctx, b, in)
	}
	return errors.ErrUnsupported
}

// Drops makes it a run.DropReader, where the place is one.
func (e *twoPlaces) Drops(name plan.Variant, p plan.Path) ([]sample.Drop, error) {
	if reader, ok := e.of(name).(run.DropReader); ok {
		return reader.Drops(name, p)
	}
	return nil, errors.ErrUnsupported
}

// Full makes it a run.FullReader, where the place is one.
func (e *twoPlaces) Full(name plan.Variant) (map[string]uint64, error) {
	if reader, ok := e.of(name).(run.FullReader); ok {
		return reader.Full(name)
	}
	return nil, errors.ErrUnsupported
}

// Mend makes it a run.Mender: in the lab nothing goes by itself.
func (e *twoPlaces) Mend(ctx context.Context) (wrong string, err error) {
	if mender, ok := e.clusters.(run.Mender); ok {
		return mender.Mend(ctx)
	}
	return "", nil
}

// Policies makes it a run.PolicyReader, where the place is one.
func (e *twoPlaces) Policies(ctx context.Context, name plan.Variant, p plan.Path) []string {
	if reader, ok := e.of(name).(run.PolicyReader); ok {
		return reader.Policies(ctx, name, p)
	}
	return nil
}

// Conditions are the lab's: the clusters are of the same machine and kernel, and their load runs on the same CPUs.
func (e *twoPlaces) Conditions() outcome.Conditions { return e.lab.Conditions() }

func (e *twoPlaces) Close(ctx context.Context) error {
	return errors.Join(e.lab.Close(ctx), e.remove(), e.clusters.Close(ctx))
}
