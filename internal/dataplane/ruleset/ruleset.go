// Package ruleset collects iptables rules from several generators and renders them as one iptables-restore input.
//
// Independent programs write a Kubernetes node's rules: kubelet, kube-proxy, flannel, Calico. Each adds its own chains
// and calls them from the built-in chains, some at the top (Insert), some at the end (Append). The order of the
// programs determines the path of a packet, so policy.Node.Ruleset calls the generators in the same order:
//
//	node := ruleset.New()
//	service.AddKubelet(node, false)
//	service.Add(node, services)
//	addFlannel(node, flannel)
//	addCalico(node, calico)
//	err := tool.Restore(ctx, ns, node.String())
//
// The text is deterministic: tables in the order of a packet's path, built-in chains first, then the other chains in
// the order of declaration, then the rules chain by chain.
package ruleset

import (
	"fmt"
	"slices"
	"strings"
)

// Names of the tables of iptables that a node uses, in the order of a packet's path.
const (
	Raw    = "raw"
	Mangle = "mangle"
	NAT    = "nat"
	Filter = "filter"
)

// builtin lists the tables in rendering order, with the chains that the kernel hooks.
var builtin = []struct {
	table  string
	chains []string
}{
	{Raw, []string{"PREROUTING", "OUTPUT"}},
	{Mangle, []string{"PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"}},
	{NAT, []string{"PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"}},
	{Filter, []string{"INPUT", "FORWARD", "OUTPUT"}},
}

// Ruleset has the iptables rules of one node. Make one with New. It is not safe for concurrent use.
type Ruleset struct{ tables []*Table }

// New returns a ruleset with the four tables and their empty built-in chains with policy ACCEPT.
func New() *Ruleset {
	r := &Ruleset{}
	for _, b := range builtin {
		t := &Table{Name: b.table, byName: map[string]*Chain{}}
		for _, name := range b.chains {
			t.Chain(name).Builtin = true
		}
		r.tables = append(r.tables, t)
	}
	return r
}

// Table returns the table called name, one of Raw, Mangle, NAT and Filter. It panics for another name.
func (r *Ruleset) Table(name string) *Table {
	for _, t := range r.tables {
		if t.Name == name {
			return t
		}
	}
	panic(fmt.Sprintf("ruleset: no table %q", name))
}

// Tables returns the four tables in rendering order.
func (r *Ruleset) Tables() []*Table { return slices.Clone(r.tables) }

// Table is one iptables table.
type Table struct {
	// Name is one of Raw, Mangle, NAT and Filter.
	Name   string
	chains []*Chain
	byName map[string]*Chain
}

// Chain returns the chain called name and declares it if needed, so that two generators may share a chain.
func (t *Table) Chain(name string) *Chain {
	if c, ok := t.byName[name]; ok {
		return c
	}
	c := &Chain{Name: name}
	t.byName[name] = c
	t.chains = append(t.chains, c)
	return c
}

// Chains returns the chains in the order in which they were declared, the built-in ones first.
func (t *Table) Chains() []*Chain { return slices.Clone(t.chains) }

// Chain is a list of rules.
type Chain struct {
	Name string
	// Builtin is true for chains such as INPUT, which the kernel calls.
	Builtin bool
	// top has the inserted rules in the order of insertion, which is the reverse order of the chain.
	top, rules []string
}

// Append adds rules at the end. A rule is the text after "-A chain" on an iptables command line.
func (c *Chain) Append(rules ...string) *Chain {
	c.rules = append(c.rules, rules...)
	return c
}

// Insert puts one rule at the top, above everything inserted earlier, as "iptables -I chain 1" does.
func (c *Chain) Insert(rule string) *Chain {
	c.top = append(c.top, rule)
	return c
}

// Rules returns the rules from the top.
func (c *Chain) Rules() []string {
	top := slices.Clone(c.top)
	slices.Reverse(top)
	return append(top, c.rules...)
}

// String returns iptables-restore input without empty tables and without built-in chains that have no rules. In the nft
// flavour of iptables, naming such a chain would add a hook, which costs time for every packet.
func (r *Ruleset) String() string {
	var b strings.Builder
	for _, t := range r.tables {
		t.render(&b)
	}
	return b.String()
}

func (t *Table) isEmpty() bool {
	return !slices.ContainsFunc(t.chains, func(c *Chain) bool {
		return !c.Builtin || len(c.top)+len(c.rules) > 0
	})
}

func (t *Table) render(b *strings.Builder) {
	if t.isEmpty() {
		return
	}
	b.WriteString("*" + t.Name + "\n")
	for _, c := range t.chains {
		policy := "-"
		if c.Builtin {
			if len(c.top)+len(c.rules) == 0 {
				continue
			}
			policy = "ACCEPT"
		}
		b.WriteString(":" + c.Name + " " + policy + " [0:0]\n")
	}
	for _, c := range t.chains {
		for _, rule := range c.Rules() {
			b.WriteString("-A " + c.Name + " " + rule + "\n")
		}
	}
	b.WriteString("COMMIT\n")
}

// Change returns the input of iptables-restore --noflush that turns before into after, "" for no change. It writes each
// changed chain completely, as the agents of a node do, and also the chains whose names are in whole. A chain without rules
// that only one ruleset declares is the target of a jump; it is assumed to exist in both.
func Change(before, after *Ruleset, whole ...string) string {
	var b strings.Builder
	for i, t := range after.tables {
		t.writeChange(&b, before.tables[i], whole)
	}
	return b.String()
}

func (t *Table) writeChange(b *strings.Builder, before *Table, whole []string) {
	var changed []*Chain
	for _, c := range t.chains {
		was := before.byName[c.Name]
		switch {
		case was == nil && len(c.Rules()) == 0:
		case was == nil || slices.Contains(whole, c.Name) || !slices.Equal(was.Rules(), c.Rules()):
			changed = append(changed, c)
		}
	}
	var gone []*Chain
	for _, c := range before.chains {
		if t.byName[c.Name] == nil && len(c.Rules()) > 0 {
			gone = append(gone, c)
		}
	}
	if len(changed)+len(gone) == 0 {
		return
	}
	b.WriteString("*" + t.Name + "\n")
	for _, c := range slices.Concat(changed, gone) {
		if c.Builtin {
			b.WriteString("-F " + c.Name + "\n")
		} else {
			b.WriteString(":" + c.Name + " - [0:0]\n") // empties one that exists
		}
	}
	for _, c := range changed {
		for _, rule := range c.Rules() {
			b.WriteString("-A " + c.Name + " " + rule + "\n")
		}
	}
	for _, c := range gone {
		b.WriteString("-X " + c.Name + "\n")
	}
	b.WriteString("COMMIT\n")
}
