package compare

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// Bounds on what is kept of a result of any size. A plan cannot reach the first; a plan with a thousand repetitions of
// a thousand cases can reach the second, and its result is thinned.
const (
	maxCells  = 200_000
	maxValues = 3 << 20
	// fewKept is the number of values up to which a cell is never thinned.
	fewKept = 20
)

// Collector collects the trials of one result one at a time, in any order. It keeps what an analysis needs: the values
// by cell, and a summary of the warnings. Its memory is bounded. The zero value is ready for use.
//
// If a result has more values than maxValues, the larger cells are thinned: about every second repetition is kept, then
// every fourth and so on, drawn by a hash of the repetition's number. So the draw does not depend on the values,
// spreads over the whole run, and keeps the same repetitions in every cell, as paired tests need.
type Collector struct {
	cases  []*attempts
	byCase map[plan.Case]*attempts
	names  map[string]bool
	cells  int
	values int
	// session counts the invocations that have ended.
	session int
	// slices counts the kept slices, sliceLevel how often they were thinned.
	slices, sliceLevel int
	// cold is true if slices have readings that cannot be used.
	cold bool
	// bound replaces maxValues in tests; 0 is maxValues.
	bound int
}

// attempts keeps what an analysis needs of the trials of one case.
type attempts struct {
	plan.Case
	trials, failed int
	failure        first
	warnings       []raised
	series         map[string]*series
	pieces         []pieces
	// attached and timeout are set for new pods: how they were attached to the network, and the longest timeout in ns.
	attached string
	timeout  float64
}

// first is the message of the earliest repetition that has one.
type first struct {
	repetition int
	text       string
}

// raised is a warning of trials. at is the first trial with it: its repetition and its place in the trial's list.
type raised struct {
	stat.Warning
	at [2]int
}

// series is the values of one metric.
type series struct {
	samples []Sample
	// valued counts the finite values of finished trials, odd the values that are not finite.
	// level is how often the series was thinned.
	valued, odd, level int
	// finished is true if any finished trial had the metric.
	finished bool
}

// Add adds a trial. From a sampled trial it takes only the metrics that the processor counts. It ignores records of
// other types. It fails if the result is larger than any plan can make.
func (c *Collector) Add(rec *result.Record) error {
	if rec.Type == result.TypeEnd {
		c.session++
	}
	k := rec.Case
	k.Workload = k.Workload.Normalize()
	a := c.byCase[k]
	if rec.Type == result.TypeSampled && a != nil {
		for _, name := range metric.Counted {
			if v, ok := rec.Metrics[name]; ok {
				c.addValue(a, name, v, rec)
			}
		}
		return c.checkBounds()
	}
	if rec.Type != result.TypeTrial {
		return nil
	}
	if a == nil {
		if c.byCase == nil {
			c.byCase, c.names = map[plan.Case]*attempts{}, map[string]bool{}
		}
		a = &attempts{Case: k, series: map[string]*series{}}
		c.byCase[k] = a
		c.cases = append(c.cases, a)
		c.cells++ // a case whose trials all fail has a cell too
	}
	a.trials++
	if rec.Status == result.OK {
		a.addWarnings(rec)
		a.storeNewPods(rec)
		c.addSlices(a, rec)
	} else {
		a.failed++
		if rec.Error != nil && (a.failure.text == "" || rec.Repetition < a.failure.repetition) {
			a.failure = first{rec.Repetition, rec.Error.Kind + ": " + rec.Error.Message}
		}
	}
	for name, v := range rec.Metrics {
		c.addValue(a, name, v, rec)
	}
	return c.checkBounds()
}

// addWarnings counts the finished trials that have a warning, by id. It keeps the first message of the earliest trial.
func (a *attempts) addWarnings(rec *result.Record) {
	for i, w := range rec.Warnings {
		if slices.ContainsFunc(rec.Warnings[:i], func(x sample.Warning) bool { return x.ID == w.ID }) {
			continue
		}
		at := [2]int{rec.Repetition, i}
		j := slices.IndexFunc(a.warnings, func(x raised) bool { return x.ID == w.ID })
		if j < 0 {
			a.warnings = append(a.warnings, raised{stat.Warning{ID: w.ID, Message: w.Message, Trials: 1}, at})
			continue
		}
		a.warnings[j].Trials++
		if slices.Compare(at[:], a.warnings[j].at[:]) < 0 {
			a.warnings[j].Message, a.warnings[j].at = w.Message, at
		}
	}
}

