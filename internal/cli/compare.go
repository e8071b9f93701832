package cli

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

const compareLong = `Set the result file B beside A: other kernels, versions, clusters, months.

Cells are matched by profile, path, workload and metric. Each pair has the ratio of B to A with its interval and a
verdict on B. Where both files measured the same baseline in turn, the ratio is that of the quotients to it; of a percentile
above the median both the values and the quotients must differ. All that is shown is one family: the chance of any false
alarm is 5 %. Conditions in which the runs differ are named first.

A budget (--fail-on) is a limit that B must keep:

  [profile=NAME] [path=NAME] [workload=NAME] [workload.]metric >|< limit

NAME may have a * for any characters. A limit with a sign is a change against A in percent; one without is a value of
B, with its unit. rr.p99 is rtt.p99 of the workload rr; http.p99 is response_time.p99. A budget is broken only beyond
doubt: if the interval excludes it.

--history takes any number of files, orders them by time and shows where each cell changes its level.

Exit codes:
  0  no shown cell is worse, or all budgets are kept; always for --history
  2  bad flags or files
  3  a shown cell is worse, or a budget is broken
  4  no cell or a budget could not be decided, or all trials of a case failed in B

` + inputs

const compareExample = `  cnibench compare old.jsonl new.jsonl \
    --fail-on 'rr.p99 > +5%' --fail-on 'stream.goodput < 900Mbit/s'
  cnibench compare --history old.jsonl result.jsonl new.jsonl`

// comparison is one invocation of compare.
type comparison struct {
	*program
	format  string
	metrics []string
	only    []string
	failOn  []string
	mapped  []string
	history bool
	margin  float64
	// filters, budgets and names are the parsed values of only, failOn and mapped.
	filters []compare.Filter
	budgets []compare.Budget
	names   map[plan.Variant]plan.Variant
}

func compareCommand(p *program) *cobra.Command {
	a := comparison{program: p, names: map[plan.Variant]plan.Variant{}}
	cmd := &cobra.Command{
		Use:     "compare A B",
		Short:   "Set two result files side by side, or follow many through time",
		Long:    compareLong,
		Example: compareExample,
		Args: func(cmd *cobra.Command, files []string) error {
			switch {
			case a.history && len(files) < 2:
				return commandUsageError(cmd, fmt.Errorf("a history needs two result files or more, and there are %d", len(files)))
			case !a.history && len(files) != 2:
				return commandUsageError(cmd, fmt.Errorf("want two result files, and there are %d (--history takes more)", len(files)))
			}
			return nil
		},
		RunE: a.run,
	}
	f := cmd.Flags()
	declareFormatFlag(cmd, &a.format, documentNames)
	f.StringSliceVar(&a.metrics, "metrics", nil, "metrics to show instead of the headline ones (cnibench list metrics)")
	f.StringArrayVar(&a.only, "only", nil, "show and judge only the cells of this `filter`, such as 'profile=canal path=pod-to-pod/*' (may be repeated: any of them)")
	f.StringArrayVar(&a.failOn, "fail-on", nil, "`budget` that B must keep, such as 'rr.p99 > +5%' (may be repeated: all of them)")
	f.StringArrayVar(&a.mapped, "map", nil, "compare profile x of A with y of B: `x=y`, separated by commas")
	f.BoolVarP(&a.history, "history", "H", false, "follow the cells of all files through time")
	declareMarginFlag(cmd, &a.margin)
	completeFlag(cmd, "metrics", metric.Names)
	return cmd
}

// parseFlags checks and parses the flags. Its error lists all faults.
func (a *comparison) parseFlags(cmd *cobra.Command) error {
	var errs []error
	fault := func(flag string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", flag, err))
		}
	}
	for _, name := range a.metrics {
		if _, ok := metric.Lookup(name); !ok {
			fault("metrics", fmt.Errorf("unknown metric %q%s (cnibench list metrics)", name, advice.DidYouMean(name, metric.Names())))
		}
	}
	for _, s := range a.only {
		f, err := compare.ParseFilter(s)
		fault("only", err)
		a.filters = append(a.filters, f)
	}
	for _, s := range a.failOn {
		b, err := compare.ParseBudget(s)
		fault("fail-on", err)
		a.budgets = append(a.budgets, b)
	}
	for _, s := range slices.Concat(each.Of(a.mapped, func(s string) []string { return pattern.SplitOutside(s, ',') })...) {
		from, to, ok := pattern.CutOutside(s, '=')
		if !ok || from == "" || to == "" {
			fault("map", fmt.Errorf("%q: want x=y, a profile of A and one of B", s))
		}
		if !a.names[plan.VariantOf(from)].IsZero() {
			fault("map", fmt.Errorf("%q: profile %s is mapped twice", s, from))
		}
		a.names[plan.VariantOf(from)] = plan.VariantOf(to)
	}
	if a.history && len(a.failOn)+len(a.mapped) > 0 {
		fault("history", errors.New("--fail-on and --map are for two files"))
	}
	return advice.With(errors.Join(errs...), "see "+cmd.CommandPath()+" --help")
}

