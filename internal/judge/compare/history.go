package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// History has many results in the order of time, with the changes of each cell's level. A history with fewer
// than stat.ChangesFrom runs shows no change, because their usual differences are unknown.
type History struct {
	Confidence, Margin float64
	// Runs are the results, the oldest first.
	Runs []HistoryRun
	// Tracks are the cells with a number in at least two runs, in the report order of the first run that has one.
	Tracks []Track
}

// HistoryRun is one result of a history.
type HistoryRun struct {
	Name    string
	Created time.Time
	// Changed are the conditions that differ from the previous run.
	Changed []Difference

	header result.Header
}

// Track is one cell through all runs.
type Track struct {
	Key
	Unit string `json:"unit"`
	// Points has one summary per run; N is 0 for a run without the number.
	Points []stat.Summary `json:"points"`
	// Common is the baseline that all runs measured in turn with the cell, or "". If it is set, Changes are those of the
	// quotient to the baseline, otherwise those of the values. A change of a tail metric must appear in both.
	Common plan.Variant `json:"quotient_to"`
	// Floor is the share that a change must exceed: the margin, or the largest widening of the runs
	// (Comparison.Widened). Wander is the usual difference between neighbouring runs, as a share; NaN for fewer than 4
	// runs.
	Floor  float64 `json:"floor"`
	Wander float64 `json:"wander"`
	// Changes are the borders between levels, the oldest first.
	Changes []Shift `json:"changes"`
}

// Shift is a change of a track's level.
type Shift struct {
	// Run is the index of the first run of the new level.
	Run int `json:"run"`
	// Effect compares the new level with the previous one; its P is the p value of the rank test between the two.
	stat.Effect
	// Share is the p value of the change by shuffling (stat.Change). Adjusted is the same, corrected for the family.
	Share    float64 `json:"-"`
	Adjusted float64 `json:"p_adjusted"`
	// Verdict is better or worse.
	Verdict Verdict `json:"verdict"`
}

// Historian collects the results of a history one at a time and keeps only their values.
type Historian struct {
	// Metrics are the metrics to follow, in any order; nil means the headline metrics. Filters select cells; nil means
	// all.
	Metrics []string
	Filters []Filter

	runs  []past
	order []Key

	confidence, margin float64
}

// past is what a historian keeps of a result.
type past struct {
	HistoryRun
	cells map[Key]followed
}

// followed has a cell, and the baseline's cell that was measured in turn with it. base is nil if there is none.
type followed struct {
	cell, base *Cell
	floor      float64
}

// Add adds a result. It keeps the cells of the followed metrics that the filters select and that have a number.
func (h *Historian) Add(s Side) {
	cells := map[Key]followed{}
	common := baselineInTurn(s.Header)
	for i := range s.Cells {
		c := &s.Cells[i]
		if c.N == 0 || !h.follows(c.Metric) || !Chosen(h.Filters, c.Key) {
			continue
		}
		f := followed{cell: c, floor: s.intervalWidening(c)}
		if !common.IsZero() && c.Profile != common {
			f.base = s.momentCell(c.Key, common)
		}
		h.order = append(h.order, c.Key)
		cells[c.Key] = f
	}
	h.confidence, h.margin = s.Confidence, s.Margin
	h.runs = append(h.runs, past{HistoryRun{Name: s.Name, Created: s.Header.Created, header: s.Header}, cells})
}

// follows reports whether a metric is followed: only a metric with a direction has changes that can be judged.
func (h *Historian) follows(name string) bool {
	m, _ := metric.Lookup(name)
	return m.Better != metric.Neither && (h.Metrics == nil && m.Headline || slices.Contains(h.Metrics, name))
}

// History sorts the results by time and finds the changes. It fails, with a hint, for fewer than two results, or if no cell
// has a number in two of them.
func (h *Historian) History() (*History, error) {
	if len(h.runs) < 2 {
		return nil, advice.With(fmt.Errorf("a history needs two results or more, and there are %d", len(h.runs)), "name more files")
	}
	slices.SortStableFunc(h.runs, func(x, y past) int { return x.Created.Compare(y.Created) })
	out := &History{Confidence: h.confidence, Margin: h.margin}
	for i, run := range h.runs {
		if i > 0 {
			run.Changed = differingConditions(h.runs[i-1].header, run.header)
		}
		out.Runs = append(out.Runs, run.HistoryRun)
	}
	for _, k := range each.Once(h.order) {
		if t, ok := h.trackCell(k); ok {
			out.Tracks = append(out.Tracks, t)
		}
	}
	if len(out.Tracks) == 0 {
		return nil, advice.With(fmt.Errorf("no cell has a number in two of the %d results", len(h.runs)),
			"a history is of the same profiles, paths and workloads; --metrics and --only choose among them")
	}
	out.correctChanges()
	return out, nil
}