// storeNewPods stores how the new pods of a finished trial were attached, and the timeout of their answers.
func (a *attempts) storeNewPods(rec *result.Record) {
	if rec.Client == nil || rec.Client.Pods == nil {
		return
	}
	a.attached = cmp.Or(rec.Client.Pods.Attached, sample.AttachedUnknown)
	a.timeout = max(a.timeout, float64(rec.Client.Pods.TimeoutNs))
}

// addValue adds one number. Of a failed trial it stores only the name of the metric.
func (c *Collector) addValue(a *attempts, name string, v float64, rec *result.Record) {
	s := a.series[name]
	if s == nil {
		s = &series{}
		a.series[name] = s
		c.names[name] = true
		c.cells++
	}
	switch {
	case rec.Status != result.OK:
		return
	case math.IsNaN(v) || math.IsInf(v, 0):
		s.odd++
	default:
		s.valued++
		if survivesThinning(rec.Repetition, s.level) {
			s.samples = append(s.samples, Sample{Repetition: rec.Repetition, Value: v, Instance: rec.Instance, session: c.session})
			c.values++
		}
	}
	s.finished = true
}

// survivesThinning reports whether a repetition is still kept after so many thinnings (level). Each halves the repetitions.
func survivesThinning(repetition, level int) bool {
	x := uint64(repetition) + 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return bits.TrailingZeros64(x^x>>31) >= level
}

var errTooLarge = errors.New("the result is larger than any plan makes")

// checkBounds thins the values if there are too many. It fails if too many values remain, or if there are too many cells.
func (c *Collector) checkBounds() error {
	if c.cells > maxCells {
		return advice.With(fmt.Errorf("%w: over %d cells (a profile, path and workload with a metric)", errTooLarge, maxCells),
			"split the file by profile")
	}
	bound := cmp.Or(c.bound, maxValues)
	if c.values <= bound {
		return nil
	}
	for c.values > bound/2 {
		before := c.values
		if err := c.thinSeries(); err != nil {
			return err
		}
		if c.values == before {
			break // only small cells are left
		}
	}
	if c.values > bound {
		return fmt.Errorf("%w: over %d values in small cells", errTooLarge, bound)
	}
	return nil
}

// thinSeries halves the series that are not small. It fails if a series becomes empty: not by chance, but if the same
// repetition was written again and again.
func (c *Collector) thinSeries() error {
	for _, a := range c.cases {
		for _, s := range a.series {
			if len(s.samples) <= fewKept {
				continue
			}
			s.level++
			c.values -= len(s.samples)
			left := each.Where(s.samples, func(x Sample) bool { return survivesThinning(x.Repetition, s.level) }) // a new array, so that the old one is freed
			if len(left) == 0 {
				return fmt.Errorf("%w: it has the same trials of %s again and again", errTooLarge, a.Key())
			}
			s.samples = left
			c.values += len(left)
		}
	}
	return nil
}

// Cells returns the cells that have a value, in any metric: cases in the order of their first trial, metrics by name.
func (c *Collector) Cells(confidence float64) []Cell {
	var cells []Cell
	for _, a := range c.cases {
		for _, name := range slices.Sorted(maps.Keys(a.series)) {
			if len(a.series[name].samples) > 0 {
				cells = append(cells, a.cellOf(name, confidence, quiet{}))
			}
		}
	}
	return cells
}

// gatherCells makes one cell per case and metric. A case whose trials all failed has a cell for each metric that its
// workload has in other cases, so that the failure is shown wherever the number is missing.
func (c *Collector) gatherCells(a *Analysis) []Cell {
	shown := map[plan.Workload]map[string]bool{}
	for _, k := range c.cases {
		if shown[k.Workload] == nil {
			shown[k.Workload] = map[string]bool{}
		}
		for name, s := range k.series {
			if s.finished {
				shown[k.Workload][name] = true
			}
		}
	}
	return slices.Concat(each.Of(c.cases, func(k *attempts) []Cell { return k.makeCells(a, shown[k.Workload]) })...)
}

// makeCells makes the cells of one case; shown are the metrics of its workload.
func (a *attempts) makeCells(an *Analysis, shown map[string]bool) []Cell {
	names := an.Metrics
	if !slices.ContainsFunc(names, func(n string) bool { return shown[n] }) {
		names, shown = []string{metric.ServiceDemand}, map[string]bool{metric.ServiceDemand: true}
	}
	slices.SortStableFunc(a.warnings, func(x, y raised) int { return slices.Compare(x.at[:], y.at[:]) })
	var cells []Cell
	for _, name := range names {
		if shown[name] && (a.series[name] != nil || a.failed == a.trials) {
			cells = append(cells, a.cellOf(name, an.Confidence, an.quiet))
		}
	}
	return cells
}
