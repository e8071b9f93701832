package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

func contents(t *testing.T, workload, name string, values ...float64) result.Contents {
	t.Helper()
	w, err := plan.ParseWorkload(workload)
	if err != nil {
		t.Fatal(err)
	}
	var c result.Contents
	for _, v := range values {
		r := result.Record{Metrics: map[string]float64{name: v}}
		r.Workload = w
		c.Records = append(c.Records, r)
	}
	return c
}

func TestJudge(t *testing.T) {
	l := link{"l", nil, []truth{{"rr", "rtt.p50", 100}}}
	for name, c := range map[string]struct {
		values []float64
		holds  bool
	}{
		"all near":                        {[]float64{99, 100, 101}, true},
		"one near does not save a median": {[]float64{100, 110, 111}, false},
		"one far does not spoil it":       {[]float64{100, 101, 500}, true},
		"too good is as wrong":            {[]float64{90, 90, 90}, false},
		"nothing was measured":            {nil, false},
	} {
		if v := judge(l, contents(t, "rr", "rtt.p50", c.values...)); len(v) != 1 || v[0].holds() != c.holds || v[0].n != len(c.values) {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// TestBounds holds what no load of the machine can change: nothing is faster than its link, and what the wire loses is lost.
func TestBounds(t *testing.T) {
	program := build(t)
	for _, l := range []link{shaped(100e6, "100M"), delayed(), lossy()} {
		// Shorter than the campaign's windows, whose quantiles need more exchanges: here the least time counts.
		l.flags = append(l.flags, "--duration", "600ms")
		for i := range l.truths {
			l.truths[i].metric = strings.Replace(l.truths[i].metric, ".p50", ".min", 1)
		}
		c, err := l.measure(t.Context(), setting{program: program, dir: t.TempDir()}, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range l.truths {
			xs := values(c, x)
			if len(xs) == 0 {
				t.Errorf("%s: %s has no %s", l.name, x.workload, x.metric)
				continue
			}
			t.Logf("%s: %s %s: known %g, measured %g", l.name, x.workload, x.metric, x.want, xs)
			m, _ := metric.Lookup(x.metric)
			if least := slices.Min(xs); m.Better == metric.Lower && least < x.want*(1-tolerance) {
				t.Errorf("%s: %s %s is %g, below the %g that the link allows", l.name, x.workload, x.metric, least, x.want)
			}
			if most := slices.Max(xs); m.Better == metric.Higher && most > x.want*(1+tolerance) {
				t.Errorf("%s: %s %s is %g, above the %g that the link allows", l.name, x.workload, x.metric, most, x.want)
			}
		}
	}
}

// build makes the program; it skips where the lab cannot be raised.
func build(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs the right to make network namespaces")
	}
	program := filepath.Join(t.TempDir(), "cnibench")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../..")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, bytes.TrimSpace(out))
	}
	return program
}

func TestRender(t *testing.T) {
	got := render([]verdict{{link: "1G", truth: truth{"stream", metric.Goodput, 956.4e6}, n: 9, median: 950e6, off: -0.0067, low: -0.02, high: 0.001},
		{link: "1G", truth: truth{"rr", "rtt.p50", 40e6}}})
	for _, want := range []string{"| 1G | `stream` | goodput | 956 Mbit/s | 950 Mbit/s (-0.67 %) | -2.00 to +0.10 % | 9 | yes |", "| absent |  | 0 | no |"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
