package nft

import (
	"slices"
	"time"
)

// Family is the address family of a table.
type Family string

// The families.
const (
	IPv4 Family = "ip"
	IPv6 Family = "ip6"
	// Inet is for both versions of IP. There, Addr and the fields of addresses are for IPv4, Addr6 and its fields for
	// IPv6.
	Inet Family = "inet"
)

// FamilyOf returns IPv6 if ipv6 is true, else IPv4.
func FamilyOf(ipv6 bool) Family {
	if ipv6 {
		return IPv6
	}
	return IPv4
}

// Priorities of base chains: lower ones come first. Of two with the same priority, the one registered last comes first.
const (
	RawPriority    = -300
	ManglePriority = -150
	DNATPriority   = -100
	FilterPriority = 0
	SNATPriority   = 100
)

// MaxName is the maximum length in bytes of the name of a chain, set or table. MaxComment is that of a comment.
const (
	MaxName    = 255
	MaxComment = 127
)

// Table is one nftables table. Create one with NewTable; it is not for concurrent use.
type Table struct {
	Family Family
	Name   string
	// Comment is optional.
	Comment    string
	flowtables []*Flowtable
	sets       []*Set
	chains     []*Chain
	setOf      map[string]*Set
	chainOf    map[string]*Chain
}

// Flowtable forwards packets of the connections that rules put into it. It does so where packets enter its devices,
// so they bypass all chains.
type Flowtable struct {
	Name     string
	Priority int
	// Devices are the names of at most 256 devices.
	Devices []string
}

// NewTable returns an empty table. Declare its sets and chains by its methods, and program it by Load.
func NewTable(f Family, name string) *Table {
	return &Table{Family: f, Name: name, setOf: map[string]*Set{}, chainOf: map[string]*Chain{}}
}

// Chains returns the chains in the order in which they were declared.
func (t *Table) Chains() []*Chain { return slices.Clone(t.chains) }

// Hook defines where the kernel calls a base chain.
type Hook struct {
	// Type is "filter", "nat" or "route".
	Type string
	// Hook is "prerouting", "input", "forward", "output" or "postrouting".
	Hook     string
	Priority int
}

// Chain is a list of rules that a packet passes in order.
type Chain struct {
	Name string
	// Hook is nil for a chain that only other chains jump to.
	Hook  *Hook
	Rules []Rule
}

// Rule is a list of terms. For a packet, the rule ends at the first term that does not match, or with a verdict.
type Rule []Term

// Base declares a base chain, with policy accept. Declaring it again changes its hook.
func (t *Table) Base(name string, h Hook) *Chain {
	c := t.Chain(name)
	c.Hook = &h
	return c
}

// Chain returns the chain called name and declares it if necessary.
func (t *Table) Chain(name string) *Chain {
	if c, ok := t.chainOf[name]; ok {
		return c
	}
	c := &Chain{Name: name}
	t.chainOf[name] = c
	t.chains = append(t.chains, c)
	return c
}

// Add appends a rule of these terms, and returns the chain.
func (c *Chain) Add(terms ...Term) *Chain {
	c.Rules = append(c.Rules, terms)
	return c
}

// Set is a set of keys, or with Map a map from keys to verdicts.
type Set struct {
	Name    string
	Comment string
	// Key has the types of the parts of a key.
	Key []Type
	Map bool
	// Interval means that the elements are prefixes. The key then has one part.
	Interval bool
	// Timeout is the lifetime of an element that a packet has added; 0 means that packets do not change the set.
	Timeout time.Duration
	// Collect is the interval at which the kernel removes expired elements; 0 means one second.
	Collect  time.Duration
	Elements []Element
}

// Element is one element of a set.
type Element struct {
	// Key has a value for each part of the set's key.
	Key []Value
	// Verdict is the value in a map; the zero Verdict in a set.
	Verdict Verdict
}

// Type is the type of a part of a key.
type Type int

// The types, with the Go type of their values.
const (
	// Addr is an address of the table's family: netip.Addr, or netip.Prefix in an interval set.
	Addr Type = iota
	// Proto is a transport protocol: L4.
	Proto
	// Port is a transport port: uint16.
	Port
	// Device is the name of a network device: string.
	Device
	// ICMPType is the type of an ICMP message: uint8.
	ICMPType
	// Addr6 is an IPv6 address in a table of family Inet, with values like Addr.
	Addr6
)

// Value is a netip.Addr, a netip.Prefix, an L4, a uint16 (a port), a uint8 (a type of ICMP message) or a string (the
// name of a device). In a match, the name of a device may end in an asterisk.
type Value any

// L4 is a transport protocol: "tcp", "udp", "sctp", "ipv6-icmp", or "4" for IP in IP.
type L4 string

// Set returns the set called name, and declares it with a key of these types if necessary.
func (t *Table) Set(name string, key ...Type) *Set {
	if s, ok := t.setOf[name]; ok {
		return s
	}
	s := &Set{Name: name, Key: key}
	t.setOf[name] = s
	t.sets = append(t.sets, s)
	return s
}

// Map returns the verdict map called name, and declares it with a key of these types if necessary.
func (t *Table) Map(name string, key ...Type) *Set {
	s := t.Set(name, key...)
	s.Map = true
	return s
}

// Lookup returns the set or map called name, nil if it is not declared.
func (t *Table) Lookup(name string) *Set { return t.setOf[name] }

// Flowtable declares a flowtable. Put connections into it by Offload.
func (t *Table) Flowtable(f Flowtable) { t.flowtables = append(t.flowtables, &f) }

// Put adds an element to a map: the verdict v for a key.
func (s *Set) Put(v Verdict, key ...Value) {
	s.Elements = append(s.Elements, Element{Key: key, Verdict: v})
}

// Insert adds an element to a set. key has a value for each part of a key.
func (s *Set) Insert(key ...Value) { s.Elements = append(s.Elements, Element{Key: key}) }
