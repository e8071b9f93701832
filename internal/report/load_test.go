package report_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/measure/outcome"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// curves builds the report of r and returns its curves.
func curves(t *testing.T, r reporttest.Result) []report.LoadCurve {
	t.Helper()
	var c report.Collector
	for i := range r.Records {
		if err := c.Add(&r.Records[i]); err != nil {
			t.Fatal(err)
		}
	}
	all, err := c.Loads(r.Header)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestLoadCurves: two paths with a curve for each profile that serves them; a queue's times double at half the load above
// the lowest, and there the knee is.
func TestLoadCurves(t *testing.T) {
	got := curves(t, reporttest.Loads(7))
	if len(got) != 2 {
		t.Fatalf("%d curves", len(got))
	}
	across := got[slices.IndexFunc(got, func(c report.LoadCurve) bool { return c.Path.From == plan.Pod })]
	var names []string
	for _, l := range across.Lines {
		names = append(names, l.Profile.String())
		if len(l.Points) != 5 || l.Points[0].Load != 0.1 || l.Points[4].Load != 0.95 {
			t.Fatalf("%s: points %+v", l.Profile, l.Points)
		}
		// Times go with 1/(1-load): at 50 % they are 1.8 times those at 10 %, at 70 % three times.
		if want := (report.Knee{Low: 0.5, High: 0.5, Found: true}); l.Knee != want {
			t.Errorf("%s: knee %+v, want %+v", l.Profile, l.Knee, want)
		}
		if ratio := l.Points[4].Tail.Median / l.Points[0].Tail.Median; math.Abs(ratio-18) > 2 {
			t.Errorf("%s: the tail grows %.1f times, want 18", l.Profile, ratio)
		}
	}
	if strings.Join(names, " ") != "canal calico-vxlan" {
		t.Errorf("lines %v", names)
	}
	if w := across.Workload; w.String() != "rr" {
		t.Errorf("workload %+v", w)
	}
	checkGrids(t, across)
}

func checkGrids(t *testing.T, c report.LoadCurve) {
	t.Helper()
	if len(c.Grids) != 3 {
		t.Fatalf("%d grids", len(c.Grids))
	}
	for _, g := range c.Grids {
		for i, row := range g.Cells {
			if len(row) != len(g.Columns) {
				t.Errorf("%s, %s: %d cells for %d columns", g.Title, g.Labels[i], len(row), len(g.Columns))
			}
		}
	}
	all := c.Grids[0]
	if got := all.Columns[0] + " " + all.Cells[0][0] + " " + all.Columns[1] + " " + all.Cells[0][1]; got != "capacity, k/s 51.3 knee 50%" {
		t.Errorf("summary: %s", got)
	}
	if got := strings.Join(c.Grids[2].Columns, " "); got != "10% 30% 50% 70% 95%" {
		t.Errorf("columns %s", got)
	}
	for j, text := range c.Grids[2].Cells[0] {
		if strings.HasSuffix(text, "knee") != (j == 2) {
			t.Errorf("tail at %s: %s", c.Grids[2].Columns[j], text)
		}
	}
}

// TestLoadCurvesWithHoles: what failed is absent, never 0, and a curve without its tails has no knee.
func TestLoadCurvesWithHoles(t *testing.T) {
	r := reporttest.Loads(5)
	for i := range r.Records {
		rec := &r.Records[i]
		switch {
		case rec.Profile == plan.VariantOf("canal") && rec.Workload.Traits().Load == 0.3:
			rec.Status, rec.Metrics, rec.Error = result.Failed, nil, &result.Failure{Kind: "no capacity", Message: "none"}
		case rec.Profile == plan.VariantOf("calico-vxlan") && rec.Workload.Traits().Load == 0.1:
			delete(rec.Metrics, "rtt.p99")
			delete(rec.Metrics, metric.Capacity)
		}
	}
	for _, c := range curves(t, r) {
		for i, l := range c.Lines {
			tail := c.Grids[2].Cells[i]
			switch l.Profile {
			case plan.VariantOf("canal"):
				if len(l.Points) != 4 || tail[1] != "–" || !l.Knee.Found {
					t.Errorf("canal: %d points, knee %v, tails %v", len(l.Points), l.Knee, tail)
				}
			case plan.VariantOf("calico-vxlan"):
				if l.Knee.Found || l.Knee.String() != "–" || tail[0] != "–" || math.IsNaN(l.Capacity) {
					t.Errorf("calico: knee %v, capacity %v, tails %v", l.Knee, l.Capacity, tail)
				}
			}
		}
	}
}

// TestDoubtsOfCurves: loads at which the sender made the tail, or the path was behind, are named where half of the trials
// say so.
func TestDoubtsOfCurves(t *testing.T) {
	r := reporttest.Loads(4)
	for i := range r.Records {
		rec := &r.Records[i]
		raise := func(id string) { rec.Warnings = append(rec.Warnings, sample.Warning{ID: id, Message: "so it was"}) }
		switch {
		case rec.Profile != plan.VariantOf("canal"):
		case rec.Workload.Traits().Load == 0.1 && rec.Repetition <= 2, rec.Workload.Traits().Load == 0.3 && rec.Repetition == 1:
			raise(outcome.LateSender)
		case rec.Workload.Traits().Load == 0.95:
			raise(outcome.Saturated)
		}
	}
	for _, c := range curves(t, r) {
		var want []string
		for _, l := range c.Lines {
			if l.Profile == plan.VariantOf("canal") {
				want = []string{"canal: at 10% the busy CPU of the sender causes the tail: it says nothing about the path, nor does a knee there; " +
					"at 95% responses fell behind the schedule, and times grow with the window."}
			}
		}
		if got := c.Grids[0].Notes; !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", c.Path, got, want)
		}
	}
}

func TestNoLoadsNoCurves(t *testing.T) {
	if got := curves(t, reporttest.NinePaths(2)); got != nil {
		t.Errorf("%d curves of closed loops", len(got))
	}
}

func TestKneeInWords(t *testing.T) {
	for want, k := range map[string]report.Knee{
		"50%":        {Low: 0.5, High: 0.5, Found: true},
		"50% to 70%": {Low: 0.5, High: 0.7, Found: true},
		"above 95%":  {Low: 0.95, High: 0.95, Found: true, None: true},
		"–":          {},
	} {
		if got := fmt.Sprint(k); got != want {
			t.Errorf("%+v: %s, want %s", k, got, want)
		}
	}
}
