package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/measure/outcome"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Conclusion describes one row of a table: which profile is best, which profiles do not differ from it, which is next
// and which is worst, by how much.
type Conclusion struct {
	Path plan.Path
	// Label and Short are the names of the path, as in the table's row.
	Label, Short string
	Text         string
	// Brief names only the best and the worst profile, for narrow places; "" if no profile is worse than the best.
	Brief string
	// Alone is true if the row ranks a single profile. Text then compares the profile with the baseline.
	Alone bool
	// Claims are the differences that Text states. Each has the verdict better or worse.
	Claims []compare.Comparison
	// Ties are the comparisons of profiles that Text calls the same or not significantly different.
	Ties []compare.Comparison
}

// tableConclusions returns the conclusions of the rows that have values; nil for a metric without a better direction.
func (b *builder) tableConclusions(t compare.Table, scale number.Scale) []Conclusion {
	if m, _ := metric.Lookup(t.Metric); m.Better == metric.Neither {
		return nil
	}
	var out []Conclusion
	for _, p := range t.Paths {
		c := b.rowConclusion(b.rankDataplanes(p, t.Workload, t.Metric), scale)
		if c.Text == "" {
			continue
		}
		c.Path, c.Label, c.Short = p, p.String(), shortPath(p)
		out = append(out, c)
	}
	return out
}

// rankDataplanes ranks the dataplanes of a row, best first. It leaves out raw and host, which a reader cannot choose. In
// a row without dataplanes it ranks all profiles.
func (b *builder) rankDataplanes(p plan.Path, w plan.Workload, name string) []compare.Standing {
	if ranks := b.rankProfiles(p, w, name, isDataplane); len(ranks) > 0 {
		return ranks
	}
	return b.analysis.Rank(p, w, name)
}

// rankProfiles ranks the profiles of a row for which keep returns true, best first.
func (b *builder) rankProfiles(p plan.Path, w plan.Workload, name string, keep func(plan.Variant) bool) []compare.Standing {
	among := *b.analysis // the same analysis with fewer profiles
	among.Profiles = each.Where(among.Profiles, keep)
	return among.Rank(p, w, name)
}

// isWorse reports whether a profile is worse than the best of its row.
func isWorse(x compare.Standing) bool { return x.ToBest.Verdict == compare.Worse }

// sentence collects the parts of a Conclusion's Text.
type sentence struct {
	ranks []compare.Standing
	scale number.Scale
	// margin is the largest relative difference that counts as the same.
	margin float64
	parts  []string
	// valued is true once a value with its unit was written.
	valued bool
	Conclusion
}

// rowConclusion returns the conclusion of a row; ranks are its profiles, best first. Without profiles the conclusion is empty.
// The caller sets the path and its labels.
func (b *builder) rowConclusion(ranks []compare.Standing, scale number.Scale) Conclusion {
	s := &sentence{ranks: ranks, scale: scale, margin: b.analysis.Margin}
	switch {
	case len(ranks) == 0:
		return s.Conclusion
	case areBounds(ranks):
		s.sayBounds()
	case len(ranks) == 1:
		b.sayAlone(s)
	case !slices.ContainsFunc(ranks, isWorse):
		s.sayNoDifference()
	default:
		s.sayBest()
		tail := s.tailIndex()
		if x, ok := each.First(ranks[:tail], isWorse); ok { // the first that differs from the best, unless it is among the last
			s.say("next is %s%s", s.valueText(x), s.addClaim(x.ToBest))
		}
		s.sayWorst(tail)
		b.sayGroups(s, tail)
		s.setBrief(tail)
	}
	if left := b.unrankedNames(ranks); len(left) > 0 {
		s.say("not ranked: %s", joinNames(left))
	}
	s.Text = strings.Join(s.parts, "; ") + "."
	return s.Conclusion
}

// areBounds reports whether at least half of the values are CPU times that lack softirq work. Such values are lower
// bounds. Their order says nothing, because the missing part differs by profile.
func areBounds(ranks []compare.Standing) bool {
	n := len(each.Where(ranks, func(x compare.Standing) bool {
		return x.Cell.Metric == metric.ServiceDemand && raisedOften(x.Cell, outcome.IdleSoftIRQ)
	}))
	return n > 0 && 2*n >= len(ranks)
}

