package fidelity

import (
	"errors"
	"maps"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

var (
	across = plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}
	rr     = plan.Workload{Spec: plan.RR{}}.Normalize()
)

// world makes the trials of a lab and one cluster: cost is the CPU time of each profile in ns per transaction. Trials
// wander by a part in a hundred, together within a repetition, as a machine does.
func world(repetitions int, cost map[string]float64) (result.Header, []result.Record) {
	h := result.Header{
		Created: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		Plan: plan.Plan{
			Environment: plan.EnvKubernetes, Baseline: plan.VariantOf("host"), Twin: true, Paths: []plan.Path{across}, Workloads: []plan.Workload{rr},
			Repetitions: repetitions, Duration: 500 * time.Millisecond, Seed: 7, Cluster: plan.Cluster{Contexts: []string{"a"}},
		},
		Facts: facts.Facts{facts.Kernel: "6.18", facts.LoadAverage: "1", facts.KubeCNI: "a|b"},
	}
	names := slices.Sorted(maps.Keys(cost))
	h.Plan.Profiles = plan.Variants(names...)
	var recs []result.Record
	for rep := 1; rep <= repetitions; rep++ {
		for i, name := range names {
			drift := 1 + 0.01*math.Sin(float64(rep)) + 0.002*math.Sin(float64(7*rep+3*i))
			ns := cost[name] * drift
			recs = append(recs, result.Record{
				Type: result.TypeTrial, Status: result.OK,
				Trial:   plan.Trial{Case: plan.Case{Profile: plan.VariantOf(name), Path: across, Workload: rr}, Repetition: rep},
				Metrics: map[string]float64{metric.ServiceDemand: ns, metric.TransactionRate: 1e9 / ns},
			})
		}
	}
	return h, recs
}

func places(lab, host, there, hostThere float64) map[string]float64 {
	return map[string]float64{
		"host": host, "host~twin": host, "flannel-vxlan": lab,
		"host@a": hostThere, "host@a~twin": hostThere, "flannel-vxlan@a": there,
	}
}

// row finds the dataplane's row.
func row(t *testing.T, rows []Row, profile plan.Variant) Row {
	t.Helper()
	i := slices.IndexFunc(rows, func(r Row) bool { return r.Profile == profile })
	if i < 0 {
		t.Fatalf("no row of %s among %d", profile, len(rows))
	}
	return rows[i]
}

func TestVerdicts(t *testing.T) {
	for _, tt := range []struct {
		what                        string
		lab, host, there, hostThere float64
		repetitions                 int
		quotient                    float64
		verdict                     Verdict
	}{
		{"true", 10000, 5000, 10000, 5000, 12, 1, Near},
		{"all of the cluster dearer alike", 10000, 5000, 12000, 6000, 12, 1, Near},
		{"the dataplane dearer on the cluster", 10000, 5000, 12000, 5000, 12, 1.2, Differs},
		{"the dataplane cheaper there", 10000, 5000, 9000, 5000, 12, 0.9, Differs},
	} {
		p, err := Assess(world(tt.repetitions, places(tt.lab, tt.host, tt.there, tt.hostThere)))
		if err != nil {
			t.Fatalf("%s: %v", tt.what, err)
		}
		r := row(t, p.Demand, plan.VariantOf("flannel-vxlan"))
		if math.Abs(r.Quotient.Ratio-tt.quotient) > 0.01 || r.Verdict != tt.verdict {
			t.Errorf("%s: %v, %q; want %v, %q", tt.what, r.Quotient.Ratio, r.Verdict, tt.quotient, tt.verdict)
		}
		if bare := row(t, p.Demand, plan.VariantOf("host")); bare.Verdict != "" || math.Abs(bare.Quotient.Ratio-tt.hostThere/tt.host) > 0.01 {
			t.Errorf("%s: the bare node: %v, %q", tt.what, bare.Quotient.Ratio, bare.Verdict)
		}
		if got := row(t, p.Rates, plan.VariantOf("flannel-vxlan")).Verdict; got != tt.verdict {
			t.Errorf("%s: rates: %q, want %q", tt.what, got, tt.verdict)
		}
	}
}

