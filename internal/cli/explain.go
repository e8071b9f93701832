package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/conduct/run"
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

// stackNames are the formats that show stacks. explainNames are the formats of the command explain.
var (
	stackNames   = []string{"html", "pprof", "folded"}
	explainNames = append(slices.Clone(documentNames), "pprof", "folded")
)

// explanation is one invocation of explain.
type explanation struct {
	*program
	plan   planArgs
	format string
	output string
	quiet  bool
	whatIf string
	// without is what --what-if removes, nil for nothing.
	without *explain.Removal
	// names are the two variants that are compared.
	names []plan.Variant
}

func explainCommand(p *program) *cobra.Command {
	a := explanation{program: p}
	cmd := &cobra.Command{
		Use: "explain [FILE] A [B]", Short: "Split the difference between two profiles into parts", Long: explainLong, Example: explainExample,
		ValidArgsFunction: argumentCompletion(profile.Names, cobra.ShellCompDirectiveDefault), // a file, too
		Args: func(cmd *cobra.Command, args []string) error {
			if n := len(args); a.whatIf != "" && n != 1 && n != 2 {
				return commandUsageError(cmd, fmt.Errorf("with --what-if want [FILE] A, and there are %d arguments", n))
			} else if a.whatIf == "" && n != 2 && n != 3 {
				return commandUsageError(cmd, fmt.Errorf("want two profiles, or a result file and two profiles, and there are %d arguments", n))
			}
			return nil
		},
		RunE: a.run,
	}
	a.plan.declareFlags(cmd)
	declareFormatFlag(cmd, &a.format, explainNames)
	f := cmd.Flags()
	f.StringVarP(&a.output, "output", "o", "", "keep the result in `file`; default none")
	f.StringVar(&a.whatIf, "what-if", "", "`change` whose cost is predicted and measured: "+strings.Join(whatIfValues(), " or "))
	f.BoolVarP(&a.quiet, "quiet", "q", false, "print only errors to stderr")
	groupFlags(cmd, groupOutput, true, "output", "format", "quiet", "what-if")
	hideFlags(cmd, "profiles", "explain", "sweep", "no-twin", "pairs", "concurrency", "sequential", "precision", "max-repetitions", "plant", "tool")
	return cmd
}

// run measures two profiles, or reads a result, and explains their difference.
func (a *explanation) run(cmd *cobra.Command, args []string) error {
	file, err := a.parseArguments(args)
	if err != nil {
		return usageError(err)
	}
	if cmd.Flags().Changed("profiles") {
		return commandUsageError(cmd, errors.New("the profiles are arguments of explain: leave out --profiles"))
	}
	if file != "" {
		if a.plan.flagsGiven(cmd) || a.output != "" {
			return commandUsageError(cmd, errors.New("a result file is not measured again: leave out the flags of a plan and --output"))
		}
		return a.explainFile(file)
	}
	name, remove, err := resultFile(a.output)
	if err != nil {
		return err
	}
	defer remove()
	want, err := a.buildPlan(cmd)
	if err != nil {
		return err
	}
	if err := a.sampleToFile(cmd.Context(), a.planOpener(want), name, a.quiet); err != nil {
		return err
	}
	a.names[0], a.names[1] = want.Profiles[0], want.Profiles[len(want.Profiles)-1] // a profile file has a name of its own
	if a.names[0] == a.names[1] {
		a.names[1] = a.names[0].Twin()
	}
	return a.explainFile(name)
}

// whatIfValues returns the values of --what-if.
func whatIfValues() []string {
	return each.Of(explain.Removals(), func(r explain.Removal) string { return "remove=" + r.Name })
}

// whatIfRemoval returns what --what-if removes; nil without the flag.
func (a *explanation) whatIfRemoval() (*explain.Removal, error) {
	if a.whatIf == "" {
		return nil, nil
	}
	i := slices.Index(whatIfValues(), a.whatIf)
	if i < 0 {
		return nil, fmt.Errorf("--what-if %q: want %s%s", a.whatIf, strings.Join(whatIfValues(), " or "), advice.DidYouMean(a.whatIf, whatIfValues()))
	}
	return &explain.Removals()[i], nil
}

