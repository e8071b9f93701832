package findings

import (
	"cmp"
	"fmt"
	"math"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// Figure compares a number of a publication with the same cell of a result. Absolute values depend on the machine, so
// the ratio to Against is judged, on both sides.
type Figure struct {
	// Published is the publication's cell; N is 0 if it has a chart without numbers.
	Published compare.Cell
	// Here is the cell of the result; N is 0 if it has no such cell.
	Here compare.Cell
	// Against is the first profile of the publication with the same path, workload and metric; "" if this is that
	// profile.
	Against plan.Variant
	// Claimed is the publication's ratio, Ratio the result's; NaN without one.
	Claimed float64
	Ratio   stat.Effect
	Outcome Outcome
	// Why describes the comparison, or why the two cannot be compared.
	Why string
}

// Figures compares every number of a publication with the cells of a result. h is the header of the result, with the reasons
// for what was not measured.
func Figures(a *compare.Analysis, h result.Header, published *compare.Analysis) []Figure {
	first := map[compare.Key]compare.Cell{}
	var out []Figure
	charts := map[plan.Case]bool{}
	for _, c := range published.Cells {
		if c.N == 0 { // its metric is unknown
			if charts[c.Case] {
				continue
			}
			charts[c.Case] = true
			c.Metric = c.Workload.Traits().Decides[0]
			c.Unit = metric.UnitFor(c.Metric, c.Workload.Traits().Work)
		}
		row := c.Key
		row.Profile = plan.Variant{}
		f := Figure{Published: c, Claimed: math.NaN(), Ratio: stat.Effect{Ratio: math.NaN()}, Outcome: NotTestable}
		if base, ok := first[row]; ok {
			f.judgeAgainst(a, base)
		} else {
			first[row] = c
			f.setHere(a)
		}
		if f.Here.N == 0 && c.N > 0 {
			f.Why = cmp.Or(absenceReason(h, c.Case), f.Why)
		}
		out = append(out, f)
	}
	return out
}

// bareClaim returns a claim about the figure's metric, workload and path. The caller sets its Ratio, Order or Similar.
func (f *Figure) bareClaim() Claim {
	c := f.Published
	return Claim{Metric: c.Metric, Workload: c.Workload, Paths: []plan.Path{c.Path}}
}

// setHere sets Here to the cell of the result, and Why to the reason why the number alone is not judged.
func (f *Figure) setHere(a *compare.Analysis) {
	j := &judgement{a: a, claim: f.bareClaim()}
	here, ok := j.findCell(f.Published.Case)
	f.Here = here
	switch m, _ := metric.Lookup(f.Published.Metric); {
	case f.Published.N == 0:
		f.Why = "the article shows a chart without numbers"
	case m.Better == metric.Neither:
		f.Why = "it describes one trial: " + m.Definition
	case !ok:
		f.Why = "not measured"
	case sharedCPUReason(a.Facts, j.claim) != "":
		f.Why = sharedCPUReason(a.Facts, j.claim)
	default:
		f.Why = "absolute; the others of the path are set against it"
	}
}

// judgeAgainst judges the ratio to the cell of another profile, and sets Against, Claimed, Ratio, Outcome and Why.
func (f *Figure) judgeAgainst(a *compare.Analysis, base compare.Cell) {
	f.setHere(a)
	m, _ := metric.Lookup(f.Published.Metric)
	if f.Published.N == 0 || base.N == 0 || m.Better == metric.Neither || f.Here.N == 0 {
		return
	}
	c, mine, theirs := f.bareClaim(), f.Published, base
	scratch := &judgement{a: a, claim: c}
	b, measured := scratch.compareCases(mine.Case, theirs.Case)
	f.Against = theirs.Profile
	if measured {
		f.Ratio = b.Effect
	}
	switch x, y := mine.Profile.String(), theirs.Profile.String(); {
	case mine.Median > 0 && theirs.Median > 0:
		f.Claimed = mine.Median / theirs.Median
		c.Ratio = &Ratio{Profile: x, Against: y, Low: f.Claimed, High: f.Claimed, Rates: f.bulkRates(base)}
	case mine.Median == theirs.Median:
		c.Similar = []string{x, y}
	case (mine.Median > theirs.Median) == (m.Better == metric.Higher):
		c.Order = [][]string{{x}, {y}}
	default:
		c.Order = [][]string{{y}, {x}}
	}
	judged := judgeClaim(a, c)
	f.Outcome, f.Why = judged.Outcome, judged.Evidence[0]
}

// bulkRates returns the publication's two rates of bulk data behind a ratio, nil for other metrics.
func (f *Figure) bulkRates(base compare.Cell) []float64 {
	if f.Published.Metric != metric.Goodput || !f.Published.Workload.Traits().Bulk() {
		return nil
	}
	return []float64{f.Published.Median, base.Median}
}

// absenceReason returns why a result has no trial of a case, "" if its header has no reason.
func absenceReason(h result.Header, c plan.Case) string {
	p, _ := each.First(h.Profiles, func(p result.Profile) bool { return p.Name == c.Profile })
	switch why := p.NotServed[c.Path.String()]; {
	case p.Skipped != "":
		return fmt.Sprintf("%s was not measured: %s", p.Name, p.Skipped)
	case why != "":
		return fmt.Sprintf("%s does not serve %s: %s", p.Name, c.Path, why)
	}
	return ""
}
