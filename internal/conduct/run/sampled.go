package run

import (
	"context"
	"errors"
	"time"

	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// kindNotSampled is the failure of a sampled trial without samples. kindNotCounted is the failure of a counted trial without
// counts.
const (
	kindNotSampled = "not sampled"
	kindNotCounted = "not counted"
)

var errNoSampling = errors.New("this environment cannot sample the CPUs of a path")

// recording takes the CPU samples, or counts the runs of BPF programs, of one trial. failed is the error of Start.
type recording struct {
	env.Recording
	window time.Duration
	failed error
}

// start starts the recording. Call it when both sides run. A nil recording does nothing.
func (r *recording) start() {
	if r != nil {
		r.failed = r.Start()
	}
}

// explainTrial repeats a trial with CPU samples, if the plan asks for it, and in some repetitions once more to count
// BPF program runs. A failed sampled trial is recorded with its error and not retried. It returns a reason if the run
// was interrupted; it fails if a record cannot be written.
func (c *conductor) explainTrial(ctx context.Context, t plan.Trial) (reason string, err error) {
	if !c.plan.Explain || c.memory.sampled[t] || mannerOf(t.Workload.Kind()).opaque || t.Workload.Tool != "" {
		return "", nil
	}
	recs, ok := []result.Record{{Type: result.TypeSampled, Error: &result.Failure{Kind: kindNotSampled}}}, true
	recs[0], ok = c.recordTrial(ctx, t, recs[0], func() (env.Recording, error) {
		site, ok := c.env.At(t.Profile).(env.Sampler)
		if !ok {
			return env.Recording{}, errNoSampling
		}
		return site.Sample(t.Profile, t.Path, c.plan.Warmup+c.plan.SampledWindow())
	})
	if s := recs[0].Stacks; ok && s != nil && s.HasPrograms() && t.Counts() {
		recs = append(recs, result.Record{Type: result.TypeCounted, Error: &result.Failure{Kind: kindNotCounted}})
		recs[1], ok = c.recordTrial(ctx, t, recs[1], func() (env.Recording, error) {
			return c.env.At(t.Profile).(env.Sampler).Count(t.Profile, t.Path, c.plan.Warmup+c.plan.Duration)
		})
	}
	if !ok {
		return result.Interrupted, nil
	}
	for i := range recs {
		if err := errors.Join(c.out.Append(recs[i]), c.rememberRecord(&recs[i])); err != nil {
			return "", err
		}
	}
	return "", nil
}

// recordTrial measures a trial with the recording that prepare returns. as has the type of the record, and the kind
// of failure of a trial that succeeded but recorded nothing. ok is false if ctx ended first.
func (c *conductor) recordTrial(ctx context.Context, t plan.Trial, as result.Record, prepare func() (env.Recording, error)) (rec result.Record, ok bool) {
	own, err := prepare()
	if err != nil {
		as.Trial, as.Status, as.Started, as.Error.Message = t, result.Failed, time.Now().UTC(), err.Error()
		return as, ctx.Err() == nil
	}
	r := &recording{Recording: own, window: c.plan.Duration}
	if as.Type == result.TypeSampled {
		r.window = c.plan.SampledWindow()
	}
	rec, ok = c.measureTrial(ctx, t, r)
	rec.Type = as.Type
	seen, err := r.Finish(rec.Client, rec.Server)
	if err = errors.Join(r.failed, err); err != nil && rec.Status == result.OK {
		as.Error.Message = err.Error()
		rec.Status, rec.Error, seen = result.Failed, as.Error, sample.Recorded{}
	}
	if per := rec.Metrics[metric.ClientCPU]; per > 0 {
		units := float64(rec.Client.CPU.ThreadsNs) / per
		if p := seen.Programs; p != nil {
			p.Units = units * sample.Windows(rec.Client.Intervals, p.BeganNs)
		}
		if s := seen.Stacks; s != nil {
			addCounters(rec.Metrics, s.Counters, units)
		}
	}
	rec.Client, rec.Server, rec.Stacks, rec.Programs = reducedObservation(rec.Client), reducedObservation(rec.Server), seen.Stacks, seen.Programs
	return rec, ok
}

// addCounters adds the processor's counters to the metrics, divided by the units of work, and the cycles per instruction.
func addCounters(to, counters map[string]float64, units float64) {
	for name, n := range counters {
		to[name] = n / units
	}
	if n := to[metric.Instructions]; n > 0 && to[metric.Cycles] > 0 {
		to[metric.CyclesPer] = to[metric.Cycles] / n
	}
}

// reducedObservation returns the part of an observation that the record of a sampled or counted trial keeps: its intervals,
// CPU time and totals. It returns nil for nil.
func reducedObservation(o *sample.Observation) *sample.Observation {
	if o == nil {
		return nil
	}
	return &sample.Observation{Side: o.Side, Machine: o.Machine, ElapsedNs: o.ElapsedNs, Operations: o.Operations, Intervals: o.Intervals, CPU: o.CPU}
}
