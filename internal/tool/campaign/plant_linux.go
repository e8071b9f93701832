package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"sync"
	"time"

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

// planter plants a cost in a namespace. What it returns is closed in the end; (optional).
type planter func(ctx context.Context, ns *netns.NS) (io.Closer, error)

// planted is what is planted in the namespaces of one variant of the lab.
type planted struct {
	// program is the cnibench that runs the agents, rate that of samples, 0 the usual.
	program string
	rate    int
	// of is the variant, spaces returns those of its namespaces that get the cost, at plants it in one.
	of     plan.Variant
	spaces func(inst *lab.Instance) []*netns.NS
	at     planter
	// beside runs as long as the plan does, and plants other costs meanwhile; (optional).
	beside func(ctx context.Context, l *plantedLab) error
}

// subject is the profile that costs are planted into, crossNode the path on which they are measured in windows of this length.
var subject = plan.VariantOf("bridge")

const (
	crossNode = "pod-to-pod/cross-node"
	window    = 300 * time.Millisecond
)

// nodes are the namespaces of the nodes of an instance.
func nodes(inst *lab.Instance) []*netns.NS {
	return each.Of(inst.Nodes, func(n *lab.Node) *netns.NS { return n.NS })
}

// plantedLab is the lab with a cost.
type plantedLab struct {
	*testbed.Environment
	planted
	// mu is held while costs are changed: instances are raised while others' costs come and go.
	mu sync.Mutex
	// links hold programs on devices that go with their instance.
	links []io.Closer
}

// At returns the lab with the cost.
func (l *plantedLab) At(plan.Variant) env.Site { return l }

// Renew raises variants anew and plants the cost again.
func (l *plantedLab) Renew(ctx context.Context, names []plan.Variant) map[plan.Variant]error {
	l.mu.Lock()
	defer l.mu.Unlock()
	stands := l.Environment.Renew(ctx, names)
	if err, there := stands[l.of]; there && err == nil {
		stands[l.of] = l.add(ctx, l.at)
	}
	return stands
}

// replant plants another cost.
func (l *plantedLab) replant(ctx context.Context, at planter) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.add(ctx, at)
}

func (l *plantedLab) add(ctx context.Context, at planter) error {
	inst := l.Instance(l.of)
	if inst == nil || inst.Err != nil {
		return fmt.Errorf("%s is not up", l.of)
	}
	var errs []error
	for _, ns := range l.spaces(inst) {
		c, err := at(ctx, ns)
		if errs = append(errs, err); c != nil {
			l.links = append(l.links, c)
		}
	}
	return errors.Join(errs...)
}

// measure runs a plan under some workloads in the lab with a cost, and writes the result into a file.
func (c planted) measure(ctx context.Context, p plan.Plan, workloads []string, file string) (err error) {
	if p.Paths, err = plan.ParsePaths(crossNode); err != nil {
		return err
	}
	p.Environment, p.Duration, p.Workloads = plan.EnvLab, window, nil
	for _, text := range workloads {
		w, err := plan.ParseWorkload(text)
		if err != nil {
			return err
		}
		p.Workloads = append(p.Workloads, w)
	}
	p = p.Settle()
	if err := p.Validate(); err != nil {
		return err
	}
	e, err := testbed.Open(ctx, p, testbed.Options{
		Agent: []string{c.program, "agent"}, Version: p.Name, Name: fmt.Sprintf("%s-%d", p.Name, os.Getpid()), Say: func(string, ...any) {}, SampleRate: c.rate,
	})
	if err != nil {
		return err
	}
	at := &plantedLab{Environment: e, planted: c}
	defer func() {
		for _, c := range at.links {
			_ = c.Close() // fails for those whose device has gone
		}
		err = env.Close(ctx, e, err)
	}()
	if err := at.replant(ctx, c.at); err != nil {
		return err
	}
	if c.beside != nil {
		within, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- c.beside(within, at) }()
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

// plantRules replaces the rules of a node by n that no packet matches.
func plantRules(ctx context.Context, node *netns.NS, n int) (io.Closer, error) {
	table := nft.NewTable(nft.IPv4, "planted")
	chain := table.Base("forward", nft.Hook{Type: "filter", Hook: "forward", Priority: nft.RawPriority})
	for range n {
		chain.Add(nft.Is(nft.SourceAddr, unused), nft.Drop)
	}
	return nil, nft.Replace(ctx, node, table)
}
