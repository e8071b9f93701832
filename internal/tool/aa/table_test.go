package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// What differs between two runs is counted by cell, and an estimate that one of them lacks is left out.
func TestRender(t *testing.T) {
	read := func(text string) (r report) {
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	all := []report{
		read(`{"cells":[{"profile":"a","path":"p","workload":"rr","metric":"service_demand","median":100,"undisturbed":{"value":50}},
			{"profile":"b","path":"p","workload":"rr","metric":"service_demand","median":100,"undisturbed":{"value":50}}]}`),
		read(`{"cells":[{"profile":"a","path":"p","workload":"rr","metric":"service_demand","median":110,"undisturbed":{"value":51}},
			{"profile":"b","path":"p","workload":"rr","metric":"service_demand","median":150}]}`),
	}
	var p pair
	if err := json.Unmarshal([]byte(`{"cells":[{"verdict":"same"},{"verdict":"worse"},{"verdict":""}]}`), &p); err != nil {
		t.Fatal(err)
	}
	got := render([]string{"--seed", "1"}, all, []pair{p})
	for _, want := range []string{
		"`cnibench run --seed 1`, 2 times", "| `rr` | service_demand | 2 | 50.0 %, 50.0 % (2) | 2.0 %, 2.0 % (1) |",
		"The 1 comparisons of two of the runs have 2 cells: 0 better, 1 worse, 1 same, 0 inconclusive.",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
