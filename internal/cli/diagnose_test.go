package cli

import (
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/conduct/run"
	"github.com/cnibench/cnibench/internal/plan"
)

// TestDiagnosisTakesTwoMinutes: however long the environment and packet sizes take within their limits, the trials end in
// time for what comes after them, and have a part of it.
func TestDiagnosisTakesTwoMinutes(t *testing.T) {
	for _, opening := range []time.Duration{0, 20 * time.Second, openEnd, 5 * time.Minute} {
		for _, sizes := range []time.Duration{time.Second, 12 * time.Second, sizesEnd} {
			before := min(countedOpening(opening)+sizes, sizesEnd)
			left := trialsLimit(before) - before
			if left < 10*time.Second || before+left > trialsEnd {
				t.Errorf("opened in %v, sizes in %v: trials have %v after %v", opening, sizes, left, before)
			}
		}
	}
}

// TestFitted: a path that does not answer, or answers late, has few trials, and a usual one all.
func TestFitted(t *testing.T) {
	p := plan.Plan{Repetitions: 3, Duration: 500 * time.Millisecond}
	for _, w := range []string{"ping", "rr", "stream", "stream(reverse=true)"} {
		one, err := plan.ParseWorkload(w)
		if err != nil {
			t.Fatal(err)
		}
		p.Workloads = append(p.Workloads, one)
	}
	for _, tt := range []struct {
		met                    run.Met
		repetitions, workloads int
		duration               time.Duration
	}{
		{run.Met{Trip: time.Millisecond}, 3, 4, p.Duration},
		{run.Met{Trip: 40 * time.Millisecond}, 2, 4, p.Duration},
		{run.Met{Trip: 400 * time.Millisecond}, 1, 1, 1200 * time.Millisecond},
		{run.Met{Closed: true}, 1, 1, p.Duration},
	} {
		if got := fitPlan(p, tt.met); got.Repetitions != tt.repetitions || len(got.Workloads) != tt.workloads || got.Duration != tt.duration {
			t.Errorf("%+v: %d repetitions of %v for %v", tt.met, got.Repetitions, got.Workloads, got.Duration)
		}
	}
}
