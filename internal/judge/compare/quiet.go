package compare

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// What others do on a machine only makes it slower, and a fixed piece of work beside the load, the yardstick, shows by
// how much in each slice of a window. An undisturbed value is what the slices say of a machine at its full speed: those
// near it count most, and each is corrected by what its reading costs, as the slices of all cells show it. The
// percentiles are those of the times that began after an undisturbed reading.
//
// What a profile does to the yardstick belongs to the profile. Readings are compared with those of the same cell and side
// only, so that one that always reads more is not taken for a slow machine. A reading counts as its neighbours in time
// do, so that short bursts of the path's own do not pass for the machine's. What a cell would lose all the same, beyond
// what the others of the same repetitions lose, is given back (own.go). Rows that were measured at several speeds of the
// machine have no undisturbed values (speed.go). docs/explanation/undisturbed.md has what was measured.

const (
	// fastest is the share of readings that are taken for the machine's fastest, near the distance from it (a
	// logarithm) at which a slice counts half.
	fastest, near = 0.05, 0.05
	// tolerance is how much slower than the fastest a slice may be that is called undisturbed. The median of those is
	// the reading at full speed, to which slices are corrected.
	tolerance = 1.15
	// around is how far in time from a slice its neighbours are, in ns: the machine's state is the median of their
	// readings. The slow states of a machine last for hundreds of ms.
	around = 25_000_000
	// own is the least factor by which a slice costs more than its reading explains for that reading not to be believed.
	own = 1.2
	// fewestSlices is how many slices of each side a value of a trial needs.
	fewestSlices = 2
	// quietest is the weight that at least one repetition of a cell needs: without, the machine was never near full speed
	// when the cell was measured.
	quietest = 0.15
	// crowded is how many times slower than its full speed a machine may be in half of all slices. Beyond it nothing is
	// undisturbed: what is so far away does not measure full speed.
	crowded = 2
	// maxSlices bounds what is kept of a result.
	maxSlices = 4 << 20
)

// The clocks of a slice: CPU time and time itself.
const (
	cpuClock = iota
	wallClock
	clocks
)

// slice is the part of a sample.Interval that is kept: its time in ns by each clock, and the logarithm of the machine's
// reading.
type slice struct {
	work, yard float32
	time       [clocks]float32
}

// sliced are the slices of one side of a trial. Readings are compared with others of its place.
type sliced struct {
	place
	slices []slice
}

// place is where and under what a yardstick was read.
type place struct {
	machine string
	plan.Case
	server bool
}

// pieces are the slices of one trial, and its undisturbed percentiles.
type pieces struct {
	moment
	client, server sliced
	percentiles    map[string]float64
}

// estimator says what a metric is proportional to, whether the server's slices are a part of it, and whether its values are
// the undisturbed percentiles.
type estimator struct {
	of         func(client, server tempo) float64
	server     bool
	percentile bool
}

// estimators are the metrics of exchanges that have an undisturbed value. A median does not follow from sums, and the time
// to connect is a part of a transaction: both only count more where the machine was nearer to its full speed. So do the
// numbers of a stream, whose batches vary by themselves in both directions.
var estimators = map[string]estimator{
	metric.ServiceDemand:          {of: func(client, server tempo) float64 { return client.each(cpuClock) + server.each(cpuClock) }, server: true},
	metric.ClientCPU:              {of: func(client, _ tempo) float64 { return client.each(cpuClock) }},
	metric.ServerCPU:              {of: func(_, server tempo) float64 { return server.each(cpuClock) }, server: true},
	metric.TransactionRate:        {of: func(client, _ tempo) float64 { return 1 / client.each(wallClock) }},
	metric.RTT + ".mean":          {of: func(client, _ tempo) float64 { return client.each(wallClock) }},
	metric.ResponseTime + ".mean": {of: func(client, _ tempo) float64 { return client.each(wallClock) }},
	metric.RTT + ".p50":           {of: asRecorded},
	metric.ResponseTime + ".p50":  {of: asRecorded},
	metric.ConnectTime + ".p50":   {of: asRecorded},
	metric.ConnectTime + ".mean":  {of: asRecorded},
}

func asRecorded(_, _ tempo) float64 { return 1 }

// streamed are the metrics of streams that have an undisturbed value. Goodput has none: another program that takes the CPU takes
// time from it, which the yardstick does not see.
var streamed = map[string]estimator{
	metric.ServiceDemand: {of: asRecorded, server: true},
	metric.ClientCPU:     {of: asRecorded},
	metric.ServerCPU:     {of: asRecorded, server: true},
}

