// Package findings judges published claims against a result: reproduced, contradicted, inconclusive, or not testable
// here, each with its evidence.
//
// published.yaml has every conclusion of the articles whose experiments the plans under examples/ repeat: the source,
// the cells, the direction and the size. Judge compares each with the cells of an analysis:
//
//	claim ──► the cells that it names ──► effects with intervals ──► outcome, evidence in words
//
// A claim is reproduced if the whole interval is in the claimed range. It is contradicted if the whole interval is
// outside, or if two cells that the claim distinguishes are the same within the margin. Otherwise it is inconclusive.
// Direction and size are judged separately: a claim with the right direction and a wrong size is reproduced in part. A
// claim about several cells is contradicted if one cell contradicts it, and reproduced in part if it is true in the
// measured cells while others were not measured. Pure: values in, values out.
package findings

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/finding"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Outcome is the judgement of a claim by a result.
type Outcome string

// The outcomes.
const (
	Reproduced Outcome = "reproduced"
	// InPart: the direction is right, and the size is wrong or not decided. Or only a part was measured, and that part
	// agrees.
	InPart       Outcome = "reproduced in part"
	Contradicted Outcome = "contradicted"
	Inconclusive Outcome = "inconclusive"
	NotTestable  Outcome = "not testable here"
)

// Outcomes are all outcomes in report order.
var Outcomes = []Outcome{Reproduced, InPart, Contradicted, Inconclusive, NotTestable}

// Judged is a claim and its outcome.
type Judged struct {
	Claim
	Outcome Outcome
	// Evidence describes the measurements, or why there is no outcome: one sentence for each cell or pair of cells.
	Evidence []string
}

// Findings returns the evidence as findings for reports, at least one, with the outcome in place of the severity.
func (j Judged) Findings() []finding.Finding {
	evidence := j.Evidence
	if j.Note != "" {
		evidence = append(slices.Clip(evidence), "note: "+j.Note)
	}
	if len(evidence) == 0 {
		evidence = []string{"no evidence"}
	}
	return each.Of(evidence, func(e string) finding.Finding {
		return finding.Finding{ID: j.ID, Severity: finding.Severity(j.Outcome), Title: j.Statement, Saw: e}
	})
}

// defaultWithin is how far apart similar profiles may be, as a share, if the claim does not state it.
const defaultWithin = 0.1

// Judge judges every claim by the cells of a. The result is in the order of claims.
func Judge(a *compare.Analysis, claims []Claim) []Judged {
	return each.Of(claims, func(c Claim) Judged { return judgeClaim(a, c) })
}

func judgeClaim(a *compare.Analysis, c Claim) Judged {
	f := Judged{Claim: c}
	if c.Untestable != "" {
		f.Outcome, f.Evidence = NotTestable, []string{c.Untestable}
		return f
	}
	j := &judgement{a: a, claim: c}
	for _, path := range c.Paths {
		j.judgePath(path)
	}
	if why := sharedCPUReason(a.Facts, c); why != "" && len(j.outcomes) > 0 {
		f.Outcome, f.Evidence = NotTestable, append([]string{why}, j.evidence...)
		return f
	}
	f.Outcome = j.concludeOutcome()
	f.Evidence = j.evidence
	return f
}

// judgement collects the outcomes and the evidence of one claim.
type judgement struct {
	a        *compare.Analysis
	claim    Claim
	outcomes []Outcome
	evidence []string
	// missing are missing cells, each listed once. asked counts the comparisons that the claim needs.
	missing []string
	asked   int
	// unlike means that the result has bulk data without NIC offload, unlike every publication.
	unlike bool
}

// judgePath judges the claim on one path.
func (j *judgement) judgePath(p plan.Path) {
	c := j.claim
	switch {
	case c.Ratio != nil:
		j.judgeRatio(p)
	case c.Bound != nil:
		j.judgeBound(p)
	case c.Order != nil:
		for i, these := range c.Order {
			for _, x := range these {
				for _, y := range slices.Concat(c.Order[i+1:]...) {
					j.judgeBetter(p, x, y)
				}
			}
		}
	default:
		for i, x := range c.Similar {
			for _, y := range c.Similar[i+1:] {
				j.judgeSimilar(p, x, y)
			}
		}
	}
}

