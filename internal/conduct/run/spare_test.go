package run

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

// TestSpare gives a plan of 3 repetitions of 12 cases budgets whose windows take 70 % of them: what is left goes to whole
// repetitions, then to the cases of the answer.
func TestSpare(t *testing.T) {
	for name, tt := range map[string]struct {
		// slow is how much longer than its window a trial takes.
		slow  time.Duration
		alter func(*plan.Plan)
		// whole and answers count the repetitions after those of the plan.
		whole, answers int
	}{
		"as fast as planned":    {0, func(*plan.Plan) {}, 1, 0},
		"a slower machine":      {100 * time.Millisecond, func(*plan.Plan) {}, 0, 1},
		"a machine out of time": {200 * time.Millisecond, func(*plan.Plan) {}, 0, 0},
		"the window is given":   {0, func(p *plan.Plan) { p.Duration = 500 * time.Millisecond }, 0, 0},
		"time enough for all":   {0, func(p *plan.Plan) { p.Budget = time.Hour }, 0, 0},
		"Services alone":        {100 * time.Millisecond, func(p *plan.Plan) { p.Paths[0].Locality = plan.SameNode }, 0, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, p := newWorld("host", "canal"), testPlan("canal")
				w.script = func(_ string, q control.Prepare) (*sample.Observation, *control.Error) {
					time.Sleep(q.Window + tt.slow)
					return ordinary(q)
				}
				p.Duration, p.Budget = 0, 20*time.Second
				tt.alter(&p)
				end, c, _ := perform(t, w, p, Options{})
				if end.Reason != result.Complete || end.WallNs > int64(p.Budget) {
					t.Errorf("got %+v", end)
				}
				answers := p.Answers()
				n := map[int]int{}
				for _, r := range trials(c) {
					if n[r.Repetition]++; r.Repetition > 3+tt.whole && !answers(r.Case) {
						t.Errorf("%s is measured in repetition %d", r.Case.Key(), r.Repetition)
					}
				}
				if len(n) != 3+tt.whole+tt.answers {
					t.Errorf("repetitions have these trials: %v", n)
				}
			})
		})
	}
}
