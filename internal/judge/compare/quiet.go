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

// Other work on a machine only slows it down. A fixed piece of work during the load, the yardstick, shows by how much
// in each slice of a window. An undisturbed value estimates the value at the machine's full speed: slices near full
// speed count most, and each is corrected by the cost of its reading, fitted over the slices of all cells. The
// percentiles are of times that began after an undisturbed reading.
//
// A profile's own effect on the yardstick belongs to the profile. Readings are compared only within the same cell and
// side, so that a cell with high readings does not count as a slow machine. A reading is smoothed with its neighbours
// in time, so that short bursts of the path itself do not count as the machine's. If a cell would still lose more than
// the others in the same repetitions, the loss is given back (own.go). Rows that were measured at several speeds of the
// machine have no undisturbed values (speed.go). docs/explanation/undisturbed.md has the measurements.

const (
	// fastest is the share of readings that defines the machine's fastest state.
	// near is the distance from that state at which a slice counts half. Like readings, it is a logarithm.
	fastest, near = 0.05, 0.05
	// tolerance is how many times slower than the fastest a slice may be and still be called undisturbed. The median of
	// those slices is the reading at full speed, to which slices are corrected.
	tolerance = 1.15
	// around is the distance in time of a slice's neighbours, in ns: the machine's state is the median of their
	// readings. The slow states of a machine last for hundreds of ms.
	around = 25_000_000
	// own is the factor by which a slice may cost more than its reading explains. Beyond it the reading is not trusted.
	own = 1.2
	// fewestSlices is how many slices of each side a trial's value needs.
	fewestSlices = 2
	// quietest is the weight that at least one repetition of a cell needs. Otherwise the machine was never near full
	// speed when the cell was measured.
	quietest = 0.15
	// crowded is how many times slower than full speed a machine may be in half of all slices. Beyond it no value is
	// undisturbed, since full speed is too far away to estimate.
	crowded = 2
	// maxSlices bounds the slices that are kept of a result.
	maxSlices = 4 << 20
)

// The clocks of a slice: CPU time and time itself.
const (
	cpuClock = iota
	wallClock
	clocks
)

// slice is the kept part of a sample.Interval. work is the number of operations.
// read is the logarithm of the yardstick's reading, smoothed; yard is the same after replaceReadings.
// time is the time in ns by each clock.
type slice struct {
	work, read, yard float32
	time             [clocks]float32
}

// sliced has the slices of one side of a trial. Readings are compared only with readings of the same place.
type sliced struct {
	place
	slices []slice
}

// place identifies where, and under which case, a yardstick was read.
type place struct {
	machine string
	plan.Case
	server bool
}

// pieces has the slices of one trial, and its undisturbed percentiles.
type pieces struct {
	moment
	client, server sliced
	percentiles    map[string]float64
}

// estimator describes how the undisturbed value of a metric is estimated. of returns a number that the metric is
// proportional to.
// server is true if it needs the slices of the server. percentile is true if the values are the recorded undisturbed
// percentiles.
type estimator struct {
	of         func(client, server tempo) float64
	server     bool
	percentile bool
}

// estimators are the metrics of exchanges that have an undisturbed value. Medians and connect times are not scaled, only
// weighted by how near the machine was to full speed: a median does not follow from sums, and the connect time is only a
// part of a transaction.
var estimators = map[string]estimator{
	metric.ServiceDemand:          {of: func(client, server tempo) float64 { return client.timePerUnit(cpuClock) + server.timePerUnit(cpuClock) }, server: true},
	metric.ClientCPU:              {of: func(client, _ tempo) float64 { return client.timePerUnit(cpuClock) }},
	metric.ServerCPU:              {of: func(_, server tempo) float64 { return server.timePerUnit(cpuClock) }, server: true},
	metric.TransactionRate:        {of: func(client, _ tempo) float64 { return 1 / client.timePerUnit(wallClock) }},
	metric.RTT + ".mean":          {of: func(client, _ tempo) float64 { return client.timePerUnit(wallClock) }},
	metric.ResponseTime + ".mean": {of: func(client, _ tempo) float64 { return client.timePerUnit(wallClock) }},
	metric.RTT + ".p50":           {of: unitScale},
	metric.ResponseTime + ".p50":  {of: unitScale},
	metric.ConnectTime + ".p50":   {of: unitScale},
	metric.ConnectTime + ".mean":  {of: unitScale},
}

