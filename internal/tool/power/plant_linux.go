package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/conduct/run"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/env/lab/testbed"
	"github.com/cnibench/cnibench/internal/kernel/affinity"
	"github.com/cnibench/cnibench/internal/kernel/nft"
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

// planted is the lab with rules on the nodes of the subject.
type planted struct {
	*testbed.Environment
	row
	// mu is held while rules are changed: instances are raised while others' rules come and go.
	mu *sync.Mutex
}

// Capabilities are those of the lab; what is raised anew gets its rules again.
func (p planted) Capabilities() env.Capabilities {
	can := p.Environment.Capabilities()
	renew := can.Renew
	can.Renew = func(ctx context.Context, names []plan.Variant) map[plan.Variant]error {
		p.mu.Lock()
		defer p.mu.Unlock()
		stands := renew(ctx, names)
		if err, there := stands[subject]; there && err == nil {
			stands[subject] = p.begin(ctx)
		}
		return stands
	}
	return can
}

// begin makes a new instance ready.
func (p planted) begin(ctx context.Context) error {
	if p.when == always {
		return p.plant(ctx, p.rules)
	}
	return p.plant(ctx, 0)
}

// plant replaces the rules on the nodes of the subject.
func (p planted) plant(ctx context.Context, rules int) error {
	table := nft.NewTable(nft.IPv4, "planted")
	chain := table.Base("forward", nft.Hook{Type: "filter", Hook: "forward", Priority: nft.RawPriority})
	for range rules {
		chain.Add(nft.Is(nft.SourceAddr, unused), nft.Drop)
	}
	inst := p.Instance(subject)
	if inst == nil {
		return fmt.Errorf("%s does not stand", subject)
	}
	var errs []error
	for _, n := range inst.Nodes {
		errs = append(errs, nft.Replace(ctx, n.NS, table))
	}
	return errors.Join(errs...)
}

// disturb is the timer: in each cycle the rules come for one slice, or a thread of this program takes the CPU of the path for
// as long. It ends with ctx.
func (p planted) disturb(ctx context.Context) error {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	if p.when == apart {
		if err := affinity.Set([]int{runtime.NumCPU() - 1}); err != nil { // where the lab places the load
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
		return p.plant(ctx, p.rules*(1-n))
	}
	return nil
}

// measure runs the plan with the cost of a row.
func (c campaign) measure(ctx context.Context, r row, file string) (err error) {
	p := plan.Default()
	p.Name, p.Environment, p.Profiles = "power", plan.EnvLab, []plan.Variant{profile.Raw, subject}
	p.Repetitions, p.Duration = repetitions, window
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
	at := planted{e, r, new(sync.Mutex)}
	defer func() { err = env.Close(ctx, e, err) }()
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
