package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"runtime"
	"time"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/kernel/bpf/spin"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/kernel/nft"
	"github.com/cnibench/cnibench/internal/kernel/thread"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
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
	// duty is the part of each period in which packets pay, and as the kind whose pieces cost the same all the time;
	// (optional).
	duty float64
	as   *kind
}

var (
	rules        = &kind{name: "rules", probe: 400, plant: plantRules}
	instructions = &kind{name: "turns of a loop of two instructions", probe: 10_000, plant: bpf(spin.Attach)}
	copies       = &kind{name: fmt.Sprintf("copies of %d bytes", spin.Copied), probe: 400, plant: bpf(spin.Copy)}
	walks        = &kind{name: fmt.Sprintf("cache lines of a map of %d KB", spin.Walked>>10), probe: 400, plant: bpf(spin.Walk)}
	burst5       = inBursts(5 * time.Millisecond)
	burst10      = inBursts(10 * time.Millisecond)
)

// period is the time from one burst to the next.
const period = 100 * time.Millisecond

// inBursts has packets pay for a part of each period.
func inBursts(part time.Duration) *kind {
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
func (r row) piled(pieces int) planter {
	return func(ctx context.Context, node *netns.NS) (io.Closer, error) { return r.of.plant(ctx, node, pieces) }
}

// disturb is the timer: in each cycle the rules come for one slice, or a thread of this program takes the CPU of the path for
// as long. It ends with ctx.
func (r row) disturb(ctx context.Context, p *plantedLab) error {
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
func (r row) turn(ctx context.Context, p *plantedLab, n int) error {
	switch {
	case n == 0 && r.when == apart:
		for until := time.Now().Add(slice); time.Now().Before(until); {
		}
	case n < 2 && r.when == sliced:
		return p.replant(ctx, r.piled(r.pieces*(1-n)))
	}
	return nil
}

// plant runs the plan with the cost of a row.
func (c *power) plant(ctx context.Context, r row, file string) error {
	p := plan.Default()
	p.Name, p.Profiles, p.Repetitions = "power", []plan.Variant{plan.VariantOf(profile.Raw), subject}, repetitions
	if r.twin {
		p.Profiles, p.Baseline, p.Repetitions = []plan.Variant{subject}, subject, weighed
	}
	cost := planted{program: c.program, of: r.target(), spaces: nodes, at: r.piled(r.pieces)}
	if r.when != always {
		cost.at, cost.beside = r.piled(0), r.disturb
	}
	return cost.measure(ctx, p, []string{r.workload}, file)
}

// collected is how often a worker goes through the elements of a set.
const collected = 20 * time.Millisecond

// elements are the cost of a kernel worker: nftables goes through the elements of a set in one, to remove those that have
// timed out. No task of the path pays for it. The worker is on the first CPU, apart from the load: beside load threads,
// which go before others on their CPU, it would get 1 % of the time whatever the number of elements.
var elements = &kind{
	name: fmt.Sprintf("elements of a set that a kernel worker goes through every %s", collected), probe: 20_000, plant: plantElements, standing: true,
}

// plantElements replaces the set of a node by one of n elements, which stay for an hour. A worker runs on the CPU that its
// set came from.
func plantElements(ctx context.Context, node *netns.NS, n int) (io.Closer, error) {
	table := nft.NewTable(nft.IPv4, "planted")
	set := table.Set("elements", nft.Addr)
	set.Timeout, set.Collect = time.Hour, collected
	for i := range n {
		set.Insert(address(i))
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := thread.SetCPUs([]int{0})
		if err == nil {
			err = nft.Replace(ctx, node, table)
		}
		done <- err
	}()
	return nil, <-done
}

// address is the address of a number, of a network that no packet is from.
func address(i int) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], 240<<24+uint32(i))
	return netip.AddrFrom4(b)
}
