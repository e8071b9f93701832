package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/cnibench/cnibench/internal/conduct/run"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/env/lab/testbed"
	"github.com/cnibench/cnibench/internal/kernel/nft"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
)

// unused is an address that no packet has: a rule about it costs its comparison.
var unused = netip.MustParseAddr("203.0.113.1")

// planted is the lab with rules on the nodes of the subject.
type planted struct {
	*testbed.Environment
	rules int
}

// Capabilities are those of the lab; what is raised anew gets its rules again.
func (p planted) Capabilities() env.Capabilities {
	can := p.Environment.Capabilities()
	renew := can.Renew
	can.Renew = func(ctx context.Context, names []plan.Variant) map[plan.Variant]error {
		stands := renew(ctx, names)
		if err, there := stands[subject]; there && err == nil {
			stands[subject] = p.plant(ctx)
		}
		return stands
	}
	return can
}

// plant adds the rules to the nodes of the subject.
func (p planted) plant(ctx context.Context) error {
	if p.rules == 0 {
		return nil
	}
	table := nft.NewTable(nft.IPv4, "planted")
	chain := table.Base("forward", nft.Hook{Type: "filter", Hook: "forward", Priority: nft.RawPriority})
	for range p.rules {
		chain.Add(nft.Is(nft.SourceAddr, unused), nft.Drop)
	}
	inst := p.Instance(subject)
	if inst == nil {
		return fmt.Errorf("%s does not stand", subject)
	}
	var errs []error
	for _, n := range inst.Nodes {
		errs = append(errs, nft.Load(ctx, n.NS, table))
	}
	return errors.Join(errs...)
}

// measure runs the plan with so many rules.
func (c campaign) measure(ctx context.Context, workload string, rules int, file string) (err error) {
	p := plan.Default()
	p.Name, p.Environment, p.Profiles = "power", plan.EnvLab, []plan.Variant{profile.Raw, subject}
	p.Repetitions, p.Duration = repetitions, window
	if p.Paths, err = plan.ParsePaths(path); err != nil {
		return err
	}
	w, err := plan.ParseWorkload(workload)
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
	at := planted{e, rules}
	defer func() { err = env.Close(ctx, e, err) }()
	if err := at.plant(ctx); err != nil {
		return err
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