// sayBounds adds the text for a row of lower bounds: the least and the largest.
func (s *sentence) sayBounds() {
	first, last := s.ranks[0], s.ranks[len(s.ranks)-1]
	if len(s.ranks) == 1 {
		s.Alone = true
		s.say("%s is a lower bound (%s)", s.valueText(first), outcome.IdleSoftIRQ)
		return
	}
	s.say("lower bounds (%s), which say nothing about the order: %s to %s", outcome.IdleSoftIRQ, s.valueText(first), s.valueText(last))
}

// unrankedNames returns the names of the dataplanes of a row that have no rank, each with the reason in brackets. A
// dataplane has no rank if too much failed, or if its new pods were attached in another way than those of the best.
func (b *builder) unrankedNames(ranks []compare.Standing) []string {
	var out []string
	for _, p := range b.analysis.Profiles {
		k := ranks[0].Cell.Key
		k.Profile = p
		switch c, ok := b.analysis.Cell(k); {
		case !ok || !isDataplane(p):
		case c.Failing():
			out = append(out, fmt.Sprintf("%s (%s)", number.Clean(p.String()), failureText(c)))
		case c.N > 0 && c.Unlike(&ranks[0].Cell):
			how := "attached "
			if c.Attached == sample.AttachedUnknown {
				how = "attachment "
			}
			out = append(out, fmt.Sprintf("%s (%s)", number.Clean(p.String()), how+c.Attached))
		}
	}
	return out
}

// failureText describes what failed in a cell: "6 of 10 trials failed", or the share of failed work.
func failureText(c compare.Cell) string {
	if c.Failed <= c.N && c.Failing() {
		return number.Percent(c.Lost) + " of its work failed"
	}
	return fmt.Sprintf("%d of %s failed", c.Failed, number.Counted(c.Failed+c.N, "trial"))
}

func (s *sentence) say(format string, args ...any) {
	s.parts = append(s.parts, fmt.Sprintf(format, args...))
}

// valueText returns a profile's name and median. Only the first value of a sentence has its unit.
func (s *sentence) valueText(x compare.Standing) string {
	value := cellValue(x.Cell, s.scale)
	if !s.valued {
		s.valued = true
		value += " " + s.scale.Unit
	}
	if x.Cell.Failed > 0 {
		value += ", " + failureText(x.Cell)
	}
	return fmt.Sprintf("%s (%s)", number.Clean(x.Cell.Profile.String()), value)
}

// addClaim adds a difference to Claims. It returns the size of the difference as text: ", 1.95x (1.78x to 2.01x)". The
// text is "" if the difference has no ratio, for example if the best value is 0.
func (s *sentence) addClaim(x compare.Comparison) string {
	s.Claims = append(s.Claims, x)
	if math.IsNaN(x.Ratio) {
		return ""
	}
	return ", " + ratioText(x)
}

// ratioText returns a ratio with its interval.
func ratioText(x compare.Comparison) string {
	return number.Range(x.Ratio, x.Low, x.High)
}

// sayAlone adds the text for the only profile of a row: how it compares with the baseline.
func (b *builder) sayAlone(s *sentence) {
	c := s.ranks[0].Cell
	s.Alone = true
	what := "profile"
	if isDataplane(c.Profile) {
		what = "dataplane"
	}
	s.say("%s is the only %s measured", s.valueText(s.ranks[0]), what)
	x, ok := each.First(b.analysis.Comparisons, func(x compare.Comparison) bool { return x.Key == c.Key })
	if !ok {
		return
	}
	other := number.Clean(x.Baseline.String())
	if x.BaselinePath != (plan.Path{}) {
		other += " " + x.BaselinePath.String()
	}
	switch x.Verdict {
	case compare.Better, compare.Worse:
		if size := s.addClaim(x); size != "" {
			s.say("%s of %s", strings.TrimPrefix(size, ", "), other)
		} else {
			s.say("%s than %s", x.Verdict, other)
		}
	case compare.Same:
		s.Ties = append(s.Ties, x)
		s.say("the same as %s%s", other, marginText(x, s.margin))
	case compare.Inconclusive:
		s.Ties = append(s.Ties, x)
		s.say("no significant difference from %s%s", other, decidingNote([]compare.Comparison{x}))
	}
}

