// Package findings judges published claims against a result: reproduced, contradicted, inconclusive, or not testable
// here, each with its evidence.
//
// published.yaml has every conclusion of the articles whose experiments the plans under examples/ repeat: the
// source, the cells, the direction and the size. Judge sets each against the cells of an analysis:
//
//	claim ──► the cells that it names ──► effects with intervals ──► outcome, evidence in words
//
// A claim is reproduced when the whole interval lies where the claim says, beyond the noise floor; contradicted when the
// whole interval lies elsewhere; and inconclusive in between. A claim about several cells is reproduced if it is in all
// of them and contradicted if it is in one. Pure: values in, values out.
package findings

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/finding"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Outcome is what a result says about a claim.
type Outcome string

// The four outcomes.
const (
	Reproduced   Outcome = "reproduced"
	Contradicted Outcome = "contradicted"
	Inconclusive Outcome = "inconclusive"
	NotTestable  Outcome = "not testable here"
)

// Outcomes are all outcomes in report order.
var Outcomes = []Outcome{Reproduced, Contradicted, Inconclusive, NotTestable}

// Judged is a claim and its outcome.
type Judged struct {
	Claim
	Outcome Outcome
	// Evidence says what was seen, or why nothing can be said: one sentence for each cell or pair of cells.
	Evidence []string
}

// Findings are the evidence in the form that reports show, at least one: the outcome stands where a severity does.
func (j Judged) Findings() []finding.Finding {
	evidence := j.Evidence
	if j.Note != "" {
		evidence = append(slices.Clip(evidence), "note: "+j.Note)
	}
	if len(evidence) == 0 {
		evidence = []string{"no evidence"}
	}
	var out []finding.Finding
	for _, e := range evidence {
		out = append(out, finding.Finding{ID: j.ID, Severity: finding.Severity(j.Outcome), Title: j.Statement, Saw: e})
	}
	return out
}

// defaultWithin is how far apart similar profiles may be, as a share, where the claim does not say.
const defaultWithin = 0.1

// Judge sets every claim against the cells of a.
func Judge(a *compare.Analysis, claims []Claim) []Judged {
	out := make([]Judged, len(claims))
	for i, c := range claims {
		out[i] = judge(a, c)
	}
	return out
}

// Counts says how many findings came out how.
func Counts(fs []Judged) map[Outcome]int {
	n := map[Outcome]int{}
	for _, f := range fs {
		n[f.Outcome]++
	}
	return n
}

func judge(a *compare.Analysis, c Claim) Judged {
	f := Judged{Claim: c}
	if c.Untestable != "" {
		f.Outcome, f.Evidence = NotTestable, []string{c.Untestable}
		return f
	}
	j := &judgement{a: a, claim: c}
	// What cannot be read has been refused with the file.
	j.workload, _ = plan.ParseWorkload(c.Workload)
	for _, name := range c.Paths {
		path, _ := plan.ParsePath(name)
		j.on(path)
	}
	f.Outcome, f.Evidence = j.sum(), j.evidence
	return f
}

// judgement is one claim under way.
type judgement struct {
	a        *compare.Analysis
	claim    Claim
	workload plan.Workload
	outcomes []Outcome
	evidence []string
	// missing are cells that are not there, each said once.
	missing []string
}

// on judges the claim on one path.
func (j *judgement) on(p plan.Path) {
	c := j.claim
	switch {
	case c.Ratio != nil:
		j.ratio(p)
	case c.Bound != nil:
		j.bound(p)
	case c.Order != nil:
		for i := range c.Order {
			for k := i + 1; k < len(c.Order); k++ {
				j.better(p, c.Order[i], c.Order[k])
			}
		}
	default:
		for i, x := range c.Similar {
			for _, y := range c.Similar[i+1:] {
				j.similar(p, x, y)
			}
		}
	}
}

// sum is the outcome of the whole claim. Evidence lists what was not measured; that does not hide what was seen.
func (j *judgement) sum() Outcome {
	for _, m := range j.missing {
		j.evidence = append(j.evidence, "not measured: "+m)
	}
	switch {
	case len(j.outcomes) == 0:
		return NotTestable
	case slices.Contains(j.outcomes, Contradicted):
		return Contradicted
	case slices.Contains(j.outcomes, Inconclusive) || len(j.missing) > 0 && j.claim.Ratio == nil && j.short():
		return Inconclusive
	}
	return Reproduced
}

