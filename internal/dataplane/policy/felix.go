package policy

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/netip"
	"strings"

	"github.com/cnibench/cnibench/internal/dataplane/ruleset"
	"github.com/cnibench/cnibench/internal/kernel/nft"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// felix writes Calico's rules of one node, either into the tables of iptables or into one table of nftables.
type felix struct {
	c        CalicoConfig
	iptables *ruleset.Ruleset
	nftables *nft.Table
}

// clause is a match or a target of a rule, as iptables and as nftables write it.
type clause struct {
	iptables string
	nftables []nft.Term
}

func newClause(iptables string, nftables ...nft.Term) clause { return clause{iptables, nftables} }

var (
	accept     = newClause("ACCEPT", nft.Accept)
	drop       = newClause("DROP", nft.Drop)
	ret        = newClause("RETURN", nft.Return)
	untrack    = newClause("NOTRACK", nft.Untrack)
	masquerade = newClause("MASQUERADE --random-fully", nft.Masquerade)

	fromWorkload = newClause("-i cali+", nft.Is(nft.InDevice, "cali*"))
	toWorkload   = newClause("-o cali+", nft.Is(nft.OutDevice, "cali*"))
	established  = newClause("-m conntrack --ctstate RELATED,ESTABLISHED", nft.State(nft.Established|nft.Related))
	invalid      = newClause("-m conntrack --ctstate INVALID", nft.State(nft.Invalid))
	sourceLocal  = newClause("-m addrtype --src-type LOCAL", nft.SourceLocal)
	tcpPacket    = newClause("-p tcp", nft.Is(nft.L4Proto, nft.L4("tcp")))
	ipipPacket   = newClause("-p 4", nft.Is(nft.L4Proto, nft.L4("4")))
	vxlanPacket  = datagramClause(vxlanPort)

	wireGuardPacket = datagramClause(wireGuardPort)
)

func datagramClause(port uint16) clause {
	return newClause(fmt.Sprintf("-p udp -m multiport --dports %d", port), nft.Is(nft.L4Proto, nft.L4("udp")), nft.Is(nft.DestPort, port))
}

func setMarkClause(bits uint32) clause {
	return newClause(fmt.Sprintf("MARK --set-xmark %#x/%#x", bits, bits), nft.SetMark(bits))
}

func clearMarkClause(bits uint32) clause {
	return newClause(fmt.Sprintf("MARK --set-xmark 0x0/%#x", bits), nft.ClearMark(bits))
}

func markSetClause(bits uint32) clause {
	return newClause(fmt.Sprintf("-m mark --mark %#x/%#x", bits, bits), nft.MarkSet(bits))
}

func markClearClause(bits uint32) clause {
	return newClause(fmt.Sprintf("-m mark --mark 0x0/%#x", bits), nft.MarkClear(bits))
}

// side is one of a packet's addresses, source or destination, that is looked up in a set.
type side struct {
	iptables string
	nftables nft.Field
}

var source, destination = side{"src", nft.SourceAddr}, side{"dst", nft.DestAddr}

// memberClause returns the match of packets whose address (source or destination, by of) is in a set of Calico.
func (f *felix) memberClause(name string, of side) clause {
	set := f.c.ipsetName(name)
	return newClause("-m set --match-set "+set+" "+of.iptables, nft.In(nftSetName(set), of.nftables))
}

// nonMemberClause returns the match of packets whose address is not in a set of Calico.
func (f *felix) nonMemberClause(name string, of side) clause {
	set := f.c.ipsetName(name)
	return newClause("-m set ! --match-set "+set+" "+of.iptables, nft.NotIn(nftSetName(set), of.nftables))
}

// chain appends rules to a chain in Felix's form: the comment of each rule has a hash of all rules up to it, by which Felix
// finds foreign changes. Comments are included because legacy iptables evaluates them as matches.
type chain struct {
	f        *felix
	layer    string
	iptables *ruleset.Chain
	nft      *nft.Chain
	// signature is the hash of the rules so far. text is the comment for the next rule.
	signature, text string
}

