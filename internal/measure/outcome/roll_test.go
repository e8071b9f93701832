package outcome

import (
	"testing"

	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// TestRolls: times are the longest of a trial's, and are there only where they were seen to the end.
func TestRolls(t *testing.T) {
	const ms = 1e6
	whole := sample.Roll{DrainNs: 100 * ms, LastNs: 20 * ms, Returned: true, FirstNs: 7 * ms}
	for name, c := range map[string]struct {
		rolls          []sample.Roll
		keep           bool
		removed, added float64 // 0 is absent
	}{
		"all seen":         {rolls: []sample.Roll{whole, {DrainNs: 100 * ms, LastNs: 30 * ms, Returned: true, FirstNs: 2 * ms}}, removed: 30 * ms, added: 7 * ms},
		"cut by the drain": {rolls: []sample.Roll{whole, {DrainNs: 100 * ms, LastNs: 97 * ms, Returned: true, FirstNs: 2 * ms}}, added: 7 * ms},
		"no drain":         {rolls: []sample.Roll{{DrainNs: 9000, Returned: true, FirstNs: 2 * ms}}, added: 2 * ms},
		"never back":       {rolls: []sample.Roll{whole, {DrainNs: 100 * ms, LastNs: 1 * ms}}, removed: 20 * ms},
		"kept connections": {rolls: []sample.Roll{whole}, keep: true},
	} {
		w, client, server := sound("http")
		rolled(c.rolls...)(&w, client, server)
		if c.keep {
			change(&w, func(s *plan.HTTP) { s.Connection = "keep-alive" })
		}
		client.Errors = map[string]uint64{"reset": 6}
		m, _ := Derive(w, client, server, Conditions{Backends: len(c.rolls)})
		if got := m[metric.FailuresPerRoll]; got != 6/float64(len(c.rolls)) {
			t.Errorf("%s: %v failures for each", name, got)
		}
		for suffix, want := range map[string]float64{".removed": c.removed, ".added": c.added} {
			if got, ok := m[metric.NetworkProgramming+suffix]; got != want || ok != (want != 0) {
				t.Errorf("%s: %s is %v (%v), want %v", name, suffix, got, ok, want)
			}
		}
		if _, ok := m[metric.BackendEvenness]; ok {
			t.Errorf("%s: backends that come and go are judged for evenness", name)
		}
	}
	w, client, server := sound("http")
	m, _ := Derive(w, client, server, Conditions{})
	if _, ok := m[metric.FailuresPerRoll]; ok {
		t.Error("failures of a roll where nothing was rolled")
	}
}
