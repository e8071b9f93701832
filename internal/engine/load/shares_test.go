package load

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/measure/sample"
)

func TestShares(t *testing.T) {
	var s shares
	last := noShare
	for i := range 10 {
		last = s.findOrAddSlot(fmt.Appendf(nil, "pod-%d", i%3), last)
		s.countResponse(last, i < 4)
	}
	s.countResponse(s.findOrAddSlot(nil, last), true)                 // without a name, so it counts for no pod
	s.findOrAddSlot([]byte("never counted"), last)                    // found, but without a response
	s.countResponse(s.findOrAddSlot([]byte("pod-0"), noShare), false) // without a guess
	s.countResponse(s.findOrAddSlot([]byte(strings.Repeat("x", 200)), last), true)
	got := map[string]sample.Backend{"pod-1": {Requests: 1}} // of another thread
	s.addCountsTo(got)
	want := map[string]sample.Backend{
		"pod-0": {Requests: 5, Connections: 2}, "pod-1": {Requests: 4, Connections: 1}, "pod-2": {Requests: 3, Connections: 1},
		otherBackends: {Requests: 1, Connections: 1},
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestSharesAreBounded: however many names there are, each response is counted once, and nothing is allocated.
func TestSharesAreBounded(t *testing.T) {
	var s shares
	names := make([][]byte, 3*maxBackends)
	for i := range names {
		names[i] = fmt.Appendf(nil, "node-%d/pod-%d", i%7, i)
	}
	if n := testing.AllocsPerRun(1, func() { // runs twice
		for _, name := range names {
			s.countResponse(s.findOrAddSlot(name, noShare), true)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
	got := map[string]sample.Backend{}
	s.addCountsTo(got)
	var sum uint64
	for _, b := range got {
		sum += b.Requests
	}
	if len(got) != maxBackends+1 || sum != uint64(2*len(names)) || got[otherBackends].Requests != 2*2*maxBackends {
		t.Errorf("%d names, %d requests, %+v others", len(got), sum, got[otherBackends])
	}
}