// estimator returns that of a metric of a case, of which there are so many values.
func (a *attempts) estimator(name string, recorded int) (e estimator, ok bool) {
	if a.Workload.Traits().Work == plan.Kilobyte {
		e, ok = streamed[name]
		return e, ok
	}
	have := 0
	for _, p := range a.pieces {
		if p.percentiles[name] > 0 {
			have++
		}
	}
	if have > 0 && have >= enoughOf(recorded) {
		return estimator{of: asRecorded, percentile: true}, true
	}
	e, ok = estimators[name]
	return e, ok
}

// enoughOf is how many of so many trials must have an undisturbed value.
func enoughOf(recorded int) int { return min(recorded, max(stat.MinRepetitions, (recorded+1)/2)) }

// tempo sums slices, each by its weight.
type tempo struct {
	weight, work float64
	time         [clocks]float64
}

// each is the time of a unit of work.
func (t tempo) each(clock int) float64 { return t.time[clock] / t.work }

// slice keeps the slices of a finished trial whose requests or messages follow each other in a closed loop.
func (c *Collector) slice(a *attempts, rec *result.Record) {
	is := a.Workload.Traits()
	if rec.Client == nil || rec.Server == nil || is.Open() || is.Interval > 0 || is.Searches || !is.Exchanges() && is.Work != plan.Kilobyte {
		return
	}
	p := pieces{moment{c.session, rec.Repetition, 0}, slicesOf(rec.Client, a.Case, false), slicesOf(rec.Server, a.Case, true), rec.Client.Undisturbed}
	c.cold = c.cold || slices.ContainsFunc(rec.Client.Intervals, func(i sample.Interval) bool { return i.ColdNs > 0 })
	if len(p.client.slices) == 0 || !kept(rec.Repetition, c.sliceLevel) {
		return
	}
	a.pieces = append(a.pieces, p)
	c.slices += len(p.client.slices) + len(p.server.slices)
	for c.slices > maxSlices {
		c.sliceLevel++
		for _, a := range c.cases {
			a.pieces = slices.DeleteFunc(a.pieces, func(p pieces) bool { return !kept(p.at, c.sliceLevel) })
		}
		c.slices = 0
		for s := range c.sides() {
			c.slices += len(s.slices)
		}
	}
}

// slicesOf returns the slices of a window that have all numbers.
func slicesOf(o *sample.Observation, of plan.Case, server bool) sliced {
	s := sliced{place: place{o.Machine, of, server}}
	var middles []int64
	for _, i := range o.Intervals {
		if !i.Warmup && i.Operations > 0 && i.CPUNs > 0 && i.YardNs > 0 && i.EndNs > i.StartNs {
			s.slices = append(s.slices, slice{float32(i.Operations), float32(math.Log(float64(i.YardNs))), [clocks]float32{float32(i.CPUNs), float32(i.EndNs - i.StartNs)}})
			middles = append(middles, (i.StartNs+i.EndNs)/2)
		}
	}
	s.smooth(middles)
	return s
}

// smooth replaces each reading by the median of those around it, of three at least, by the middles of the slices in time.
func (s *sliced) smooth(middles []int64) {
	raw := each.Of(s.slices, func(x slice) float32 { return x.yard })
	var near []float32
	for i := range s.slices {
		from, to := max(0, min(i-1, len(raw)-3)), min(len(raw), max(i+2, 3))
		for from > 0 && middles[i]-middles[from-1] <= around {
			from--
		}
		for to < len(raw) && middles[to]-middles[i] <= around {
			to++
		}
		near = append(near[:0], raw[from:to]...)
		slices.Sort(near)
		s.slices[i].yard = (near[(len(near)-1)/2] + near[len(near)/2]) / 2
	}
}

// quiet is what a result says of its machines: the fastest reading and that at full speed of each place; the slopes, by
// how much the time of a unit of work grows with the reading, both as logarithms; the weight of each repetition's moment;
// the share of slices near full speed; and how much slower than that half of all slices are.
type quiet struct {
	fastest, full  map[place]float64
	slope          map[plan.Workload][clocks]float64
	moments        map[moment]float64
	share, typical float64
	// alone says that the moments are known from the profiles alone, and cold that slices have readings that nothing is
	// judged by.
	alone, cold bool
	// mixed are the rows of which a profile was measured at a lower speed of the machine alone.
	mixed map[plan.Case]bool
}

