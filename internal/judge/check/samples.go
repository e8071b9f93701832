package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/outcome"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/finding"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// sampleRules check how often something was measured, and the warnings of the trials.
var sampleRules = []rule{
	{id: "few-repetitions", find: findFewRepetitions},
	{id: "spread", find: findWideIntervals},
	{id: "copied", find: findCopiedValues},
	{id: "flows-slower", beside: flowsSlower},
	{id: "failed-trials", find: findFailedTrials},
	{id: "trial-warnings", find: findTrialWarnings},
}

func findFewRepetitions(v *View, found *list) {
	if n, err := strconv.Atoi(v.facts["repetitions"]); err == nil && v.imported() {
		// The source has a count; its rows may be summaries, one for each case.
		if n < stat.MinRepetitions {
			found.add("repetitions", "%d stated", n)
		}
		return
	}
	short := map[int][]string{} // cases by how often they were measured
	measured, few := 0, 0
	for _, t := range v.cases {
		n := t.trials - t.failed
		if n > 0 {
			measured++
		}
		if n > 0 && n < stat.MinRepetitions {
			few++
			short[n] = append(short[n], t.Case.Key())
		}
	}
	for _, n := range slices.Sorted(maps.Keys(short)) {
		times := fmt.Sprintf("%d times", n)
		if n == 1 {
			times = "once"
		}
		f := found.add(describeCases(short[n], len(v.cases)), "measured %s", times)
		if !v.imported() && 2*few < measured {
			f.Severity = finding.Note // a few cells of our own run lost trials, and its reports make no claims about them
		}
	}
}

// describeCases lists the names of cases. It returns only their number if they are more than 4, or all cases.
func describeCases(names []string, all int) string {
	switch {
	case len(names) == all && all > 1:
		return fmt.Sprintf("all %d cases", all)
	case len(names) > 4:
		return fmt.Sprintf("%d of %d cases", len(names), all)
	}
	return strings.Join(names, "; ")
}

func findWideIntervals(v *View, found *list) {
	var tables groups[Key, *Cell] // by workload and metric
	for _, c := range v.cells {
		if m, ok := metric.Lookup(c.Metric); ok && m.Headline && c.N >= stat.MinRepetitions {
			tables.add(Key{Case: plan.Case{Workload: c.Workload}, Metric: c.Metric}, c)
		}
	}
	for at, cells := range tables.all() {
		all := len(cells)
		cells = slices.DeleteFunc(cells, func(c *Cell) bool { return !c.Wide() })
		if len(cells) > 0 {
			widest := slices.MaxFunc(cells, func(c, d *Cell) int { return cmp.Compare(c.HalfWidth(), d.HalfWidth()) })
			found.add(at.Workload.String()+": "+at.Metric, "%d of %s, the widest %s %s ±%.0f%%", len(cells), number.Counted(all, "cell"),
				widest.Profile, widest.Path, 100*widest.HalfWidth())
		}
	}
}

// significantDigits counts the significant digits of a value, without the last places that a conversion of units disturbs.
func significantDigits(x float64) int {
	mantissa, _, _ := strings.Cut(strconv.FormatFloat(x, 'e', 9, 64), "e")
	return len(strings.TrimRight(strings.Replace(mantissa, ".", "", 1), "0"))
}

// formatExactly formats a value with all its digits.
func formatExactly(k Key, x float64) string {
	s := number.Common(metric.UnitFor(k.Metric, k.Workload.Traits().Work), x)
	return strconv.FormatFloat(x/s.Size, 'g', significantDigits(x), 64) + " " + s.Unit
}

// Numbers of significant digits.
const (
	// A value that several profiles share counts as copied if it has at least sureDigits digits. With at least
	// someDigits it is only doubtful.
	sureDigits = 5
	someDigits = 3
	// allDigits is the most that significantDigits counts.
	allDigits = 10
)

func findCopiedValues(v *View, found *list) {
	type row struct {
		Key
		value float64
	}
	var same groups[row, string]
	for _, c := range v.cells {
		if c.N == 1 && significantDigits(c.Median) >= someDigits && !slices.Contains(counts, c.Metric) {
			at := row{c.Key, c.Median}
			at.Profile = plan.Variant{}
			same.add(at, c.Profile.String())
		}
	}
	for at, names := range same.all() {
		if len(names) < 3 {
			continue
		}
		f := found.add(fmt.Sprintf("%s %s: %s", at.Path, at.Workload, at.Metric), "%s for each of %s",
			formatExactly(at.Key, at.value), strings.Join(names, ", "))
		if significantDigits(at.value) < sureDigits {
			f.Severity = finding.Doubtful
		}
	}
	findRepeatedValues(v, found)
}

// findRepeatedValues adds one finding for all cases in which two trials have the same value of a quotient, in all digits.
func findRepeatedValues(v *View, found *list) {
	var twice []string
	for _, c := range v.cells {
		if !slices.Contains(quotients, c.Metric) {
			continue
		}
		values := each.Where(c.Values(), func(x float64) bool { return significantDigits(x) >= allDigits })
		if name := c.Case.Key(); len(each.Once(values)) < len(values) && !slices.Contains(twice, name) {
			twice = append(twice, name)
		}
	}
	if len(twice) > 0 {
		found.add(describeCases(twice, len(v.cases)), "trials have one value in all of its digits")
	}
}

// quotients are metrics that are computed from a time in ns, so that two trials do not have the same value in all digits.
var quotients = []string{metric.ServiceDemand, metric.TransactionRate, metric.RequestRate, metric.Goodput}

// counts are metrics that are settings, whole numbers or shares of a few ticks, so that equal values are normal.
var counts = []string{metric.CPUUtilization, metric.SoftIRQShare, metric.Window, metric.Datagrams, metric.DatagramsLost, metric.Retransmits, metric.Requests, metric.Transferred}

func findFailedTrials(v *View, found *list) {
	var by groups[string, string] // cases by their reason
	for _, t := range v.cases {
		if t.failed > 0 {
			by.add(t.failure, fmt.Sprintf("%s (%d of %d)", t.Case.Key(), t.failed, t.trials))
		}
	}
	for why, cases := range by.all() {
		found.add(describeCases(cases, len(v.cases)), "%s", cmp.Or(why, "no reason is given"))
	}
}

// grave are warnings that make a number doubtful if most of its trials have them. Other warnings only describe.
var grave = []string{outcome.AboveLineRate, outcome.Disagree, outcome.OfferedLoad, outcome.Congestion, outcome.Errors, outcome.WindowSkew}

func findTrialWarnings(v *View, found *list) {
	type sum struct {
		trials, of, cases int
		most              bool
		first             string
	}
	sums := map[string]*sum{}
	for _, t := range v.cases {
		for id, r := range t.warnings {
			if sums[id] == nil {
				sums[id] = &sum{}
			}
			s := sums[id]
			if what := t.Case.Key() + ": " + r.first; s.first == "" || what < s.first {
				s.first = what
			}
			s.cases++
			s.trials += r.times
			s.of += t.trials - t.failed
			s.most = s.most || r.times >= stat.MinRepetitions && 2*r.times > t.trials-t.failed
		}
	}
	for _, id := range slices.Sorted(maps.Keys(sums)) {
		s := sums[id]
		cases := fmt.Sprintf("%d cases, such as", s.cases)
		if s.cases == 1 {
			cases = "one case,"
		}
		f := found.add(id, "%d of %s of %s %s", s.trials, number.Counted(s.of, "trial"), cases, s.first)
		if s.most && slices.Contains(grave, id) {
			f.Severity = finding.Doubtful
		}
	}
}
