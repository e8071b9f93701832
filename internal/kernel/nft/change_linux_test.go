package nft

import (
	"context"
	"net/netip"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// served is a table with a Service for each of ports, whose endpoint is at the address.
func served(family Family, at string, ports ...uint16) *Table {
	t := NewTable(family, "t")
	t.Map("services", Port)
	t.Base("nat", Hook{"nat", "prerouting", DNATPriority}).Add(VMap("services", DestPort))
	serve(t, at, ports...)
	return t
}

func serve(t *Table, at string, ports ...uint16) {
	for _, port := range ports {
		chain := t.Chain("service-" + string(rune('a'+port%26)))
		chain.Add(Is(L4Proto, L4("tcp")), DNATRandom(netip.AddrPortFrom(netip.MustParseAddr(at), port), netip.AddrPortFrom(netip.MustParseAddr(at), port+1)))
		t.Lookup("services").Put(Goto(chain.Name), port)
	}
}

// TestDifference: there and back, a patched table is the one that is loaded whole, and what else it has stays.
func TestDifference(t *testing.T) {
	for family, at := range map[Family][2]string{IPv4: {"192.0.2.1", "192.0.2.2"}, IPv6: {"2001:db8::1", "2001:db8::2"}} {
		for name, ports := range map[string][2][]uint16{"endpoint": {{7}, {7}}, "Service": {{7}, {7, 8}}, "another": {{7}, {8}}} {
			load := func(form int) *netns.NS {
				ns, whole := newNS(t), served(family, at[form], ports[form]...)
				serve(whole, at[0], 100)
				if err := Load(context.Background(), ns, whole); err != nil {
					t.Fatal(err)
				}
				return ns
			}
			ns := load(0)
			for step := range 4 {
				from, to := step%2, (step+1)%2
				p, err := Difference(served(family, at[from], ports[from]...), served(family, at[to], ports[to]...))
				if err != nil {
					t.Fatal(err)
				}
				if err := p.Commit(ns); err != nil {
					t.Fatalf("%s, step %d: %v", name, step, err)
				}
				if diff := cmp.Diff(listed(t, load(to), family), listed(t, ns, family)); diff != "" {
					t.Errorf("%s, step %d: loaded -, patched +:\n%s", name, step, diff)
				}
			}
		}
	}
	if p, err := Difference(served(IPv4, "192.0.2.1", 7), served(IPv4, "192.0.2.1", 7)); p != nil || err != nil {
		t.Errorf("no difference is %v, %v", p, err)
	}
}

// TestRefusedPatch: what the kernel refuses changes nothing.
func TestRefusedPatch(t *testing.T) {
	ns := newNS(t)
	if err := Load(context.Background(), ns, served(IPv4, "192.0.2.1", 7)); err != nil {
		t.Fatal(err)
	}
	before := listed(t, ns, IPv4)
	p, err := Difference(served(IPv4, "192.0.2.1", 7, 8), served(IPv4, "192.0.2.2", 7))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Commit(ns); err == nil {
		t.Error("a chain that is not there is deleted")
	}
	if diff := cmp.Diff(before, listed(t, ns, IPv4)); diff != "" {
		t.Error(diff)
	}
}

var chainOrder = regexp.MustCompile(`(?m)^\tchain service-.*\n(?:\t\t.*\n)*\t\}\n\n?`)

// listed is what nft prints of table t: the chains in the order of their names, since new ones come last.
func listed(t *testing.T, ns *netns.NS, family Family) map[string]bool {
	t.Helper()
	text := program(t, ns, "", "list", "table", string(family), "t")
	parts := map[string]bool{}
	for _, c := range chainOrder.FindAllString(text, -1) {
		parts[regexp.MustCompile(`\n+$`).ReplaceAllString(c, "\n")] = true
	}
	parts[regexp.MustCompile(`\n\n+`).ReplaceAllString(chainOrder.ReplaceAllString(text, ""), "\n")] = true
	return parts
}
