package policy

import (
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/dataplane/ruleset"
	"github.com/cnibench/cnibench/internal/kernel/nft"
)

// TableCalico is the name of Calico's table in its nftables mode.
const TableCalico = "calico"

// flowtable is the name of Calico's flowtable.
const flowtable = "calico"

// layers has the base chains of Calico's table in nftables. layer is the iptables table that corresponds to the chain,
// and the prefix of its name. Felix declares all base chains, even those that stay empty.
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

// CalicoNFT returns Calico's table in its nftables mode. It has the chains of addCalico, whose names begin with their
// iptables table, and the IP sets. A map leads to a pod's chain; in iptables a tree of chains does.
func CalicoNFT(c CalicoConfig) *nft.Table {
	f := felix{c: c, nftables: nft.NewTable(nft.FamilyOf(c.IPv6), TableCalico)}
	for _, s := range f.sets() {
		// The names of sets in nftables have no colons.
		set := f.nftables.Set(nftSetName(s.name), nft.Addr)
		set.Interval = !s.addresses
		for _, p := range s.members {
			if s.addresses {
				set.Insert(p.Addr())
			} else {
				set.Insert(p)
			}
		}
	}
	if c.Flowtable {
		f.nftables.Flowtable(nft.Flowtable{Name: flowtable, Devices: slices.Concat(c.tunnelDevices(), c.Devices)})
	}
	for _, l := range layers {
		f.nftables.Base(l.layer+"-"+l.chain, l.hook)
	}
	f.writeChains()
	return f.nftables
}

// writeDispatchMap writes a map from each pod's device to the pod's own chain, and the chain that looks up packets in
// this map. The chain drops packets of unknown devices.
func (f *felix) writeDispatchMap(chain string, d direction) {
	lookup := f.chainIn(ruleset.Filter, chain)
	name := ruleset.Filter + "-" + chain
	chains := f.nftables.Map(name, nft.Device)
	for _, device := range f.c.Devices {
		chains.Put(nft.Goto(f.declareChain(ruleset.Filter, d.endpoint+device)), device)
	}
	lookup.nft.Add(nft.VMap(name, d.device))
	lookup.signature = name
	lookup.setComment("Unknown interface").addRule(drop)
}

// nftSetName returns the name of a set in nftables: with hyphens in place of colons, which nftables does not allow.
func nftSetName(set string) string { return strings.ReplaceAll(set, ":", "-") }

// Marks that Calico's BPF programs set on packets for the rules of the stack.
const (
	bpfSeen        = "0x1000000/0x1000000" // a BPF program has judged the packet
	bpfBypass      = "0x3000000/0x3000000" // nothing more to judge
	bpfFallthrough = "0x5000000/0x5000000" // of a connection that is older than the programs
	bpfLoopback    = "0x3600000/0x3f00000" // from a pod to itself
	bpfNATOutgoing = "0x3800000/0x3f00000" // from a pod to the world
)

// writeBPFRules writes the rules that Felix keeps in iptables when BPF programs forward packets over VXLAN.
func (f *felix) writeBPFRules() {
	mark := func(m string) clause { return newClause("-m mark --mark " + m) }
	for _, name := range []string{"PREROUTING", "OUTPUT"} {
		f.chainIn(ruleset.Raw, "cali-"+name).addRule(untrack, vxlanPacket)
		f.hookChain(ruleset.Raw, name)
	}
	f.chainIn(ruleset.NAT, "cali-POSTROUTING").
		setComment("MASQUERADE packets from a pod to itself").addRule(masquerade, mark(bpfLoopback)).
		setComment("BPF SNAT for packets leaving the pools").addRule(masquerade, mark(bpfNATOutgoing))
	f.hookChain(ruleset.NAT, "POSTROUTING")
	f.chainIn(ruleset.Filter, "cali-FORWARD").
		setComment("Pre-approved by BPF programs.").addRule(accept, mark(bpfBypass)).
		setComment("From workload without BPF seen mark").addRule(drop, fromWorkload, newClause("-m mark ! --mark "+bpfSeen)).
		addJump("cali-to-wl-dispatch", toWorkload).
		setComment("To workload has already been policed").addRule(accept, fromWorkload).
		addRule(accept, newClause("-i bpfout.cali"))
	known := f.chainIn(ruleset.Filter, "cali-to-wl-dispatch")
	for _, device := range f.c.Devices {
		known.addRule(ret, newClause("-o "+device))
	}
	known.setComment("Unknown interface").addRule(drop)
	f.chainIn(ruleset.Filter, "cali-INPUT").
		setComment("Accept packets from flows that pre-date BPF.").addRule(accept, mark(bpfFallthrough), established).
		setComment("Drop packets from unknown flows.").addRule(drop, mark(bpfFallthrough))
	f.hookChain(ruleset.Filter, "FORWARD")
	f.hookChain(ruleset.Filter, "INPUT")
}
