package report_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/reporttest"
)

// observed is a finished trial of Small with a histogram of values in ns.
func observed(values ...int64) result.Record {
	rec := reporttest.Small(1).Records[0]
	h := sample.NewHistogram()
	for _, v := range values {
		h.Record(v)
	}
	rec.Client = &sample.Observation{Side: "client", RTT: h}
	return rec
}

func gather(recs ...result.Record) []report.Curve {
	curves, _ := report.Gathered(recs...)
	return curves
}

// Whatever the distribution, each percentile of the pooled trials is that of the sorted values, within what the two
// kinds of bucket allow.
func TestCurveIsThePercentiles(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 20 {
		var all []int64
		var recs []result.Record
		for range 3 {
			var some []int64
			for range 1 + r.IntN(4000) {
				some = append(some, 1+int64(math.Exp(3+float64(round)/3+2*r.NormFloat64())))
			}
			all = append(all, some...)
			recs = append(recs, observed(some...))
		}
		slices.Sort(all)
		d := gather(recs...)
		if len(d) != 1 || d[0].Count != int64(len(all)) {
			t.Fatalf("%+v", d)
		}
		c := d[0]
		last := 0.0
		points, end := c.Points[:len(c.Points)-1], c.Points[len(c.Points)-1]
		for _, p := range points {
			i := max(1, int(math.Ceil(p.Q*float64(len(all))-1e-6)))
			want := float64(min(all[i-1], 60_000_000_000))
			if math.Abs(p.Ns-want) > 0.006*want+1 || p.Ns < last {
				t.Fatalf("round %d: share %v of %d: %v, want %v", round, p.Q, len(all), p.Ns, want)
			}
			last = p.Ns
		}
		if most := float64(min(all[len(all)-1], 60_000_000_000)); math.Abs(end.Ns-most) > 0.006*most+1 || end.Ns < last {
			t.Errorf("the longest is %v, want %v", end.Ns, most)
		}
	}
}

// A share that too few values can speak for has no percentile.
func TestCurveAt(t *testing.T) {
	var hundred []int64
	for i := range int64(100) {
		hundred = append(hundred, 1000+i)
	}
	c := gather(observed(hundred...))[0]
	if got := c.At(0.5); math.Abs(got-1049) > 6 {
		t.Errorf("median %v", got)
	}
	if got := c.At(0.99); math.Abs(got-1098) > 6 {
		t.Errorf("99 %% of 100 values: %v", got)
	}
	if got := c.At(0.999); !math.IsNaN(got) {
		t.Errorf("99.9 %% of 100 values: %v", got)
	}
	if one := gather(observed(7))[0]; len(one.Points) == 0 || one.Points[0].Ns != 7 {
		t.Errorf("one value: %+v", one)
	}
}

func TestGatherPassesOver(t *testing.T) {
	failed, twin, empty, end := observed(5), observed(5), observed(), result.Record{Type: result.TypeEnd}
	failed.Status = result.Failed
	twin.Profile = twin.Profile.Twin()
	if d := gather(failed, twin, empty, end, reporttest.Small(1).Records[0]); len(d) != 0 {
		t.Errorf("%+v", d)
	}
}

// What is too much is counted.
func TestGatherIsBounded(t *testing.T) {
	var all []result.Record
	for i := range 2100 {
		rec := observed(5)
		rec.Profile = plan.VariantOf(fmt.Sprint("p", i))
		for range 3 {
			all = append(all, rec)
		}
	}
	curves, omitted := report.Gathered(all...)
	if len(curves) != 2000 || omitted != 300 {
		t.Errorf("%d curves, %d omitted", len(curves), omitted)
	}
}

// TestTail: the answer speaks of the highest percentile that is known to 5 %.
func TestTail(t *testing.T) {
	for want, scatter := range map[string]map[string]float64{
		"rtt.p99": {"rtt.p99": 0.01, "rtt.p90": 0.01},
		"rtt.p90": {"rtt.p99": 0.30, "rtt.p90": 0.01},
	} {
		checkTail(t, want, scatter)
	}
	checkTail(t, "rtt.p99", map[string]float64{"rtt.p99": 0.30, "rtt.p90": 0.30}) // neither is known
}

func checkTail(t *testing.T, want string, scatter map[string]float64) {
	t.Helper()
	r := reporttest.NinePaths(8)
	for i, rec := range r.Records {
		for m, s := range scatter {
			if rec.Metrics["rtt.p50"] > 0 {
				rec.Metrics[m] = 1e4 * (1 + s*float64(rec.Repetition%4))
			}
		}
		r.Records[i] = rec
	}
	d, err := reporttest.Build(r.Header, r.Records, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := d.Needs[len(d.Needs)-1]; n.Name != "Tail latency" || n.Metric.Name != want {
		t.Errorf("with a scatter of %v, %s is answered by %s", scatter, n.Name, n.Metric.Name)
	}
}

func TestNeeds(t *testing.T) {
	r := reporttest.NinePaths(8)
	d, err := reporttest.Build(r.Header, r.Records, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range d.Needs {
		names = append(names, n.Name)
	}
	if got := strings.Join(names, ", "); got != "Bulk transfer, ideal NIC, Requests on standing connections, A connection for each request, Services, Tail latency" {
		t.Fatalf("needs: %s", got)
	}
	for _, n := range d.Needs {
		pick := n.Standings[n.Pick].Cell
		if pick.Profile == plan.VariantOf("raw") || pick.Profile == plan.VariantOf("host") {
			t.Errorf("%s: nobody chooses %s", n.Workload, pick.Profile)
		}
		for _, s := range n.Standings[n.Pick+1:] {
			if s.Cell.Median < pick.Median {
				t.Errorf("%s: %s is below the pick %s", n.Workload, s.Cell.Profile, pick.Profile)
			}
		}
		if slices.Contains(n.Near, pick.Profile.String()) || slices.Contains(n.Near, "host") {
			t.Errorf("%s: near the pick %s: %v", n.Workload, pick.Profile, n.Near)
		}
	}
	same := reporttest.Small(8)
	for i := range same.Records { // two dataplanes that are the same, and none of them the host
		if same.Records[i].Profile == plan.VariantOf("host") {
			same.Records[i].Profile = plan.VariantOf("canal")
		}
		same.Records[i].Metrics = map[string]float64{"service_demand": 100 + float64(same.Records[i].Repetition%3)}
	}
	same.Header.Plan.Profiles = plan.Variants("canal", "calico-vxlan")
	same.Header.Plan.Baseline = plan.VariantOf("canal")
	if d, err = reporttest.Build(same.Header, same.Records, report.Options{}); err != nil {
		t.Fatal(err)
	}
	if len(d.Needs) != 1 || len(d.Needs[0].Near) != 1 {
		t.Errorf("two that are the same: %+v", d.Needs)
	}
	all := reporttest.AllFailed()
	if d, err = reporttest.Build(all.Header, all.Records, report.Options{}); err != nil || len(d.Needs) != 0 {
		t.Errorf("all failed: %v, %+v", err, d.Needs)
	}
}
