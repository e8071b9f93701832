package policy

import (
	"strings"

	"github.com/cnibench/cnibench/internal/env/lab/ruleset"
	"github.com/cnibench/cnibench/internal/kernel/nft"
)

// TableCalico is the name of Calico's table in its nftables mode.
const TableCalico = "calico"

// layers are the tables of iptables, which prefix the names of chains in Calico's one table, with the hooks of their
// base chains. Felix declares all of them, even those that stay empty.
var layers = []struct {
	layer, chain string
	hook         nft.Hook
}{
	{ruleset.Raw, "PREROUTING", nft.Hook{Type: "filter", Hook: "prerouting", Priority: nft.RawPriority}},
	{ruleset.Raw, "OUTPUT", nft.Hook{Type: "filter", Hook: "output", Priority: nft.RawPriority}},
	{ruleset.Mangle, "PREROUTING", nft.Hook{Type: "filter", Hook: "prerouting", Priority: nft.ManglePriority}},
	{ruleset.Mangle, "INPUT", nft.Hook{Type: "filter", Hook: "input", Priority: nft.ManglePriority}},
	{ruleset.Mangle, "FORWARD", nft.Hook{Type: "filter", Hook: "forward", Priority: nft.ManglePriority}},
	{ruleset.Mangle, "OUTPUT", nft.Hook{Type: "route", Hook: "output", Priority: nft.ManglePriority}},
	{ruleset.Mangle, "POSTROUTING", nft.Hook{Type: "filter", Hook: "postrouting", Priority: nft.ManglePriority}},
	{ruleset.NAT, "PREROUTING", nft.Hook{Type: "nat", Hook: "prerouting", Priority: nft.DNATPriority}},
	{ruleset.NAT, "INPUT", nft.Hook{Type: "nat", Hook: "input", Priority: nft.DNATPriority}},
	{ruleset.NAT, "OUTPUT", nft.Hook{Type: "nat", Hook: "output", Priority: nft.SNATPriority}},
	{ruleset.NAT, "POSTROUTING", nft.Hook{Type: "nat", Hook: "postrouting", Priority: nft.SNATPriority}},
	{ruleset.Filter, "INPUT", nft.Hook{Type: "filter", Hook: "input", Priority: nft.FilterPriority}},
	{ruleset.Filter, "FORWARD", nft.Hook{Type: "filter", Hook: "forward", Priority: nft.FilterPriority}},
	{ruleset.Filter, "OUTPUT", nft.Hook{Type: "filter", Hook: "output", Priority: nft.FilterPriority}},
}

// CalicoNFT returns Calico's table in its nftables mode: the chains of AddCalico, each prefixed with its iptables table.
// A map instead of a tree leads to a pod's chain. The IP sets are in the table.
func CalicoNFT(c CalicoConfig) *nft.Table {
	f := felix{c: c, nftables: nft.NewTable(nft.FamilyOf(c.IPv6), TableCalico)}
	for _, s := range f.sets() {
		// The names of sets in nftables have no colons.
		set := f.nftables.Set(legal(s.name), nft.Addr)
		set.Interval = !s.addresses
		for _, p := range s.members {
			if s.addresses {
				set.Insert(p.Addr())
			} else {
				set.Insert(p)
			}
		}
	}
	for _, l := range layers {
		f.nftables.Base(l.layer+"-"+l.chain, l.hook)
	}
	f.write()
	return f.nftables
}

// dispatchByMap writes the map that finds a pod's own chain by its device, and the chain that looks it up.
func (f *felix) dispatchByMap(chain string, d direction) {
	lookup := f.at(ruleset.Filter, chain)
	name := ruleset.Filter + "-" + chain
	chains := f.nftables.Map(name, nft.Device)
	for _, device := range f.c.Devices {
		chains.Put(nft.Goto(f.declare(ruleset.Filter, d.endpoint+device)), device)
	}
	lookup.nft.Add(nft.VMap(name, d.device))
	lookup.signature = name
	lookup.note("Unknown interface").to(drop)
}

// legal is the name of a set without the colons that nftables does not allow.
func legal(set string) string { return strings.ReplaceAll(set, ":", "-") }
