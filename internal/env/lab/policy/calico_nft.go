package policy

import (
	"fmt"
	"net/netip"

	"github.com/cnibench/cnibench/internal/env/lab/ruleset"
	"github.com/cnibench/cnibench/internal/kernel/nft"
)

// TableCalico is the name of Calico's table in its nftables mode.
const TableCalico = "calico"

// Mark bits as numbers: see markAccept and the others.
const (
	bitAccept   = 0x10000
	bitPass     = 0x20000
	bitScratch0 = 0x80000
	bitsVerdict = bitAccept | bitPass
	bitsAll     = 0x1f0000
	bitsOurs    = bitsAll &^ bitAccept
)

const vxlanPortNFT = 4789

// layers are iptables' tables, which Calico's one table has as prefixes of its chains' names, with the hooks of their
// base chains. Felix declares all of them, also those that stay empty.
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

// CalicoNFT returns Calico's table in its nftables mode: the chains of AddCalico under the names of their iptables
// tables, the way to a pod's chain by a map instead of a tree, the IP sets in the table itself.
func CalicoNFT(c CalicoConfig) *nft.Table {
	family := nft.IPv4
	if c.IPv6 {
		family = nft.IPv6
	}
	t := nft.NewTable(family, TableCalico)
	f := felixNFT{c: c, t: t}
	f.sets()
	for _, l := range layers {
		t.Base(l.layer+"-"+l.chain, l.hook)
	}
	f.raw()
	f.mangle()
	f.nat()
	f.forward()
	f.input()
	f.output()
	f.dispatch("cali-from-wl-dispatch", nft.InDevice, egress)
	f.dispatch("cali-to-wl-dispatch", nft.OutDevice, ingress)
	for _, e := range c.Endpoints {
		f.endpoint(e, egress)
		f.endpoint(e, ingress)
	}
	f.profiles()
	f.policies()
	return t
}

// felixNFT is one rendering.
type felixNFT struct {
	c CalicoConfig
	t *nft.Table
}

// chainNFT writes rules in Felix's form: each counts, and bears the hash of all rules up to it.
type chainNFT struct {
	f     *felixNFT
	layer string
	chain *nft.Chain
	// seen is the signature of the rule above; text the comment for the next rule.
	seen, text string
}

func (f *felixNFT) at(layer, name string) *chainNFT {
	return &chainNFT{f: f, layer: layer, chain: f.t.Chain(layer + "-" + name), seen: name}
}

// note sets a comment in words for the next rule.
func (c *chainNFT) note(text string) *chainNFT {
	c.text = " " + text
	return c
}

// to appends a rule that does something with what matches.
func (c *chainNFT) to(do nft.Term, matches ...nft.Term) *chainNFT {
	rule := append(append(nft.Rule{}, matches...), nft.Count, do)
	c.seen = digest(c.seen+c.text+rule.String(), 16)
	c.chain.Add(append(rule, nft.Comment(clip("cali:"+c.seen+";"+c.text)))...)
	c.text = ""
	return c
}

// clip shortens a comment to what the kernel holds.
func clip(text string) string { return text[:min(len(text), nft.MaxComment)] }

// jump appends a rule that calls a chain of the layer, and declares that chain; follow goes there for good.
func (c *chainNFT) jump(name string, matches ...nft.Term) *chainNFT {
	return c.to(nft.Jump(c.f.t.Chain(c.layer+"-"+name).Name), matches...)
}

func (c *chainNFT) follow(name string, matches ...nft.Term) *chainNFT {
	return c.to(nft.Goto(c.f.t.Chain(c.layer+"-"+name).Name), matches...)
}

// hang leads from base chains into Calico's.
func (f *felixNFT) hang(layer string, chains ...string) {
	for _, name := range chains {
		f.at(layer, name).jump("cali-" + name)
	}
}

