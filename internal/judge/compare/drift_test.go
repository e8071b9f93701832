package compare

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// session is a run of three profiles on two paths at one moment: everything takes `moment` times as long, and profile x
// `planted` times more.
func session(r *rand.Rand, moment, planted float64) []result.Record {
	values := func(level float64) []float64 {
		var out []float64
		for range 10 {
			out = append(out, level*moment*math.Exp(0.01*r.NormFloat64()))
		}
		return out
	}
	var recs []result.Record
	for _, name := range []string{"raw", "raw~twin", "x", "y"} {
		level := map[string]float64{"raw": 100, "raw~twin": 100, "x": 300 * planted, "y": 200}[name]
		recs = append(recs, trials(name, hostHost, metric.ServiceDemand, values(level)...)...)
		recs = append(recs, trials(name, podPod, metric.ServiceDemand, values(1.5*level)...)...)
	}
	return recs
}

// TestDrift: what moves everything at once under the same conditions is nobody's change; what one profile does beyond
// that is found; where conditions differ nothing is taken for drift.
func TestDrift(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	for name, c := range map[string]struct {
		moment, planted float64
		kernel          string
		x, others       Verdict
	}{
		"another hour":              {1.07, 1, "", Inconclusive, Inconclusive},
		"a change beside the drift": {1.03, 1.25, "", Worse, Inconclusive},
		"a change alone":            {1, 1.1, "", Worse, Same},
		"another kernel":            {1.07, 1, "7.0", Worse, Worse},
	} {
		a, b := sideOf(t, "A", session(r, 1, 1)), sideOf(t, "B", session(r, c.moment, c.planted))
		if c.kernel != "" {
			b.Header.Facts = map[string]string{"kernel": c.kernel}
		}
		p, err := NewPair(a, b, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range p.Matches {
			want := c.others
			if m.Profile == "x" {
				want = c.x
			}
			// Whether 10 % of noise are shown to be the same is a matter of luck; that they are no claim is not.
			if claimed := m.Verdict == Better || m.Verdict == Worse; m.Verdict != want && (claimed || want == Worse) {
				t.Errorf("%s: %s %s is %s, want %s (ratio %.3f, floor %.3f, drift %.3f)", name, m.Profile, m.Path, m.Verdict, want, m.Ratio, m.Floor, m.Drift)
			}
			if (c.kernel != "") && m.Drift != 0 {
				t.Errorf("%s: drift %v", name, m.Drift)
			}
		}
	}
}

// TestDriftAndBudgets: a budget is not broken by what moves everything, and says why.
func TestDriftAndBudgets(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 9))
	b, err := ParseBudget("profile=x service_demand > +4%")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		moment, planted float64
		want            State
	}{{1.12, 1, Undecided}, {1, 1.12, Broken}, {1, 1, Kept}} {
		p, err := NewPair(sideOf(t, "A", session(r, 1, 1)), sideOf(t, "B", session(r, c.moment, c.planted)), nil)
		if err != nil {
			t.Fatal(err)
		}
		hs := p.Hold(b)
		if len(hs) == 0 || Outcome(hs) != c.want {
			t.Errorf("moment %v, planted %v: %+v, want %s", c.moment, c.planted, hs, c.want)
		}
		for _, h := range hs {
			if c.want == Undecided && h.Why == "" {
				t.Errorf("undecided without a reason: %+v", h)
			}
		}
	}
}