// short is true when a claim about an order has lost a whole group to cells that are not there: what is left does not
// show what was claimed.
func (j *judgement) short() bool {
	for _, group := range j.claim.Order {
		gone := 0
		for _, name := range group {
			if slices.ContainsFunc(j.missing, func(m string) bool { return strings.HasPrefix(m, name+" ") }) {
				gone++
			}
		}
		if gone == len(group) {
			return true
		}
	}
	return false
}

func (j *judgement) add(o Outcome, format string, args ...any) {
	j.outcomes = append(j.outcomes, o)
	j.evidence = append(j.evidence, fmt.Sprintf(format, args...))
}

// cell finds the cell of a profile; a miss is noted.
func (j *judgement) cell(profile string, p plan.Path, w plan.Workload) (compare.Cell, bool) {
	for _, candidate := range nearest(j.a.Workloads, w) {
		c, ok := j.a.Cell(compare.Key{Case: plan.Case{Profile: plan.Variant(profile), Path: p, Workload: candidate}, Metric: j.claim.Metric})
		if ok && c.N > 0 {
			return c, true
		}
	}
	m := fmt.Sprintf("%s %s %s %s", profile, p, w, j.claim.Metric)
	if !slices.Contains(j.missing, m) {
		j.missing = append(j.missing, m)
	}
	return compare.Cell{}, false
}

// nearest are the workloads that may stand for w, the same first, then those that differ in sizes and rates only.
func nearest(all []plan.Workload, w plan.Workload) []plan.Workload {
	var out []plan.Workload
	for _, x := range all {
		if coarse(x) == coarse(w) {
			out = append(out, x)
		}
	}
	slices.SortStableFunc(out, func(x, y plan.Workload) int { return cmp.Compare(differs(x, w), differs(y, w)) })
	return out
}

func differs(x, w plan.Workload) int {
	if x == w.Normalize() {
		return 0
	}
	return 1
}

// coarse is a workload without sizes and rates.
func coarse(w plan.Workload) plan.Workload {
	return w.Without("messageSize", "requestSize", "responseSize", "rate", "interval", "close", "congestion")
}

// effect sets x beside y. The trials of one workload are pairs by repetition; those of two are not.
func (j *judgement) effect(x, y compare.Cell) stat.Effect {
	if x.Workload != y.Workload {
		return stat.Unpaired(x.Values(), y.Values(), j.a.Confidence)
	}
	return compare.Between(&x, &y, j.a.Confidence)
}

func (j *judgement) ratio(p plan.Path) {
	r := j.claim.Ratio
	against, other := p, j.workload
	if r.AgainstPath != "" {
		against, _ = plan.ParsePath(r.AgainstPath) // checked with the file
	}
	if r.AgainstWorkload != "" {
		other, _ = plan.ParseWorkload(r.AgainstWorkload) // checked with the file
	}
	x, okX := j.cell(r.Profile, p, j.workload)
	y, okY := j.cell(r.Against, against, other)
	if !okX || !okY {
		return
	}
	e := j.effect(x, y)
	saw := fmt.Sprintf("%s: %s", j.pair(x, y), interval(e))
	claimed := "claimed " + span(r.Low, r.High)
	switch {
	case !j.firm(e):
		j.add(Inconclusive, "%s, %s: too few repetitions for an interval", saw, claimed)
	case e.Low > r.High || e.High < r.Low:
		j.add(Contradicted, "%s, %s%s", saw, claimed, directionHolds(r, e))
	case inside(r, e):
		j.add(Reproduced, "%s, %s", saw, claimed)
	default:
		j.add(Inconclusive, "%s, %s", saw, claimed)
	}
}

// firm says that the interval has the wanted confidence, which a few repetitions cannot give.
func (j *judgement) firm(e stat.Effect) bool { return e.Confidence >= j.a.Confidence }

// inside says whether what was seen is as narrow as what was claimed: a single number is taken with a tenth around it.
func inside(r *Ratio, e stat.Effect) bool {
	const around = 1.1
	return e.Low >= r.Low/around && e.High <= r.High*around
}

// directionHolds adds to a contradicted size that the direction is right, if it is.
func directionHolds(r *Ratio, e stat.Effect) string {
	if r.Low > 1 && e.Low > 1 || r.High < 1 && e.High < 1 {
		return "; the direction holds, the size does not"
	}
	return ""
}