var (
	ofWorkload  = nft.Is(nft.InDevice, "cali*")
	forWorkload = nft.Is(nft.OutDevice, "cali*")
	known       = nft.State(nft.Established | nft.Related)
	ipipPacket  = nft.Is(nft.L4Proto, nft.L4("4"))
	vxlanPacket = []nft.Term{nft.Is(nft.L4Proto, nft.L4("udp")), nft.Is(nft.DestPort, uint16(vxlanPortNFT))}
)

// with returns terms with more after them.
func with(terms []nft.Term, more ...nft.Term) []nft.Term {
	return append(append([]nft.Term{}, terms...), more...)
}

func (f *felixNFT) raw() {
	pre := f.at(ruleset.Raw, "cali-PREROUTING").to(nft.ClearMark(bitsAll))
	if f.c.VXLAN {
		pre.to(nft.Untrack, vxlanPacket...)
	}
	pre.to(nft.SetMark(bitScratch0), ofWorkload).
		jump("cali-rpf-skip", nft.MarkSet(bitScratch0)).
		to(nft.Drop, nft.MarkSet(bitScratch0), nft.NoReversePath).
		jump("cali-from-host-endpoint", nft.MarkClear(bitScratch0)).
		to(nft.Accept, nft.MarkSet(bitAccept))
	out := f.at(ruleset.Raw, "cali-OUTPUT").to(nft.ClearMark(bitsAll)).jump("cali-to-host-endpoint")
	if f.c.VXLAN {
		out.to(nft.Untrack, vxlanPacket...)
	}
	out.to(nft.Accept, nft.MarkSet(bitAccept))
	f.hang(ruleset.Raw, "PREROUTING", "OUTPUT")
}

func (f *felixNFT) mangle() {
	f.at(ruleset.Mangle, "cali-PREROUTING").
		to(nft.Accept, known).
		to(nft.Accept, nft.MarkSet(bitAccept)).
		jump("cali-from-host-endpoint").
		note("Host endpoint policy accepted packet.").to(nft.Accept, nft.MarkSet(bitAccept))
	f.at(ruleset.Mangle, "cali-POSTROUTING").
		note("set dscp for traffic leaving cluster.").
		jump("cali-egress-dscp", nft.In(f.c.set(setDSCP), nft.SourceAddr), nft.NotIn(f.c.set(setAllPools), nft.DestAddr), nft.NotIn(f.c.set(setThisHost), nft.DestAddr)).
		to(nft.Return, nft.MarkSet(bitAccept)).
		to(nft.ClearMark(bitsAll)).
		jump("cali-to-host-endpoint", nft.Translated).
		note("Host endpoint policy accepted packet.").to(nft.Return, nft.MarkSet(bitAccept))
	f.hang(ruleset.Mangle, "PREROUTING", "POSTROUTING")
}

func (f *felixNFT) nat() {
	f.at(ruleset.NAT, "cali-PREROUTING").jump("cali-fip-dnat")
	f.at(ruleset.NAT, "cali-OUTPUT").jump("cali-fip-dnat")
	post := f.at(ruleset.NAT, "cali-POSTROUTING").jump("cali-fip-snat").jump("cali-nat-outgoing")
	if f.c.VXLAN || f.c.IPIP {
		post.to(nft.Masquerade, nft.Is(nft.OutDevice, f.c.tunnel()), nft.SourceNotLocalTo, nft.SourceLocal)
	}
	if f.c.NATOutgoing {
		f.at(ruleset.NAT, "cali-nat-outgoing").to(nft.Masquerade, nft.In(f.c.set(setMasqPools), nft.SourceAddr), nft.NotIn(f.c.set(setAllPools), nft.DestAddr))
	}
	f.hang(ruleset.NAT, "PREROUTING", "OUTPUT", "POSTROUTING")
}

func (f *felixNFT) forward() {
	f.at(ruleset.Filter, "cali-FORWARD").
		to(nft.ClearMark(bitsOurs)).
		jump("cali-from-hep-forward", nft.MarkClear(bitAccept)).
		jump("cali-from-wl-dispatch", ofWorkload).
		jump("cali-to-wl-dispatch", forWorkload).
		jump("cali-to-hep-forward").
		jump("cali-cidr-block")
	f.at(ruleset.Filter, "FORWARD").
		jump("cali-FORWARD").
		note("Policy explicitly accepted packet.").to(nft.Accept, nft.MarkSet(bitAccept)).
		to(nft.SetMark(bitAccept))
}