// marginText returns the margin within which the values of x count as the same. It returns "" if x has no ratio.
func marginText(x compare.Comparison, margin float64) string {
	if math.IsNaN(x.Ratio) {
		return ""
	}
	return " within the margin of " + number.Percent(margin)
}

// sayNoDifference adds the text for a row in which no profile is worse than the best.
func (s *sentence) sayNoDifference() {
	s.Ties = comparisonsToBest(s.ranks[1:])
	open := each.Where(s.Ties, func(x compare.Comparison) bool { return x.Verdict != compare.Same })
	first, last := s.ranks[0], s.ranks[len(s.ranks)-1]
	between := s.valueText(first) + " to " + s.valueText(last)
	if len(open) == 0 {
		s.say("all are the same%s: %s", marginText(s.Ties[0], s.margin), between)
		return
	}
	s.say("no significant differences: %s%s", between, decidingNote(open))
}

// sayBest adds the best profile, and the profiles that do not differ from it.
func (s *sentence) sayBest() {
	others := comparisonsToBest(s.ranks[1:])
	same, open := comparisonsWithVerdict(others, compare.Same), comparisonsWithVerdict(others, compare.Inconclusive)
	s.Ties = append(append(s.Ties, same...), open...)
	what := s.valueText(s.ranks[0]) + " " + leadVerb(len(open), len(same))
	if len(same) > 0 {
		what += fmt.Sprintf(", the same as %s%s", joinNames(profileNames(same)), marginText(same[0], s.margin))
	}
	if len(open) > 0 {
		what += ", not significantly better than " + joinNames(profileNames(open)) + decidingNote(open)
	}
	s.say("%s", what)
}

// leadVerb returns the verb for the best profile of a row. open counts the others that do not differ significantly from it.
// same counts those that are proven to be the same.
func leadVerb(open, same int) string {
	switch {
	case open > 0:
		return "leads"
	case same > 0:
		return "is best among equals"
	}
	return "is best"
}

// setBrief sets Brief: the best profile, then the worst. If no profile is worst (see tailIndex), it names the first
// profile that is worse than the best.
func (s *sentence) setBrief(tail int) {
	others := s.ranks[1:]
	worse, same := each.Where(others, isWorse), len(comparisonsWithVerdict(comparisonsToBest(others), compare.Same))
	open := len(others) - len(worse) - same
	s.Brief = number.Clean(s.ranks[0].Cell.Profile.String()) + " " + leadVerb(open, same)
	var near []string
	if same > 0 {
		near = append(near, fmt.Sprintf("%d the same", same))
	}
	if open > 0 {
		near = append(near, fmt.Sprintf("%d not significantly different", open))
	}
	if len(near) > 0 {
		s.Brief += " (" + strings.Join(near, ", ") + ")"
	}
	if c := s.ranks[0].Cell; c.Failed > 0 {
		s.Brief += " (" + failureText(c) + ")"
	}
	x, what := worse[0], "worse"
	if tail < len(s.ranks) {
		x, what = worse[len(worse)-1], "worst"
	}
	s.Brief += fmt.Sprintf("; %s is %s", number.Clean(x.Cell.Profile.String()), what)
	if !math.IsNaN(x.ToBest.Ratio) {
		s.Brief += ", " + ratioText(x.ToBest)
	}
	s.Brief += "."
}

// tailIndex returns the index of the first profile that is worse than the best but not better than the last. It returns
// the length of ranks if the last is not worse than the best: then no profile is worst.
func (s *sentence) tailIndex() int {
	n := len(s.ranks)
	if s.ranks[n-1].ToBest.Verdict != compare.Worse {
		return n
	}
	for i := range n - 1 {
		if s.ranks[i].ToBest.Verdict == compare.Worse && s.ranks[i].ToLast.Verdict != compare.Better {
			return i
		}
	}
	return n - 1
}