// measureQuiet finds the full speed of each place, the slopes and the moments, which the profiles for reference tell where
// the result has them.
func (c *Collector) measureQuiet(reference func(plan.Variant) bool) quiet {
	q := quiet{fastest: map[place]float64{}, full: map[place]float64{}, slope: map[plan.Workload][clocks]float64{}, cold: c.cold}
	c.disbelieve(reference)
	readings := map[place][]float32{}
	for s, x := range c.all() {
		readings[s.place] = append(readings[s.place], x.yard)
	}
	var slower []float64
	below := 0
	for at, ys := range readings {
		slices.Sort(ys)
		first := fastestOf(ys)
		n, _ := slices.BinarySearch(ys, float32(first+math.Log(tolerance)))
		q.fastest[at], q.full[at] = first, float64(ys[n/2])
		below += n
		for _, y := range ys {
			slower = append(slower, float64(y)-q.full[at])
		}
	}
	if len(slower) > 0 {
		slices.Sort(slower)
		q.share, q.typical = float64(below)/float64(len(slower)), math.Exp(slower[len(slower)/2])
	}
	q.mixed = c.mixedRows(q)
	c.measureSlopes(q)
	q.moments = c.measureMoments(q, reference)
	if q.alone = len(q.moments) == 0; q.alone {
		q.moments = c.measureMoments(q, func(plan.Variant) bool { return true })
	}
	return q
}

// fastestOf is the fastest of sorted readings, but for a few that chance made so.
func fastestOf(sorted []float32) float64 { return float64(sorted[int(fastest*float64(len(sorted)))]) }

// sides are both sides of all trials, each with its trial.
func (c *Collector) sides() iter.Seq2[*sliced, *pieces] {
	return func(yield func(*sliced, *pieces) bool) {
		for _, a := range c.cases {
			for i := range a.pieces {
				p := &a.pieces[i]
				if !yield(&p.client, p) || !yield(&p.server, p) {
					return
				}
			}
		}
	}
}

// all are the slices of all sides.
func (c *Collector) all() iter.Seq2[*sliced, *slice] {
	return func(yield func(*sliced, *slice) bool) {
		for side := range c.sides() {
			for i := range side.slices {
				if !yield(side, &side.slices[i]) {
					return
				}
			}
		}
	}
}

// disbelieve replaces the readings of slices that cost far more than a machine as slow as the reading would make them, beyond what the
// profiles for reference show: the path itself was slow there, and the reading may be so for that. Such a slice has the median
// reading of its trial.
func (c *Collector) disbelieve(reference func(plan.Variant) bool) {
	beyond := func(x *slice) float64 { return math.Log(float64(x.time[cpuClock]/x.work)) - float64(x.yard) }
	places := map[place][]float64{}
	for s, x := range c.all() {
		places[s.place] = append(places[s.place], beyond(x))
	}
	usual := map[place]float64{}
	for at, xs := range places {
		usual[at] = stat.Median(xs)
	}
	machine := map[plan.Workload][]float64{}
	for s, x := range c.all() {
		if reference(s.Profile) {
			machine[s.Workload] = append(machine[s.Workload], beyond(x)-usual[s.place])
		}
	}
	bound := map[plan.Workload]float64{}
	for w, xs := range machine {
		slices.Sort(xs)
		bound[w] = xs[int(0.99*float64(len(xs)))]
	}
	medians := map[*sliced]float32{}
	for s, x := range c.all() {
		if beyond(x)-usual[s.place] <= max(math.Log(own), bound[s.Workload]) {
			continue
		}
		if _, known := medians[s]; !known {
			medians[s] = float32(stat.Median(each.Of(s.slices, func(x slice) float64 { return float64(x.yard) })))
		}
		x.yard = min(x.yard, medians[s])
	}
}

// measureMoments returns the mean weight of the slices of some profiles in each repetition.
func (c *Collector) measureMoments(q quiet, of func(plan.Variant) bool) map[moment]float64 {
	weights, counts := map[moment]float64{}, map[moment]float64{}
	for side, p := range c.sides() {
		if !of(side.Profile) {
			continue
		}
		for _, x := range side.slices {
			weights[p.moment] += x.weight(q.fastest[side.place])
			counts[p.moment]++
		}
	}
	for m := range weights {
		weights[m] /= counts[m]
	}
	return weights
}

// crowded says whether the machine was far from its full speed in each of the moments that a cell was measured at.
func (q quiet) crowded(trials []pieces) bool {
	return len(trials) > 0 && !slices.ContainsFunc(trials, func(p pieces) bool {
		weight, known := q.moments[p.moment]
		return !known || weight >= quietest
	})
}