// concludeOutcome returns the outcome of the whole claim. It adds to the evidence what was not measured.
func (j *judgement) concludeOutcome() Outcome {
	if j.unlike && len(j.missing) > 0 {
		j.evidence = append(j.evidence, "the result has bulk data with "+plan.NICWire.Label()+", and NICs of the publication have it: measure under nic="+string(plan.NICIdeal))
	}
	for _, m := range j.missing {
		j.evidence = append(j.evidence, "not measured: "+m)
	}
	for _, o := range []Outcome{Contradicted, Inconclusive, InPart, NotTestable} {
		if slices.Contains(j.outcomes, o) {
			return o
		}
	}
	switch measured := len(j.outcomes); {
	case measured == 0:
		return NotTestable
	case measured < j.asked:
		j.evidence = append(j.evidence, fmt.Sprintf("%d of %d comparisons measured", measured, j.asked))
		return InPart
	}
	return Reproduced
}

func (j *judgement) addOutcome(o Outcome, format string, args ...any) {
	j.outcomes = append(j.outcomes, o)
	j.evidence = append(j.evidence, fmt.Sprintf(format, args...))
}

// caseOf returns the case of a profile on a path under the claim's workload.
func (j *judgement) caseOf(profile string, p plan.Path) plan.Case {
	return plan.Case{Profile: plan.VariantOf(profile), Path: p, Workload: j.claim.Workload.Normalize()}
}

// findCell returns the cell of a case: with its workload, or else with one that only differs in sizes, rates, window and
// sending program. It records a missing cell.
func (j *judgement) findCell(of plan.Case) (compare.Cell, bool) {
	for _, w := range append([]plan.Workload{of.Workload}, j.a.Workloads...) {
		at := plan.Case{Profile: of.Profile, Path: of.Path, Workload: w}
		if coarseWorkload(w) == coarseWorkload(of.Workload) && j.a.NIC(at) == plan.NICWire {
			j.unlike = true
			continue
		}
		k := compare.Key{Case: at, Metric: j.claim.Metric}
		if c, ok := j.a.Cell(k); ok && c.N > 0 && coarseWorkload(w) == coarseWorkload(of.Workload) {
			return c, true
		}
	}
	if m := of.Key() + " " + j.claim.Metric; !slices.Contains(j.missing, m) {
		j.missing = append(j.missing, m)
	}
	return compare.Cell{}, false
}

// coarseWorkload returns a workload without sizes, rates, window and tool.
func coarseWorkload(w plan.Workload) plan.Workload {
	return w.Without("messageSize", "requestSize", "responseSize", "rate", "interval", "close", "congestion", "tool", "window")
}

// beside is the comparison of two cells, and its description.
type beside struct {
	x, y compare.Cell
	stat.Effect
	saw string
}

// compareCases compares two cases. ok is false if a cell is missing. It is also false, with an inconclusive outcome,
// if a cell is failing, pods were attached in different ways, or repetitions are too few for an interval.
func (j *judgement) compareCases(one, other plan.Case) (b beside, ok bool) {
	j.asked++
	x, okX := j.findCell(one)
	y, okY := j.findCell(other)
	if !okX || !okY {
		return b, false
	}
	b = beside{x: x, y: y}
	if x.Workload == y.Workload {
		b.Effect = j.a.Between(&x, &y) // the trials of one workload are pairs by repetition
	} else {
		b.Effect = j.a.Apart(&x, &y)
	}
	b.saw = describePair(x, y) + ": " + describeRatio(b.Effect)
	if failed := x.Failed + y.Failed; failed > 0 {
		b.saw += fmt.Sprintf("; %s failed", number.Counted(failed, "trial"))
	}
	if x.Failing() || y.Failing() {
		j.addOutcome(Inconclusive, "%s: most trials of one failed, or much of the work in them", b.saw)
		return b, false
	}
	if x.Unlike(&y) {
		j.addOutcome(Inconclusive, "%s: pods were attached in different ways (%s, %s)", b.saw, x.Attached, y.Attached)
		return b, false
	}
	if !math.IsNaN(b.Ratio) && b.Confidence < j.a.Confidence {
		j.addOutcome(Inconclusive, "%s: too few repetitions for an interval", b.saw)
		return b, false
	}
	return b, true
}

