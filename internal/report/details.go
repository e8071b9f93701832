package report

import (
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
)

// maxCurves is the most cases with a distribution, so that a file of any size is reported in bounded memory. Each has at
// most 4,000 buckets while it is gathered.
const maxCurves = 2000

// Details are what the trials' observations show beyond their metrics: distributions. They come from the observations of
// a result file (Gather), which only pictures need.
type Details struct {
	// Curves has one distribution per case with round-trip times.
	Curves []Curve
	// Omitted counts the trials of cases that were left out because there were too many.
	Omitted int
}

// Curve is the distribution of the round-trip times of all finished trials of a case, pooled.
type Curve struct {
	plan.Case
	Count int64
	// Points rise with Q. The last is the largest value.
	Points []Percentile
}

// Percentile says that the share Q, in [0,1), of all values took at most Ns, which is right within 0.4 %.
type Percentile struct{ Q, Ns float64 }

// Known reports whether ten values or more lie beyond the share q, as the metrics of a tail ask.
func (c Curve) Known(q float64) bool { return float64(c.Count)*(1-q) >= 9.999999 }

// At returns the time in ns below or at which the share q lies, NaN if there are too few values for that.
func (c Curve) At(q float64) float64 {
	if !c.Known(q) {
		return math.NaN()
	}
	for _, p := range c.Points {
		if p.Q >= q-1e-9 {
			return p.Ns
		}
	}
	return math.NaN()
}

// Gather collects Details record by record. The zero value is ready.
type Gather struct {
	cases   map[plan.Case]*pool
	order   []*pool
	omitted int
}

// pool is the distribution of a case under way.
type pool struct {
	plan.Case
	tally
}

// Add takes in a record with its observations. Failed trials, twins and what has no observations add nothing.
func (g *Gather) Add(rec result.Record) {
	if rec.Type != result.TypeTrial || rec.Status != result.OK || rec.Profile.IsTwin() ||
		rec.Client == nil || rec.Client.RTT == nil || rec.Client.RTT.Count() == 0 {
		return
	}
	c := rec.Case
	c.Workload = c.Workload.Normalize()
	p := g.cases[c]
	if p == nil {
		if len(g.order) >= maxCurves {
			g.omitted++
			return
		}
		p = &pool{Case: c}
		if g.cases == nil {
			g.cases = map[plan.Case]*pool{}
		}
		g.cases[c] = p
		g.order = append(g.order, p)
	}
	rec.Client.RTT.Each(p.add)
}

// Details returns what was gathered, in the order of first appearance.
func (g *Gather) Details() *Details {
	d := &Details{Omitted: g.omitted}
	for _, p := range g.order {
		d.Curves = append(d.Curves, Curve{Case: p.Case, Count: p.n, Points: p.curve()})
	}
	return d
}

// tally counts times in buckets that are 1/128 of their octave wide, by the middle of the bucket in ns.
type tally struct {
	counts map[int64]int64
	n      int64
}

func (t *tally) add(ns, count int64) {
	if ns < 1 || count < 1 || count > math.MaxInt64-t.n {
		return
	}
	if t.counts == nil {
		t.counts = map[int64]int64{}
	}
	width := int64(1) << max(0, bits.Len64(uint64(ns))-8)
	t.counts[ns&-width+(width-1)/2] += count
	t.n += count
}

// curve reads the percentiles off: eight to each further nine up to 99.99 %, as far as there are values beyond, then
// the largest value.
func (t *tally) curve() []Percentile {
	const perNine, nines = 8, 4
	var qs []float64
	for j := range perNine*nines + 1 {
		if q := 1 - math.Pow(10, -float64(j)/perNine); float64(t.n)*(1-q) >= 0.999999 {
			qs = append(qs, q)
		}
	}
	for _, q := range []float64{0.5, 0.95} { // what tables name and the steps miss
		if float64(t.n)*(1-q) >= 1 {
			qs = append(qs, q)
		}
	}
	slices.Sort(qs)
	var out []Percentile
	var seen, longest int64
	for _, longest = range slices.Sorted(maps.Keys(t.counts)) {
		seen += t.counts[longest]
		for len(qs) > 0 && float64(seen) >= math.Max(1, qs[0]*float64(t.n)-1e-6) {
			out = append(out, Percentile{qs[0], float64(longest)})
			qs = qs[1:]
		}
	}
	if t.n == 0 {
		return nil
	}
	return append(out, Percentile{1 - 1/float64(t.n), float64(longest)})
}
