package compare

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// swept is a run of two profiles over Services: one pays 12 ns for each with a new connection, the other nothing, and
// neither pays on a standing one.
func swept(t *testing.T) (result.Header, []result.Record, []result.Raised) {
	t.Helper()
	p := plan.Preset("standard")
	p.Profiles = plan.Variants("flannel-vxlan", "cilium-native")
	p.Sweep, _ = plan.ParseSweep("services=0,1K,10K,30K")
	p.Paths = []plan.Path{{From: plan.Pod, To: plan.Service, Locality: plan.Remote}}
	p.Workloads = []plan.Workload{plan.Workload{Spec: plan.CRR{}}.Normalize(), plan.Workload{Spec: plan.RR{}}.Normalize()}
	p.Seed = 1
	p = p.Settle()
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	var records []result.Record
	var states []result.Raised
	for i, s := range p.Swept() {
		for j, v := range s.Variants {
			x := float64(p.Sweep.Points[j])
			for rep := 1; rep <= 8; rep++ {
				for k, w := range p.Workloads {
					ns := []float64{54000, 12000}[k]
					if i == 0 && k == 0 {
						ns = 50000 + 12*x
					}
					c := plan.Case{Profile: v, Path: p.Paths[0], Workload: w}
					records = append(records, result.Record{Type: result.TypeTrial, Trial: plan.Trial{Case: c, Repetition: rep}, Status: result.OK,
						Metrics: map[string]float64{metric.ServiceDemand: ns * math.Exp(0.01*r.NormFloat64())}})
				}
				states = append(states, result.Raised{Profile: v, Instance: rep, Metrics: map[string]float64{metric.ProgramTime: (1e8 + 1e5*x) * math.Exp(0.01*r.NormFloat64())}})
			}
		}
	}
	return result.Header{Plan: p}, records, states
}

func TestOf(t *testing.T) {
	h, records, states := swept(t)
	a, err := Analyse(h, records, Options{})
	if err != nil {
		t.Fatal(err)
	}
	all := a.Growth(h.Plan, states)
	if len(all) != 3 || all[0].OfState() || !all[2].OfState() || all[2].Metric.Name != metric.ProgramTime {
		t.Fatalf("%d families: %+v", len(all), all)
	}
	crr, rr := all[0], all[1]
	if crr.Workload.Kind() != "crr" {
		crr, rr = rr, crr
	}
	shapes := []stat.Shape{crr.Lines[0].Shape, crr.Lines[1].Shape, rr.Lines[0].Shape, rr.Lines[1].Shape, all[2].Lines[0].Shape}
	want := []stat.Shape{stat.Linear, stat.Constant, stat.Constant, stat.Constant, stat.Linear}
	for i := range want {
		if shapes[i] != want[i] {
			t.Errorf("curve %d is %s, want %s", i, shapes[i], want[i])
		}
	}
	if l := crr.Lines[0]; l.Profile != plan.VariantOf("flannel-vxlan") || l.Low > 12 || l.High < 12 {
		t.Errorf("%s grows by %v (%v to %v), want 12", l.Profile, l.Slope, l.Low, l.High)
	}
	if len(crr.Crossings) != 1 || crr.Crossings[0].Relation != stat.Crosses || crr.Crossings[0].Falls ||
		crr.Crossings[0].Low > 333 || crr.Crossings[0].High < 333 {
		t.Errorf("crossings %+v, want one at 333", crr.Crossings)
	}
}

// TestNoSweep: other runs have no curves, and a profile without trials has no line.
func TestNoSweep(t *testing.T) {
	h, records, states := swept(t)
	p := h.Plan
	p.Sweep = plan.Sweep{}
	a, err := Analyse(h, records[:len(records)/2], Options{})
	if err != nil {
		t.Fatal(err)
	}
	if all := a.Growth(p, states); all != nil {
		t.Errorf("%+v", all)
	}
	for _, f := range a.Growth(h.Plan, nil) {
		if len(f.Lines) != 1 || f.Crossings != nil {
			t.Errorf("%s: %d lines, crossings %v", f.Workload, len(f.Lines), f.Crossings)
		}
	}
}