// sayWorst adds the worst profile and the profiles that do not differ from it, unless no profile is worst.
func (s *sentence) sayWorst(tail int) {
	n := len(s.ranks)
	if tail == n {
		return
	}
	last := s.ranks[n-1]
	what := s.valueText(last) + " is worst" + s.addClaim(last.ToBest)
	others := each.Of(s.ranks[:n-1], func(x compare.Standing) compare.Comparison { return x.ToLast })
	same := comparisonsWithVerdict(others, compare.Same)
	near := each.Where(others, func(x compare.Comparison) bool { return x.Verdict != compare.Same && x.Verdict != compare.Better })
	if len(same) > 0 {
		what += ", the same as " + joinNames(profileNames(same))
	}
	if len(near) > 0 {
		what += ", not significantly worse than " + joinNames(profileNames(near))
	}
	s.Ties = slices.Concat(s.Ties, same, near)
	s.say("%s", what)
}

// mostInGroups is the largest number of profiles that sayGroups compares pair by pair.
const mostInGroups = 16

// sayGroups adds groups of profiles that do not differ from each other. It considers the profiles that are worse than
// the best and better than the worst.
func (b *builder) sayGroups(s *sentence, tail int) {
	between := each.Where(s.ranks[:tail], isWorse)
	if len(between) > mostInGroups {
		return
	}
	for _, g := range b.analysis.Groups(between) {
		if len(g) > 1 {
			names := each.Of(g, func(x compare.Standing) string { return number.Clean(x.Cell.Profile.String()) })
			s.say("%s do not differ significantly", joinNames(names))
		}
	}
}

// comparisonsToBest returns the comparison of each profile with the best.
func comparisonsToBest(xs []compare.Standing) []compare.Comparison {
	return each.Of(xs, func(x compare.Standing) compare.Comparison { return x.ToBest })
}

// comparisonsWithVerdict returns the comparisons whose verdict is v.
func comparisonsWithVerdict(xs []compare.Comparison, v compare.Verdict) []compare.Comparison {
	return each.Where(xs, func(x compare.Comparison) bool { return x.Verdict == v })
}

func profileNames(xs []compare.Comparison) []string {
	return each.Of(xs, func(x compare.Comparison) string { return number.Clean(x.Profile.String()) })
}

// joinNames writes "a, b and c".
func joinNames(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// decidingNote returns the text of decidingRepetitions in brackets: " (3 more repetitions would decide)". It returns ""
// if no comparison is inconclusive.
func decidingNote(xs []compare.Comparison) string {
	if text, _ := decidingRepetitions(xs); text != "" {
		return " (" + text + ")"
	}
	return ""
}

// mostRepetitions is the number of further repetitions above which advice is useless.
const mostRepetitions = 1000

// decidingRepetitions describes how many more repetitions would decide the inconclusive comparisons among xs, or most of
// them. run is the total number of repetitions for that; 0 if more than mostRepetitions are missing. text is "" if no
// comparison is inconclusive.
func decidingRepetitions(xs []compare.Comparison) (text string, run int) {
	open := slices.DeleteFunc(slices.Clone(xs), func(x compare.Comparison) bool { return x.Verdict != compare.Inconclusive || x.Need <= 0 })
	if len(open) == 0 {
		return "", 0
	}
	slices.SortFunc(open, func(x, y compare.Comparison) int { return cmp.Compare(x.Trials+x.Need, y.Trials+y.Need) })
	x := open[len(open)/2]
	text = moreRepetitionsText(x.Need) + " would decide"
	if last := open[len(open)-1]; last.Trials+last.Need > x.Trials+x.Need {
		text += " most"
	}
	if x.Need <= mostRepetitions {
		run = x.Trials + x.Need
	}
	return text, run
}

// moreRepetitionsText formats "1 more repetition", "3 more repetitions", "over 1000 more repetitions".
func moreRepetitionsText(n int) string {
	if n > mostRepetitions {
		return "over " + number.Counted(mostRepetitions, "more repetition")
	}
	return number.Counted(n, "more repetition")
}
