package policy

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/netip"
	"strings"

	"github.com/cnibench/cnibench/internal/env/lab/ruleset"
)

const established = "-m conntrack --ctstate RELATED,ESTABLISHED"

func isSet(mark string) string   { return "-m mark --mark " + mark + "/" + mark }
func isClear(mark string) string { return "-m mark --mark 0x0/" + mark }

func inSet(set, side string) string    { return "-m set --match-set " + set + " " + side }
func notInSet(set, side string) string { return "-m set ! --match-set " + set + " " + side }

// chain writes rules in Felix's form: each bears a comment with a hash of all rules up to it, by which Felix sees on
// reading the tables whether a chain is still its own. Comments are matches, and legacy iptables runs them.
type chain struct {
	*ruleset.Chain
	table *ruleset.Table
	// seen is the signature of the rule above; text the comment for the next rule.
	seen, text string
}

// at declares a chain and returns it for writing.
func at(t *ruleset.Table, name string) *chain {
	return &chain{Chain: t.Chain(name), table: t, seen: name}
}

// note sets a comment in words for the next rule.
func (c *chain) note(text string) *chain {
	c.text = ` -m comment --comment "` + text + `"`
	return c
}

// to appends a rule that leads to a target with its options.
func (c *chain) to(target string, matches ...string) *chain { return c.rule("-j "+target, matches) }

// jump appends a rule that calls a chain, and declares that chain.
func (c *chain) jump(name string, matches ...string) *chain {
	c.table.Chain(name)
	return c.rule("-j "+name, matches)
}

// follow appends a rule that goes to a chain for good, and declares that chain.
func (c *chain) follow(name string, matches ...string) *chain {
	c.table.Chain(name)
	return c.rule("-g "+name, matches)
}

func (c *chain) rule(target string, matches []string) *chain {
	action := strings.Join(append(matches, target), " ")
	c.seen = digest(c.seen+c.text+action, 16)
	c.Append(signedAs(c.seen, c.text, action))
	c.text = ""
	return c
}

// signed returns a rule for a built-in chain.
func signed(chain, text, action string) string {
	return signedAs(digest(chain+text+action, 16), text, action)
}

func signedAs(signature, text, action string) string {
	return `-m comment --comment "cali:` + signature + `"` + text + " " + action
}

// digest returns n characters, at most 43, that stand for text.
func digest(text string, n int) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:])[:n]
}

// Calico's sets, without what set adds to the name.
const (
	setMasqPools = "masq-ipam-pools"
	setAllPools  = "all-ipam-pools"
	setVXLANNet  = "all-vxlan-net"
	setHostsNet  = "all-hosts-net"
	setThisHost  = "this-host"
	setDSCP      = "dscp-src-net"
)

// set is the whole name of a set: the version of IP, and "0" for the main copy.
func (c CalicoConfig) set(name string) string {
	if c.IPv6 {
		return "cali60" + name
	}
	return "cali40" + name
}

// inSet and notInSet match by one of Calico's own sets.
func (f *felix) inSet(name, side string) string    { return inSet(f.c.set(name), side) }
func (f *felix) notInSet(name, side string) string { return notInSet(f.c.set(name), side) }

// sets returns the sets as ipset restore input. Felix makes them of type hash:net, that of single addresses hash:ip.
func (f *felix) sets() string {
	var b strings.Builder
	family := "inet"
	if f.c.IPv6 {
		family = "inet6"
	}
	prefixes := func(name string, members []netip.Prefix) {
		fmt.Fprintf(&b, "create %s hash:net family %s maxelem 1048576\n", name, family)
		for _, p := range members {
			fmt.Fprintf(&b, "add %s %s\n", name, p.Masked())
		}
	}
	addresses := func(name string, members []netip.Addr) {
		fmt.Fprintf(&b, "create %s hash:ip family %s maxelem 1048576\n", name, family)
		for _, a := range members {
			fmt.Fprintf(&b, "add %s %s\n", name, a)
		}
	}
	prefixes(f.c.set(setAllPools), f.c.Pools)
	if f.c.NATOutgoing {
		prefixes(f.c.set(setMasqPools), f.c.Pools)
	}
	if f.c.VXLAN {
		prefixes(f.c.set(setVXLANNet), hosts(f.c.Peers))
	}
	if f.c.IPIP {
		prefixes(f.c.set(setHostsNet), hosts(f.c.Peers))
	}
	addresses(f.c.set(setThisHost), f.c.NodeAddrs)
	prefixes(f.c.set(setDSCP), nil)
	for i := range f.c.Policies + f.c.PoliciesUnselected {
		for _, d := range []direction{egress, ingress} {
			prefixes(f.c.policySet(d, i), f.c.peersOf(i))
		}
	}
	return b.String()
}

// peersOf returns whom policy i allows: everybody (a set cannot hold a prefix of 0 bits, so by halves), or one address
// of a range that is kept for documentation and that nobody has.
func (c CalicoConfig) peersOf(i int) []netip.Prefix {
	switch {
	case c.allowsAll(i) && c.IPv6:
		return []netip.Prefix{netip.MustParsePrefix("::/1"), netip.MustParsePrefix("8000::/1")}
	case c.allowsAll(i):
		return []netip.Prefix{netip.MustParsePrefix("0.0.0.0/1"), netip.MustParsePrefix("128.0.0.0/1")}
	case c.IPv6:
		return hosts([]netip.Addr{netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 14: byte(i >> 8), 15: byte(i)})})
	}
	return hosts([]netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})})
}

func hosts(addrs []netip.Addr) []netip.Prefix {
	var out []netip.Prefix
	for _, a := range addrs {
		out = append(out, netip.PrefixFrom(a, a.BitLen()))
	}
	return out
}