// unitScale is for metrics whose values are only weighted, not scaled.
func unitScale(_, _ tempo) float64 { return 1 }

// streamed are the metrics of streams that have an undisturbed value. They are only weighted: the batches of a stream
// vary by themselves in both directions. Goodput has none: other programs on the CPU take time from it that the
// yardstick does not show.
var streamed = map[string]estimator{
	metric.ServiceDemand: {of: unitScale, server: true},
	metric.ClientCPU:     {of: unitScale},
	metric.ServerCPU:     {of: unitScale, server: true},
}

// estimatorOf returns the estimator of a metric of a case; recorded is its number of values. ok is false if the metric has
// no undisturbed value.
func (a *attempts) estimatorOf(name string, recorded int) (e estimator, ok bool) {
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
	if have > 0 && have >= requiredTrials(recorded) {
		return estimator{of: unitScale, percentile: true}, true
	}
	e, ok = estimators[name]
	return e, ok
}

// requiredTrials returns how many of the recorded trials must have an undisturbed value.
func requiredTrials(recorded int) int { return min(recorded, max(stat.MinRepetitions, (recorded+1)/2)) }

// tempo is a weighted sum of slices.
type tempo struct {
	weight, work float64
	time         [clocks]float64
}

// timePerUnit returns the time of a unit of work by a clock, in ns.
func (t tempo) timePerUnit(clock int) float64 { return t.time[clock] / t.work }

// addSlices keeps the slices of a finished trial whose requests or messages form a closed loop. If there are too many
// slices, it drops those of some repetitions.
func (c *Collector) addSlices(a *attempts, rec *result.Record) {
	is := a.Workload.Traits()
	if rec.Client == nil || rec.Server == nil || is.Open() || is.Interval > 0 || is.Searches || !is.Exchanges() && is.Work != plan.Kilobyte {
		return
	}
	p := pieces{moment{c.session, rec.Repetition, 0}, slicesOf(rec.Client, a.Case, false), slicesOf(rec.Server, a.Case, true), rec.Client.Undisturbed}
	c.cold = c.cold || slices.ContainsFunc(rec.Client.Intervals, func(i sample.Interval) bool { return i.ColdNs > 0 })
	if len(p.client.slices) == 0 || !survivesThinning(rec.Repetition, c.sliceLevel) {
		return
	}
	a.pieces = append(a.pieces, p)
	c.slices += len(p.client.slices) + len(p.server.slices)
	for c.slices > maxSlices {
		c.sliceLevel++
		for _, a := range c.cases {
			a.pieces = slices.DeleteFunc(a.pieces, func(p pieces) bool { return !survivesThinning(p.at, c.sliceLevel) })
		}
		c.slices = 0
		for s := range c.allSides() {
			c.slices += len(s.slices)
		}
	}
}

// slicesOf returns the slices of a window, without the warm-up and without slices that lack a number. The readings are
// smoothed.
func slicesOf(o *sample.Observation, of plan.Case, server bool) sliced {
	s := sliced{place: place{o.Machine, of, server}}
	var middles []int64
	for _, i := range o.Intervals {
		if !i.Warmup && i.Operations > 0 && i.CPUNs > 0 && i.YardNs > 0 && i.EndNs > i.StartNs {
			s.slices = append(s.slices, slice{work: float32(i.Operations), read: float32(math.Log(float64(i.YardNs))), time: [clocks]float32{float32(i.CPUNs), float32(i.EndNs - i.StartNs)}})
			middles = append(middles, (i.StartNs+i.EndNs)/2)
		}
	}
	s.smoothReadings(middles)
	return s
}

