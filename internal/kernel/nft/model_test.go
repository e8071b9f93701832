package nft

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/tool/golden"
)

func TestText(t *testing.T) {
	golden.Check(t, "sampler.nft", []byte(sampler().String()))
	golden.Check(t, "sampler46.nft", []byte(samplerOfBoth().String()))
	golden.Check(t, "sampler6.nft", []byte(samplerOf(IPv6, netip.MustParsePrefix("2001:db8::/64")).String()))
}

func TestCheck(t *testing.T) {
	for _, table := range []*Table{sampler(), samplerOf(IPv6, netip.MustParsePrefix("2001:db8::/64"))} {
		if err := table.Check(); err != nil {
			t.Error(err)
		}
	}
	four, six := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")
	for want, build := range map[string]func(*Table){
		`"nowhere", which is not a declared chain`: func(t *Table) { t.Chain("c").Add(Jump("nowhere")) },
		`"base", which is not a declared chain`:    func(t *Table) { t.Base("base", Hook{"filter", "input", 0}); t.Chain("c").Add(Goto("base")) },
		`"b", which is not a declared chain`:       func(t *Table) { t.Chain("a"); t.Chain("c").Add(GotoRandom("a", "b")) },
		`leads to "x"`:                             func(t *Table) { t.Map("m", Port).Put(Goto("x"), uint16(1)) },
		`looks into "s", which is not a declared`:  func(t *Table) { t.Chain("c").Add(In("s", SourceAddr)) },
		`looks into "m", which is not a declared`:  func(t *Table) { t.Map("m", Addr); t.Chain("c").Add(In("m", SourceAddr)) },
		`the key does not fit "s"`:                 func(t *Table) { t.Set("s", Port); t.Chain("c").Add(In("s", SourceAddr)) },
		`offloads into "f"`:                        func(t *Table) { t.Chain("c").Add(Offload("f")) },
		`looks into "u"`:                           func(t *Table) { t.Chain("c").Add(Update("u", SourceAddr)) },
		"is not a value of type ipv4_addr":         func(t *Table) { t.Chain("c").Add(Is(SourceAddr, six)) },
		"is not a value of type inet_proto":        func(t *Table) { t.Chain("c").Add(Is(L4Proto, L4("icmp"))) },
		"is not a value of type inet_service":      func(t *Table) { t.Chain("c").Add(Is(DestPort, 80)) },
		"is not a value of type ifname":            func(t *Table) { t.Chain("c").Add(Is(InDevice, "a-name-too-long-")) },
		"does not have 1 parts":                    func(t *Table) { t.Set("s", Addr).Insert(four, four) },
		"sets have none":                           func(t *Table) { t.Set("s", Addr).Put(Drop, four) },
		"maps have verdicts":                       func(t *Table) { t.Map("s", Addr).Insert(four) },
		"prefixes are for interval sets":           func(t *Table) { t.Set("s", Addr).Insert(netip.PrefixFrom(four, 24)) },
		"hold nothing else":                        func(t *Table) { s := t.Set("s", Addr); s.Interval = true; s.Insert(four) },
		"a key of 0 parts":                         func(t *Table) { t.Set("s") },
		"192.0.2.0/24 and 192.0.2.1/32 overlap": func(t *Table) {
			s := t.Set("s", Addr)
			s.Interval = true
			s.Insert(netip.PrefixFrom(four, 32))
			s.Insert(netip.MustParsePrefix("192.0.2.0/24"))
		},
		"nothing to translate to":                 func(t *Table) { t.Chain("c").Add(DNATRandom()) },
		"comment of 128 bytes":                    func(t *Table) { t.Chain("c").Add(Comment(strings.Repeat("x", 128))) },
		"with a quote":                            func(t *Table) { t.Chain("c").Add(Comment(`a"b`)) },
		"chain name":                              func(t *Table) { t.Chain("two words") },
		"the name is empty, longer than 255 byte": func(t *Table) { t.Set(strings.Repeat("x", 256), Addr) },
	} {
		table := NewTable(IPv4, "t")
		build(table)
		if err := table.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestPrefixBytes(t *testing.T) {
	for _, tt := range []struct{ prefix, mask, after string }{
		{"10.42.0.0/16", "\xff\xff\x00\x00", "10.43.0.0"},
		{"192.0.2.64/26", "\xff\xff\xff\xc0", "192.0.2.128"},
		{"192.0.2.1/32", "\xff\xff\xff\xff", "192.0.2.2"},
		{"0.0.0.0/0", "\x00\x00\x00\x00", "invalid IP"},
		{"255.255.255.0/24", "\xff\xff\xff\x00", "invalid IP"},
		{"2001:db8::/33", "\xff\xff\xff\xff\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", "2001:db8:8000::"},
	} {
		p := netip.MustParsePrefix(tt.prefix)
		if got := networkMask(p); !bytes.Equal(got, []byte(tt.mask)) || firstAddrAfter(p).String() != tt.after {
			t.Errorf("%s: mask %x, after it %v; want %x, %s", p, got, firstAddrAfter(p), tt.mask, tt.after)
		}
	}
}
