package findings

import (
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// bulk are streams between nodes: goodput by "profile workload", in a lab with a NIC model.
func bulk(t *testing.T, nic plan.NIC, goodput map[string]float64) *compare.Analysis {
	t.Helper()
	var recs []result.Record
	for key, v := range goodput {
		who, what, _ := strings.Cut(key, " ")
		w, err := plan.ParseWorkload(what)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range around(v) {
			recs = append(recs, result.Record{Type: result.TypeTrial, Status: result.OK, Metrics: map[string]float64{metric.Goodput: v},
				Trial: plan.Trial{Repetition: i + 1, Case: plan.Case{Profile: plan.VariantOf(who), Workload: w, Path: plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}}}})
		}
	}
	a, err := compare.Analyse(result.Header{Facts: facts.Facts{facts.NIC: string(nic)}}, recs, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A claim about bulk data is set against bulk data as NICs carry it, at rates of the same size.
func TestBulkClaims(t *testing.T) {
	claims := Published().Claims
	claim := func(id string) Claim {
		for _, c := range claims {
			if c.ID == id {
				return c
			}
		}
		t.Fatalf("no claim %s", id)
		return Claim{}
	}
	for name, c := range map[string]struct {
		nic   plan.NIC
		rates map[string]float64
		id    string
		want  Outcome
		says  string
	}{
		"the same size": {plan.NICIdeal, map[string]float64{"cilium-native stream": 66e9, "canal stream": 18e9}, "rke2.cross.single", Reproduced, ""},
		"the ratio alone": {plan.NICIdeal, map[string]float64{"cilium-native stream": 2.84e9, "canal stream": 0.775e9}, "rke2.cross.single", NotTestable,
			"not comparable, since the rates of cilium-native are 19"},
		"neither": {plan.NICIdeal, map[string]float64{"cilium-native stream": 0.775e9, "canal stream": 0.775e9}, "rke2.cross.single", Contradicted, ""},
		"no offload in the run": {plan.NICWire, map[string]float64{"cilium-native stream": 66e9, "canal stream": 18e9}, "rke2.cross.single", NotTestable,
			"bulk data with no NIC offload"},
		"no offload in the workload": {plan.NICIdeal, map[string]float64{"cilium-native stream(nic=wire)": 66e9, "canal stream(nic=wire)": 18e9}, "rke2.cross.single", NotTestable,
			"not measured: cilium-native"},
		"both models": {plan.NICIdeal, map[string]float64{"cilium-native stream": 66e9, "canal stream": 18e9, "cilium-native stream(nic=wire)": 8e9, "canal stream(nic=wire)": 1e9},
			"rke2.cross.single", Reproduced, ""},
		"a cluster": {"", map[string]float64{"cilium-native stream": 66e9, "canal stream": 18e9}, "rke2.cross.single", Reproduced, ""},
	} {
		j := Judge(bulk(t, c.nic, c.rates), []Claim{claim(c.id)})[0]
		if said := strings.Join(j.Evidence, "; "); j.Outcome != c.want || !strings.Contains(said, c.says) {
			t.Errorf("%s: %s, %s; want %s, %q", name, j.Outcome, said, c.want, c.says)
		}
	}
}

// A figure whose ratio agrees is not comparable either where the rates are far apart.
func TestFiguresOfFarRates(t *testing.T) {
	published := bulk(t, "", map[string]float64{"canal stream": 14.72e9, "cilium-native stream": 54.64e9})
	for rate, want := range map[float64]Outcome{18e9: Reproduced, 0.775e9: NotTestable} {
		here := bulk(t, plan.NICIdeal, map[string]float64{"canal stream": rate, "cilium-native stream": rate * 3.7})
		figures := Figures(here, result.Header{}, published)
		if f := figures[len(figures)-1]; f.Outcome != want {
			t.Errorf("%g bit/s: %s: %s", rate, f.Outcome, f.Why)
		}
	}
}