func (j *judgement) judgeRatio(p plan.Path) {
	r := j.claim.Ratio
	other := j.caseOf(r.Against, cmp.Or(r.AgainstPath, p))
	if r.AgainstWorkload.Spec != nil {
		other.Workload = r.AgainstWorkload.Normalize()
	}
	b, ok := j.compareCases(j.caseOf(r.Profile, p), other)
	if !ok {
		return
	}
	high := cmp.Or(r.High, math.Inf(1))
	direction := r.Low > 1 && b.Low > 1 || high < 1 && b.High < 1
	const around = 1.1 // tolerance around a claimed size: a tenth
	far := r.describeFarRates(b)
	switch apart := b.Low > high*around || b.High < r.Low/around; {
	case direction && far != "":
		j.addOutcome(NotTestable, "%s, claimed %s: %s", b.saw, r, far)
	case r.Low == 0 || r.High == 0: // a direction alone
		outcome := Inconclusive
		if b.Low > r.Low && b.High < high {
			outcome = Reproduced
		} else if b.Low > high || b.High < r.Low {
			outcome = Contradicted
		}
		j.addOutcome(outcome, "%s, claimed %s", b.saw, r)
	case apart && direction:
		j.addOutcome(InPart, "%s, claimed %s; the direction holds, the size does not", b.saw, r)
	case apart:
		j.addOutcome(Contradicted, "%s, claimed %s", b.saw, r)
	case b.Low >= r.Low/around && b.High <= high*around:
		j.addOutcome(Reproduced, "%s, claimed %s", b.saw, r)
	case direction:
		j.addOutcome(InPart, "%s, claimed %s; the direction holds, the size is not decided", b.saw, r)
	default:
		j.addOutcome(Inconclusive, "%s, claimed %s", b.saw, r)
	}
}

// farApart is the factor between rates of bulk data above which a result and a publication are not comparable.
const farApart = 4

// describeFarRates says which rates of the result are far from the publication's; "" if none is. Equal ratios of such rates
// are a coincidence, because something else limits them.
func (r *Ratio) describeFarRates(b beside) string {
	for i, c := range []compare.Cell{b.x, b.y} {
		if len(r.Rates) != 2 {
			return ""
		}
		factor := r.Rates[i] / c.Median
		if factor = max(factor, 1/factor); factor > farApart {
			scale := number.Common(c.Unit, r.Rates[i], c.Median)
			return fmt.Sprintf("not comparable, since the rates of %s are %s apart: %s there, %s %s here", number.Clean(c.Profile.String()),
				number.Ratio(factor), scale.Format(r.Rates[i]), scale.Format(c.Median), scale.Unit)
		}
	}
	return ""
}

func (j *judgement) judgeBound(p plan.Path) {
	b := j.claim.Bound
	j.asked++
	c, ok := j.findCell(j.caseOf(b.Profile, p))
	if !ok {
		return
	}
	scale := number.Common(c.Unit, c.Median)
	saw := fmt.Sprintf("%s %s %s: %s %s (%s to %s)", c.Profile, c.Path, c.Workload, scale.Format(c.Median), scale.Unit,
		scale.Format(c.Low), scale.Format(c.High))
	claimed := fmt.Sprintf("claimed at most %s %s", scale.Format(b.Most), scale.Unit)
	switch {
	case c.N > 1 && c.Max <= b.Most:
		j.addOutcome(Reproduced, "%s, %s", saw, claimed)
	case c.Low > b.Most:
		j.addOutcome(Contradicted, "%s, %s", saw, claimed)
	default:
		j.addOutcome(Inconclusive, "%s, %s", saw, claimed)
	}
}

