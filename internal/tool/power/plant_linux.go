package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/kernel/bpf/spin"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/kernel/thread"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/tool/planting"
)

const (
	// A slice of a window lasts 10 to 50 ms. One of each cycle has the cost.
	slice = 15 * time.Millisecond
	cycle = 10
	duty  = 1.0 / cycle
)

// kind is a cost that comes in pieces.
type kind struct {
	name string
	// probe is how many tell what one costs.
	probe int
	// plant has each packet that a node takes in from its network, or forwards, pay for n pieces, in place of what was planted
	// there before. What it returns is closed in the end; (optional).
	plant func(ctx context.Context, node *netns.NS, n int) (io.Closer, error)
	// standing costs are paid while another profile is measured, too.
	standing bool
	// duty is the part of each period in which packets pay, and as the kind whose pieces cost the same all the time; (optional).
	duty float64
	as   *kind
}

var (
	rules        = &kind{name: "rules", probe: 400, plant: planting.Rules}
	instructions = &kind{name: "turns of a loop of two instructions", probe: 10_000, plant: bpf(spin.Attach)}
	copies       = &kind{name: fmt.Sprintf("copies of %d bytes", spin.Copied), probe: 400, plant: bpf(spin.Copy)}
	walks        = &kind{name: fmt.Sprintf("cache lines of a map of %d KB", spin.Walked>>10), probe: 400, plant: bpf(spin.Walk)}
	burst5       = burst(5 * time.Millisecond)
	burst10      = burst(10 * time.Millisecond)
)

// period is the time from one burst to the next.
const period = 100 * time.Millisecond

// burst has packets pay for a part of each period.
func burst(part time.Duration) *kind {
	plant := bpf(func(ns *netns.NS, device string, n int32) (io.Closer, error) {
		return spin.Burst(ns, device, n, part, period)
	})
	return &kind{
		name: fmt.Sprintf("turns of a loop of two instructions, for %s in each %s", part, period), plant: plant,
		duty: float64(part) / float64(period), as: instructions,
	}
}

// bpf plants a program that works n times.
func bpf(attach func(*netns.NS, string, int32) (io.Closer, error)) func(context.Context, *netns.NS, int) (io.Closer, error) {
	return func(_ context.Context, node *netns.NS, n int) (io.Closer, error) {
		if n == 0 {
			return nil, nil
		}
		return attach(node, dataplane.NIC, int32(n))
	}
}

// target is the profile that has the cost.
func (r row) target() plan.Variant {
	if r.twin {
		return subject.Twin()
	}
	return subject
}

// piled plants so many pieces of a row's cost.
func (r row) piled(pieces int) func(context.Context, *netns.NS) (io.Closer, error) {
	return func(ctx context.Context, node *netns.NS) (io.Closer, error) { return r.of.plant(ctx, node, pieces) }
}

// disturb is the timer: in each cycle the rules come for one slice, or a thread of this program takes the CPU of the path for
// as long. It ends with ctx.
func (r row) disturb(ctx context.Context, p *planting.Lab) error {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	if r.when == apart {
		if err := thread.SetCPUs([]int{runtime.NumCPU() - 1}); err != nil { // where the lab places the load
			return err
		}
	}
	tick := time.NewTicker(slice)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := r.turn(ctx, p, n%cycle); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// turn begins a slice of a cycle: the first has the cost.
func (r row) turn(ctx context.Context, p *planting.Lab, n int) error {
	switch {
	case n == 0 && r.when == apart:
		for until := time.Now().Add(slice); time.Now().Before(until); {
		}
	case n < 2 && r.when == sliced:
		return p.Replant(ctx, r.piled(r.pieces*(1-n)))
	}
	return nil
}

// measure runs the plan with the cost of a row.
func (c campaign) measure(ctx context.Context, r row, file string) error {
	p := plan.Default()
	p.Name, p.Environment, p.Profiles = "power", plan.EnvLab, []plan.Variant{plan.VariantOf(profile.Raw), subject}
	p.Repetitions, p.Duration = repetitions, window
	if r.twin {
		p.Profiles, p.Baseline, p.Repetitions = []plan.Variant{subject}, subject, weighed
	}
	w, err := plan.ParseWorkload(r.workload)
	if err != nil {
		return err
	}
	p.Workloads = []plan.Workload{w}
	cost := planting.Cost{Program: c.program, Of: r.target(), Spaces: planting.Nodes, At: r.piled(r.pieces)}
	if r.when != always {
		cost.At, cost.Beside = r.piled(0), r.disturb
	}
	return cost.Measure(ctx, p, path, file)
}
