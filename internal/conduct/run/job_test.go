package run

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/control/controltest"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

// jobPlan has a job of four members with a compute share, under the host and one CNI.
func jobPlan(t *testing.T, workload string) plan.Plan {
	t.Helper()
	w, err := plan.ParseWorkload(workload)
	if err != nil {
		t.Fatal(err)
	}
	p := testPlan("canal")
	p.Lab.Nodes, p.Twin, p.Repetitions, p.Paths, p.Workloads = 4, false, 1, p.Paths[:1], []plan.Workload{w}
	return p.Settle()
}

// stepping is what members see: the first has the account, of so many steps of 1 ms in the window.
func stepping(steps map[string]int64) func(string, control.Prepare) (*sample.Observation, *control.Error) {
	return func(name string, p control.Prepare) (*sample.Observation, *control.Error) {
		o, err := ordinary(p)
		o.BytesSent, o.BytesReceived = 1e6, 1e6
		if p.Seat.Rank > 0 {
			return o, err
		}
		n := steps[strings.Split(name, "/")[0]]
		o.Operations = uint64(n)
		o.Job = &sample.Job{Step: sample.NewHistogram(), Exchange: sample.NewHistogram()}
		for range n {
			o.Job.Step.Record(1e6)
			o.Job.Exchange.Record(1e6)
		}
		for _, m := range p.Seat.Members {
			o.Job.Members = append(o.Job.Members, sample.Member{Name: m.Name})
		}
		return o, err
	}
}

// TestJob: members are prepared from the last to the first, each with its place; the record is of all of them.
func TestJob(t *testing.T) {
	w := newWorld("host", "canal")
	w.script = stepping(map[string]int64{"host": 20, "canal": 20})
	end, c, _ := perform(t, w, jobPlan(t, "job"), Options{})
	if end.Failed != 0 || end.Trials != 2 {
		t.Fatalf("%+v: %+v", end, trials(c))
	}
	for _, r := range trials(c) {
		if demand := 4 * 5e6 / 4e-3; r.Metrics["step_rate"] != 2000 || r.Metrics["step_time.p50"] < 1e6 || math.Abs(r.Metrics["service_demand"]-demand) > 1 {
			t.Errorf("%+v, want a demand of %v ns/GB", r.Metrics, demand)
		}
	}
	for i, name := range []string{"canal/a", "canal/b", "canal/b2", "canal/b3"} {
		p := w.asked[name][0]
		if p.Seat.Rank != i || p.Seat.Members[i].Name != name || (p.Side == control.SideClient) != (i == 0) {
			t.Errorf("%s has seat %+v", name, p.Seat)
		}
	}
}

// TestComputeIsTheBaselines: a compute share is a time of the baseline's step, the same for all profiles.
func TestComputeIsTheBaselines(t *testing.T) {
	w := newWorld("host", "canal")
	w.script = stepping(map[string]int64{"host": 40, "canal": 10}) // 250 us and 1 ms
	_, c, _ := perform(t, w, jobPlan(t, "job(compute=75%)"), Options{})
	if n := len(trials(c)); n != 4 {
		t.Fatalf("%d trials", n)
	}
	for _, name := range []string{"canal/a", "host/a"} {
		asked := w.asked[name]
		if len(asked) != 2 || asked[0].Workload.Traits().Interval != 0 || asked[1].Workload.Traits().Interval != 750*time.Microsecond {
			t.Errorf("%s: %+v", name, asked)
		}
	}
}

// TestLostMemberFailsTheStep: the record names the member whose agent ended, whatever its neighbours say first.
func TestLostMemberFailsTheStep(t *testing.T) {
	w := newWorld("host", "canal")
	w.script = func(name string, p control.Prepare) (*sample.Observation, *control.Error) {
		switch {
		case name == "canal/b2":
			return nil, controltest.Die
		case strings.HasPrefix(name, "canal/"):
			return nil, &control.Error{Kind: "peer gone", Message: "member 1 is lost"}
		}
		return stepping(map[string]int64{"host": 20})(name, p)
	}
	_, c, _ := perform(t, w, jobPlan(t, "job"), Options{})
	for _, r := range trials(c) {
		if failed := r.Status == result.Failed; failed != (r.Profile == plan.VariantOf("canal")) {
			t.Errorf("%s: %s", r.Key(), r.Status)
		} else if failed && (r.Error.Kind != control.KindGone || !strings.Contains(r.Error.Message, "canal/b2")) {
			t.Errorf("%+v", r.Error)
		}
	}
}

// TestJobContinues: without the lost member the others measure the rest of the window, and the steps of both groups have
// names of their own.
func TestJobContinues(t *testing.T) {
	w := newWorld("host", "canal")
	ordinary := stepping(map[string]int64{"host": 20, "canal": 20})
	w.script = func(name string, p control.Prepare) (*sample.Observation, *control.Error) {
		o, err := ordinary(name, p)
		switch {
		case len(p.Seat.Members) < 4 || !strings.HasPrefix(name, "canal/"):
			return o, err
		case name == "canal/b2":
			return nil, controltest.Die
		case p.Seat.Rank > 0:
			return nil, &control.Error{Kind: "peer gone", Message: "member 2 is lost"}
		}
		o.Job.Loss = &sample.Loss{Step: 21, AfterNs: int64(p.Window) / 2}
		return o, err
	}
	_, c, _ := perform(t, w, jobPlan(t, "job(lost=continue)"), Options{})
	for _, r := range trials(c) {
		if r.Profile != plan.VariantOf("canal") {
			continue
		}
		_, whole := r.Metrics["step_time.p50"]
		if r.Status != result.OK || whole || r.Metrics["step_time_before.mean"] < 1e6 || r.Metrics["step_time_after.mean"] < 1e6 || r.Metrics["service_demand"] != 0 {
			t.Fatalf("%+v, %v", r.Error, r.Metrics)
		}
		if !slices.ContainsFunc(r.Warnings, func(x sample.Warning) bool {
			return x.ID == "member-lost" && strings.Contains(x.Message, "canal/b2 was lost in step 21, 5.00 ms into the window: 20 steps of 4 members before it and 20 of 3 after it are apart")
		}) {
			t.Errorf("%+v", r.Warnings)
		}
	}
	asked := w.asked["canal/b3"]
	if last := asked[len(asked)-1]; last.Seat.Rank != 2 || last.Workload.String() != "job(members=3)" || last.Window >= asked[0].Window {
		t.Errorf("%s, %v of %v", last.Workload, last.Window, asked[0].Window)
	}
}

// TestFailedMember: without an agent that is gone, the first error is that of the trial.
func TestFailedMember(t *testing.T) {
	w := newWorld("host", "canal")
	w.script = func(name string, p control.Prepare) (*sample.Observation, *control.Error) {
		if name == "canal/b" {
			return nil, &control.Error{Kind: "timeout", Message: "by the script"}
		}
		return stepping(map[string]int64{"host": 20, "canal": 20})(name, p)
	}
	_, c, _ := perform(t, w, jobPlan(t, "job"), Options{})
	for _, r := range trials(c) {
		if r.Profile == plan.VariantOf("canal") && (r.Status != result.Failed || r.Error.Kind != "timeout" || r.Error.Side != control.SideServer) {
			t.Errorf("%+v", r.Error)
		}
	}
}