func (f *felixNFT) input() {
	in := f.at(ruleset.Filter, "cali-INPUT")
	if f.c.IPIP {
		in.note("Allow IPIP packets from Calico hosts").to(nft.Accept, ipipPacket, nft.In(f.c.set(setHostsNet), nft.SourceAddr), nft.DestLocal)
		in.note("Drop IPIP packets from non-Calico hosts").to(nft.Drop, ipipPacket)
	}
	if f.c.VXLAN {
		in.note("Allow "+f.c.family()+" VXLAN packets from allowed hosts").
			to(nft.Accept, with(vxlanPacket, nft.In(f.c.set(setVXLANNet), nft.SourceAddr), nft.DestLocal)...)
		in.note("Drop "+f.c.family()+" VXLAN packets from non-allowed hosts").to(nft.Drop, with(vxlanPacket, nft.DestLocal)...)
	}
	in.follow("cali-wl-to-host", ofWorkload).
		to(nft.Accept, nft.MarkSet(bitAccept)).
		to(nft.ClearMark(bitsAll)).
		jump("cali-from-host-endpoint").
		note("Host endpoint policy accepted packet.").to(nft.Accept, nft.MarkSet(bitAccept))
	host := f.at(ruleset.Filter, "cali-wl-to-host")
	if f.c.IPv6 {
		for _, kind := range asRouter {
			host.to(nft.Accept, nft.Is(nft.L4Proto, nft.L4("ipv6-icmp")), nft.Is(nft.ICMPv6Type, kind))
		}
	}
	host.
		jump("cali-from-wl-dispatch").
		note("Configured DefaultEndpointToHostAction").to(nft.Accept)
	f.hang(ruleset.Filter, "INPUT")
}

func (f *felixNFT) output() {
	out := f.at(ruleset.Filter, "cali-OUTPUT").
		to(nft.Accept, nft.MarkSet(bitAccept)).
		// What the node sends to its own pods is never policed.
		to(nft.Return, forWorkload)
	if f.c.VXLAN {
		out.note("Allow "+f.c.family()+" VXLAN packets to other allowed hosts").
			to(nft.Accept, with(vxlanPacket, nft.SourceLocal, nft.In(f.c.set(setVXLANNet), nft.DestAddr))...)
	}
	if f.c.IPIP {
		out.note("Allow IPIP packets to other Calico hosts").to(nft.Accept, ipipPacket, nft.In(f.c.set(setHostsNet), nft.DestAddr), nft.SourceLocal)
	}
	out.to(nft.ClearMark(bitsAll)).
		jump("cali-to-host-endpoint", nft.NotJustTranslated).
		note("Host endpoint policy accepted packet.").to(nft.Accept, nft.MarkSet(bitAccept))
	f.hang(ruleset.Filter, "OUTPUT")
}

// dispatch writes the map that finds a pod's own chain by its device, and the chain that asks it.
func (f *felixNFT) dispatch(name string, device nft.Field, d direction) {
	name = ruleset.Filter + "-" + name
	ways := f.t.Map(name, nft.Device)
	for _, e := range f.c.Endpoints {
		ways.Put(nft.Goto(f.t.Chain(ruleset.Filter+"-"+d.endpoint+e.Device).Name), e.Device)
	}
	f.t.Chain(name).Add(nft.VMap(name, device))
	(&chainNFT{f: f, layer: ruleset.Filter, chain: f.t.Chain(name), seen: name}).note("Unknown interface").to(nft.Drop)
}