// trackCell follows one cell through the runs. It returns false if fewer than two runs have a number.
func (h *Historian) trackCell(k Key) (Track, bool) {
	t := Track{Key: k, Floor: h.margin}
	var cells, bases []*Cell
	for _, run := range h.runs {
		if f, ok := run.cells[k]; ok {
			cells, bases = append(cells, f.cell), append(bases, f.base)
			t.Floor = max(t.Floor, f.floor)
		}
	}
	if len(cells) < 2 {
		return t, false
	}
	t.Unit = cells[0].Unit
	series := quotientSeries(cells, bases)
	cells = comparableCells(cells...)
	values := each.Of(cells, func(c *Cell) []float64 { return valuesOf(c.comparisonUnits()) })
	if series != nil {
		t.Common = bases[0].Profile
	} else {
		series = values
	}
	all, plain := make([][]float64, len(h.runs)), make([][]float64, len(h.runs))
	n := 0
	for i, run := range h.runs {
		point := stat.Summarize(nil, h.confidence)
		if _, ok := run.cells[k]; ok {
			point, all[i], plain[i] = cells[n].Summary, series[n], values[n]
			n++
		}
		t.Points = append(t.Points, point)
	}
	t.Wander = math.Expm1(stat.Wander(all))
	t.Changes = t.levelShifts(all, 1-h.confidence)
	if !t.Common.IsZero() && isTail(k.Metric) {
		t.Changes = changesInBoth(t.Changes, t.levelShifts(plain, 1-h.confidence))
	}
	return t, true
}

// changesInBoth returns the changes that are also in others, at the same run and with the same verdict.
func changesInBoth(changes, others []Shift) (both []Shift) {
	for _, c := range changes {
		if o, ok := each.First(others, func(o Shift) bool { return o.Run == c.Run && o.Verdict == c.Verdict }); ok {
			c.Share = max(c.Share, o.Share)
			both = append(both, c)
		}
	}
	return both
}

// quotientSeries returns the quotients of each cell to its base; nil if one is undefined, or the bases have different
// paths.
func quotientSeries(cells, bases []*Cell) [][]float64 {
	for _, b := range bases {
		if b == nil || b.Key != bases[0].Key {
			return nil
		}
	}
	both := comparableCells(slices.Concat(cells, bases)...)
	var series [][]float64
	for i := range cells {
		q := quotientsOf(both[i].Estimate, both[len(cells)+i].Estimate)
		if q == nil {
			return nil
		}
		series = append(series, q)
	}
	return series
}

// levelShifts returns the borders between levels of series, at the significance level alpha.
func (t *Track) levelShifts(series [][]float64, alpha float64) (all []Shift) {
	for _, c := range stat.Changes(series, t.Floor, alpha) {
		rose := c.Ratio > 1
		if math.IsNaN(c.Ratio) { // zeros have no ratio, but medians
			is, was := t.Points[c.At].Median, t.Points[lastKnownBefore(t.Points, c.At)].Median
			if is == was {
				continue
			}
			rose = is > was
		}
		all = append(all, Shift{Run: c.At, Effect: c.Effect, Share: c.Share, Verdict: betterOrWorse(directionOf(t.Metric), rose)})
	}
	return all
}

// lastKnownBefore returns the index of the last run before at that has a number, 0 if there is none.
func lastKnownBefore(ps []stat.Summary, at int) int {
	for at--; at > 0 && ps[at].N == 0; at-- {
	}
	return max(at, 0)
}

// correctChanges corrects the p values of changes for their family: the tracks of one profile, workload and metric, over all
// paths. It deletes all changes of a track whose most significant change may be chance after that. It sets Adjusted of the
// changes that remain.
func (h *History) correctChanges() {
	tracks := make([]*Track, len(h.Tracks))
	for i := range tracks {
		tracks[i] = &h.Tracks[i]
	}
	family := func(t *Track) (Key, float64, bool) { return t.columnKey(), t.smallestP(), true }
	correctFamilies(tracks, stat.Adjust, family, func(t *Track, adjusted float64, _ int) {
		p := t.smallestP()
		if adjusted > 1-h.Confidence {
			t.Changes = nil
		}
		for i := range t.Changes {
			c := &t.Changes[i]
			c.Adjusted = min(1, c.Share*adjusted/p)
		}
	})
}

// smallestP returns the p value of the most significant change, 1 without changes.
func (t Track) smallestP() float64 {
	p := 1.0
	for _, c := range t.Changes {
		p = min(p, c.Share)
	}
	return p
}

// Event is a change of one track, for a list of all changes.
type Event struct {
	Track
	Shift
}

// Events returns all changes, the newest run first, within it the largest first.
func (h *History) Events() []Event {
	var out []Event
	for _, t := range h.Tracks {
		for _, c := range t.Changes {
			out = append(out, Event{t, c})
		}
	}
	size := func(e Event) float64 {
		if s := math.Abs(math.Log(e.Ratio)); !math.IsNaN(s) {
			return s
		}
		return math.Inf(1)
	}
	slices.SortStableFunc(out, func(x, y Event) int { return cmp.Or(y.Run-x.Run, cmp.Compare(size(y), size(x))) })
	return out
}
