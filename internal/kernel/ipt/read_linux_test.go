package ipt

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"

	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// Counters returns the rules of a chain in ns from the top, each with what has matched it.
func (t *Tool) Counters(ctx context.Context, ns *netns.NS, table, chain string) ([]Counter, error) {
	text, err := t.Save(ctx, ns, table)
	if err != nil {
		return nil, err
	}
	tables, err := ParseSave(text)
	if err != nil {
		return nil, err
	}
	for _, saved := range tables {
		if c, ok := saved.Chain(chain); ok && saved.Name == table {
			return c.Rules, nil
		}
	}
	return nil, fmt.Errorf("table %s has no chain %s", table, chain)
}

// Chain returns the chain called name.
func (t SavedTable) Chain(name string) (SavedChain, bool) {
	for _, c := range t.Chains {
		if c.Name == name {
			return c, true
		}
	}
	return SavedChain{}, false
}

// Save returns all sets of ns as ipset save prints them.
func (s *IPSet) Save(ctx context.Context, ns *netns.NS) (string, error) {
	c := command{cmd: exec.CommandContext(ctx, s.path, "save")}
	var out bytes.Buffer
	c.cmd.Stdout = &out
	if err := runCommand(ctx, ns, c); err != nil {
		return "", err
	}
	return out.String(), nil
}
