package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// What differs between two runs is counted by cell, and an estimate that one of them lacks is left out.
func TestSame(t *testing.T) {
	read := func(text string) (r report) {
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	c := same{alarms: 1, reports: []report{
		read(`{"run":{"wall_seconds":10,"window_seconds":9},"noise_floor":[{"metric":"service_demand","twins":[{"verdict":"same"},{"verdict":""}]}],
			"comparisons":[{"metric":"service_demand","ratio":1.1,"verdict":"worse"},{"metric":"service_demand","ratio":0.9,"verdict":"inconclusive"},
			{"metric":"service_demand","ratio":1.04,"verdict":"same"},{"metric":"memory","ratio":2,"verdict":"worse"},{"metric":"goodput","ratio":2}],
			"cells":[{"profile":"raw","path":"h","workload":"rr","metric":"service_demand","median":10,"undisturbed":{"value":10,"low":9,"high":10.5}},
			{"profile":"a","path":"p","workload":"rr","metric":"service_demand","median":100,"undisturbed":{"value":50,"low":49,"high":51}},
			{"profile":"b","path":"p","workload":"rr","metric":"service_demand","median":100,"undisturbed":{"value":50,"low":49,"high":51}}]}`),
		read(`{"run":{"wall_seconds":10,"window_seconds":8},
			"cells":[{"profile":"raw","path":"h","workload":"rr","metric":"service_demand","median":10,"undisturbed":{"value":10.2,"low":10,"high":10.4}},
			{"profile":"a","path":"p","workload":"rr","metric":"service_demand","median":110,"undisturbed":{"value":51,"low":50,"high":52}},
			{"profile":"b","path":"p","workload":"rr","metric":"service_demand","median":150}]}`),
	}}
	var p pair
	if err := json.Unmarshal([]byte(`{"cells":[{"workload":"rr","metric":"service_demand","verdict":"same"},{"workload":"crr","verdict":"worse"},{"verdict":""}]}`), &p); err != nil {
		t.Fatal(err)
	}
	c.pairs = []pair{p}
	got := c.render("Alone")
	for _, want := range []string{
		"Alone: ", "| `rr` | service_demand | 10.0 / 50.0 % | 2.0 / 2.0 % | 0.0 / 0.0 % | 2.0 / 10.0 % | 1 of 1 |",
		"Of 1 comparisons of two of the runs 1 found something worse; of their 2 cells 0 are better, 1 worse, 1 the same.",
		"Within the runs 2 of these values differ from the baseline's by 5 % or more; 1 of them are decided.",
		"the equal pair has 1 cells: 0 better, 0 worse, 1 the same. 85 % of the time was in windows.",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
