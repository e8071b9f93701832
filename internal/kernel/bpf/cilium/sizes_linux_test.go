package cilium

import "testing"

// TestSizes: the entries of TCP that an agent of 1.20.2 has by its own arithmetic, and never fewer than its least.
func TestSizes(t *testing.T) {
	for memory, want := range map[uint64]Sizes{
		0:        {FlowsTCP: 131072, FlowsAny: 65536, SNAT: 131072, Stats: 1024},
		4 << 30:  {FlowsTCP: 131072, FlowsAny: 65536, SNAT: 131072, Stats: 1024},
		64 << 30: {FlowsTCP: 602802, FlowsAny: 301401, SNAT: 602802, Stats: 1024},
	} {
		if got := sizesFor(memory); got != want {
			t.Errorf("%d bytes: %+v, want %+v", memory, got, want)
		}
	}
}
