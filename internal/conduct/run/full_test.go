package run

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

// tables is a world whose profiles have a table that has overflowed long ago, and overflows again whenever the script
// says so.
type tables struct {
	*world
	mu    sync.Mutex
	count uint64
}

const table = "node-1: conntrack table"

func (w *tables) At(plan.Variant) env.Site { return w }

func (w *tables) Full(profile plan.Variant) (map[string]uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if profile != plan.VariantOf("canal") {
		return map[string]uint64{table: 7}, nil
	}
	return map[string]uint64{table: w.count, "node-2: conntrack table": 0}, nil
}

func (w *tables) overflow(n uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count += n
}

// TestFullTableFailsTheTrial lets the table of one profile overflow in its first trial alone: what is measured there is no
// number of the dataplane, whether the trial ended well or not. What overflowed before the trial is not its fault.
func TestFullTableFailsTheTrial(t *testing.T) {
	for _, tc := range []struct {
		name string
		ends *control.Error
		want string
	}{
		{"it ends well", nil, table + ": 3"},
		{"it fails besides", &control.Error{Kind: "timeout", Message: "no answer"}, table + ": 3; it ended with client: agent at canal/a: timeout: no answer"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := &tables{world: newWorld("host", "canal"), count: 5}
			var once sync.Once
			w.use(func(endpoint string, p control.Prepare) (*sample.Observation, *control.Error) {
				first := false
				if endpoint == "canal/a" {
					once.Do(func() { first = true })
				}
				if !first {
					return ordinary(p)
				}
				w.overflow(3)
				if tc.ends != nil {
					return nil, tc.ends
				}
				return ordinary(p)
			})
			p := testPlan("host", "canal")
			_, contents, _ := perform(t, w, p, Options{})
			var failed []result.Record
			for _, r := range trials(contents) {
				if r.Status != result.OK {
					failed = append(failed, r)
				}
			}
			if len(failed) != 1 || failed[0].Profile != plan.VariantOf("canal") {
				t.Fatalf("%d of %d trials failed: %+v", len(failed), len(trials(contents)), failed)
			}
			if f := failed[0].Error; f.Kind != kindTableFull || !strings.HasPrefix(f.Message, tc.want) {
				t.Errorf("failure %+v, want %q: %q", f, kindTableFull, tc.want)
			}
			if len(failed[0].Metrics) > 0 {
				t.Errorf("a failed trial has numbers: %v", failed[0].Metrics)
			}
		})
	}
}

// TestTimeoutSaysWhatWasAwaited: the failure of a trial that did not end has what its agent had not said.
func TestTimeoutSaysWhatWasAwaited(t *testing.T) {
	late := fmt.Errorf("agent at canal/a: %w", &control.LateError{Want: control.TypeDone, Stands: "in its window", Err: context.DeadlineExceeded})
	got := trialFailure(&control.SideError{Side: control.SideClient, Err: late}, 10*time.Second)
	want := result.Failure{Side: control.SideClient, Kind: kindTimeout,
		Message: `the trial did not end within 10s: agent at canal/a: no "done" from it yet, at last it was in its window`}
	if *got != want {
		t.Errorf("got %+v, want %+v", *got, want)
	}
}
