package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/conduct/run"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/profilefile"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

type runArgs struct {
	plan    planArgs
	output  string
	keep    int
	format  string
	all     bool
	dryRun  bool
	resume  bool
	force   bool
	verbose bool
	quiet   bool
	// failOn are the texts of budgets, held the parsed budgets.
	failOn []string
	held   []compare.Budget
	// show replaces the report at the end of a run. (optional)
	show func() error
}

const runLong = `Measure a plan and print its report. Without arguments this is every profile that the lab can raise, on five
paths, under stream, rr and crr, in about four minutes. Every trial is on the disk before the next begins: --resume
continues a run that was killed. With more --repetitions it extends a run that is complete.`

const runExample = `  sudo cnibench run
  sudo cnibench run --profiles 'canal,canal(services=1000)' --workloads rr,crr`

func (p *program) runCommand() *cobra.Command {
	var a runArgs
	cmd := &cobra.Command{
		Use: "run", Short: "Measure a plan and print its report", Long: runLong, Example: runExample, Args: takesNone,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.dated(cmd, &a) },
	}
	a.plan.declare(cmd)
	f := cmd.Flags()
	f.StringVarP(&a.output, "output", "o", DefaultResult, "result `file`; "+timeMark+" in its name is when the run began")
	f.IntVar(&a.keep, "keep", 0, "with "+timeMark+" in the output: how `many` results of that name to keep, the newest")
	formatFlag(cmd, &a.format, append(slices.Clone(formatNames), noFormat))
	f.StringArrayVar(&a.failOn, "fail-on", nil, failOnRun)
	f.BoolVar(&a.all, "all", false, allUsage)
	f.BoolVar(&a.dryRun, "dry-run", false, "say what would be measured and how long it would take, and measure nothing")
	f.BoolVar(&a.resume, "resume", false, "continue the result file; more --repetitions extend a complete one")
	f.BoolVar(&a.force, "force", false, "replace the result file if there is one")
	f.BoolVarP(&a.verbose, "verbose", "v", false, "print a line for each trial to stderr, and the whole log if the kernel refuses a BPF program")
	f.StringVar(&p.charts, chartsFlag, "", "`directory` or file of charts and manifests for --install and --env kind, in place of those that the recipes name")
	f.StringVar(&p.kubeconfig, "kubeconfig", "", "`file` that says how to reach the clusters; default as for kubectl")
	f.BoolVarP(&a.quiet, "quiet", "q", false, "print only errors to stderr")
	cmd.MarkFlagsMutuallyExclusive("resume", "force")
	cmd.MarkFlagsMutuallyExclusive("verbose", "quiet")
	group(cmd, groupOutput, true, "output", "format", "fail-on", "dry-run", "resume", "quiet", "verbose")
	group(cmd, groupOutput, false, "force")
	group(cmd, plan.GroupCluster, false, "kubeconfig", chartsFlag)
	return cmd
}

func (p *program) run(cmd *cobra.Command, a *runArgs) error {
	if a.dryRun {
		return p.dryRun(cmd, a)
	}
	began := time.Now()
	out, resumed, want, err := a.open(cmd)
	if err != nil {
		return err
	}
	s := p.newStory(a.verbose, a.quiet)
	if resumed != nil {
		s.live.resume(resumed.Records)
	}
	if resumed != nil && resumed.Warning != "" {
		s.note("%s", resumed.Warning)
	}
	for _, n := range a.notes(want.Fit(want.Trials(len(want.Cases()))), want.Trials(len(want.Cases()))) {
		s.note("%s", n)
	}
	if resumed != nil && resumed.Complete() {
		s.note("%s is complete: it has every repetition of its plan, %d; --repetitions adds more", a.output, want.Repetitions)
		return errors.Join(resumed.Close(), p.conclude(cmd, a))
	}
	open := func(ctx context.Context) (env.Environment, plan.Plan, error) {
		return p.openEnvironment(ctx, want, s.step)
	}
	end, err := p.measure(cmd.Context(), open, out, run.Options{Resumed: resumed, Began: began, Progress: s.event}, s)
	s.clear()
	// The report of a finished run is printed even if closing the file failed.
	err = errors.Join(err, out.Close())
	switch end.Reason {
	case "":
		return p.withResumeHint(a, err)
	case result.Interrupted:
		said := fmt.Errorf("interrupted; what was measured is in %s", a.output)
		wayOut := "continue with: " + p.resumption(a)
		if more := advice.Of(err); more != "" {
			wayOut += "; " + more
		}
		return advice.With(&exitError{code: exitInterrupted, err: errors.Join(said, err)}, wayOut)
	}
	err = errors.Join(p.conclude(cmd, a), err)
	share := float64(end.WindowNs) / float64(max(end.WallNs, 1))
	s.note("%s (%d failed) in %s, %s of it in measurement windows; all of it is in %s (more: cnibench report --all %s)",
		number.Counted(end.Trials, "trial"), end.Failed, number.Duration(time.Duration(end.WallNs)), number.Percent(share), a.output, a.output)
	return err
}

// resumption returns the command that resumes a run. The file has the plan, but not how this machine reaches the
// cluster.
func (p *program) resumption(a *runArgs) string {
	command := "cnibench run --resume -o " + a.output
	for _, f := range []struct{ flag, value string }{{"--kubeconfig", p.kubeconfig}, {"--" + chartsFlag, p.charts}} {
		if f.value != "" {
			command += " " + f.flag + " " + f.value
		}
	}
	return command
}

