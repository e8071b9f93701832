package cilium

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
)

func backends(n int) []netip.AddrPort {
	list := make([]netip.AddrPort, n)
	for i := range list {
		list[i] = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 20, byte(i >> 8), byte(i)}), 8080)
	}
	return list
}

// owners is the table as addresses, which is what two nodes must agree on.
func owners(list []netip.AddrPort) []netip.AddrPort {
	var out []netip.AddrPort
	for _, i := range maglevTable(list) {
		out = append(out, list[i])
	}
	return out
}

func TestMaglevSharesEvenly(t *testing.T) {
	for _, n := range []int{1, 2, 3, 10, 100} {
		count := map[netip.AddrPort]int{}
		for _, b := range owners(backends(n)) {
			count[b]++
		}
		// Turns differ by one slot at most.
		for b, c := range count {
			if c < maglevSize/n || c > maglevSize/n+1 {
				t.Errorf("%d backends: %s has %d of %d slots", n, b, c, maglevSize)
			}
		}
		if len(count) != n {
			t.Errorf("%d of %d backends are in the table", len(count), n)
		}
	}
	if maglevTable(nil) != nil {
		t.Error("nobody has a table")
	}
}

func TestMaglevIgnoresOrder(t *testing.T) {
	list := backends(10)
	want := owners(list)
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	if !slices.Equal(owners(list), want) {
		t.Error("the table depends on the order of the backends")
	}
}

func TestMaglevMovesLittle(t *testing.T) {
	for _, n := range []int{3, 10, 50} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			list := backends(n)
			before, after := owners(list), owners(list[1:])
			moved := 0
			for i := range before {
				if before[i] != after[i] {
					moved++
				}
			}
			// All slots of the one that left, and few of the others.
			least, most := maglevSize/n, maglevSize*2/n
			if moved < least || moved > most {
				t.Errorf("%d of %d slots moved, want %d to %d", moved, maglevSize, least, most)
			}
		})
	}
}