func (j *judgement) bound(p plan.Path) {
	b := j.claim.Bound
	c, ok := j.cell(b.Profile, p, j.workload)
	if !ok {
		return
	}
	scale := number.Common(c.Unit, c.Median)
	saw := fmt.Sprintf("%s %s %s: %s %s (%s to %s)", c.Profile, c.Path, c.Workload, scale.Format(c.Median), scale.Unit,
		scale.Format(c.Low), scale.Format(c.High))
	claimed := fmt.Sprintf("claimed at most %s %s", scale.Format(b.Most), scale.Unit)
	switch {
	case c.N > 1 && c.Max <= b.Most:
		j.add(Reproduced, "%s, %s", saw, claimed)
	case c.Low > b.Most:
		j.add(Contradicted, "%s, %s", saw, claimed)
	default:
		j.add(Inconclusive, "%s, %s", saw, claimed)
	}
}

// better judges that each of these profiles is better than each of those.
func (j *judgement) better(p plan.Path, these, those []string) {
	m, _ := metric.Lookup(j.claim.Metric)
	for _, name := range these {
		for _, than := range those {
			x, okX := j.cell(name, p, j.workload)
			y, okY := j.cell(than, p, j.workload)
			if !okX || !okY {
				continue
			}
			e := j.effect(x, y)
			band := 1 + j.a.Floor(x.Workload, x.Metric).Share
			larger, smaller := e.Low > band, e.High < 1/band
			if m.Better == metric.Lower {
				larger, smaller = smaller, larger
			}
			if math.IsNaN(e.Ratio) {
				larger, smaller = j.byTest(m, x, y, e)
			}
			saw := fmt.Sprintf("%s: %s", j.pair(x, y), interval(e))
			switch {
			case !math.IsNaN(e.Ratio) && !j.firm(e):
				j.add(Inconclusive, "%s: too few repetitions for an interval", saw)
			case larger:
				j.add(Reproduced, "%s", saw)
			case smaller:
				j.add(Contradicted, "%s: the other way round", saw)
			case e.Low >= 1/band && e.High <= band:
				j.add(Contradicted, "%s: no difference beyond the noise floor of %s", saw, number.Percent(band-1))
			default:
				j.add(Inconclusive, "%s", saw)
			}
		}
	}
}

// byTest decides between cells with values <= 0, such as a loss of none, which have no ratio.
func (j *judgement) byTest(m metric.Metric, x, y compare.Cell, e stat.Effect) (better, worse bool) {
	if !(e.P <= 1-j.a.Confidence) || x.Median == y.Median {
		return false, false
	}
	better = (x.Median > y.Median) == (m.Better == metric.Higher)
	return better, !better
}

func (j *judgement) similar(p plan.Path, name, other string) {
	x, okX := j.cell(name, p, j.workload)
	y, okY := j.cell(other, p, j.workload)
	if !okX || !okY {
		return
	}
	e := j.effect(x, y)
	band := 1 + cmp.Or(j.claim.Within, defaultWithin)
	saw := fmt.Sprintf("%s: %s, similar is within %s", j.pair(x, y), interval(e), number.Percent(band-1))
	switch {
	case !j.firm(e):
		j.add(Inconclusive, "%s: too few repetitions for an interval", saw)
	case e.Low >= 1/band && e.High <= band:
		j.add(Reproduced, "%s", saw)
	case e.Low > band || e.High < 1/band:
		j.add(Contradicted, "%s", saw)
	default:
		j.add(Inconclusive, "%s", saw)
	}
}

// pair names two cells with their medians.
func (j *judgement) pair(x, y compare.Cell) string {
	scale := number.Common(x.Unit, x.Median, y.Median)
	a, b := number.Clean(x.Profile), number.Clean(y.Profile)
	if x.Path != y.Path {
		a, b = a+" "+x.Path.String(), b+" "+y.Path.String()
	}
	where := " on " + x.Path.String()
	if x.Path != y.Path {
		where = ""
	}
	if x.Workload != y.Workload {
		a, b = a+" "+x.Workload.String(), b+" "+y.Workload.String()
	}
	return fmt.Sprintf("%s %s, %s %s %s%s", a, scale.Format(x.Median), b, scale.Format(y.Median), scale.Unit, where)
}

func interval(e stat.Effect) string {
	if math.IsNaN(e.Ratio) {
		return "no ratio"
	}
	return fmt.Sprintf("%s (%s to %s)", number.Ratio(e.Ratio), number.Ratio(e.Low), number.Ratio(e.High))
}

func span(low, high float64) string {
	if low == high {
		return number.Ratio(low)
	}
	return number.Ratio(low) + " to " + number.Ratio(high)
}