// measureSlopes fits the time of a unit of work by each clock to the readings, within each cell and side, with one slope
// for all cells of a workload. Slices count by their weight, so it is the slope near full speed.
func (c *Collector) measureSlopes(q quiet) {
	type sums struct {
		weight, x, xx float64
		xy            [clocks]float64
	}
	means, all := map[place]sums{}, map[plan.Workload]sums{}
	for side, s := range c.all() {
		m, w := means[side.place], s.weight(q.fastest[side.place])
		m.weight, m.x = m.weight+w, m.x+w*float64(s.yard)
		means[side.place] = m
	}
	for side, s := range c.all() {
		m, sum := means[side.place], all[side.Workload]
		w, x := s.weight(q.fastest[side.place]), float64(s.yard)-m.x/m.weight
		sum.xx += w * x * x
		for clock, ns := range s.time {
			sum.xy[clock] += w * x * math.Log(float64(ns/s.work)) // distances from their mean sum to 0
		}
		all[side.Workload] = sum
	}
	for w, s := range all {
		var slope [clocks]float64
		for clock := range slope {
			if s.xx > 0 {
				slope[clock] = min(max(s.xy[clock]/s.xx, 0), 1)
			}
		}
		q.slope[w] = slope
	}
}

// weight is how much a slice counts: 1 among the fastest, half as much at the distance near.
func (s slice) weight(fastest float64) float64 {
	off := max(0, float64(s.yard)-fastest) / near
	return 1 / (1 + off*off)
}

// Undisturbed is the share of the slices of a result in which its machine ran at full speed. Measured is false if
// nothing says so, enough if undisturbed values can stand on them.
func (a *Analysis) Undisturbed() (share float64, measured, enough bool) {
	return a.quiet.share, len(a.quiet.full) > 0, a.quiet.enough()
}

// Alone says that a result has no bare path beside its profiles: what its machine did is then known from the profiles alone.
func (a *Analysis) Alone() bool { return a.quiet.alone }

// Cold says that a result was made when the yardstick was read with the caches of the path, so that nothing in it is undisturbed.
func (a *Analysis) Cold() bool { return a.quiet.cold }

// Weight is how much a slice of a case counts whose yardstick on the client's CPU of a machine read ns: 1 among the
// fastest. It is 1 where nothing is known of the machine's speed.
func (a *Analysis) Weight(machine string, of plan.Case, ns int64) float64 {
	fast, known := a.quiet.fastest[place{machine, of, false}]
	if !known || ns <= 0 {
		return 1
	}
	return slice{yard: float32(math.Log(float64(ns)))}.weight(fast)
}

func (q quiet) enough() bool { return q.typical <= crowded }

// tempos sums the slices of a side as they would be at full speed, and as they are.
func (q quiet) tempos(s sliced) (undisturbed, all tempo) {
	fast, full, slope := q.fastest[s.place], q.full[s.place], q.slope[s.Workload]
	for _, x := range s.slices {
		w := x.weight(fast)
		all.add(1, x)
		for clock := range x.time {
			x.time[clock] *= float32(math.Exp(-slope[clock] * (float64(x.yard) - full)))
		}
		undisturbed.add(w, x)
	}
	return undisturbed, all
}

// add adds a slice by its weight.
func (t *tempo) add(weight float64, s slice) {
	t.weight, t.work = t.weight+weight, t.work+weight*float64(s.work)
	for clock, ns := range s.time {
		t.time[clock] += weight * float64(ns)
	}
}

// undisturbed estimates a metric of a case from its recorded samples: each as its trial's undisturbed slices relate to
// all of them. It returns the number of those slices too, 0 if too few trials have enough of them.
func (a *attempts) undisturbed(q quiet, name string, recorded []Sample) (samples []Sample, n int) {
	estimate, ok := a.estimator(name, len(recorded))
	if !ok || !q.enough() || q.crowded(a.pieces) || q.mixed[rowOfCase(a.Case)] {
		return nil, 0
	}
	at := map[moment]Sample{}
	for _, s := range recorded {
		at[s.moment()] = s
	}
	weight := 0.0
	for _, p := range a.pieces {
		client, wholeClient := q.tempos(p.client)
		server, wholeServer := q.tempos(p.server)
		value, ok := at[p.moment]
		if !ok || estimate.percentile && p.percentiles[name] == 0 || wholeClient.weight < fewestSlices || estimate.server && wholeServer.weight < fewestSlices {
			continue
		}
		weight += client.weight + server.weight
		value.whole = value.Value
		value.Value *= estimate.of(client, server) / estimate.of(wholeClient, wholeServer)
		if estimate.percentile {
			value.Value = p.percentiles[name]
		}
		value.weight = (client.weight + server.weight) / (wholeClient.weight + wholeServer.weight)
		samples = append(samples, value)
	}
	if len(samples) < max(1, enoughOf(len(recorded))) {
		return nil, 0
	}
	slices.SortFunc(samples, func(x, y Sample) int { return cmp.Compare(x.Repetition, y.Repetition) })
	return samples, max(1, int(weight))
}
