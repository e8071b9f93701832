package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/conduct/run"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/profilefile"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// measurement is one invocation of run.
type measurement struct {
	*program
	plan    planArgs
	output  string
	keep    int
	dryRun  bool
	resume  bool
	force   bool
	verbose bool
	quiet   bool
	// report is printed at the end. failOn are the values of --fail-on, which readBudgets parses into report.budgets.
	report reporting
	failOn []string
	// show prints what replaces the report at the end of a run; nil means that the report is printed.
	show func() error
}

const runLong = `Measure a plan and print its report. Without arguments these are the usual profiles, on five paths,
under stream, rr and crr, in about four minutes. Every trial is on the disk before the next begins: --resume
continues a run that was killed. With more --repetitions it extends a run that is complete.`

const runExample = `  sudo cnibench run
  sudo cnibench run --profiles 'canal,canal(services=1000)' --workloads rr,crr`

func runCommand(p *program) *cobra.Command {
	a := measurement{program: p}
	cmd := &cobra.Command{
		Use: "run", Short: "Measure a plan and print its report", Long: runLong, Example: runExample, Args: takesNone,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runDated(cmd) },
	}
	a.plan.declareFlags(cmd)
	a.declareFlags(cmd)
	f := cmd.Flags()
	f.StringVarP(&a.output, "output", "o", DefaultResult, "result `file`; "+timeMark+" in its name is when the run began")
	f.IntVar(&a.keep, "keep", 0, "with "+timeMark+" in the output: how `many` results of that name to keep, the newest")
	declareFormatFlag(cmd, &a.report.format, append(slices.Clone(formatNames), noFormat))
	f.StringArrayVar(&a.failOn, "fail-on", nil, failOnRun)
	f.BoolVar(&a.resume, "resume", false, "continue the result file; more --repetitions extend a complete one")
	f.BoolVarP(&a.verbose, "verbose", "v", false, "print a line for each trial to stderr, and the whole log if the kernel refuses a BPF program")
	f.StringVar(&p.charts, chartsFlag, "", "`directory` or file of charts and manifests for --install and --env kind, in place of those that the recipes name")
	cmd.MarkFlagsMutuallyExclusive("resume", "force")
	cmd.MarkFlagsMutuallyExclusive("verbose", "quiet")
	groupFlags(cmd, groupOutput, true, "output", "format", "fail-on", "dry-run", "resume", "quiet", "verbose")
	groupFlags(cmd, groupOutput, false, "force")
	groupFlags(cmd, plan.GroupCluster, false, "kubeconfig", chartsFlag)
	return cmd
}

// declareFlags adds the flags that run and reproduce share.
func (a *measurement) declareFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&a.report.all, "all", false, allUsage)
	f.BoolVar(&a.dryRun, "dry-run", false, "say what would be measured and how long it would take, and measure nothing")
	f.BoolVar(&a.force, "force", false, "replace the result file if there is one")
	f.BoolVarP(&a.quiet, "quiet", "q", false, "print only errors to stderr")
	f.StringVar(&a.kubeconfig, "kubeconfig", "", "`file` that says how to reach the clusters; default as for kubectl")
}

