package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Need is a purpose of a network, such as bulk transfer, with the ranking of the profiles for it. The ranking is on one
// path, under one workload, by one metric.
type Need struct {
	// Name is the name of the need: "Bulk transfer".
	Name     string
	Workload plan.Workload
	Path     plan.Path
	Metric   metric.Metric
	// Standings are best first; there is at least one.
	Standings []compare.Standing
	// Pick is the index in Standings of the best dataplane. Raw and host are not dataplanes: a reader cannot choose
	// them. Pick is 0 if there are no dataplanes.
	Pick int
	// Choice ranks only the dataplanes, or all profiles if there is no dataplane.
	Choice []compare.Standing
	// Near lists the other dataplanes that do not differ significantly from the pick.
	Near []string
	// Best has the best dataplane with NetworkPolicy, then the best with encryption. It is nil without dataplanes, and if
	// Bounds is true.
	Best []Best
	// Conclusion is about the profiles in Choice.
	Conclusion Conclusion
	// Certainty describes the basis of the conclusion: repetitions, confidence, instances.
	Certainty string
	// Under compares the pick with the best bare network; "" if a dataplane is best.
	Under string
	// Bounds is true if the values are lower bounds. Then no profile is best.
	Bounds bool
}

// want is a need that a result may answer.
type want struct {
	name     string
	path     plan.Path
	workload plan.Workload
	// metrics are the metrics that can answer the need, the preferred one first.
	metrics []string
	// or is the metric to use if the values of the first metric are not precise enough; "" means none.
	or string
}

// wellKnown is the half-width of an interval, relative to the median, up to which a percentile is precise enough for an
// answer.
const wellKnown = 0.05

// findNeeds returns the needs that the result answers, in the order of the answer.
func (b *builder) findNeeds() []Need {
	path, ok := b.mainPath()
	if !ok {
		return nil
	}
	var out []Need
	for _, w := range b.wantedNeeds(path) {
		// Lower bounds are only used if nothing else was measured.
		var answer *Need
		for _, m := range metricsByPreference(b.metrics, w.metrics) {
			n, ok := b.rankNeed(w, m)
			if ok && (answer == nil || !n.Bounds) {
				answer = &n
			}
			if ok && !n.Bounds {
				break
			}
		}
		if answer != nil {
			out = append(out, b.preferPreciseNeed(w, *answer))
		}
	}
	return makeNamesUnique(out)
}

// makeNamesUnique makes the names of needs unique. To equal names it adds the options of their workloads if all these
// workloads differ, or else the paths.
func makeNamesUnique(needs []Need) []Need {
	for _, same := range Grouped(slices.Clone(needs), func(n Need) string { return n.Name }) {
		workloads := each.Once(each.Of(same, func(n Need) string { return n.Workload.String() }))
		for i := range needs {
			n := &needs[i]
			switch {
			case len(same) < 2 || n.Name != same[0].Name:
			case len(workloads) == len(same):
				_, options, _ := strings.Cut(strings.TrimSuffix(n.Workload.String(), ")"), "(")
				n.Name += ", " + number.Clean(cmp.Or(options, "no options"))
			default:
				n.Name += ", " + n.Path.String()
			}
		}
	}
	return needs
}

// preferPreciseNeed returns n if its values are precise enough (see wellKnown). Otherwise it returns the ranking by the metric
// w.or if that one is precise enough. If neither is, it returns n.
func (b *builder) preferPreciseNeed(w want, n Need) Need {
	other, ok := metric.Lookup(w.or)
	if !ok || n.halfWidth() <= wellKnown {
		return n
	}
	w.metrics = []string{w.or}
	if known, ok := b.rankNeed(w, other); ok && known.halfWidth() <= wellKnown {
		return known
	}
	return n
}

// halfWidth returns the half-width of an interval relative to the median, for the best or the worst in Choice. It returns
// the larger of the two.
func (n Need) halfWidth() float64 {
	return max(n.Choice[0].Cell.HalfWidth(), n.Choice[len(n.Choice)-1].Cell.HalfWidth())
}

// metricsByPreference returns all metrics: first those in names, in the order of names, then the others.
func metricsByPreference(metrics []metric.Metric, names []string) []metric.Metric {
	return slices.SortedStableFunc(slices.Values(metrics), func(x, y metric.Metric) int {
		// A name outside of names has the index -1, which as an unsigned number is the last.
		return cmp.Compare(uint(slices.Index(names, x.Name)), uint(slices.Index(names, y.Name)))
	})
}

