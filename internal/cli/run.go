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

	"github.com/cnibench/cnibench/internal/conduct/run"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
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
}

const runLong = `Measure a plan and print its report. Without arguments this is every profile that the lab can raise, on five
paths, under stream, rr and crr, in about four minutes. Every trial is on the disk before the next begins: a run that
was killed goes on with --resume.`

const runExample = `  sudo cnibench run
  sudo cnibench run --profiles 'calico-vxlan,calico-vxlan(service-proxy=nftables,services=1000)' --workloads rr,crr`

func (p *program) runCommand() *cobra.Command {
	var a runArgs
	cmd := &cobra.Command{
		Use: "run", Short: "Measure a plan and print its report", Long: runLong, Example: runExample, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.dated(cmd, &a) },
	}
	a.plan.declare(cmd)
	f := cmd.Flags()
	f.StringVarP(&a.output, "output", "o", DefaultResult, "result `file`; "+timeMark+" in its name is when the run began")
	f.IntVar(&a.keep, "keep", 0, "with "+timeMark+" in the output: how `many` results of that name to keep, the newest")
	f.StringVar(&a.format, "format", "text", "`format` of the report at the end: "+strings.Join(formatNames, ", ")+", none")
	f.BoolVar(&a.all, "all", false, allUsage)
	f.BoolVar(&a.dryRun, "dry-run", false, "say what would be measured and how long it would take, and measure nothing")
	f.BoolVar(&a.resume, "resume", false, "go on with the result file where it ends")
	f.BoolVar(&a.force, "force", false, "replace the result file if there is one")
	f.BoolVarP(&a.verbose, "verbose", "v", false, "print a line for each trial to stderr, and the whole log if the kernel refuses a BPF program")
	f.StringVar(&p.charts, chartsFlag, "", "`directory` or file of charts and manifests for --install and --env kind, in place of those that the recipes name")
	f.StringVar(&p.kubeconfig, "kubeconfig", "", "`file` that says how to reach the clusters; default as for kubectl")
	f.BoolVarP(&a.quiet, "quiet", "q", false, "print only errors to stderr")
	cmd.MarkFlagsMutuallyExclusive("resume", "force")
	cmd.MarkFlagsMutuallyExclusive("verbose", "quiet")
	complete(cmd, "format", func() []string { return append(slices.Clone(formatNames), "none") })
	group(cmd, groupOutput, true, "output", "format", "dry-run", "resume", "force", "quiet", "verbose")
	group(cmd, plan.GroupCluster, false, "kubeconfig", chartsFlag)
	grouped(cmd)
	return cmd
}

func (p *program) run(cmd *cobra.Command, a *runArgs) error {
	if a.format != "none" {
		if err := knownFormat(cmd, a.format, formatNames); err != nil {
			return err
		}
	}
	if a.dryRun {
		return p.dryRun(cmd, a)
	}
	began := time.Now()
	out, resumed, want, err := a.open(cmd)
	if err != nil {
		return err
	}
	s := p.newStory(a.verbose, a.quiet)
	if resumed != nil && resumed.Warning != "" {
		s.note("%s", resumed.Warning)
	}
	for _, n := range a.notes(want.Fit(len(want.Cases())), len(want.Cases())) {
		s.note("%s", n)
	}
	end, err := p.measure(cmd.Context(), want, out, run.Options{Resumed: resumed, Began: began, Progress: s.event}, s)
	s.clear()
	// A run that has come to its end is told as such, also when something went wrong after it.
	err = errors.Join(err, out.Close())
	switch end.Reason {
	case "":
		return p.withResumeHint(a, err)
	case run.Interrupted:
		said := fmt.Errorf("interrupted; what was measured is in %s", a.output)
		wayOut := "go on with: " + p.resumption(a)
		if more := advice.Of(err); more != "" {
			wayOut += "; " + more
		}
		return advice.With(&exitError{code: exitInterrupted, err: errors.Join(said, err)}, wayOut)
	}
	return errors.Join(p.conclude(cmd, a, end, s), err)
}