// chainIn declares a chain and returns its writer. In iptables, layer is the table of the chain; in nftables, the name
// of the chain begins with layer.
func (f *felix) chainIn(layer, name string) *chain {
	full := f.declareChain(layer, name)
	if f.nftables != nil {
		return &chain{f: f, layer: layer, nft: f.nftables.Chain(full), signature: name}
	}
	return &chain{f: f, layer: layer, iptables: f.iptables.Table(layer).Chain(name), signature: name}
}

// declareChain declares a chain and returns its full name, which begins with layer in nftables.
func (f *felix) declareChain(layer, name string) string {
	if f.nftables != nil {
		return f.nftables.Chain(layer + "-" + name).Name
	}
	return f.iptables.Table(layer).Chain(name).Name
}

// hookChain adds a jump from a built-in chain to Calico's chain, in iptables above all other rules. It returns the
// built-in chain.
func (f *felix) hookChain(layer, name string) *chain {
	from := f.chainIn(layer, name)
	if f.nftables != nil {
		return from.addJump("cali-" + name)
	}
	from.iptables.Insert(from.signRule("-j cali-" + name))
	return f.chainIn(layer, name)
}

// setComment sets the text of the comment of the next rule.
func (c *chain) setComment(text string) *chain {
	c.text = text
	return c
}

// addRule appends a rule with a target that is not a chain.
func (c *chain) addRule(target clause, matches ...clause) *chain {
	return c.writeRule(newClause("-j "+target.iptables, target.nftables...), matches)
}

// addJump appends a rule that calls a chain, and declares that chain.
func (c *chain) addJump(name string, matches ...clause) *chain {
	full := c.f.declareChain(c.layer, name)
	return c.writeRule(newClause("-j "+name, nft.Jump(full)), matches)
}

// addGoto appends a goto: a rule that leads to a chain, from which packets do not return. It declares that chain.
func (c *chain) addGoto(name string, matches ...clause) *chain {
	full := c.f.declareChain(c.layer, name)
	return c.writeRule(newClause("-g "+name, nft.Goto(full)), matches)
}

func (c *chain) writeRule(target clause, matches []clause) *chain {
	var words []string
	var terms nft.Rule
	for _, m := range matches {
		words, terms = append(words, m.iptables), append(terms, m.nftables...)
	}
	if c.f.nftables == nil {
		c.iptables.Append(c.signRule(strings.Join(append(words, target.iptables), " ")))
	} else {
		terms = append(append(terms, nft.Count), target.nftables...)
		if c.text != "" {
			c.text = " " + c.text
		}
		c.signature = hashPrefix(c.signature+c.text+terms.String(), 16)
		comment := "cali:" + c.signature + ";" + c.text
		c.nft.Add(append(terms, nft.Comment(comment[:min(len(comment), nft.MaxComment)]))...)
	}
	c.text = ""
	return c
}

// signRule returns a rule of iptables with its comments, and updates the signature of the chain.
func (c *chain) signRule(rule string) string {
	text := c.text
	if text != "" {
		text = ` -m comment --comment "` + text + `"`
	}
	c.signature = hashPrefix(c.signature+text+rule, 16)
	return `-m comment --comment "cali:` + c.signature + `"` + text + " " + rule
}

// hashPrefix returns the first n characters of a hash of text in base64; n is at most 43.
func hashPrefix(text string, n int) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:])[:n]
}

// Calico's sets, without the prefix that CalicoConfig.ipsetName adds.
const (
	setMasqPools = "masq-ipam-pools"
	setAllPools  = "all-ipam-pools"
	setVXLANNet  = "all-vxlan-net"
	setHostsNet  = "all-hosts-net"
	setThisHost  = "this-host"
	setDSCP      = "dscp-src-net"
	// setNoOffload has the pods and nodes whose connections need rules in forward or postrouting; it is empty here.
	setNoOffload = "no-flow-offload"
)

