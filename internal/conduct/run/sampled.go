package run

import (
	"context"
	"errors"
	"time"

	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

// kindNotSampled is the failure of a sampled trial without samples.
const kindNotSampled = "not sampled"

var errNoSampling = errors.New("this environment cannot sample the CPUs of a path")

// recording is that of one trial.
type recording struct {
	env.Recording
	failed error
}

// start begins to take samples, once both sides run. nil records nothing.
func (r *recording) start() {
	if r != nil {
		r.failed = r.Start()
	}
}

// explain measures a trial once more, with samples of its CPUs, if the plan asks for it. Its record says why there are none.
// A trial that has failed is not repeated.
func (c *conductor) explain(ctx context.Context, t plan.Trial) (reason string, err error) {
	if !c.plan.Explain || c.memory.sampled[t] || t.Workload.Traits().Searches || t.Workload.Tool != "" {
		return "", nil
	}
	rec, ok := c.sample(ctx, t)
	if !ok {
		return result.Interrupted, nil
	}
	if err := c.out.Append(rec); err != nil {
		return "", err
	}
	return "", c.keep(&rec)
}

// sample is a sampled trial. ok is false if ctx ended first.
func (c *conductor) sample(ctx context.Context, t plan.Trial) (rec result.Record, ok bool) {
	r, err := c.record(t)
	if err != nil {
		rec = result.Record{Trial: t, Status: result.Failed, Started: time.Now().UTC()}
		rec.Type, rec.Error = result.TypeSampled, &result.Failure{Kind: kindNotSampled, Message: err.Error()}
		return rec, ctx.Err() == nil
	}
	c.recording = r
	rec, ok = c.trial(ctx, t)
	c.recording = nil
	rec.Type = result.TypeSampled
	stacks, err := r.Finish(rec.Client, rec.Server)
	if err = errors.Join(r.failed, err); err != nil && rec.Status == result.OK {
		rec.Status, rec.Error = result.Failed, &result.Failure{Kind: kindNotSampled, Message: err.Error()}
		stacks = nil
	}
	rec.Client, rec.Server, rec.Stacks = sliced(rec.Client), sliced(rec.Server), stacks
	return rec, ok
}

// record prepares the recording of a trial.
func (c *conductor) record(t plan.Trial) (*recording, error) {
	if c.can.Sample == nil {
		return nil, errNoSampling
	}
	r, err := c.can.Sample(t.Profile, t.Path, c.plan.Warmup+c.plan.SampledWindow())
	return &recording{Recording: r}, err
}

// sliced is the part of an observation by which samples are weighed.
func sliced(o *sample.Observation) *sample.Observation {
	if o == nil {
		return nil
	}
	return &sample.Observation{Side: o.Side, Machine: o.Machine, ElapsedNs: o.ElapsedNs, Operations: o.Operations, Intervals: o.Intervals, CPU: o.CPU}
}