func (a *measurement) run(cmd *cobra.Command) error {
	if a.dryRun {
		return a.printPreview(cmd)
	}
	began := time.Now()
	out, resumed, want, err := a.openOutput(cmd)
	if err != nil {
		return err
	}
	s := a.newStory(a.verbose, a.quiet)
	if resumed != nil {
		s.live.addRecords(resumed.Records)
	}
	if resumed != nil && resumed.Warning != "" {
		s.printNote("%s", resumed.Warning)
	}
	for _, n := range a.planNotes(want.Fit(want.Trials(len(want.Cases()))), want.Trials(len(want.Cases()))) {
		s.printNote("%s", n)
	}
	if resumed != nil && resumed.Complete() {
		s.printNote("%s is complete: it has every repetition of its plan, %d; --repetitions adds more", a.output, max(want.Repetitions, want.MaxRepetitions))
		return errors.Join(resumed.Close(), a.reportOutcome(cmd))
	}
	end, err := a.measurePlan(cmd.Context(), a.planOpener(want), out, run.Options{Resumed: resumed, Began: began}, s)
	switch end.Reason {
	case "":
		return a.addResumeHint(err)
	case result.Interrupted:
		said := fmt.Errorf("interrupted; what was measured is in %s", a.output)
		wayOut := "continue with: " + a.resumeCommand()
		if more := advice.Of(err); more != "" {
			wayOut += "; " + more
		}
		return advice.With(&exitError{code: exitInterrupted, err: errors.Join(said, err)}, wayOut)
	}
	err = errors.Join(a.reportOutcome(cmd), err) // the report of a finished run is printed even if closing it failed
	share := float64(end.WindowNs) / float64(max(end.WallNs, 1))
	s.printNote("%s (%d failed) in %s, %s of it in measurement windows; all of it is in %s (more: cnibench report --all %s)",
		number.Counted(end.Trials, "trial"), end.Failed, number.Duration(time.Duration(end.WallNs)), number.Percent(share), a.output, advice.Quote(a.output))
	return err
}

// resumeCommand returns the command that continues a run. The result file has the plan, but not how this machine reaches the
// cluster.
func (a *measurement) resumeCommand() string {
	command := "cnibench run --resume -o " + advice.Quote(a.output)
	for _, f := range []struct{ flag, value string }{{"--kubeconfig", a.kubeconfig}, {"--" + chartsFlag, a.charts}} {
		if f.value != "" {
			command += " " + f.flag + " " + advice.Quote(f.value)
		}
	}
	return command
}

// addResumeHint adds the command to resume to the error of a run that lost its environment. It returns other errors as they
// are.
func (a *measurement) addResumeHint(err error) error {
	var lost *run.LostError
	if !errors.As(err, &lost) {
		return err
	}
	wayOut := "finished trials are kept; when the cluster is ready again, resume: " + a.resumeCommand()
	if first := advice.Of(err); first != "" {
		wayOut = first + "; " + wayOut
	}
	return advice.With(err, wayOut)
}

// openOutput opens the result file and returns the plan of the run. For a new file it takes the plan from the flags,
// and returns a nil Resumed. With --resume it takes the plan from the file; flags may extend that plan.
func (a *measurement) openOutput(cmd *cobra.Command) (*result.Writer, *result.Resumed, plan.Plan, error) {
	if a.resume {
		return a.openResume(cmd)
	}
	want, err := a.plan.buildPlan(cmd)
	if err == nil {
		err = a.readBudgets(cmd, want)
	}
	if err != nil {
		return nil, nil, want, err
	}
	out, err := createResult(a.output, a.force)
	return out, nil, want, err
}

// resultFile returns given as the name of a result file. If that is "", it creates a temporary folder for the file, and
// remove deletes the folder.
func resultFile(given string) (name string, remove func(), err error) {
	if given != "" {
		return given, func() {}, nil
	}
	dir, err := os.MkdirTemp("", "cnibench-")
	return filepath.Join(dir, DefaultResult), func() { _ = os.RemoveAll(dir) }, err
}

// createResult creates a result file. With force it replaces an existing file. It returns a usage error if the file exists,
// if another process writes it, or if its directory is missing or not writable.
func createResult(name string, force bool) (*result.Writer, error) {
	if name == stdoutName {
		return nil, usageError(errors.New("a result is a file that stands after each trial: -o names it, and not stdout"))
	}
	if force {
		w, err := result.Replace(name)
		return w, usageError(err)
	}
	w, err := result.Create(name)
	for _, wrong := range []error{os.ErrExist, os.ErrNotExist, os.ErrPermission, syscall.ENOTDIR} {
		if errors.Is(err, wrong) {
			return nil, usageError(err)
		}
	}
	return w, err
}