// ipsetName returns the full name of a set: with the prefix cali40 for IPv4 or cali60 for IPv6.
func (c CalicoConfig) ipsetName(name string) string {
	if c.IPv6 {
		return "cali60" + name
	}
	return "cali40" + name
}

// ipSet is a set of prefixes, or of single addresses if addresses is true.
type ipSet struct {
	name      string
	addresses bool
	members   []netip.Prefix
}

func (f *felix) sets() []ipSet {
	sets := []ipSet{{f.c.ipsetName(setAllPools), false, f.c.Pools}}
	if len(f.c.Pools) > 0 {
		sets = append(sets, ipSet{f.c.ipsetName(setMasqPools), false, f.c.Pools})
	}
	if f.c.VXLAN {
		sets = append(sets, ipSet{f.c.ipsetName(setVXLANNet), false, hostPrefixes(f.c.Peers)})
	}
	if f.c.IPIP {
		sets = append(sets, ipSet{f.c.ipsetName(setHostsNet), false, hostPrefixes(f.c.Peers)})
	}
	sets = append(sets, ipSet{f.c.ipsetName(setThisHost), true, hostPrefixes(f.c.NodeAddrs)}, ipSet{name: f.c.ipsetName(setDSCP)})
	if f.c.Flowtable {
		sets = append(sets, ipSet{name: f.c.ipsetName(setNoOffload), addresses: true})
	}
	for i := range f.c.Policies + f.c.PoliciesUnselected {
		for _, d := range directions {
			sets = append(sets, ipSet{f.c.ipsetName(policySetName(d, i)), false, f.c.peersOf(i)})
		}
	}
	return sets
}

// ipsetRestoreInput returns the sets as ipset restore input.
func (f *felix) ipsetRestoreInput() string {
	var b strings.Builder
	family := "inet"
	if f.c.IPv6 {
		family = "inet6"
	}
	for _, s := range f.sets() {
		if s.addresses {
			fmt.Fprintf(&b, "create %s hash:ip family %s maxelem 1048576\n", s.name, family)
			for _, p := range s.members {
				fmt.Fprintf(&b, "add %s %s\n", s.name, p.Addr())
			}
			continue
		}
		fmt.Fprintf(&b, "create %s hash:net family %s maxelem 1048576\n", s.name, family)
		for _, p := range s.members {
			for _, part := range ipsetPrefixes(p) {
				fmt.Fprintf(&b, "add %s %s\n", s.name, part)
			}
		}
	}
	return b.String()
}

// ipsetPrefixes returns p, or its two halves if p has 0 bits, which ipset does not allow.
func ipsetPrefixes(p netip.Prefix) []netip.Prefix {
	if p.Bits() > 0 {
		return []netip.Prefix{p.Masked()}
	}
	upper := p.Addr().AsSlice()
	upper[0] = 0x80
	half, _ := netip.AddrFromSlice(upper) // the length is an address's
	return []netip.Prefix{netip.PrefixFrom(p.Addr(), 1), netip.PrefixFrom(half, 1)}
}

// peersOf returns the peers that policy i allows: all addresses for the last policy, an unused address for any other.
func (c CalicoConfig) peersOf(i int) []netip.Prefix {
	switch {
	case c.isLastPolicy(i) && c.IPv6:
		return []netip.Prefix{netip.PrefixFrom(netip.IPv6Unspecified(), 0)}
	case c.isLastPolicy(i):
		return []netip.Prefix{netip.PrefixFrom(netip.IPv4Unspecified(), 0)}
	}
	return hostPrefixes([]netip.Addr{unusedAddr(c.IPv6, i)})
}

// unusedAddr returns the only address that policy i allows: an address of a range for documentation, which nothing uses.
func unusedAddr(ipv6 bool, i int) netip.Addr {
	if ipv6 {
		return netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 14: byte(i >> 8), 15: byte(i)})
	}
	return netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})
}

func hostPrefixes(addrs []netip.Addr) []netip.Prefix {
	return each.Of(addrs, func(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) })
}
