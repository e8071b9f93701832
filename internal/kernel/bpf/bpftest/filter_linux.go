package bpftest

import (
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"

	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// Watch is a rule in a namespace's forward hook that turns connection tracking on and counts packets.
type Watch struct {
	ns    *netns.NS
	table *nftables.Table
	chain *nftables.Chain
}

// WatchForward adds a chain to the forward hook of ns that enables connection tracking and counts packets. It drops no
// packets.
func WatchForward(t *testing.T, ns *netns.NS) *Watch {
	t.Helper()
	w := &Watch{ns: ns, table: &nftables.Table{Name: "watch", Family: nftables.TableFamilyINet}}
	c, err := nftables.New(nftables.WithNetNSFd(ns.FD()))
	must(t, err)
	c.AddTable(w.table)
	w.chain = c.AddChain(&nftables.Chain{
		Name: "forward", Table: w.table, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookForward,
		Priority: nftables.ChainPriorityFilter,
	})
	c.AddRule(&nftables.Rule{Table: w.table, Chain: w.chain, Exprs: []expr.Any{
		&expr.Ct{Register: 1, Key: expr.CtKeySTATE}, &expr.Counter{},
	}})
	must(t, c.Flush())
	return w
}

// Packets returns how many packets netfilter has forwarded since WatchForward.
func (w *Watch) Packets(t *testing.T) uint64 {
	t.Helper()
	c, err := nftables.New(nftables.WithNetNSFd(w.ns.FD()))
	must(t, err)
	rules, err := c.GetRules(w.table, w.chain)
	if err != nil || len(rules) != 1 {
		t.Fatalf("%d rules, %v", len(rules), err)
	}
	for _, e := range rules[0].Exprs {
		if n, ok := e.(*expr.Counter); ok {
			return n.Packets
		}
	}
	t.Fatal("the rule has no counter")
	return 0
}

// Masquerade adds a rule to ns. The rule changes the source of leaving packets with the mark to the address of their
// outgoing device.
func Masquerade(t *testing.T, ns *netns.NS, mark uint32) {
	t.Helper()
	c, err := nftables.New(nftables.WithNetNSFd(ns.FD()))
	must(t, err)
	table := c.AddTable(&nftables.Table{Name: "masquerade", Family: nftables.TableFamilyINet})
	chain := c.AddChain(&nftables.Chain{
		Name: "postrouting", Table: table, Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookPostrouting,
		Priority: nftables.ChainPriorityNATSource,
	})
	c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
		&expr.Meta{Key: expr.MetaKeyMARK, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.NativeEndian.PutUint32(mark)},
		&expr.Masq{},
	}})
	must(t, c.Flush())
}
