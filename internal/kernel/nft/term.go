package nft

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Term is a part of a rule. Only this package defines terms.
type Term interface {
	// text returns the term in the language of nft.
	text(Family) string
}

// Field is a property of a packet that can be compared or looked up.
type Field int

// The fields.
const (
	SourceAddr Field = iota
	DestAddr
	L4Proto
	DestPort
	InDevice
	OutDevice
	// ICMPv6Type is the type of an ICMPv6 message; compare the protocol first.
	ICMPv6Type
	// SourceAddr6 and DestAddr6 are addresses of IPv6 in a table of family Inet.
	SourceAddr6
	DestAddr6
)

// fields has the name of each field, without the family's prefix, and its type.
var fields = [...]struct {
	name string
	typ  Type
}{
	SourceAddr: {"saddr", Addr}, DestAddr: {"daddr", Addr},
	L4Proto: {"meta l4proto", Proto}, DestPort: {"th dport", Port},
	InDevice: {"iifname", Device}, OutDevice: {"oifname", Device}, ICMPv6Type: {"icmpv6 type", ICMPType},
	SourceAddr6: {"ip6 saddr", Addr6}, DestAddr6: {"ip6 daddr", Addr6},
}

func (f Field) text(family Family) string {
	if fields[f].typ == Addr {
		if family == Inet {
			family = IPv4
		}
		return string(family) + " " + fields[f].name
	}
	return fields[f].name
}

func joinFields(list []Field, family Family) string {
	return strings.Join(each.Of(list, func(f Field) string { return f.text(family) }), " . ")
}

// compare is a field compared with a constant.
type compare struct {
	field Field
	value Value
	not   bool
}

// Is matches packets whose field has the value.
func Is(f Field, v Value) Term { return compare{field: f, value: v} }

// Not matches packets whose field does not have the value.
func Not(f Field, v Value) Term { return compare{field: f, value: v, not: true} }

func (c compare) text(family Family) string {
	op := " "
	if c.not {
		op = " != "
	}
	return c.field.text(family) + op + valueText(c.value)
}

// lookup is a key that is looked up in a set, or with vmap in a verdict map.
type lookup struct {
	key       []Field
	set       string
	not, vmap bool
}

// In matches packets whose fields together are a key in the set.
func In(set string, key ...Field) Term { return lookup{key: key, set: set} }

// NotIn matches packets whose fields together are not a key in the set.
func NotIn(set string, key ...Field) Term { return lookup{key: key, set: set, not: true} }

// VMap applies the verdict that the map has for the fields. If the map has none, the packet continues to the next
// term.
func VMap(set string, key ...Field) Term { return lookup{key: key, set: set, vmap: true} }

func (l lookup) text(family Family) string {
	op := " @"
	switch {
	case l.vmap:
		op = " vmap @"
	case l.not:
		op = " != @"
	}
	return joinFields(l.key, family) + op + l.set
}

// dnat translates the destination to one of several addresses, chosen at random.
type dnat struct {
	to []netip.AddrPort
	// direct means that there is a single address, so no random choice.
	direct bool
	// shared means that rules with the same addresses use one map.
	shared bool
}

// DNAT translates the destination to the given address and port.
func DNAT(to netip.AddrPort) Term { return dnat{to: []netip.AddrPort{to}, direct: true} }

// DNATRandom translates the destination to one of the given addresses, each with the same probability.
func DNATRandom(to ...netip.AddrPort) Term { return dnat{to: to} }

// DNATShared translates like DNATRandom, but rules of the table with the same addresses share one map. With a map for
// each rule, the time to load the rules would grow with the square of their number. The kernel searches all maps for
// each new name.
func DNATShared(to ...netip.AddrPort) Term { return dnat{to: to, shared: true} }

func (d dnat) text(family Family) string {
	if d.direct {
		return "dnat to " + d.to[0].String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "dnat %s addr . port to numgen random mod %d map { ", family, len(d.to))
	for i, a := range d.to {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%d : %s . %d", i, a.Addr(), a.Port())
	}
	b.WriteString(" }")
	return b.String()
}

type gotoRandom []string

// GotoRandom goes to one of the chains, each with the same probability.
func GotoRandom(chains ...string) Term { return gotoRandom(chains) }

func (g gotoRandom) text(Family) string {
	var parts []string
	for i, c := range g {
		parts = append(parts, fmt.Sprintf("%d : goto %s", i, c))
	}
	return fmt.Sprintf("numgen random mod %d vmap { %s }", len(g), strings.Join(parts, ", "))
}

type update struct {
	set string
	of  Field
}

// Update adds the field to the set, or restarts its timeout there.
func Update(set string, of Field) Term { return update{set, of} }

func (u update) text(family Family) string {
	return "update @" + u.set + " { " + u.of.text(family) + " }"
}

type offload string

// Offload puts the packet's connection into a flowtable. The rule ends for a packet whose connection cannot be in the
// flowtable, or is there already.
func Offload(flowtable string) Term { return offload(flowtable) }

func (o offload) text(Family) string { return "flow add @" + string(o) }

// Verdict ends a rule: Accept, Drop, Return, or what Jump and Goto return.
type Verdict struct {
	kind  string
	chain string
}

// The verdicts without a chain.
var (
	Accept = Verdict{kind: "accept"}
	Drop   = Verdict{kind: "drop"}
	Return = Verdict{kind: "return"}
)

// Jump continues in a chain. From the end of that chain, the packet returns to the next rule of this one.
func Jump(chain string) Verdict { return Verdict{"jump", chain} }

// Goto continues in a chain without return: the end of that chain counts as the end of this one.
func Goto(chain string) Verdict { return Verdict{"goto", chain} }

func (v Verdict) text(Family) string {
	if v.chain == "" {
		return v.kind
	}
	return v.kind + " " + v.chain
}

func valueText(v Value) string {
	switch v := v.(type) {
	case netip.Addr:
		return v.String()
	case netip.Prefix:
		return v.Masked().String()
	case L4:
		return string(v)
	case uint16:
		return strconv.Itoa(int(v))
	case uint8:
		return strconv.Itoa(int(v))
	case string:
		return strconv.Quote(v)
	}
	return fmt.Sprintf("%%!%T", v)
}