// withResumeHint adds how to resume to the error of a run that lost its environment.
func (p *program) withResumeHint(a *runArgs, err error) error {
	var lost *run.LostError
	if !errors.As(err, &lost) {
		return err
	}
	wayOut := "finished trials are kept; when the cluster is ready again, resume: " + p.resumption(a)
	if first := advice.Of(err); first != "" {
		wayOut = first + "; " + wayOut
	}
	return advice.With(err, wayOut)
}

// open opens the result file and returns the plan: from the flags for a new file, from the file if it is resumed.
func (a *runArgs) open(cmd *cobra.Command) (*result.Writer, *result.Resumed, plan.Plan, error) {
	if a.resume {
		return a.openResume(cmd)
	}
	want, err := a.plan.plan(cmd)
	if err == nil {
		a.held, err = a.budgets(cmd, want)
	}
	if err != nil {
		return nil, nil, want, err
	}
	out, err := createResult(a.output, a.force)
	return out, nil, want, err
}

// createResult creates a result file. It replaces an existing file only if force is set. A file that cannot be created
// is bad input.
func createResult(name string, force bool) (*result.Writer, error) {
	if force {
		if err := result.Remove(name); err != nil {
			return nil, err
		}
	}
	w, err := result.Create(name)
	for _, wrong := range []error{os.ErrExist, os.ErrNotExist, os.ErrPermission, syscall.ENOTDIR} {
		if errors.Is(err, wrong) {
			return nil, usage(err)
		}
	}
	return w, err
}

func (a *runArgs) openResume(cmd *cobra.Command) (*result.Writer, *result.Resumed, plan.Plan, error) {
	res, err := result.OpenResume(a.output)
	if err != nil {
		return nil, nil, plan.Plan{}, usage(err)
	}
	want, more, err := a.resumed(cmd, res.Start)
	if err == nil && more {
		res, err = res.Replan(want)
	}
	if err != nil {
		return nil, nil, want, errors.Join(err, res.Close())
	}
	return res.Writer, res, want, nil
}

// resumed returns the plan of a run that continues the file with header start. more reports whether it measures more
// than the file's plan.
func (a *runArgs) resumed(cmd *cobra.Command, start result.Header) (want plan.Plan, more bool, err error) {
	was := start.Plan
	if a.held, err = a.budgets(cmd, was); err != nil {
		return was, false, err
	}
	if err := profilefile.Changed(was, os.ReadFile); err != nil {
		return was, false, usage(err)
	}
	if !a.plan.said(cmd) {
		return was, false, nil
	}
	if want, err = a.plan.resumed(cmd, was); err != nil || extends(was, want) {
		return want, err == nil, err
	}
	return want, false, usage(start.SamePlan(want))
}

// extends reports whether two plans differ only in their maximum number of repetitions, and want has the larger one.
func extends(was, want plan.Plan) bool {
	more := []string{"repetitions", "maxRepetitions", "precision", "budget"}
	differ := was.Differ(want)
	return len(differ) > 0 && want.Repetitions >= was.Repetitions &&
		!slices.ContainsFunc(differ, func(key string) bool { return !slices.Contains(more, key) })
}

// opener opens the environment of a plan. It returns the plan with the names that were found there.
type opener func(ctx context.Context) (env.Environment, plan.Plan, error)

// measure opens the environment, runs the plan in it and closes it.
func (p *program) measure(ctx context.Context, open opener, out *result.Writer, o run.Options, s *story) (end result.End, err error) {
	e, want, err := open(ctx)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return end, err
	}
	defer func() {
		left := env.Close(ctx, e, nil)
		if left == nil {
			p.leavesNothing()
		}
		err = errors.Join(err, left)
	}()
	if lab, ok := e.At(want.Baseline).(env.Verifier); ok && !s.quiet {
		s.clear()
		printVerifierLogs(s.w, lab.VerifierLogs(), s.verbose)
	}
	o.Header = s.live.begin
	return run.Run(ctx, e, want, out, o)
}

// flat makes s fit into a cell of a table.
func flat(s string) string { return strings.Join(strings.Fields(s), " ") }

// conclude prints the report. It returns an error if cases have no finished trial or budgets are broken. If no trial
// finished, it prints the reasons instead of a report.
func (p *program) conclude(cmd *cobra.Command, a *runArgs) error {
	c, err := result.Load(a.output)
	if err != nil {
		return err
	}
	finished, lost := verdictOf(c.Records)
	if a.show != nil && finished {
		return errors.Join(a.show(), lost)
	}
	if !finished && lost != nil {
		return lost
	}
	err = p.report(cmd, a.output, reportArgs{format: a.format, all: a.all, budgets: a.held})
	var outcome *exitError
	if lost != nil && errors.As(err, &outcome) && outcome.quiet {
		return &exitError{code: outcome.code, err: lost}
	}
	return errors.Join(err, lost)
}

// verdictOf reports whether any trial finished, and returns an error that names the cases without a finished trial.
func verdictOf(records []result.Record) (bool, error) {
	finished := map[plan.Case]bool{}
	why := map[plan.Case]string{}
	for _, r := range records {
		if r.Type != result.TypeTrial {
			continue
		}
		if r.Status == result.OK {
			finished[r.Case] = true
		} else if r.Error != nil {
			why[r.Case] = r.Error.Kind + ": " + r.Error.Message
		}
	}
	var lost []string
	for k, reason := range why {
		if !finished[k] {
			lost = append(lost, k.Key()+": "+reason)
		}
	}
	if len(lost) == 0 {
		return len(finished) > 0, nil
	}
	slices.Sort(lost)
	const most = 5
	if len(lost) > most {
		lost = append(lost[:most], fmt.Sprintf("and %d more", len(lost)-most))
	}
	return len(finished) > 0, fmt.Errorf("all trials failed for:\n%s", strings.Join(lost, "\n"))
}