// wantedNeeds returns the needs to look for, in order: each workload on path, a typical workload on the paths of
// plan.Asides, and last tail latency (in the lab) or CPU efficiency (elsewhere). In the lab the CPU time per unit of work
// decides, because it is repeatable on one machine.
func (b *builder) wantedNeeds(path plan.Path) []want {
	var out []want
	all := ownWorkloads(b.analysis.Workloads)
	for _, w := range all {
		// If a load is swept, the closed loop represents its kind.
		if w.Traits().Open() && slices.ContainsFunc(all, func(x plan.Workload) bool { return x.Kind() == w.Kind() && !x.Traits().Open() }) {
			continue
		}
		out = append(out, want{b.titleWithNIC(w.Title(), w), path, w, b.decidingMetrics(w), ""})
	}
	typical := plan.Typical(all)
	for _, s := range plan.Asides {
		for _, p := range s.Paths {
			if p != path && slices.Contains(b.analysis.Paths, p) {
				out = append(out, want{s.Name, p, typical, b.decidingMetrics(typical), ""})
				break
			}
		}
	}
	if b.inLab() {
		if w := plan.FirstOf(all, plan.Traits.Standing); w.Traits().Standing() {
			out = append(out, want{"Tail latency", path, w, []string{"rtt.p99"}, "rtt.p90"})
		}
		return out
	}
	return append(out, want{"CPU efficiency", path, typical, []string{metric.ServiceDemand}, ""})
}

// decidingMetrics returns the metrics that decide for a workload, the preferred one first.
func (b *builder) decidingMetrics(w plan.Workload) []string {
	if is := w.Traits(); b.inLab() && !is.Searches && !is.NewPods() {
		return append([]string{metric.ServiceDemand}, is.Decides...)
	}
	return append(slices.Clone(w.Traits().Decides), metric.ServiceDemand)
}

func (b *builder) inLab() bool {
	return b.header.Origin == "" && b.header.Plan.Environment != "kubernetes"
}

// rankNeed ranks the profiles for the need w by the metric m. It returns false if no profile has a rank. It also returns
// false if w allows a single metric and m is another.
func (b *builder) rankNeed(w want, m metric.Metric) (Need, bool) {
	if len(w.metrics) == 1 && m.Name != w.metrics[0] {
		return Need{}, false
	}
	ranks := b.analysis.Rank(w.path, w.workload, m.Name)
	if len(ranks) == 0 {
		return Need{}, false
	}
	pick := slices.IndexFunc(ranks, func(s compare.Standing) bool { return isDataplane(s.Cell.Profile) })
	n := Need{Name: w.name, Workload: w.workload, Path: w.path, Metric: m, Standings: ranks, Pick: max(0, pick)}
	if n.Name == "" {
		n.Name = number.Clean(string(w.workload.Kind()))
	}
	among := b.rankDataplanes(w.path, w.workload, m.Name)
	n.Choice, n.Bounds = among, areBounds(among)
	if pick >= 0 && !n.Bounds {
		n.Near = profileNames(each.Where(comparisonsToBest(among[1:]), func(x compare.Comparison) bool { return x.Verdict != compare.Worse }))
		n.Best = b.bestByFunction(n)
	}
	n.Conclusion = b.rowConclusion(among, n.Scale())
	n.Conclusion.Path, n.Conclusion.Label, n.Conclusion.Short = n.Path, n.Path.String(), shortPath(n.Path)
	n.Certainty = b.certaintyText(n.Conclusion, among)
	if n.Pick > 0 && !n.Bounds {
		n.Under = b.bareText(ranks[n.Pick].ToBest)
	}
	return n, true
}

// Scale returns a scale that fits the medians of all profiles.
func (n Need) Scale() number.Scale {
	medians := each.Of(n.Standings, func(s compare.Standing) float64 { return s.Cell.Median })
	return number.Common(n.Standings[0].Cell.Unit, medians...)
}

// Card returns the texts of a card. about says what was measured, pick names the best profiles, and value is the value of
// the best profile. lines has the conclusion and what it is based on.
func (n Need) Card() (about, pick, value string, lines []string) {
	first, scale := n.Standings[n.Pick], n.Scale()
	name := number.Clean(first.Cell.Profile.String())
	pick = n.pickText(name)
	about = n.Name + ": " + number.Clean(n.Workload.String()) + ", " + n.Path.String()
	value = fmt.Sprintf("%s %s %s", scale.Format(first.Cell.Median), scale.Unit, n.Metric.Title)
	if pick != name {
		value = name + ": " + value
	}
	lines = slices.Concat([]string{n.Conclusion.Text}, n.functionLines(), []string{n.Under, n.Certainty + "."})
	return about, pick, value, slices.DeleteFunc(lines, func(line string) bool { return line == "" })
}