func (a *measurement) openResume(cmd *cobra.Command) (*result.Writer, *result.Resumed, plan.Plan, error) {
	res, err := result.OpenResume(a.output)
	if err != nil {
		return nil, nil, plan.Plan{}, usageError(err)
	}
	want, more, err := a.resumedPlan(cmd, res.Start)
	if err == nil && more {
		res, err = res.Replan(want)
	}
	if err != nil {
		return nil, nil, want, errors.Join(err, res.Close())
	}
	return res.Writer, res, want, nil
}

// resumedPlan returns the plan of a run that continues a file with this header, and whether it measures more than the plan of
// the file. It fails if the flags describe another plan, or if a profile file has changed.
func (a *measurement) resumedPlan(cmd *cobra.Command, start result.Header) (want plan.Plan, more bool, err error) {
	was := start.Plan
	if err = a.readBudgets(cmd, was); err != nil {
		return was, false, err
	}
	if err := profilefile.Changed(was, os.ReadFile); err != nil {
		return was, false, usageError(err)
	}
	if !a.plan.flagsGiven(cmd) {
		return was, false, nil
	}
	if want, err = a.plan.resumedPlan(cmd, was); err != nil || extendsPlan(was, want) {
		return want, err == nil, err
	}
	return want, false, usageError(start.SamePlan(want))
}

// extendsPlan reports whether want differs from was, but only in repetitions, precision or budget, and has no fewer
// repetitions.
func extendsPlan(was, want plan.Plan) bool {
	more := []string{"repetitions", "maxRepetitions", "precision", "budget"}
	differ := was.Differ(want)
	return len(differ) > 0 && want.Repetitions >= was.Repetitions &&
		!slices.ContainsFunc(differ, func(key string) bool { return !slices.Contains(more, key) })
}

// opener opens the environment of a plan. The returned plan has the profile names that were detected there. say reports
// progress.
type opener func(ctx context.Context, say func(string, ...any)) (env.Environment, plan.Plan, error)

// planOpener returns a function that opens the environment of want.
func (p *program) planOpener(want plan.Plan) opener {
	return func(ctx context.Context, say func(string, ...any)) (env.Environment, plan.Plan, error) {
		return p.openEnvironment(ctx, want, say)
	}
}

// measurePlan opens the environment, runs its plan, and closes the environment and out. end is zero if the environment
// could not be opened.
func (p *program) measurePlan(ctx context.Context, open opener, out *result.Writer, o run.Options, s *story) (end result.End, err error) {
	defer func() {
		s.eraseLines()
		err = errors.Join(err, out.Close())
	}()
	e, want, err := open(ctx, s.showStep)
	if err != nil {
		return end, cmp.Or(context.Cause(ctx), err)
	}
	defer func() {
		left := env.Close(ctx, e, nil)
		if left == nil {
			p.clearLeftovers()
		}
		err = errors.Join(err, left)
	}()
	if lab, ok := e.At(want.Baseline).(env.Verifier); ok && !s.quiet {
		s.eraseLines()
		printVerifierLogs(s.w, lab.VerifierLogs(), s.verbose)
	}
	o.Header, o.Progress = s.live.beginResult, s.showEvent
	return run.Run(ctx, e, want, out, o)
}

// oneLine replaces line breaks and other white space in s by single spaces, so that it fits into a cell of a table.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// reportOutcome prints the report, unless every trial failed. It returns an error that names the cases whose trials all
// failed, or one with the exit code of budgets that are not kept.
func (a *measurement) reportOutcome(cmd *cobra.Command) error {
	c, err := result.Load(a.output)
	if err != nil {
		return err
	}
	finished, lost := checkTrials(c.Records)
	if a.show != nil && finished {
		return errors.Join(a.show(), lost)
	}
	if !finished && lost != nil {
		return lost
	}
	a.report.program, a.report.file = a.program, a.output
	return errors.Join(a.report.run(cmd), lost)
}

// checkTrials reports whether any trial succeeded. It returns an error with at most five of the cases whose trials all
// failed, nil if there is no such case.
func checkTrials(records []result.Record) (bool, error) {
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
