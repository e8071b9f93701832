package compare

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// speeds are the trials of a row of equal profiles, in turn on a machine of two speeds. Each lasts for several trials, so
// that a profile may have the lower one in all repetitions by chance.
type speeds struct {
	profiles, repetitions int
	// lasts is how many trials a speed lasts for on average; 0 is a machine of one speed.
	lasts float64
	// own is by what factor the last profiles make the yardstick slower by themselves, always, and heavy how many those are.
	own   float64
	heavy int
	// bare has the first two profiles be raw and its twin, which stand in on another path.
	bare bool
}

func (s speeds) run(r *rand.Rand) (result.Header, []result.Record) {
	names := make([]string, s.profiles)
	for i := range names {
		names[i] = fmt.Sprintf("p%d", i)
	}
	if s.bare {
		names[0], names[1] = "raw", "raw~twin"
	}
	var recs []result.Record
	slow := s.lasts > 0 && r.IntN(2) == 0
	for rep := 1; rep <= s.repetitions; rep++ {
		for _, i := range r.Perm(s.profiles) {
			if s.lasts > 0 && r.Float64() < 1/s.lasts {
				slow = !slow
			}
			factor, yard := 1.0, 1.0
			if slow {
				factor, yard = 1.14, 1.2
			}
			if i >= s.profiles-s.heavy {
				yard *= s.own
			}
			rec := machine{r, func() (float64, float64) { return factor, yard }, none}.trials(names[i], 1)[0]
			rec.Repetition, rec.Instance = rep, rep
			if s.bare && i < 2 {
				rec.Path = plan.ZeroPath
			}
			recs = append(recs, rec)
		}
	}
	return header(names[0], names...), recs
}

// TestTwoSpeeds: of equal profiles on a machine of two speeds at most 5 of 100 are called better or worse, and few rows name
// one. Before, 4 to 20 of 100 were, and 3 to 17 of 40 rows named one. All cells of a row with two speeds have a doubt.
func TestTwoSpeeds(t *testing.T) {
	t.Parallel()
	for _, s := range []speeds{
		{profiles: 8, repetitions: 4, lasts: 4}, {profiles: 8, repetitions: 6, lasts: 4}, {profiles: 4, repetitions: 6, lasts: 2}, {profiles: 20, repetitions: 4, lasts: 8},
		{profiles: 5, repetitions: 4, lasts: 4, bare: true},
	} {
		r := rand.New(rand.NewPCG(32, 2))
		wrong, all, rows, mixed := 0, 0, 0, 0
		const runs = 40
		for range runs {
			h, recs := s.run(r)
			a := analyse(t, h, recs)
			for _, x := range a.Comparisons {
				if x.Metric != metric.ServiceDemand {
					continue
				}
				all++
				if x.Verdict == Better || x.Verdict == Worse {
					wrong++
				}
			}
			if worse, better := named(a.Rank(podPod, rr, metric.ServiceDemand)); worse+better > 0 {
				rows++
			}
			doubts := 0
			for _, c := range a.Cells {
				doubted := slices.ContainsFunc(c.Warnings, func(w stat.Warning) bool { return w.ID == slowMachine })
				if doubted != (c.Typical == nil) {
					t.Fatalf("%+v: %s has a doubt: %v, undisturbed values: %v", s, c.Key, doubted, c.Typical != nil)
				}
				if doubted {
					doubts++
				}
			}
			if doubts != 0 && doubts != len(a.Cells) && !s.bare {
				t.Fatalf("%+v: %d of %d cells have the doubt", s, doubts, len(a.Cells))
			}
			mixed += min(doubts, 1)
		}
		t.Logf("%+v: %d of %d equal profiles are called better or worse, %d of %d rows name one; %d were measured at two speeds", s, wrong, all, rows, runs, mixed)
		if wrong > all*5/100 || rows > runs*15/100 || mixed == 0 {
			t.Errorf("%+v: %d of %d equal profiles are called better or worse, %d of %d rows name one; %d were measured at two speeds", s, wrong, all, rows, runs, mixed)
		}
	}
}

// TestOneSpeed: what profiles do to the yardstick by themselves is not another speed of the machine, whether it has one or
// two. Too few cells do not tell.
func TestOneSpeed(t *testing.T) {
	t.Parallel()
	for _, s := range []speeds{
		{profiles: 8, repetitions: 4}, {profiles: 8, repetitions: 4, own: 1.05, heavy: 4}, {profiles: 8, repetitions: 4, own: 1.3, heavy: 1},
		{profiles: 8, repetitions: 6, own: 1.2, heavy: 3}, {profiles: 8, repetitions: 16, lasts: 2, own: 1.1, heavy: 1}, {profiles: 3, repetitions: 4, lasts: 2},
	} {
		r := rand.New(rand.NewPCG(32, 3))
		for range 20 {
			h, recs := s.run(r)
			if c := demandOf(t, analyse(t, h, recs), "p0"); c.Typical == nil {
				t.Errorf("%+v: judged by whole windows: %v", s, c.Warnings)
			}
		}
	}
}
