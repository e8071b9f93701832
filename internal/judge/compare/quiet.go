package compare

import (
	"cmp"
	"slices"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// What others do on a machine only makes it slower, and a fixed piece of work beside the load, the yardstick, tells the
// slices of a window that it struck from those that it did not. An undisturbed value stands on the latter. The
// yardstick knows nothing of the path, so what makes a dataplane slow now and then stays in the value. docs/method.md
// has what was measured.

const (
	// fastest is the share of a machine's readings that is taken for its full speed, tolerance how much slower a slice
	// may be that still counts as undisturbed.
	fastest, tolerance = 0.05, 1.15
	// quietSlices is the least number of undisturbed slices of each side for a value of a trial.
	quietSlices = 2
	// seldom is the share of slices below which a machine is called never quiet, and nothing undisturbed.
	seldom = 0.25
	// maxSlices bounds what is kept of a result.
	maxSlices = 4 << 20
)

// slice is the part of a sample.Interval that is kept.
type slice struct{ work, cpu, yard float32 }

// slices of one side of a trial, and the machine that it ran on.
type sliced struct {
	machine string
	slices  []slice
}

// pieces are the slices of one trial.
type pieces struct {
	repetition     int
	client, server sliced
}

// estimator says what a metric is proportional to, and whether the server's slices are a part of it.
type estimator struct {
	of     func(client, server tempo) float64
	server bool
}

// estimators are the metrics that have an undisturbed value: those of CPU clocks. Rates and times also hold the time in
// which others had the CPU, which the yardstick does not see.
var estimators = map[string]estimator{
	metric.ServiceDemand: {func(client, server tempo) float64 { return client.demand() + server.demand() }, true},
	metric.ClientCPU:     {func(client, _ tempo) float64 { return client.demand() }, false},
	metric.ServerCPU:     {func(_, server tempo) float64 { return server.demand() }, true},
}

// tempo sums slices.
type tempo struct {
	n         int
	work, cpu float64
}

func (t *tempo) add(s slice) {
	t.n++
	t.work, t.cpu = t.work+float64(s.work), t.cpu+float64(s.cpu)
}

func (t tempo) demand() float64 { return t.cpu / t.work }

// slice keeps the slices of a finished trial whose requests follow each other in a closed loop.
func (c *Collector) slice(a *attempts, rec *result.Record) {
	is := a.Workload.Traits()
	if rec.Client == nil || rec.Server == nil || is.Open() || is.Interval > 0 || is.Work != plan.Transaction && is.Work != plan.Request {
		return
	}
	p := pieces{rec.Repetition, slicesOf(rec.Client), slicesOf(rec.Server)}
	if len(p.client.slices) == 0 || !kept(rec.Repetition, c.sliceLevel) {
		return
	}
	a.pieces = append(a.pieces, p)
	c.slices += len(p.client.slices) + len(p.server.slices)
	for c.slices > maxSlices {
		c.sliceLevel++
		c.slices = 0
		for _, a := range c.cases {
			a.pieces = slices.DeleteFunc(a.pieces, func(p pieces) bool { return !kept(p.repetition, c.sliceLevel) })
			for _, p := range a.pieces {
				c.slices += len(p.client.slices) + len(p.server.slices)
			}
		}
	}
}

// slicesOf returns the slices of a window that have all numbers.
func slicesOf(o *sample.Observation) sliced {
	s := sliced{machine: o.Machine}
	for _, i := range o.Intervals {
		if !i.Warmup && i.Operations > 0 && i.CPUNs > 0 && i.YardNs > 0 {
			s.slices = append(s.slices, slice{float32(i.Operations), float32(i.CPUNs), float32(i.YardNs)})
		}
	}
	return s
}

// quiet is what a result says of its machines: the slowest reading of an undisturbed slice on each, and the share of
// such slices.
type quiet struct {
	limit map[string]float32
	share float64
}

// measureQuiet finds the full speed of each machine.
func (c *Collector) measureQuiet() quiet {
	readings := map[string][]float32{}
	for _, a := range c.cases {
		for _, p := range a.pieces {
			for _, side := range []sliced{p.client, p.server} {
				for _, s := range side.slices {
					readings[side.machine] = append(readings[side.machine], s.yard)
				}
			}
		}
	}
	q := quiet{limit: map[string]float32{}}
	all, below := 0, 0
	for machine, ys := range readings {
		slices.Sort(ys)
		limit := tolerance * ys[int(fastest*float64(len(ys)))]
		n, _ := slices.BinarySearch(ys, limit)
		q.limit[machine] = limit
		all, below = all+len(ys), below+n
	}
	if all > 0 {
		q.share = float64(below) / float64(all)
	}
	return q
}

// Undisturbed is the share of the slices of a result in which its machine ran at full speed. Measured is false if
// nothing says so, enough if undisturbed values can stand on them.
func (a *Analysis) Undisturbed() (share float64, measured, enough bool) {
	return a.quiet.share, len(a.quiet.limit) > 0, a.quiet.share >= seldom
}

// tempos sums the undisturbed slices of a side, and all.
func (q quiet) tempos(s sliced) (undisturbed, all tempo) {
	for _, x := range s.slices {
		all.add(x)
		if x.yard <= q.limit[s.machine] {
			undisturbed.add(x)
		}
	}
	return undisturbed, all
}

// undisturbed estimates a metric of a case from its recorded samples: each as its trial's undisturbed slices relate to
// all of them. It returns the number of those slices too, 0 if too few trials have enough of them.
func (a *attempts) undisturbed(q quiet, name string, recorded []Sample) (samples []Sample, n int) {
	estimate, ok := estimators[name]
	if !ok || q.share < seldom {
		return nil, 0
	}
	at := map[int]Sample{}
	for _, s := range recorded {
		at[s.Repetition] = s
	}
	for _, p := range a.pieces {
		client, wholeClient := q.tempos(p.client)
		server, wholeServer := q.tempos(p.server)
		value, ok := at[p.repetition]
		if !ok || client.n < quietSlices || estimate.server && server.n < quietSlices {
			continue
		}
		n += client.n + server.n
		value.Value *= estimate.of(client, server) / estimate.of(wholeClient, wholeServer)
		samples = append(samples, value)
	}
	if len(samples) < min(len(recorded), max(stat.MinRepetitions, (len(recorded)+1)/2)) {
		return nil, 0
	}
	slices.SortFunc(samples, func(x, y Sample) int { return cmp.Compare(x.Repetition, y.Repetition) })
	return samples, n
}
