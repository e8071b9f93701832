package report

import (
	"cmp"
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

// Bounds of what a report keeps of single trials, so that a file of any size is reported in bounded memory. What lies
// beyond them is counted in Details.Omitted.
const (
	// maxCurves is the most cases with a distribution; each has at most 4,000 buckets while it is gathered.
	maxCurves = 2000
	// maxSeries is the most trials with rows of progress, maxRepeats the most of one case, maxRates the rows of one.
	maxSeries  = 4000
	maxRepeats = 20
	maxRates   = 60
)

// Details are what the trials' observations show beyond their metrics: distributions and progress. They come from a
// second pass over the result file (Gather), which only pictures need.
type Details struct {
	// Curves has one distribution per case with round-trip times, Progress one series per trial with rows.
	Curves   []Curve
	Progress []Progress
	// Omitted counts the cases and trials that were left out because there were too many.
	Omitted int
}

// Curve is the distribution of the round-trip times of all finished trials of a case, pooled.
type Curve struct {
	plan.Case
	Trials int
	Count  int64
	// Points rise with Q. The last is the largest value.
	Points []Percentile
}

// Percentile says that the share Q, in [0,1), of all values took at most Ns, which is right within 0.4 %.
type Percentile struct{ Q, Ns float64 }

// At returns the time in ns below or at which the share q lies, NaN if there are too few values for that.
func (c Curve) At(q float64) float64 {
	if float64(c.Count)*(1-q) < 0.999999 {
		return math.NaN()
	}
	for _, p := range c.Points {
		if p.Q >= q-1e-9 {
			return p.Ns
		}
	}
	return math.NaN()
}

// Progress is how the rate of one trial went within its window.
type Progress struct {
	plan.Case
	Repetition int
	// Unit is "bit/s" for what a stream's receiver got, "1/s" for operations of the client.
	Unit  string
	Rates []Rate
}

// Rate is a row: from and to in ns since the start of the window, and the rate between them in the unit of the series.
type Rate struct {
	FromNs, ToNs int64
	Rate         float64
}

// Gather collects Details record by record. The zero value is ready.
type Gather struct {
	cases   map[plan.Case]*pool
	order   []*pool
	series  []Progress
	repeats map[plan.Case]int
	omitted int
}

// pool is the distribution of a case under way.
type pool struct {
	plan.Case
	trials int
	tally  tally
}

// Add takes in a record with its observations. Failed trials, twins and what has no observations add nothing.
func (g *Gather) Add(rec result.Record) {
	if rec.Type != result.TypeTrial || rec.Status != result.OK || rec.Profile.IsTwin() {
		return
	}
	c := rec.Case
	c.Workload = c.Workload.Normalize()
	if rec.Client != nil && rec.Client.RTT != nil && rec.Client.RTT.Count() > 0 {
		g.distribution(c, rec.Client.RTT)
	}
	g.progress(c, rec)
}

func (g *Gather) distribution(c plan.Case, h *sample.Histogram) {
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
	p.trials++
	h.Each(p.tally.add)
}

// progress takes the rows of the side that knows what arrived: the receiver of a stream, the client of anything else.
func (g *Gather) progress(c plan.Case, rec result.Record) {
	side, unit := rec.Client, "1/s"
	value := func(i sample.Interval) float64 { return float64(i.Operations) * 1e9 }
	if !c.Workload.Traits().Exchanges() {
		unit, value = "bit/s", func(i sample.Interval) float64 { return float64(i.Bytes) * 8e9 }
		if !c.Workload.Traits().Reverse {
			side = rec.Server
		}
	}
	if side == nil {
		return
	}
	rows := slices.DeleteFunc(slices.Clone(side.Intervals), func(i sample.Interval) bool { return i.Warmup || i.EndNs <= i.StartNs })
	if len(rows) < 2 {
		return
	}
	if len(g.series) >= maxSeries || g.repeats[c] >= maxRepeats {
		g.omitted++
		return
	}
	if g.repeats == nil {
		g.repeats = map[plan.Case]int{}
	}
	g.repeats[c]++
	p := Progress{Case: c, Repetition: rec.Repetition, Unit: unit}
	step := (len(rows) + maxRates - 1) / maxRates
	for some := range slices.Chunk(rows, step) {
		from, to, sum := some[0].StartNs, some[len(some)-1].EndNs, 0.0
		for _, i := range some {
			sum += value(i)
		}
		if to > from {
			p.Rates = append(p.Rates, Rate{from, to, sum / float64(to-from)})
		}
	}
	if len(p.Rates) > 0 {
		g.series = append(g.series, p)
	}
}

// Details returns what was gathered, in the order of first appearance; trials of a case by repetition.
func (g *Gather) Details() *Details {
	d := &Details{Progress: slices.Clone(g.series), Omitted: g.omitted}
	slices.SortStableFunc(d.Progress, func(x, y Progress) int { return cmp.Compare(x.Repetition, y.Repetition) })
	for _, p := range g.order {
		d.Curves = append(d.Curves, Curve{Case: p.Case, Trials: p.trials, Count: p.tally.n, Points: p.tally.curve()})
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
