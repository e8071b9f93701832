package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/mesh"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// quietScatter and busyScatter are the relative differences between instances of the same profile, on an idle and on a
// busy machine. "make aa" measured them on CPU time and rates of rr and crr (docs/results/aa.md).
const quietScatter, busyScatter = 0.02, 0.05

// printPreview prints what a run would measure and how long it would take. The numbers are upper bounds: only a raised
// profile shows which paths it does not serve.
func (a *measurement) printPreview(cmd *cobra.Command) error {
	want, there, err := a.wantedPlan(cmd)
	if err != nil {
		return err
	}
	cases := want.Trials(len(want.Cases()))
	want = want.Fit(cases)
	if err := writeMatrix(a.stdout, want); err != nil {
		return err
	}
	if a.verbose {
		fmt.Fprintln(a.stdout, "\nfirst repetition:")
		for _, c := range want.Order(1) {
			fmt.Fprintln(a.stdout, c.Key())
		}
	}
	for _, n := range append(there, a.planNotes(want, cases)...) {
		fmt.Fprintf(a.stderr, "cnibench: %s\n", n)
	}
	return nil
}

// wantedPlan returns the plan of a run. With --resume it takes the plan from the result file. Then it also returns a
// note with the number of trials in that file.
func (a *measurement) wantedPlan(cmd *cobra.Command) (want plan.Plan, there []string, err error) {
	if !a.resume {
		if want, err = a.plan.buildPlan(cmd); err == nil {
			err = a.readBudgets(cmd, want)
		}
		return want, nil, err
	}
	c, err := result.Load(a.output)
	if err != nil {
		return want, nil, usageError(err)
	}
	if want, _, err = a.resumedPlan(cmd, c.Header); err != nil {
		return want, nil, err
	}
	n := 0
	for _, r := range c.Records {
		if r.Type == result.TypeTrial {
			n++
		}
	}
	return want, []string{fmt.Sprintf("%s has %s already", a.output, number.Counted(n, "trial"))}, nil
}

// planNotes returns remarks on a plan that its author may want to act on. cases is the number of trials in a repetition.
func (a *measurement) planNotes(want plan.Plan, cases int) []string {
	notes := append(slices.Clip(a.plan.left), want.Notes(cases)...)
	switch n := max(want.Repetitions, want.MaxRepetitions); {
	case n < 2:
		notes = append(notes, fmt.Sprintf("--repetitions %d decides no comparison: use %d or more", n, stat.MinRepetitions))
	case n < stat.MinRepetitions:
		notes = append(notes, fmt.Sprintf("--repetitions %d: comparisons of so few assume that values scatter log-normally; use %d or more", n, stat.MinRepetitions))
	}
	return notes
}

func writeMatrix(out io.Writer, p plan.Plan) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name string, items ...string) {
		for i, item := range items {
			if i > 0 {
				name = ""
			}
			fmt.Fprintf(w, "%s\t%s\n", name, item)
		}
	}
	profiles, cases := p.Measured(), len(p.Cases())
	if p.Name != "" {
		row("plan", p.Name)
	}
	row("environment", p.Environment)
	row("profiles", strings.Join(plan.Texts(profiles), ", "))
	row("baseline", p.Baseline.String())
	row("paths", plan.Texts(p.Paths)...)
	row("workloads", plan.Texts(p.Workloads)...)
	row("cases", fmt.Sprintf("%d on %s under %s", cases, number.Counted(len(p.Paths), "path"), number.Counted(len(p.Workloads), "workload")))
	trials, of := p.Repetitions*cases, ""
	if p.Pairs.Given() {
		row("pairs", p.Pairs.Which+map[bool]string{true: " of the nodes that the cluster has"}[p.OnCluster()])
		if pairs := p.Pairs.Schedule(mesh.LabNodes(p.Lab.Nodes), p.Seed).Len(); !p.OnCluster() {
			trials, of = trials*pairs, fmt.Sprintf(" x %s", number.Counted(pairs, "pair"))
		}
	}
	row("trials", fmt.Sprintf("%s x %s%s = %d", number.Counted(p.Repetitions, "repetition"), number.Counted(cases, "case"), of, trials))
	if !p.OnCluster() {
		row("instances", fmt.Sprintf("%d of each profile, raised anew after every %s", p.Instances(), number.Counted(p.Block(), "repetition")))
	}
	if p.Precision > 0 {
		row("precision", fmt.Sprintf("%s, with at most %s", number.Percent(p.Precision), number.Counted(p.MaxRepetitions, "repetition")))
	}
	if n := max(p.Instances(), 1); n > 1 && !p.OnCluster() {
		row("visible", fmt.Sprintf("differences of %s on a quiet machine, of %s on a busy one (where values scatter by %s and %s)",
			number.Percent(stat.Detectable(quietScatter, n, 0.95)), number.Percent(stat.Detectable(busyScatter, n, 0.95)),
			number.Percent(quietScatter), number.Percent(busyScatter)))
	}
	row("window", fmt.Sprintf("%s after %s of warm-up", p.Duration, p.Warmup))
	if n := float64(p.Lab.Memory(profiles)); n >= 100e6 && !p.OnCluster() {
		row("memory", "about "+number.WithUnit("B", n)+" for Services, policies and connections")
	}
	row("time", describeTime(p.Expected(p.Trials(cases)).Round(time.Second), p.Budget))
	row("seed", fmt.Sprint(p.Seed))
	return w.Flush()
}

// describeTime describes how long a run takes: about expected, at most its budget. With a budget of 0 there is no limit.
func describeTime(expected, budget time.Duration) string {
	switch {
	case budget <= 0:
		return "about " + expected.String()
	case expected > budget:
		return fmt.Sprintf("%s, the budget; all repetitions need about %s", budget, expected)
	}
	return fmt.Sprintf("about %s, at most %s", expected, budget)
}
