package nft

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"testing"

	"github.com/google/nftables"

	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// TestShared: rules with the same choice have one map, over several transactions and after Replace; others have their own.
func TestShared(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it makes a network namespace")
	}
	ns, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	table := NewTable(IPv4, "shared")
	a, b := netip.MustParseAddrPort("192.0.2.1:80"), netip.MustParseAddrPort("192.0.2.2:80")
	tcp := Is(L4Proto, L4("tcp"))
	const rules = 1500 // more than one transaction
	for i := range rules {
		table.Chain(fmt.Sprintf("same-%d", i)).Add(tcp, DNATShared(a, b))
	}
	table.Chain("other").Add(tcp, DNATShared(b, a))
	table.Chain("own-1").Add(tcp, DNATRandom(a, b))
	table.Chain("own-2").Add(tcp, DNATRandom(a, b))
	for _, load := range []func() error{
		func() error { return Load(t.Context(), ns, table) }, func() error { return Replace(t.Context(), ns, table) },
	} {
		if err := load(); err != nil {
			if errors.Is(err, errors.ErrUnsupported) {
				t.Skip(err)
			}
			t.Fatal(err)
		}
		var named, anonymous, lookups int
		err := withTable(ns, IPv4, "shared", func(c *nftables.Conn, chains []*nftables.Chain) error {
			sets, err := c.GetSets(&nftables.Table{Name: "shared", Family: nftables.TableFamilyIPv4})
			for _, s := range sets {
				if s.Anonymous {
					anonymous++
				} else {
					named++
				}
			}
			lookups = len(chains)
			return err
		})
		if err != nil || named != 2 || anonymous != 2 || lookups != rules+3 {
			t.Errorf("%d shared maps, %d of one rule, %d chains (%v); want 2, 2, %d", named, anonymous, lookups, err, rules+3)
		}
	}
}