// resumption is the command that goes on with a run: the file knows the plan, and not how this machine reaches the cluster.
func (p *program) resumption(a *runArgs) string {
	command := "cnibench run --resume -o " + a.output
	for _, f := range []struct{ flag, value string }{{"--kubeconfig", p.kubeconfig}, {"--" + chartsFlag, p.charts}} {
		if f.value != "" {
			command += " " + f.flag + " " + f.value
		}
	}
	return command
}

// withResumeHint adds to the error of a run that lost its environment how to resume it.
func (p *program) withResumeHint(a *runArgs, err error) error {
	var lost *run.LostError
	if !errors.As(err, &lost) {
		return err
	}
	wayOut := "finished trials are kept; when the cluster is well again, resume: " + p.resumption(a)
	if first := advice.Of(err); first != "" {
		wayOut = first + "; " + wayOut
	}
	return advice.With(err, wayOut)
}

// open opens the result file and settles the plan: that of the flags for a new file, that of the file to resume it.
func (a *runArgs) open(cmd *cobra.Command) (*result.Writer, *result.Resumed, plan.Plan, error) {
	if a.resume {
		return a.openResume(cmd)
	}
	want, err := a.plan.plan(cmd)
	if err != nil {
		return nil, nil, want, err
	}
	if a.force {
		if err := result.Remove(a.output); err != nil {
			return nil, nil, want, err
		}
	}
	out, err := result.Create(a.output)
	if errors.Is(err, os.ErrExist) {
		err = usage(err)
	}
	return out, nil, want, err
}

func (a *runArgs) openResume(cmd *cobra.Command) (*result.Writer, *result.Resumed, plan.Plan, error) {
	res, err := result.OpenResume(a.output)
	if err != nil {
		return nil, nil, plan.Plan{}, usage(err)
	}
	was := res.Start.Plan
	if a.plan.said(cmd) {
		want, err := a.plan.plan(cmd)
		if err == nil {
			// What the first invocation chose by itself is taken from the file.
			if want.Duration == 0 {
				want.Duration = was.Duration
			}
			if a.plan.drawn {
				want.Seed = was.Seed
			}
			err = usageUnlessNil(res.Start.SamePlan(want))
		}
		if err != nil {
			return nil, nil, was, errors.Join(err, res.Close())
		}
	}
	return res.Writer, res, was, nil
}

func usageUnlessNil(err error) error {
	if err == nil {
		return nil
	}
	return usage(err)
}

// measure raises the environment, runs the plan in it and takes it down again.
func (p *program) measure(ctx context.Context, want plan.Plan, out *result.Writer, o run.Options, s *story) (end result.End, err error) {
	e, want, err := p.openEnvironment(ctx, want, s.step)
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
	if logs := e.Capabilities().VerifierLogs; logs != nil && !s.quiet {
		s.clear()
		printVerifierLogs(s.w, logs(), s.verbose)
	}
	return run.Run(ctx, e, want, out, o)
}

// flat makes s fit into a cell of a table.
func flat(s string) string { return strings.Join(strings.Fields(s), " ") }

// conclude prints the report and the last line, and says whether the run was any good.
func (p *program) conclude(cmd *cobra.Command, a *runArgs, end result.End, s *story) error {
	c, err := result.Load(a.output)
	if err != nil {
		return err
	}
	if a.format != "none" {
		if err := p.report(cmd, a.output, reportArgs{format: a.format, all: a.all}); err != nil {
			return err
		}
	}
	share := 0.0
	if end.WallNs > 0 {
		share = float64(end.WindowNs) / float64(end.WallNs)
	}
	s.last("%d trials (%d failed) in %s, %s of it in measurement windows; all of it is in %s (more: cnibench report --all %s)",
		end.Trials, end.Failed, number.Duration(time.Duration(end.WallNs)), number.Percent(share), a.output, a.output)
	return verdictOf(c.Records)
}

// verdictOf fails a run in which some case has no finished trial: what was asked for is not there.
func verdictOf(records []result.Record) error {
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
		return nil
	}
	slices.Sort(lost)
	const most = 5
	more := ""
	if len(lost) > most {
		more = fmt.Sprintf("\nand %d more", len(lost)-most)
		lost = lost[:most]
	}
	return fmt.Errorf("every trial failed of\n%s%s", strings.Join(lost, "\n"), more)
}