// judgeBetter judges the claim that profile is better than other on a path.
func (j *judgement) judgeBetter(p plan.Path, profile, other string) {
	b, ok := j.compareCases(j.caseOf(profile, p), j.caseOf(other, p))
	if !ok {
		return
	}
	m, _ := metric.Lookup(j.claim.Metric)
	larger, smaller := b.Low > 1, b.High < 1
	if math.IsNaN(b.Ratio) { // for values <= 0, such as no loss, the test decides
		differs := b.P <= 1-j.a.Confidence
		larger, smaller = differs && b.x.Median > b.y.Median, differs && b.x.Median < b.y.Median
	}
	better, worse := larger, smaller
	if m.Better == metric.Lower {
		better, worse = smaller, larger
	}
	switch same := b.isWithinFactor(1 + j.a.Margin); {
	case better && same:
		j.addOutcome(InPart, "%s; the direction holds, and the difference is within the margin of %s", b.saw, number.Percent(j.a.Margin))
	case better:
		j.addOutcome(Reproduced, "%s", b.saw)
	case worse && !math.IsNaN(b.P) && b.P*float64(j.countPairs()) > 1-j.a.Confidence:
		// One of many equal pairs is reversed by chance, and a single one contradicts the claim.
		j.addOutcome(Inconclusive, "%s: the other way round, which one of %d comparisons is by chance", b.saw, j.countPairs())
	case worse:
		j.addOutcome(Contradicted, "%s: the other way round", b.saw)
	case same:
		j.addOutcome(Contradicted, "%s: no difference beyond the margin of %s", b.saw, number.Percent(j.a.Margin))
	default:
		j.addOutcome(Inconclusive, "%s", b.saw)
	}
}

// countPairs returns how many comparisons the order of the claim needs, over all its paths.
func (j *judgement) countPairs() int {
	n, before := 0, 0
	for _, these := range j.claim.Order {
		n, before = n+before*len(these), before+len(these)
	}
	return n * max(1, len(j.claim.Paths))
}

// isWithinFactor reports whether the whole interval lies between 1/factor and factor.
func (b beside) isWithinFactor(factor float64) bool { return b.Low >= 1/factor && b.High <= factor }

func (j *judgement) judgeSimilar(p plan.Path, profile, other string) {
	b, ok := j.compareCases(j.caseOf(profile, p), j.caseOf(other, p))
	if !ok {
		return
	}
	band := 1 + cmp.Or(j.claim.Within, defaultWithin)
	outcome := Inconclusive
	if b.isWithinFactor(band) {
		outcome = Reproduced
	} else if b.Low > band || b.High < 1/band {
		outcome = Contradicted
	}
	j.addOutcome(outcome, "%s, similar is within %s", b.saw, number.Percent(band-1))
}

// describePair describes two cells with their medians.
func describePair(x, y compare.Cell) string {
	scale := number.Common(x.Unit, x.Median, y.Median)
	a, b, where := number.Clean(x.Profile.String()), number.Clean(y.Profile.String()), " on "+x.Path.String()
	if x.Path != y.Path {
		a, b, where = a+" "+x.Path.String(), b+" "+y.Path.String(), ""
	}
	if x.Workload != y.Workload {
		a, b = a+" "+x.Workload.String(), b+" "+y.Workload.String()
	}
	return fmt.Sprintf("%s %s, %s %s %s%s", a, scale.Format(x.Median), b, scale.Format(y.Median), scale.Unit, where)
}

func describeRatio(e stat.Effect) string {
	if math.IsNaN(e.Ratio) {
		return "no ratio"
	}
	return number.Range(e.Ratio, e.Low, e.High)
}

// String describes the claim.
func (r *Ratio) String() string {
	switch {
	case r.High == 0:
		return "more than " + number.Ratio(r.Low)
	case r.Low == 0:
		return "less than " + number.Ratio(r.High)
	case r.Low == r.High:
		return number.Ratio(r.Low)
	}
	return number.Ratio(r.Low) + " to " + number.Ratio(r.High)
}