// endpoint writes cali-fw-X or cali-tw-X, as felix.endpoint does.
func (f *felixNFT) endpoint(e Endpoint, d direction) {
	chain := f.at(ruleset.Filter, d.endpoint+e.Device).
		to(nft.Accept, known).
		to(nft.Drop, nft.State(nft.Invalid)).
		to(nft.ClearMark(bitsVerdict))
	if d == egress {
		chain.note("Drop VXLAN encapped packets originating in workloads").to(nft.Drop, vxlanPacket...)
		chain.note("Drop IPinIP encapped packets originating in workloads").to(nft.Drop, ipipPacket)
	}
	if f.c.Policies > 0 {
		chain.note("Start of tier default").to(nft.ClearMark(bitPass))
		for i := range f.c.Policies {
			chain.jump(policyChain(d, i), nft.MarkClear(bitPass))
			chain.note("Return if policy accepted").to(nft.Return, nft.MarkSet(bitAccept))
		}
		chain.note("End of tier default. Drop if no policies passed packet").to(nft.Drop, nft.MarkClear(bitPass))
	}
	for _, profile := range profileNames {
		chain.jump(d.profile + profile)
		chain.note("Return if profile accepted").to(nft.Return, nft.MarkSet(bitAccept))
	}
	chain.note("Drop if no profiles matched").to(nft.Drop)
}

func (f *felixNFT) profiles() {
	if len(f.c.Endpoints) == 0 {
		return
	}
	for _, d := range []direction{egress, ingress} {
		name := profileNames[0]
		f.at(ruleset.Filter, d.profile+name).
			note("Profile "+name+" "+d.word).to(nft.SetMark(bitAccept)).
			to(nft.Return, nft.MarkSet(bitAccept))
	}
}

// policies writes the chains of all policies and the sets that they match.
func (f *felixNFT) policies() {
	for i := range f.c.Policies + f.c.PoliciesUnselected {
		for _, d := range []direction{egress, ingress} {
			peer := nft.SourceAddr
			if d == egress {
				peer = nft.DestAddr
			}
			name := legal(f.c.policySet(d, i))
			match := []nft.Term{nft.In(name, peer)}
			if f.c.allowsAll(i) {
				f.prefixes(name, []netip.Prefix{f.c.everywhere()})
			} else {
				f.prefixes(name, f.c.peersOf(i))
				match = []nft.Term{nft.Is(nft.L4Proto, nft.L4("tcp")), nft.In(name, peer), nft.PortsFrom(1024)}
			}
			chain, note := f.at(ruleset.Filter, policyChain(d, i)), fmt.Sprintf("Policy %s/knp.default.p%d %s", namespace, i, d.word)
			if f.c.allowsAll(i) {
				chain.note(note).to(nft.Drop, nft.Is(nft.L4Proto, nft.L4("tcp")), nft.Is(nft.DestPort, uint16(DeniedPort)))
			}
			chain.
				note(note).
				to(nft.SetMark(bitAccept), match...).
				to(nft.Return, nft.MarkSet(bitAccept))
		}
	}
}

// everywhere holds all addresses of the family.
func (c CalicoConfig) everywhere() netip.Prefix {
	if c.IPv6 {
		return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
}

// legal is the name of a set as nftables takes it.
func legal(set string) string {
	b := []byte(set)
	for i, c := range b {
		if c == ':' {
			b[i] = '-'
		}
	}
	return string(b)
}

func (f *felixNFT) sets() {
	f.prefixes(f.c.set(setAllPools), f.c.Pools)
	if f.c.NATOutgoing {
		f.prefixes(f.c.set(setMasqPools), f.c.Pools)
	}
	if f.c.VXLAN {
		f.prefixes(f.c.set(setVXLANNet), hosts(f.c.Peers))
	}
	if f.c.IPIP {
		f.prefixes(f.c.set(setHostsNet), hosts(f.c.Peers))
	}
	host := f.t.Set(f.c.set(setThisHost), nft.Addr)
	for _, a := range f.c.NodeAddrs {
		host.Insert(a)
	}
	f.prefixes(f.c.set(setDSCP), nil)
}

func (f *felixNFT) prefixes(name string, members []netip.Prefix) {
	s := f.t.Set(name, nft.Addr)
	s.Interval = true
	for _, p := range members {
		s.Insert(p)
	}
}
