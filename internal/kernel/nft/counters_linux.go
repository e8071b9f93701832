package nft

import (
	"fmt"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"

	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// Counter is a rule with a counter, and its counts.
type Counter struct {
	// Chain is the name of the rule's chain.
	Chain string
	// Verdict is the verdict of the rule, for example "goto web"; "" if the packet continues to the next rule.
	Verdict string
	Packets uint64
}

// Counters returns the rules of a table in ns that have a counter, chain by chain. It returns none for a table that
// does not exist.
func Counters(ns *netns.NS, f Family, table string) ([]Counter, error) {
	var all []Counter
	err := withTable(ns, f, table, func(c *nftables.Conn, chains []*nftables.Chain) error {
		for _, chain := range chains {
			rules, err := c.GetRules(chain.Table, chain)
			if err != nil {
				return fmt.Errorf("chain %s: %w", chain.Name, err)
			}
			for _, r := range rules {
				if k, ok := counterOf(r); ok {
					k.Chain = chain.Name
					all = append(all, k)
				}
			}
		}
		return nil
	})
	return all, err
}

// Elements returns the number of elements of a set or map in ns.
func Elements(ns *netns.NS, f Family, table, set string) (int, error) {
	n := 0
	err := withTable(ns, f, table, func(c *nftables.Conn, _ []*nftables.Chain) error {
		t := &nftables.Table{Name: table, Family: nftables.TableFamily(nfproto(f))}
		list, err := c.GetSetElements(&nftables.Set{Table: t, Name: set})
		n = len(list)
		return err
	})
	return n, err
}

// withTable calls fn with a connection to nftables in ns and with the chains of a table. There are no chains if the table
// does not exist.
func withTable(ns *netns.NS, f Family, table string, fn func(*nftables.Conn, []*nftables.Chain) error) error {
	c, err := nftables.New(nftables.WithNetNSFd(ns.FD()), nftables.AsLasting())
	if err != nil {
		return fmt.Errorf("nftables: %w", err)
	}
	// No request is pending on it.
	defer func() { _ = c.CloseLasting() }()
	list, err := c.ListChainsOfTableFamily(nftables.TableFamily(nfproto(f)))
	var chains []*nftables.Chain
	for _, chain := range list {
		if chain.Table.Name == table {
			chains = append(chains, chain)
		}
	}
	if err == nil {
		err = fn(c, chains)
	}
	if err != nil {
		return fmt.Errorf("nftables: read table %s: %w", table, err)
	}
	return nil
}

// counterOf returns the counter and the verdict of a rule. ok is false if the rule has no counter.
func counterOf(r *nftables.Rule) (k Counter, ok bool) {
	for _, e := range r.Exprs {
		switch e := e.(type) {
		case *expr.Counter:
			k.Packets, ok = e.Packets, true
		case *expr.Verdict:
			for name, kind := range kinds {
				if kind == e.Kind {
					k.Verdict = Verdict{name, e.Chain}.text("")
				}
			}
		}
	}
	return k, ok
}
