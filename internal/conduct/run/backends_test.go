package run

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

var toService = plan.Path{From: plan.Pod, To: plan.Service, Locality: plan.Local}

// httpPlan measures http with one and with three backends under canal, beside raw.
func httpPlan() plan.Plan {
	p := testPlan("canal")
	p.Baseline, p.Twin, p.Repetitions = plan.VariantOf("raw"), false, 1
	p.Paths = []plan.Path{toService}
	p.Workloads = []plan.Workload{plan.Workload{Spec: plan.HTTP{}}.Normalize(), plan.Workload{Spec: plan.HTTP{Backends: 3}}.Normalize()}
	return p
}

// shared is a trial whose client saw three backends.
func shared(name string, q control.Prepare) (*sample.Observation, *control.Error) {
	o, err := ordinary(q)
	if name == "canal/b2" {
		o.Operations = 3000
	}
	if q.Side == control.SideClient {
		o.Backends = map[string]sample.Backend{
			"canal/b": {Requests: 300, Connections: 10}, "canal/b2": {Requests: 300, Connections: 10}, "canal/b3": {Requests: 400, Connections: 10},
		}
	}
	return o, err
}

// TestSeveralBackends: a case with three backends has three servers, each told its name and where to listen, and what
// they saw is one observation. The zero of the case, which has no Service, has one.
func TestSeveralBackends(t *testing.T) {
	w, p := newWorld("raw", "canal"), httpPlan()
	w.script = shared
	end, c, _ := perform(t, w, p, Options{})
	if end.Failed != 0 || end.Trials != 4 {
		t.Fatalf("end %+v", end)
	}
	for _, r := range trials(c) {
		several := r.Trial.Profile == plan.VariantOf("canal") && r.Trial.Workload.Traits().Backends == 3
		// 5 ms of CPU time at each server, for 1000 requests at one and for 5000 at three.
		if got := r.Metrics[metric.ServerCPU]; several && got != 3000 || !several && got != 5000 {
			t.Errorf("%s: the servers took %v ns/request", r.Trial.Key(), got)
		}
		share, ok := r.Metrics[metric.BackendShare+".max"]
		if ok != several || several && (share != 0.4 || r.Metrics[metric.BackendEvenness] != 1) {
			t.Errorf("%s: metrics %v", r.Trial.Key(), r.Metrics)
		}
	}
	for _, name := range []string{"canal/b", "canal/b2", "canal/b3"} {
		for _, a := range w.asked[name] {
			if a.Name != name || a.Side != control.SideServer || a.Port != 7000 {
				t.Errorf("%s was asked for %+v", name, a)
			}
		}
	}
	if n := len(w.asked["canal/b"]); n != 2 || len(w.asked["canal/b3"]) != 1 || len(w.asked["raw/b2"]) != 0 {
		t.Errorf("asked %d times at canal/b, %d at canal/b3, %d at raw/b2", n, len(w.asked["canal/b3"]), len(w.asked["raw/b2"]))
	}
	for _, a := range w.asked["canal/a"] {
		if a.Address != "10.96.0.1" || a.Port != 80 || a.Name != "" {
			t.Errorf("the client was asked for %+v", a)
		}
	}
}

// TestOneOfSeveralBackendsFails: the trial has failed, and every agent of it is replaced.
func TestOneOfSeveralBackendsFails(t *testing.T) {
	w, p := newWorld("raw", "canal"), httpPlan()
	p.Workloads, p.Repetitions = p.Workloads[1:], 2
	var failed atomic.Bool
	w.script = func(name string, q control.Prepare) (*sample.Observation, *control.Error) {
		if name == "canal/b2" && !failed.Swap(true) {
			return nil, &control.Error{Kind: "reset", Message: "gone"}
		}
		return shared(name, q)
	}
	end, c, _ := perform(t, w, p, Options{})
	if end.Failed != 1 || end.Trials != 4 {
		t.Fatalf("end %+v", end)
	}
	i := slices.IndexFunc(trials(c), func(r result.Record) bool { return r.Status == result.Failed })
	if f := trials(c)[i].Error; f.Side != control.SideServer || f.Kind != "reset" {
		t.Errorf("%+v", f)
	}
	for _, name := range []string{"canal/a", "canal/b", "canal/b2", "canal/b3"} {
		if w.starts[name] != 2 {
			t.Errorf("%s was started %d times", name, w.starts[name])
		}
	}
}

// few is a world in which a Service has one backend and no more.
type few struct{ *world }

func (f few) At(plan.Variant) env.Site { return f }

func (f few) Endpoints(ctx context.Context, r plan.Route) (control.Ends, error) {
	if r.Servers > 1 {
		return control.Ends{}, &control.NotServedError{Profile: r.Variant, Path: r.Path.String(), Reason: "one pod and no more"}
	}
	return f.world.Endpoints(ctx, r)
}

// TestBackendsNotServed: a path that is served with one backend and not with three is measured with one.
func TestBackendsNotServed(t *testing.T) {
	w, p := newWorld("raw", "canal"), httpPlan()
	s, err := surveyPlan(t.Context(), few{w}, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	one := plan.Case{Profile: plan.VariantOf("canal"), Path: toService, Workload: p.Workloads[0]}
	three := plan.Case{Profile: plan.VariantOf("canal"), Path: toService, Workload: p.Workloads[1]}
	if !s.served[one] || s.served[three] {
		t.Errorf("served %v", s.served)
	}
	if why := absenceReason(s.profiles, three); why != "one pod and no more" || absenceReason(s.profiles, one) != "" {
		t.Errorf("absent because of %q and %q", why, absenceReason(s.profiles, one))
	}
	if _, ok := s.profiles[1].NotServed[toService.String()+" with 3 backends"]; !ok {
		t.Errorf("%v", s.profiles[1].NotServed)
	}
	w.notServed[plan.Single(plan.VariantOf("canal"), toService)] = "no Services"
	s, err = surveyPlan(t.Context(), w, p, nil)
	if err == nil && s.served[three] || err != nil && !strings.Contains(err.Error(), "no Services") {
		t.Errorf("without Services: %v, %v", s.served, err)
	}
}
