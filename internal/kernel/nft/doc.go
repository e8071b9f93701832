// Package nft describes nftables tables as values, prints them in the language of nft(8), and programs them into
// network namespaces by netlink. It knows the kernel's expressions, but not the meaning of the rules.
//
//	t := nft.NewTable(nft.IPv4, "example")
//	t.Map("ports", nft.Proto, nft.Port)                       // a verdict map keyed by l4proto . dport
//	t.Base("in", nft.Hook{Type: "nat", Hook: "prerouting", Priority: nft.DNATPriority}).
//		Add(nft.VMap("ports", nft.L4Proto, nft.DestPort))
//	t.Chain("web").Add(nft.Is(nft.L4Proto, nft.L4("tcp")), nft.DNATRandom(endpoints...))
//	t.Lookup("ports").Put(nft.Goto("web"), nft.L4("tcp"), uint16(80))
//	if err := t.Check(); err != nil { ... }                   // jumps and lookups that lead nowhere
//	text := t.String()                                        // for golden files and for people: input of nft -f
//	err := nft.Load(ctx, ns, t)                               // the same table, by netlink
//	rules, err := nft.Counters(ns, nft.IPv4, "example")       // what the rules have counted since
//
// A table is a list of sets (or maps: sets whose elements have a verdict) and of chains. A chain is a list of rules, a
// rule a list of terms. Each term passes the packet to the next term or ends the rule.
//
// Load speaks netlink itself instead of running nft: ten thousand Services are some hundred thousand kernel objects,
// and parsing them as text takes longer than programming them. A table is sent in several transactions, each as large
// as a socket's buffer permits an unprivileged caller (a user namespace's root), so it is not replaced atomically. Load
// is meant for a namespace without traffic.
package nft