// parseArguments parses the arguments and --what-if, and returns the name of the result file, "" if none is given.
func (a *explanation) parseArguments(args []string) (file string, err error) {
	a.without, err = a.whatIfRemoval()
	errs, want := []error{err}, 2
	if a.whatIf != "" {
		want = 1
	}
	if len(args) > want {
		file, args = args[0], args[1:]
	}
	for _, text := range args {
		name, err := plan.ParseVariant(text)
		a.names, errs = append(a.names, name), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil || a.without == nil {
		return file, err
	}
	rest, err := a.without.From(a.names[0])
	if err == nil && rest == a.names[0] {
		err = fmt.Errorf("%s has this change already", rest)
	}
	a.names = append(a.names, rest)
	return file, err
}

// explainBudget and explainRepetitions are the defaults for an explanation that is measured, not read from a file.
const (
	explainBudget      = 50 * time.Second
	explainRepetitions = 12
)

// buildPlan returns the plan to measure the two profiles. It sets the defaults of flags that the user did not give.
func (a *explanation) buildPlan(cmd *cobra.Command) (plan.Plan, error) {
	set := func(flag, value string) error {
		if cmd.Flags().Changed(flag) {
			return nil
		}
		return cmd.Flags().Set(flag, value)
	}
	paths, workloads := cmd.Flags().Changed("paths"), cmd.Flags().Changed("workloads")
	errs := []error{set("profiles", strings.Join(plan.Texts(slices.Compact(slices.Clone(a.names))), ",")), set("baseline", a.names[0].String()), set("explain", "true")}
	file := cmd.Flags().Changed("file") // it says what it measures
	if !paths && !file {
		errs = append(errs, set("paths", "pod-to-pod/cross-node"))
	}
	if !workloads && !file {
		errs = append(errs, set("workloads", "rr"))
	}
	if !cmd.Flags().Changed("budget") && !cmd.Flags().Changed("duration") && !file {
		errs = append(errs, set("budget", explainBudget.String()), set("repetitions", fmt.Sprint(explainRepetitions)))
	}
	if err := errors.Join(errs...); err != nil {
		return plan.Plan{}, usageError(err)
	}
	if a.names[0] != a.names[1] {
		a.plan.noTwin = true
	}
	return a.plan.buildPlan(cmd)
}

// sampleToFile opens an environment, runs its plan, and writes the result file called name. It fails if the run is
// interrupted, or if all trials of a case failed.
func (p *program) sampleToFile(ctx context.Context, open opener, name string, quiet bool) error {
	out, err := createResult(name, false)
	if err != nil {
		return err
	}
	end, err := p.measurePlan(ctx, open, out, run.Options{Began: time.Now()}, p.newStory(false, quiet))
	switch {
	case end.Reason == result.Interrupted:
		return &exitError{code: exitInterrupted, err: errors.Join(errors.New("interrupted; nothing is explained"), err)}
	case end.Reason == "":
		return err
	}
	if c, read := result.Load(name); read == nil {
		if _, failed := checkTrials(c.Records); failed != nil {
			return errors.Join(failed, err)
		}
	}
	return err
}

// readSampled reads a result with CPU samples. It returns the header, the analysis, and the CPU time of each case by part.
// With stacks it also keeps whole stacks, for the formats of stackNames.
func (p *program) readSampled(name string, stacks bool) (*result.Header, *compare.Analysis, []explain.Side, error) {
	s, err := p.openResult(name)
	if err != nil {
		return nil, nil, nil, err
	}
	var judged compare.Collector
	in := explain.Collector{Keep: stacks}
	err = p.forEachRecord(s, false, func(rec *result.Record) error {
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

// explainFile reads the result file called name, and prints an explanation of the difference between its two variants.
func (a *explanation) explainFile(name string) error {
	header, an, sides, err := a.readSampled(name, slices.Contains(stackNames, a.format))
	if err != nil {
		return usageError(err)
	}
	x, err := report.Explain(an, sides, a.names[0], a.names[1])
	if err != nil {
		return usageError(err)
	}
	if a.without != nil {
		for i := range x.Differences {
			x.Differences[i].Predict(*a.without)
		}
	}
	if len(x.Differences) == 0 {
		return fmt.Errorf("nothing is explained:\n%s", strings.Join(x.Without, "\n"))
	}
	return a.writeDocument(a.format, report.BuildExplanation(x, report.Run{Plan: header.Plan, Created: header.Created}))
}
