// Package planting measures plans in the lab with a cost of known place in one variant.
package planting

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"sync"

	"github.com/cnibench/cnibench/internal/conduct/run"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/env/lab/testbed"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/kernel/nft"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Cost is what is planted in the namespaces of one variant of the lab.
type Cost struct {
	// Program is the cnibench that runs the agents, Rate that of samples, 0 the usual.
	Program string
	Rate    int
	// Of is the variant, Spaces returns those of its namespaces that get the cost.
	Of     plan.Variant
	Spaces func(inst *lab.Instance) []*netns.NS
	// At plants the cost in one. What it returns is closed in the end; (optional).
	At func(ctx context.Context, ns *netns.NS) (io.Closer, error)
	// Beside runs as long as the plan does, and plants other costs meanwhile; (optional).
	Beside func(ctx context.Context, p *Lab) error
}

// Nodes are the namespaces of the nodes of an instance.
func Nodes(inst *lab.Instance) []*netns.NS {
	return each.Of(inst.Nodes, func(n *lab.Node) *netns.NS { return n.NS })
}

// Lab is the lab with a cost.
type Lab struct {
	*testbed.Environment
	cost Cost
	// mu is held while costs are changed: instances are raised while others' costs come and go.
	mu sync.Mutex
	// links hold programs on devices that go with their instance.
	links []io.Closer
}

// At returns the lab with the cost.
func (p *Lab) At(plan.Variant) env.Site { return p }

// Renew raises variants anew and plants the cost again.
func (p *Lab) Renew(ctx context.Context, names []plan.Variant) map[plan.Variant]error {
	p.mu.Lock()
	defer p.mu.Unlock()
	stands := p.Environment.Renew(ctx, names)
	if err, there := stands[p.cost.Of]; there && err == nil {
		stands[p.cost.Of] = p.add(ctx, p.cost.At)
	}
	return stands
}

// Replant plants another cost.
func (p *Lab) Replant(ctx context.Context, at func(context.Context, *netns.NS) (io.Closer, error)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.add(ctx, at)
}

func (p *Lab) add(ctx context.Context, at func(context.Context, *netns.NS) (io.Closer, error)) error {
	inst := p.Instance(p.cost.Of)
	if inst == nil || inst.Err != nil {
		return fmt.Errorf("%s is not up", p.cost.Of)
	}
	var errs []error
	for _, ns := range p.cost.Spaces(inst) {
		c, err := at(ctx, ns)
		if errs = append(errs, err); c != nil {
			p.links = append(p.links, c)
		}
	}
	return errors.Join(errs...)
}

// Measure runs a plan on one path in the lab with a cost, and writes the result into a file.
func (c Cost) Measure(ctx context.Context, p plan.Plan, path, file string) (err error) {
	if p.Paths, err = plan.ParsePaths(path); err != nil {
		return err
	}
	p = p.Settle()
	if err := p.Validate(); err != nil {
		return err
	}
	e, err := testbed.Open(ctx, p, testbed.Options{
		Agent: []string{c.Program, "agent"}, Version: p.Name, Name: fmt.Sprintf("%s-%d", p.Name, os.Getpid()), Say: func(string, ...any) {}, SampleRate: c.Rate,
	})
	if err != nil {
		return err
	}
	at := &Lab{Environment: e, cost: c}
	defer func() {
		for _, c := range at.links {
			_ = c.Close() // fails for those whose device has gone
		}
		err = env.Close(ctx, e, err)
	}()
	if err := at.Replant(ctx, c.At); err != nil {
		return err
	}
	if c.Beside != nil {
		within, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- c.Beside(within, at) }()
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

// unused is an address that no packet has: a rule about it costs its comparison.
var unused = netip.MustParseAddr("203.0.113.1")

// Rules replaces the rules of a node by n that no packet matches.
func Rules(ctx context.Context, node *netns.NS, n int) (io.Closer, error) {
	table := nft.NewTable(nft.IPv4, "planted")
	chain := table.Base("forward", nft.Hook{Type: "filter", Hook: "forward", Priority: nft.RawPriority})
	for range n {
		chain.Add(nft.Is(nft.SourceAddr, unused), nft.Drop)
	}
	return nil, nft.Replace(ctx, node, table)
}
