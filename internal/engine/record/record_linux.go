// Package record records what CPUs execute during one trial, as stacks of function names: the load threads' own work
// and the kernel's for them. The lab records its paths with it. On a cluster, a sampler records its node.
//
// Open prepares; Start, Finish and Close follow in this order.
package record

import (
	"errors"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
	"github.com/cnibench/cnibench/internal/kernel/bpf/space"
	"github.com/cnibench/cnibench/internal/kernel/perf"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// slack is how much longer than a trial the ring buffers can record.
const slack = 500 * time.Millisecond

// Options say what is recorded.
type Options struct {
	// CPUs are the CPUs to sample, Rate the number of samples per second and CPU.
	CPUs []int
	Rate int
	// Length is the longest time between Start and Finish.
	Length time.Duration
	// Tracker follows packets from one network namespace to the next. nil means that packets are not followed.
	// (optional)
	Tracker *space.Tracker
	// Count are the events that the CPUs count during the recording. With a Tracker they are not counted, because
	// following packets executes instructions, too. (optional)
	Count []perf.Event
}

// Recorder records one trial.
type Recorder struct {
	options Options
	sampler *perf.Sampler
	counted *perf.Counters
	// Missing describes what the machine did not allow, and what is unknown because of that.
	Missing []string
}

// Open prepares the events of the CPUs, and follows packets if there is a tracker. It fails without the right to
// sample.
func Open(o Options) (r *Recorder, err error) {
	r = &Recorder{options: o}
	if o.Tracker != nil {
		if err := o.Tracker.Follow(); err != nil {
			return nil, err
		}
	}
	if o.Tracker != nil {
		o.Count = nil
	}
	r.counted, err = perf.OpenCounters(o.Count, o.CPUs, o.Rate/2)
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	r.sampler, err = perf.Open(perf.Options{CPUs: o.CPUs, Rate: o.Rate, Length: o.Length + slack, Space: o.Tracker, Counters: r.counted})
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Start begins to take samples and to count.
func (r *Recorder) Start() error { return errors.Join(r.counted.Start(), r.sampler.Start()) }

// Close releases the events and stops following packets.
func (r *Recorder) Close() error {
	var err error
	if r.sampler != nil {
		err, r.sampler = r.sampler.Close(), nil
	}
	if r.counted != nil {
		err = errors.Join(err, r.counted.Close())
	}
	if r.options.Tracker != nil {
		err = errors.Join(err, r.options.Tracker.Rest())
	}
	return err
}

// Finish ends the sampling and returns the stacks within a window. Functions are named by the symbols at the time of
// this call.
func (r *Recorder) Finish(w Window) (*sample.Stacks, error) {
	if err := errors.Join(r.sampler.Stop(), r.counted.Stop()); err != nil {
		return nil, err
	}
	got, err := r.sampler.Read()
	if err != nil {
		return nil, err
	}
	missing := r.Missing
	symbols, err := perf.ReadKernel()
	if err != nil {
		missing = append(missing, sample.NoSymbols+": "+err.Error())
	}
	f := folder{Window: w, symbols: symbols, deepest: perf.Deepest(), stacks: &sample.Stacks{
		Event: r.sampler.Event, Rate: r.options.Rate, Lost: got.Lost, Throttled: got.Throttled, Missing: missing,
	}}
	if n := len(w.Slices); n > 0 {
		f.stacks.Counters = r.counted.Between(w.BeganNs, w.BeganNs+w.Slices[n-1].EndNs, w.CPUs)
	}
	for _, s := range got.List {
		f.addSample(s)
	}
	return f.stacks, nil
}

// Programs returns the counted runs of a trial whose window began at beganNs on this machine's monotonic clock.
func Programs(c *attach.RunCounter, beganNs int64) (*sample.Programs, error) {
	list, err := c.Read()
	return &sample.Programs{
		BeganNs: c.BeganNs - beganNs, EmptyNs: c.EmptyNs, List: each.Of(list, func(r attach.RunCount) sample.Program { return sample.Program(r) }),
	}, err
}
