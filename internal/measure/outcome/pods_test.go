package outcome

import (
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// TestPodsByOneDial: a record of an earlier version has the metrics of its rule.
func TestPodsByOneDial(t *testing.T) {
	w := plan.Workload{Spec: plan.TTFR{Rate: 2}}
	o := &sample.Observation{Side: "client", ElapsedNs: 10e9, Operations: 14, Errors: map[string]uint64{"timeout": 1},
		Schedule: &sample.Schedule{Due: 20, Sent: 15, Lag: sample.NewHistogram()},
		Pods:     &sample.Pods{First: sample.NewHistogram(), Waits: map[string]int64{"device": 14 * 600, "connect": 14 * 400}}}
	for range 14 {
		o.Pods.First.Record(1000)
	}
	m, warnings := Derive(w, o, nil, Conditions{})
	if m["ttfr_wait.device"]+m["ttfr_wait.connect"] != m["ttfr.mean"] || m["ttfr.mean"] != 1000 || m["ttfr.max"] != 1000 {
		t.Errorf("%v", m)
	}
	if _, ok := m["ttfr.p50"]; ok {
		t.Error("14 pods are too few for a median")
	}
	if _, ok := m["ttfr.from_due.mean"]; ok {
		t.Error("a time by many dials")
	}
	if m["error_rate"] != 1.0/15 || m["intended_rate"] != 2 || m["offered_rate"] != 1.5 {
		t.Errorf("%v", m)
	}
	said := false
	for _, x := range warnings {
		said = said || x.ID == OfferedLoad && strings.Contains(x.Message, "20 pods were due in the window and 15 were started")
	}
	if !said {
		t.Errorf("nothing says that the rate was not held: %v", warnings)
	}
}

// TestPodsWithoutAnAnswer: they are values at the timeout, and counted.
func TestPodsWithoutAnAnswer(t *testing.T) {
	for _, tc := range []struct {
		answered, lost             int
		p50, p90, max, rate, count float64
	}{
		{100, 0, 20e6, 20e6, 20e6, 0, 0},
		{95, 5, 20e6, 20e6, 5e9, 0.05, 5},
		{85, 15, 20e6, 5e9, 5e9, 0.15, 15},
		{40, 60, 5e9, 5e9, 5e9, 0.6, 60},
	} {
		o := sample.NewPods("client", 5*time.Second, sample.AttachedByPlugins)
		o.ElapsedNs = 10e9
		for range tc.answered {
			o.AddPod(sample.NewPod{Whole: 20e6, Start: 8e6, Parts: map[string]int64{"device": 12e6, "connect": 8e6}, Dials: 8, DialNs: 80_000})
		}
		for range tc.lost {
			o.FailPod("timeout", "no answer", sample.NewPod{Parts: map[string]int64{"device": 12e6}, Dials: 8, DialNs: 80_000})
		}
		o.Schedule.Due, o.Schedule.Sent = 100, 100
		server := &sample.Observation{Side: "server", ElapsedNs: 10e9, Operations: uint64(8 * tc.answered), Errors: map[string]uint64{"reset": 3}}
		m, warnings := Derive(plan.Workload{Spec: plan.TTFR{Rate: 10}}, &o, server, Conditions{})
		near := func(name string, want float64) {
			if got := m[name]; got < 0.999*want || got > 1.001*want {
				t.Errorf("%d of 100 lost: %s is %v, want %v", tc.lost, name, got, want)
			}
		}
		near("ttfr.from_due.p50", tc.p50)
		near("ttfr.from_due.p90", tc.p90)
		near("ttfr.from_due.max", tc.max)
		near("error_rate", tc.rate)
		near("ttfr.unanswered", tc.count)
		near("ttfr.dials", 8)
		near("ttfr.dial_cpu", 80_000)
		near("ttfr.from_due.mean", (float64(tc.answered)*20e6+float64(tc.lost)*5e9)/100)
		if m["ttfr.from_due.max"] > 5e9 || tc.max == 5e9 && m["ttfr.from_due.max"] != 5e9 {
			t.Errorf("the longest time is %v", m["ttfr.from_due.max"])
		}
		var sum float64
		for _, part := range metric.Waits {
			sum += m["ttfr_wait."+part]
		}
		if mean := m["ttfr.from_due.mean"]; sum < 0.999*mean || sum > 1.001*mean {
			t.Errorf("the parts add up to %v, the mean is %v", sum, mean)
		}
		if tc.lost == 0 {
			near("ttfr.from_start.p90", 8e6)
		}
		for _, x := range warnings {
			if x.ID == Disagree || x.ID == Errors && strings.Contains(x.Message, "server") {
				t.Errorf("attempts that a pod abandons: %s", x.Message)
			}
		}
		if _, ok := m["ttfr.p50"]; ok {
			t.Error("a time by one dial")
		}
	}
}