// TestFloor: what twins differ by in either place can be noise in the quotient.
func TestFloor(t *testing.T) {
	cost := places(10000, 5000, 10600, 5000)
	p, err := Assess(world(12, cost))
	if err != nil || row(t, p.Demand, plan.VariantOf("flannel-vxlan")).Verdict != Differs {
		t.Fatalf("6 %% without noise: %v, %v", p, err)
	}
	cost["host~twin"], cost["host@a~twin"] = 5200, 5200
	if p, err = Assess(world(12, cost)); err != nil {
		t.Fatal(err)
	}
	if r := row(t, p.Demand, plan.VariantOf("flannel-vxlan")); r.Quotient.High <= 1.06*1.04 || r.Verdict == Differs {
		t.Errorf("up to %v, %q", r.Quotient.High, r.Verdict)
	}
}

// TestKsoftirqd: what cannot be seen on one side is taken out of the other, and the caller's trials stay as they are.
func TestKsoftirqd(t *testing.T) {
	h, recs := world(12, places(10000, 5000, 10000, 5000))
	for i := range recs {
		if recs[i].Profile.Context() == "" {
			own := recs[i].Metrics[metric.ServiceDemand]
			recs[i].Metrics[metric.KernelCPU] = own / 4
			recs[i].Metrics[metric.ServiceDemand] = own * 1.25
		}
	}
	first := recs[0].Metrics[metric.ServiceDemand]
	p, err := Assess(h, recs)
	if err != nil {
		t.Fatal(err)
	}
	if r := row(t, p.Demand, plan.VariantOf("host")); math.Abs(r.Quotient.Ratio-1) > 0.01 || p.Kernel == nil || math.Abs(*p.Kernel-0.2) > 1e-9 {
		t.Errorf("the bare node %v, ksoftirqd %v", r.Quotient.Ratio, *p.Kernel)
	}
	if recs[0].Metrics[metric.ServiceDemand] != first {
		t.Error("the caller's record was changed")
	}
	if p, _ := Assess(world(12, places(10000, 5000, 10000, 5000))); p.Kernel != nil {
		// Where ksoftirqd is nowhere seen nothing is left out.
		t.Errorf("nothing was left out, and %v is said", *p.Kernel)
	}
}

func TestNothingToCompare(t *testing.T) {
	if _, err := Assess(world(1, places(10000, 5000, 12000, 5000))); !errors.Is(err, errNothing) {
		t.Errorf("one repetition: %v", err)
	}
	for _, cost := range []map[string]float64{
		{"host": 1, "flannel-vxlan": 2},
		{"host@a": 1, "flannel-vxlan@a": 2},
		{},
	} {
		if _, err := Assess(world(5, cost)); !errors.Is(err, errNothing) {
			t.Errorf("%v: %v", cost, err)
		}
	}
}

// TestSummaries: one row that differs is enough, one that is undecided keeps a profile from being near, and bare nodes do not
// count.
func TestSummaries(t *testing.T) {
	row := func(profile plan.Variant, context string, v Verdict) Row {
		return Row{Profile: profile, Context: context, Verdict: v}
	}
	p := Page{Demand: []Row{
		row(plan.VariantOf("host"), "a", ""), row(plan.VariantOf("canal"), "a", Near), row(plan.VariantOf("canal"), "a", Near), row(plan.VariantOf("canal"), "b", Near), row(plan.VariantOf("canal"), "b", Undecided),
		row(plan.VariantOf("ptp"), "a", Undecided), row(plan.VariantOf("ptp"), "a", Differs),
	}}
	want := []Summary{
		{plan.VariantOf("canal"), "a", Near, 2, map[Verdict]int{Near: 2}},
		{plan.VariantOf("canal"), "b", Undecided, 2, map[Verdict]int{Near: 1, Undecided: 1}},
		{plan.VariantOf("ptp"), "a", Differs, 2, map[Verdict]int{Undecided: 1, Differs: 1}},
	}
	if got := p.Summaries(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestName: sizes and congestion control are made equal in both places, and what else was sent stays.
func TestName(t *testing.T) {
	for spec, want := range map[string]string{
		"rr(congestion=reno)": "rr", "stream(buffer=512Ki,udp)": "stream(udp)", "stream(congestion=reno,nic=wire)": "stream", "crr": "crr",
	} {
		w, err := plan.ParseWorkload(spec)
		if err != nil {
			t.Fatal(err)
		}
		if got := Name(w); got != want {
			t.Errorf("%s is called %s, want %s", spec, got, want)
		}
	}
}