// pickText returns the name of the pick with the profiles that do not differ from it. If no profile differs, or if the
// values are lower bounds, it returns a text that says so.
func (n Need) pickText(name string) string {
	switch {
	case n.Bounds:
		return "lower bounds"
	case len(n.Near) > 0 && len(n.Conclusion.Claims) == 0:
		return "no significant difference"
	case len(n.Near) == 0:
		return name
	case len(n.Near) == 1:
		return name + " or " + n.Near[0]
	}
	return fmt.Sprintf("%s or %d more", name, len(n.Near))
}

// certaintyText describes the basis of a conclusion: repetitions, the lowest confidence of its statements, and whether
// each profile had one instance only.
func (b *builder) certaintyText(c Conclusion, ranks []compare.Standing) string {
	low, high := ranks[0].Cell.N, ranks[0].Cell.N
	for _, s := range ranks {
		low, high = min(low, s.Cell.N), max(high, s.Cell.N)
	}
	parts := []string{repetitionRangeText(low, high)}
	if all := append(slices.Clone(c.Claims), c.Ties...); len(all) > 0 {
		sure := 1.0
		for _, x := range all {
			sure = min(sure, x.Confidence)
		}
		if sure > 0 {
			parts = append(parts, number.Percent(sure)+" confidence")
		}
		if all[0].Widened > 0 {
			parts = append(parts, "one instance of each")
		}
	}
	return strings.Join(parts, ", ")
}

// bareText describes how the pick compares with the best bare network; x is their comparison.
func (b *builder) bareText(x compare.Comparison) string {
	known, _ := profile.Lookup(x.Baseline.Profile())
	other := x.Baseline.String() + " (" + known.Title + ")"
	switch {
	case x.Verdict == compare.Same:
		return "The same as " + other + marginText(x, b.analysis.Margin) + "."
	case x.Verdict != compare.Worse:
		return "No significant difference from " + other + "."
	case !math.IsNaN(x.Ratio):
		return ratioText(x) + " of " + other + "."
	}
	return "Worse than " + other + "."
}

// isDataplane reports whether v is the dataplane of a CNI, not two bare namespaces or the bare node.
func isDataplane(v plan.Variant) bool {
	return v.Profile() != profile.Raw && v.Profile() != profile.Host
}

// needData is the answer for one need as JSON. It has the dataplanes, best first, and the best with each function.
type needData struct {
	Name     string    `json:"name"`
	Path     plan.Path `json:"path"`
	Workload string    `json:"workload"`
	Metric   string    `json:"metric"`
	// Load describes the load for which the standings have CPU cores; "" if they have none, and their cores are null.
	Load      string         `json:"load,omitempty"`
	Standings []standingData `json:"standings"`
	// Best has the best of all, then the best with each function. It is empty if the values are lower bounds.
	Best []bestData `json:"best"`
}

// bestData is the best profile with a function. With is "" for the best of all. Profile is "" if no profile with the
// function was measured.
type bestData struct {
	With    string       `json:"with"`
	Profile plan.Variant `json:"profile"`
}

// standingData is one profile's rank for a need. Verdict compares the profile with the best, whose own verdict is "".
// Cores is NaN if unknown.
type standingData struct {
	Profile plan.Variant    `json:"profile"`
	Median  float64         `json:"median"`
	Cores   float64         `json:"cores"`
	Verdict compare.Verdict `json:"verdict"`
}

func needOf(n Need) needData {
	load, ok := n.Cores()
	out := needData{Name: n.Name, Path: n.Path, Workload: n.Workload.String(), Metric: n.Metric.Name, Load: load.Text}
	out.Standings = each.Of(n.Choice, func(s compare.Standing) standingData {
		x := standingData{Profile: s.Cell.Profile, Median: s.Cell.Median, Cores: math.NaN(), Verdict: s.ToBest.Verdict}
		if ok {
			x.Cores = load.Cores(s.Cell.Median)
		}
		return x
	})
	if out.Best = []bestData{}; n.Bounds {
		return out
	}
	out.Best = append(out.Best, bestData{"", n.Choice[0].Cell.Profile})
	for _, x := range n.Best {
		b := bestData{With: x.With.Name}
		if len(x.Choice) > 0 {
			b.Profile = x.Choice[0].Cell.Profile
		}
		out.Best = append(out.Best, b)
	}
	return out
}
