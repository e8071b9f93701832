package findings

import (
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// TestSharedCPUs: loss, jitter and numbers of flows are not compared where the machine's facts say that the ends share CPUs.
func TestSharedCPUs(t *testing.T) {
	claim := func(id string) Claim {
		all := Published().Claims
		return all[slices.IndexFunc(all, func(c Claim) bool { return c.ID == id })]
	}
	one := facts.Facts{facts.Placement: "one, cpu 1", facts.CPUs: "64"}
	few := facts.Facts{facts.Placement: "split: 0 | 1", facts.CPUs: "2"}
	many := facts.Facts{facts.Placement: "split: 0-7 | 8-15", facts.CPUs: "16"}
	for _, tt := range []struct {
		id    string
		known facts.Facts
		says  string
	}{
		{"rke2.udp.loss", one, "needs at least 4 CPUs (--cpu split), and the ends share one"},
		{"rke2.udp.jitter", few, "needs at least 4 CPUs (--cpu split), and there were 2"},
		{"rke2.udp.loss", many, ""},
		{"rke2.parallel.slower", few, "needs at least 10 CPUs"},
		{"rke2.parallel.slower", many, ""},
		{"rke2.parallel.slower", facts.Facts{facts.CPUs: "2"}, ""}, // a cluster
		{"rke2.cross.parallel", one, ""},                           // two profiles, equally many flows
		{"rke2.cpu", one, ""},
		{"kind.http.scaling", one, ""}, // its connections need no thread each
	} {
		if got := sharedCPUReason(tt.known, claim(tt.id)); (got == "") != (tt.says == "") || !strings.Contains(got, tt.says) {
			t.Errorf("%s on %v: %q, want %q", tt.id, tt.known, got, tt.says)
		}
	}
	rate := Claim{Metric: metric.Goodput, Workload: claim("rke2.udp.loss").Workload}
	if sharedCPUReason(one, rate) == "" || sharedCPUReason(many, rate) != "" {
		t.Error("the goodput of datagrams that are sent at a rate")
	}
	a := analysis(t, metric.FrameLossRate, map[string][]float64{"a " + where: around(10), "b " + where: around(20)})
	c := Claim{Metric: metric.FrameLossRate, Workload: a.Workloads[0], Paths: a.Paths, Order: [][]string{{"b"}, {"a"}}}
	if j := judgeClaim(a, c); j.Outcome != Contradicted {
		t.Errorf("on a cluster: %s %q", j.Outcome, j.Evidence)
	}
	a.Facts = one
	if j := judgeClaim(a, c); j.Outcome != NotTestable || !strings.Contains(j.Evidence[0], "at least 4 CPUs") || len(j.Evidence) < 2 {
		t.Errorf("on one CPU: %s %q", j.Outcome, j.Evidence)
	}
}