// readSide reads and analyses one result file. If margin is 0, it uses the margin of the file's plan.
func (p *program) readSide(name string, margin float64) (compare.Side, error) {
	s, err := p.openResult(name)
	if err != nil {
		return compare.Side{}, err
	}
	var in compare.Collector
	if err := p.forEachRecord(s, false, in.Add); err != nil {
		return compare.Side{}, err
	}
	a, err := in.Analyse(s.Header, compare.Options{Margin: margin})
	if err != nil {
		return compare.Side{}, fmt.Errorf("result file %q: %w", displayName(name), err)
	}
	return compare.Side{Name: displayName(name), Header: s.Header, Analysis: a}, nil
}

// showsMetric reports whether the metric called name is shown: if --metrics lists it, or without that flag if it is a
// headline metric.
func (a *comparison) showsMetric(name string) bool {
	if a.metrics == nil {
		m, _ := metric.Lookup(name)
		return m.Headline
	}
	return slices.Contains(a.metrics, name)
}

// run compares two result files, or with --history prints how each cell changes over all files. It fails for bad flags
// or files, and if the verdicts have an exit code other than 0.
func (a *comparison) run(cmd *cobra.Command, files []string) error {
	if err := a.parseFlags(cmd); err != nil {
		return usageError(err)
	}
	sides, err := readAll(files, func(name string) (compare.Side, error) { return a.readSide(name, a.margin) })
	switch {
	case err != nil:
		return usageError(err)
	case a.history:
		return a.printHistory(sides)
	}
	pair, err := compare.NewPair(sides[0], sides[1], a.names)
	if err != nil {
		return usageError(err)
	}
	held, kept, err := judgeBudgets(pair, a.budgets, a.filters)
	if err != nil {
		return usageError(err)
	}
	shown := pair.Only(func(k compare.Key) bool {
		return compare.Chosen(a.filters, k) && (k.Metric == "" || a.showsMetric(k.Metric))
	})
	if len(shown.Matches) == 0 && len(held) == 0 {
		return usageError(advice.With(fmt.Errorf("no cell that %s and %s share is chosen", files[0], files[1]), "leave out --only or --metrics to see all that there are"))
	}
	state := shown.Judge()
	if len(held) > 0 {
		state = kept
	}
	if err := a.writeDocument(a.format, report.BuildPair(report.PairResult{Pair: shown, Held: held, State: state})); err != nil {
		return err
	}
	return stateError(state)
}

// judgeBudgets applies each budget to the cells that the filters choose; without filters, to all cells. It returns the
// result of each budget and the state of all together. It fails if a budget matches no cell, since it would always be kept.
func judgeBudgets(pair *compare.Pair, budgets []compare.Budget, chosen []compare.Filter) ([]report.Held, compare.State, error) {
	var held []report.Held
	var errs []error
	all := pair.Hold(budgets, func(k compare.Key) bool { return compare.Chosen(chosen, k) })
	for i, b := range budgets {
		if len(all[i]) == 0 {
			errs = append(errs, fmt.Errorf("--fail-on: %q reaches no cell that the two results share", b.Text))
		}
		held = append(held, report.Held{Budget: b, Holdings: all[i]})
	}
	advised := advice.With(errors.Join(errs...), "cnibench compare without it shows the cells that there are; --metrics shows more")
	return held, compare.Outcome(slices.Concat(all...)), advised
}

// printHistory prints how each cell changes over the files.
func (a *comparison) printHistory(sides []compare.Side) error {
	h := compare.Historian{Metrics: a.metrics, Filters: a.filters}
	for _, s := range sides {
		h.Add(s)
	}
	out, err := h.History()
	if err != nil {
		return usageError(err)
	}
	return a.writeDocument(a.format, report.BuildHistory(out))
}
