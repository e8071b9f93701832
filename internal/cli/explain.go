package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/conduct/run"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/explain"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

const explainLong = `Split the difference between two profiles into parts that add up: CPU time per unit of work.

Without FILE it measures A and B in the lab, in at most a minute. Trials without samples give the service demand;
sampled trials beside them give its parts. With FILE it explains a result of cnibench run --explain.

With --what-if it predicts from the parts of A what A costs without a piece, and measures the variant that has no such piece.`

const explainExample = `  sudo cnibench explain flannel-vxlan cilium-native \
    --paths pod-to-pod/cross-node --workloads rr
  cnibench explain result.jsonl canal cilium-native --format html > explain.html`

// stackNames are the formats that show stacks, explainNames those of an explanation.
var (
	stackNames   = []string{"html", "pprof", "folded"}
	explainNames = append(slices.Clone(documentNames), "pprof", "folded")
)

type explainArgs struct {
	plan   planArgs
	format string
	output string
	quiet  bool
	whatIf string
	// without is what --what-if removes, nil for nothing.
	without *explain.Removal
}

func (p *program) explainCommand() *cobra.Command {
	var a explainArgs
	cmd := &cobra.Command{
		Use: "explain [FILE] A [B]", Short: "Split the difference between two profiles into parts", Long: explainLong, Example: explainExample,
		ValidArgsFunction: arguments(profile.Names, cobra.ShellCompDirectiveDefault), // a file, too
		Args: func(cmd *cobra.Command, args []string) error {
			if n := len(args); a.whatIf != "" && n != 1 && n != 2 {
				return usageOf(cmd, fmt.Errorf("with --what-if want [FILE] A, and there are %d arguments", n))
			} else if a.whatIf == "" && n != 2 && n != 3 {
				return usageOf(cmd, fmt.Errorf("want two profiles, or a result file and two profiles, and there are %d arguments", n))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return p.explain(cmd, &a, args) },
	}
	a.plan.declare(cmd)
	formatFlag(cmd, &a.format, explainNames)
	f := cmd.Flags()
	f.StringVarP(&a.output, "output", "o", "", "keep the result in `file`; default none")
	f.StringVar(&a.whatIf, "what-if", "", "`change` whose cost is predicted and measured: "+strings.Join(whatIfs(), " or "))
	f.BoolVarP(&a.quiet, "quiet", "q", false, "print only errors to stderr")
	group(cmd, groupOutput, true, "output", "format", "quiet", "what-if")
	hide(cmd, "profiles", "explain", "sweep", "no-twin", "pairs", "concurrency", "sequential", "precision", "max-repetitions", "plant", "tool")
	return cmd
}

// explain measures two profiles, or reads a result, and explains their difference.
func (p *program) explain(cmd *cobra.Command, a *explainArgs, args []string) error {
	names, file, err := a.asksAbout(args)
	if err != nil {
		return usage(err)
	}
	if cmd.Flags().Changed("profiles") {
		return usageOf(cmd, errors.New("the profiles are arguments of explain: leave out --profiles"))
	}
	if file != "" {
		if a.plan.said(cmd) || a.output != "" {
			return usageOf(cmd, errors.New("a result file is not measured again: leave out the flags of a plan and --output"))
		}
		return p.explanation(file, a, names)
	}
	name := a.output
	if name == "" {
		dir, err := os.MkdirTemp("", "cnibench-explain-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		name = filepath.Join(dir, DefaultResult)
	}
	want, err := a.asked(cmd, names)
	if err != nil {
		return err
	}
	open := func(ctx context.Context, say func(string, ...any)) (env.Environment, plan.Plan, error) {
		return p.openEnvironment(ctx, want, say)
	}
	if err := p.sampleInto(cmd, open, name, a.quiet); err != nil {
		return err
	}
	names[0], names[1] = want.Profiles[0], want.Profiles[len(want.Profiles)-1] // a profile file defines its own name
	if names[0] == names[1] {
		names[1] = names[0].Twin()
	}
	return p.explanation(name, a, names)
}

// whatIfs are the values of --what-if.
func whatIfs() []string {
	return each.Of(explain.Removals(), func(r explain.Removal) string { return "remove=" + r.Name })
}

// removal is what --what-if removes, nil without it.
func (a *explainArgs) removal() (*explain.Removal, error) {
	if a.whatIf == "" {
		return nil, nil
	}
	i := slices.Index(whatIfs(), a.whatIf)
	if i < 0 {
		return nil, fmt.Errorf("--what-if %q: want %s%s", a.whatIf, strings.Join(whatIfs(), " or "), advice.DidYouMean(a.whatIf, whatIfs()))
	}
	return &explain.Removals()[i], nil
}

// asksAbout returns the two variants to compare, and the result file if one is given.
func (a *explainArgs) asksAbout(args []string) (names []plan.Variant, file string, err error) {
	a.without, err = a.removal()
	errs, want := []error{err}, 2
	if a.whatIf != "" {
		want = 1
	}
	if len(args) > want {
		file, args = args[0], args[1:]
	}
	for _, text := range args {
		name, err := plan.ParseVariant(text)
		names, errs = append(names, name), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil || a.without == nil {
		return names, file, err
	}
	rest, err := a.without.From(names[0])
	if err == nil && rest == names[0] {
		err = fmt.Errorf("%s has this change already", rest)
	}
	return append(names, rest), file, err
}

// explainBudget and explainRepetitions are the defaults of a measured explanation.
const (
	explainBudget      = 50 * time.Second
	explainRepetitions = 12
)

// asked returns the plan for two profiles.
func (a *explainArgs) asked(cmd *cobra.Command, names []plan.Variant) (plan.Plan, error) {
	set := func(flag, value string) error {
		if cmd.Flags().Changed(flag) {
			return nil
		}
		return cmd.Flags().Set(flag, value)
	}
	paths, workloads := cmd.Flags().Changed("paths"), cmd.Flags().Changed("workloads")
	errs := []error{set("profiles", strings.Join(plan.Texts(slices.Compact(slices.Clone(names))), ",")), set("baseline", names[0].String()), set("explain", "true")}
	if !paths {
		errs = append(errs, set("paths", "pod-to-pod/cross-node"))
	}
	if !workloads {
		errs = append(errs, set("workloads", "rr"))
	}
	if !cmd.Flags().Changed("budget") && !cmd.Flags().Changed("duration") {
		errs = append(errs, set("budget", explainBudget.String()), set("repetitions", fmt.Sprint(explainRepetitions)))
	}
	if err := errors.Join(errs...); err != nil {
		return plan.Plan{}, usage(err)
	}
	if names[0] != names[1] {
		a.plan.noTwin = true
	}
	return a.plan.plan(cmd)
}

// opening opens the environment of a plan. It returns the plan with what was found in the environment.
type opening = func(ctx context.Context, say func(string, ...any)) (env.Environment, plan.Plan, error)

// sampleInto measures a plan with CPU samples and writes the result file called name.
func (p *program) sampleInto(cmd *cobra.Command, at opening, name string, quiet bool) error {
	out, err := createResult(name, false)
	if err != nil {
		return err
	}
	s := p.newStory(false, quiet)
	open := func(ctx context.Context) (env.Environment, plan.Plan, error) {
		return at(ctx, s.step)
	}
	end, err := p.measure(cmd.Context(), open, out, run.Options{Began: time.Now(), Progress: s.event}, s)
	s.clear()
	err = errors.Join(err, out.Close())
	switch {
	case end.Reason == result.Interrupted:
		return &exitError{code: exitInterrupted, err: errors.Join(errors.New("interrupted; nothing is explained"), err)}
	case end.Reason == "":
		return err
	}
	if c, read := result.Load(name); read == nil {
		if _, failed := verdictOf(c.Records); failed != nil {
			return errors.Join(failed, err)
		}
	}
	return err
}

// readSampled reads a result with samples. It returns its header, its analysis, and the CPU attribution of each case.
// stacks keeps whole stacks.
func readSampled(p *program, name string, stacks bool) (*result.Header, *compare.Analysis, []explain.Side, error) {
	s, err := p.open(name)
	if err != nil {
		return nil, nil, nil, err
	}
	var judged compare.Collector
	in := explain.Collector{Keep: stacks}
	err = p.each(s, false, func(rec *result.Record) error {
		return errors.Join(judged.Add(rec), in.Add(rec))
	})
	if err != nil {
		return nil, nil, nil, err
	}
	an, err := judged.Analyse(s.Header, compare.Options{})
	if err != nil {
		return nil, nil, nil, err
	}
	return &s.Header, an, in.Sides(an), nil
}

// explanation explains the difference between two profiles of a result file.
func (p *program) explanation(name string, a *explainArgs, names []plan.Variant) error {
	header, an, sides, err := readSampled(p, name, slices.Contains(stackNames, a.format))
	if err != nil {
		return usage(err)
	}
	x, err := report.Explain(an, sides, names[0], names[1])
	if err != nil {
		return usage(err)
	}
	if a.without != nil {
		for i := range x.Differences {
			x.Differences[i].Predict(*a.without)
		}
	}
	if len(x.Differences) == 0 {
		return fmt.Errorf("nothing is explained:\n%s", strings.Join(x.Without, "\n"))
	}
	return p.write(a.format, report.BuildExplanation(x, report.Run{Plan: header.Plan, Created: header.Created}))
}