// smoothReadings replaces each reading by the median of the readings around it, at least three. middles are the middles
// of the slices in time.
func (s *sliced) smoothReadings(middles []int64) {
	raw := each.Of(s.slices, func(x slice) float32 { return x.read })
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
		s.slices[i].read = (near[(len(near)-1)/2] + near[len(near)/2]) / 2
	}
}

// quiet holds what is known about the speed of the machines of a result.
type quiet struct {
	// fastest and full are the logarithms of the fastest reading of each place and of its reading at full speed.
	fastest, full map[place]float64
	// slope is the exponent with which the time of a unit of work grows with the reading.
	slope map[plan.Workload][clocks]float64
	// moments has the mean weight of the slices of each repetition.
	moments map[moment]float64
	// share is the share of the slices near full speed.
	// typical is the median factor by which slices are slower than full speed.
	share, typical float64
	// alone is true if there is no reference profile, so that moments is from all profiles.
	// cold is true if slices have readings that cannot be used.
	alone, cold bool
	// mixed are the rows in which a profile was measured only at a lower speed of the machine.
	mixed map[plan.Case]bool
}

// measureQuiet estimates the speed of the machine. It finds the full speed of each place, how much work slows down with
// the reading (slopes), and how near each repetition was to full speed (moments). Moments come from the reference
// profiles if there are any. It also replaces implausible readings in c.
func (c *Collector) measureQuiet(reference func(plan.Variant) bool) quiet {
	q := quiet{fastest: map[place]float64{}, full: map[place]float64{}, slope: map[plan.Workload][clocks]float64{}, cold: c.cold}
	c.replaceReadings(reference)
	readings := map[place][]float32{}
	for s, x := range c.allSlices() {
		readings[s.place] = append(readings[s.place], x.yard)
	}
	var slower []float64
	below := 0
	for at, ys := range readings {
		slices.Sort(ys)
		first := fastestReading(ys)
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

// fastestReading returns the fastest of sorted readings, without the few that were fastest by chance.
func fastestReading(sorted []float32) float64 {
	return float64(sorted[int(fastest*float64(len(sorted)))])
}

// allSides returns both sides of all trials, each with its trial.
func (c *Collector) allSides() iter.Seq2[*sliced, *pieces] {
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

// allSlices returns the slices of all sides.
func (c *Collector) allSlices() iter.Seq2[*sliced, *slice] {
	return func(yield func(*sliced, *slice) bool) {
		for side := range c.allSides() {
			for i := range side.slices {
				if !yield(side, &side.slices[i]) {
					return
				}
			}
		}
	}
}

// replaceReadings corrects the readings of slices that cost far more than their reading explains, beyond what the
// reference profiles show: the path itself was slow there, and that may have caused the reading. Such a slice gets the
// median reading of its trial if that is faster.
func (c *Collector) replaceReadings(reference func(plan.Variant) bool) {
	beyond := func(x *slice) float64 { return math.Log(float64(x.time[cpuClock]/x.work)) - float64(x.yard) }
	places := map[place][]float64{}
	for s, x := range c.allSlices() {
		x.yard = x.read
		places[s.place] = append(places[s.place], beyond(x))
	}
	usual := map[place]float64{}
	for at, xs := range places {
		usual[at] = stat.Median(xs)
	}
	machine := map[plan.Workload][]float64{}
	for s, x := range c.allSlices() {
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
	for s, x := range c.allSlices() {
		if beyond(x)-usual[s.place] <= max(math.Log(own), bound[s.Workload]) {
			continue
		}
		if _, known := medians[s]; !known {
			medians[s] = float32(stat.Median(each.Of(s.slices, func(x slice) float64 { return float64(x.yard) })))
		}
		x.yard = min(x.yard, medians[s])
	}
}

// measureMoments returns the mean weight of the slices in each repetition, for the profiles that of selects.
func (c *Collector) measureMoments(q quiet, of func(plan.Variant) bool) map[moment]float64 {
	weights, counts := map[moment]float64{}, map[moment]float64{}
	for side, p := range c.allSides() {
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

// alwaysCrowded reports whether the machine was far from full speed in every moment at which a cell was measured.
func (q quiet) alwaysCrowded(trials []pieces) bool {
	return len(trials) > 0 && !slices.ContainsFunc(trials, func(p pieces) bool {
		weight, known := q.moments[p.moment]
		return !known || weight >= quietest
	})
}

// measureSlopes fits the time of a unit of work by each clock to the readings, within each cell and side, with one
// slope for all cells of a workload. Slices count by their weight, so it is the slope near full speed.
func (c *Collector) measureSlopes(q quiet) {
	type sums struct {
		weight, x, xx float64
		xy            [clocks]float64
	}
	means, all := map[place]sums{}, map[plan.Workload]sums{}
	for side, s := range c.allSlices() {
		m, w := means[side.place], s.weight(q.fastest[side.place])
		m.weight, m.x = m.weight+w, m.x+w*float64(s.yard)
		means[side.place] = m
	}
	for side, s := range c.allSlices() {
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

// weight returns how much a slice counts: 1 among the fastest, half as much at the distance near.
func (s slice) weight(fastest float64) float64 {
	off := max(0, float64(s.yard)-fastest) / near
	return 1 / (1 + off*off)
}

// Undisturbed returns the share of a result's slices in which its machine ran at full speed. measured is false if there
// are no readings. enough is false if the machine was too slow in half of all slices for undisturbed values.
func (a *Analysis) Undisturbed() (share float64, measured, enough bool) {
	return a.quiet.share, len(a.quiet.full) > 0, a.quiet.fastEnough()
}

// Alone reports whether the state of the machine is known only from the profiles, because no bare path was measured. It
// is also true if there are no readings at all.
func (a *Analysis) Alone() bool { return a.quiet.alone }

// Cold reports whether a result is from a version that read the yardstick with the path's caches, so that no value is
// undisturbed.
func (a *Analysis) Cold() bool { return a.quiet.cold }

// Weight returns how much a slice of a case counts, given that the yardstick on the client's CPU took ns: 1 among the
// fastest. It is 1 if the machine's speed is unknown.
func (a *Analysis) Weight(machine string, of plan.Case, ns int64) float64 {
	fast, known := a.quiet.fastest[place{machine, of, false}]
	if !known || ns <= 0 {
		return 1
	}
	return slice{yard: float32(math.Log(float64(ns)))}.weight(fast)
}

func (q quiet) fastEnough() bool { return q.typical <= crowded }

// tempos returns two sums over the slices of a side: weighted and corrected to full speed, and as measured.
func (q quiet) tempos(s sliced) (undisturbed, all tempo) {
	fast, full, slope := q.fastest[s.place], q.full[s.place], q.slope[s.Workload]
	for _, x := range s.slices {
		w := x.weight(fast)
		all.addSlice(1, x)
		for clock := range x.time {
			x.time[clock] *= float32(math.Exp(-slope[clock] * (float64(x.yard) - full)))
		}
		undisturbed.addSlice(w, x)
	}
	return undisturbed, all
}

// addSlice adds a slice with its weight.
func (t *tempo) addSlice(weight float64, s slice) {
	t.weight, t.work = t.weight+weight, t.work+weight*float64(s.work)
	for clock, ns := range s.time {
		t.time[clock] += weight * float64(ns)
	}
}

// undisturbedSamples estimates a metric of a case from its recorded samples: each is scaled by the ratio of its trial's
// undisturbed slices to all its slices. It also returns the number of those slices, 0 if too few trials have enough of
// them.
func (a *attempts) undisturbedSamples(q quiet, name string, recorded []Sample) (samples []Sample, n int) {
	estimate, ok := a.estimatorOf(name, len(recorded))
	if !ok || !q.fastEnough() || q.alwaysCrowded(a.pieces) || q.mixed[rowOfCase(a.Case)] {
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
	if len(samples) < max(1, requiredTrials(len(recorded))) {
		return nil, 0
	}
	slices.SortFunc(samples, func(x, y Sample) int { return cmp.Compare(x.Repetition, y.Repetition) })
	return samples, max(1, int(weight))
}
