package lab

import (
	"fmt"

	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

// Drops returns the drop counters of all devices on a path: those of its two ends, of the nodes and of the switch.
func (l *Lab) Drops(profile plan.Variant, p plan.Path) ([]sample.Drop, error) {
	inst, err := l.up(profile)
	if err != nil {
		return nil, err
	}
	ends, err := inst.Spec.Ends(p)
	if err != nil {
		return nil, err
	}
	var all []sample.Drop
	for _, h := range inst.crossed(ends) {
		drops, err := h.drops()
		if err != nil {
			return nil, err
		}
		all = append(all, drops...)
	}
	return all, nil
}

// crossed returns two ends and the hosts between them, each namespace once.
func (i *Instance) crossed(e Ends) []*Host {
	hosts := []*Host{i.Host(e.Client)}
	for _, n := range i.Nodes {
		hosts = append(hosts, &n.Host)
	}
	hosts = append(hosts, i.Switch, i.Host(e.Server))
	var distinct []*Host
	seen := map[any]bool{}
	for _, h := range hosts {
		if h != nil && !seen[h.NS] {
			seen[h.NS] = true
			distinct = append(distinct, h)
		}
	}
	return distinct
}

func (h *Host) drops() ([]sample.Drop, error) {
	drops, err := link.At(h.NS, (*link.Handle).Drops)
	if err != nil {
		return nil, fmt.Errorf("read what %s drops: %w", h.Name, err)
	}
	for i := range drops {
		drops[i].Host = h.Name
	}
	return drops, nil
}
