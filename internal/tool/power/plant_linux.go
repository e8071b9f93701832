package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/conduct/run"
	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/env/lab/testbed"
	"github.com/cnibench/cnibench/internal/kernel/bpf/spin"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/kernel/nft"
	"github.com/cnibench/cnibench/internal/kernel/thread"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
)

// unused is an address that no packet has: a rule about it costs its comparison.
var unused = netip.MustParseAddr("203.0.113.1")

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
	rules        = &kind{name: "rules", probe: 400, plant: plantRules}
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

// plantRules replaces the rules of a node by n that no packet matches.
func plantRules(ctx context.Context, node *netns.NS, n int) (io.Closer, error) {
	table := nft.NewTable(nft.IPv4, "planted")
	chain := table.Base("forward", nft.Hook{Type: "filter", Hook: "forward", Priority: nft.RawPriority})
	for range n {
		chain.Add(nft.Is(nft.SourceAddr, unused), nft.Drop)
	}
	return nil, nft.Replace(ctx, node, table)
}

// planted is the lab with a cost on the nodes of the subject.
type planted struct {
	*testbed.Environment
	row
	// mu is held while rules are changed: instances are raised while others' rules come and go.
	mu *sync.Mutex
	// links hold programs on devices that go with their instance.
	links *[]io.Closer
}

// At returns the lab with the cost.
func (p planted) At(plan.Variant) env.Site { return p }

// Renew raises variants anew and plants the cost again.
func (p planted) Renew(ctx context.Context, names []plan.Variant) map[plan.Variant]error {
	p.mu.Lock()
	defer p.mu.Unlock()
	stands := p.Environment.Renew(ctx, names)
	if err, there := stands[p.target()]; there && err == nil {
		stands[p.target()] = p.begin(ctx)
	}
	return stands
}

// target is the profile that has the cost.
func (r row) target() plan.Variant {
	if r.twin {
		return subject.Twin()
	}
	return subject
}

// begin makes a new instance ready.
func (p planted) begin(ctx context.Context) error {
	if p.when == always {
		return p.plant(ctx, p.pieces)
	}
	return p.plant(ctx, 0)
}

// plant has the nodes of the target cost that many pieces.
func (p planted) plant(ctx context.Context, pieces int) error {
	inst := p.Instance(p.target())
	if inst == nil {
		return fmt.Errorf("%s does not stand", p.target())
	}
	var errs []error
	for _, n := range inst.Nodes {
		c, err := p.of.plant(ctx, n.NS, pieces)
		if errs = append(errs, err); c != nil {
			*p.links = append(*p.links, c)
		}
	}
	return errors.Join(errs...)
}

// disturb is the timer: in each cycle the rules come for one slice, or a thread of this program takes the CPU of the path for
// as long. It ends with ctx.
func (p planted) disturb(ctx context.Context) error {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	if p.when == apart {
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
		if err := p.turn(ctx, n%cycle); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// turn begins a slice of a cycle: the first has the cost.
func (p planted) turn(ctx context.Context, n int) error {
	switch {
	case n == 0 && p.when == apart:
		for until := time.Now().Add(slice); time.Now().Before(until); {
		}
	case n < 2 && p.when == sliced:
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.plant(ctx, p.pieces*(1-n))
	}
	return nil
}

// measure runs the plan with the cost of a row.
func (c campaign) measure(ctx context.Context, r row, file string) (err error) {
	p := plan.Default()
	p.Name, p.Environment, p.Profiles = "power", plan.EnvLab, []plan.Variant{profile.Raw, subject}
	p.Repetitions, p.Duration = repetitions, window
	if r.twin {
		p.Profiles, p.Baseline, p.Repetitions = []plan.Variant{subject}, subject, weighed
	}
	if p.Paths, err = plan.ParsePaths(path); err != nil {
		return err
	}
	w, err := plan.ParseWorkload(r.workload)
	if err != nil {
		return err
	}
	p.Workloads = []plan.Workload{w}
	p = p.Settle()
	if err := p.Validate(); err != nil {
		return err
	}
	e, err := testbed.Open(ctx, p, testbed.Options{
		Agent: []string{c.program, "agent"}, Version: "power", Name: fmt.Sprintf("power-%d", os.Getpid()), Say: func(string, ...any) {},
	})
	if err != nil {
		return err
	}
	at := planted{e, r, new(sync.Mutex), new([]io.Closer)}
	defer func() {
		for _, c := range *at.links {
			_ = c.Close() // fails for those whose device has gone
		}
		err = env.Close(ctx, e, err)
	}()
	if err := at.begin(ctx); err != nil {
		return err
	}
	if r.when != always {
		within, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- at.disturb(within) }()
		defer func() {
			cancel()
			err = errors.Join(err, <-ended)
		}()
	}
	out, err := result.Create(file)
	if err != nil {
		return err
	}
	end, err := run.Run(ctx, at, p, out, run.Options{})
	if err == nil && end.Reason != result.Complete {
		err = fmt.Errorf("the run ended: %s", end.Reason)
	}
	return errors.Join(err, out.Close())
}
