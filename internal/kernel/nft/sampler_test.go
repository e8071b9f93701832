package nft

import (
	"net/netip"
	"time"
)

// sampler is a table that uses everything once.
func sampler() *Table {
	return samplerOf(IPv4, netip.MustParsePrefix("192.0.2.0/24"))
}

// samplerOf is sampler for a family, with addresses from net.
func samplerOf(f Family, net netip.Prefix) *Table {
	one := net.Addr().Next()
	two := one.Next()
	at := func(a netip.Addr) netip.AddrPort { return netip.AddrPortFrom(a, 80) }
	t := NewTable(f, "sampler")
	t.Comment = "everything once"
	t.Set("addrs", Addr).Insert(one)
	t.Set("hairpin", Addr, Addr, Proto, Port).Insert(one, one, L4("tcp"), uint16(80))
	nets := t.Set("nets", Addr)
	nets.Interval, nets.Comment = true, "an interval"
	nets.Insert(netip.PrefixFrom(two, two.BitLen()))
	nets.Insert(netip.PrefixFrom(one, one.BitLen()))
	recent := t.Set("seen", Addr)
	recent.Timeout, recent.Collect = 3*time.Hour, 20*time.Millisecond
	t.Map("services", Addr, Proto, Port).Put(Goto("web"), one, L4("udp"), uint16(53))
	devices := t.Map("by-device", Device)
	devices.Put(Jump("refusal"), "eth0")
	devices.Put(Drop, "eth1")
	web, choice, refuse := t.Chain("web"), t.Chain("choice"), t.Chain("refusal")
	web.Add(Is(L4Proto, L4("tcp")), DNATRandom(at(one), at(two)))
	choice.Add(Update("seen", SourceAddr), Is(L4Proto, L4("tcp")), DNAT(at(two)))
	refuse.Add(Reject)
	t.Base("raw-in", Hook{"filter", "prerouting", RawPriority}).
		Add(Is(L4Proto, L4("udp")), Is(DestPort, uint16(4789)), Count, Untrack, Comment("a tunnel")).
		Add(NoReversePath, Count, Drop).
		Add(State(Established|Related), Accept).
		Add(Is(InDevice, "cali*"), SetMark(0x80000)).
		Add(Not(SourceAddr, net), MarkSet(0x4000), ClearMark(0x1f0000)).
		Add(Is(InDevice, "eni*"), SetConnMark(0x80)).
		Add(RestoreConnMark(0x80)).
		Add(Is(InDevice, "lo"), MarkClear(0x4000), FlipMark(0x4000), Return)
	t.Base("nat-in", Hook{"nat", "prerouting", DNATPriority}).
		Add(VMap("services", DestAddr, L4Proto, DestPort)).
		Add(In("seen", SourceAddr), Goto("choice")).
		Add(NotIn("addrs", DestAddr), SourceLocal, DestLocal, GotoRandom("web", "choice"))
	t.Base("filter-fwd", Hook{"filter", "forward", FilterPriority}).
		Add(VMap("by-device", OutDevice)).
		Add(Is(L4Proto, L4("tcp")), PortsFrom(1024), In("nets", SourceAddr), Jump("refusal"))
	t.Base("nat-out", Hook{"nat", "postrouting", SNATPriority}).
		Add(Translated, In("hairpin", SourceAddr, DestAddr, L4Proto, DestPort), Masquerade).
		Add(Is(OutDevice, "tunnel"), NotJustTranslated, SourceNotLocalTo, Masquerade)
	if f == IPv6 {
		t.Base("filter-in", Hook{"filter", "input", FilterPriority}).
			Add(Is(L4Proto, L4("ipv6-icmp")), Is(ICMPv6Type, uint8(135)), Count, Accept)
	}
	return t
}

// samplerOfBoth uses what a table of both versions of IP can have besides.
func samplerOfBoth() *Table {
	t := NewTable(Inet, "sampler")
	four, six := t.Set("four", Addr), t.Set("six", Addr6)
	four.Interval = true
	four.Insert(netip.MustParsePrefix("192.0.2.0/24"))
	six.Insert(netip.MustParseAddr("2001:db8::1"))
	t.Base("out", Hook{"filter", "postrouting", SNATPriority - 5}).
		Add(VersionIPv6, Is(L4Proto, L4("ipv6-icmp")), Is(ICMPv6Type, uint8(135)), Accept).
		Add(OfRoot, Count, Accept).
		Add(Labelled(100), State(Established), Count, Accept).
		Add(In("four", SourceAddr), Count).
		Add(In("six", DestAddr6), Count).
		Add(SetLabel(100))
	t.Base("nat", Hook{"nat", "postrouting", SNATPriority - 10}).
		Add(In("four", DestAddr), Accept).
		Add(Count, MasqueradeAny)
	return t
}
