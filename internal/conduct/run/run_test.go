package run

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/control/controltest"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/outcome"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

func TestRunInOrder(t *testing.T) {
	w, p := newWorld("host", "canal"), testPlan("canal")
	end, c, events := perform(t, w, p, Options{})
	if d := cmp.Diff(everyTrial(p), trialsOf(c), cmpopts.EquateComparable(plan.Variant{})); d != "" {
		t.Errorf("the trials are not in the plan's order: %s", d)
	}
	want := 3 * 2 * 2 * 3 // host, its twin and canal; two paths; two workloads; three repetitions
	if end.Reason != result.Complete || end.Trials != want || end.Failed != 0 || end.WindowNs != int64(want)*int64(p.Duration) {
		t.Errorf("got end %+v", end)
	}
	last := c.Records[len(c.Records)-1]
	if last.Type != result.TypeEnd || *last.End != end {
		t.Errorf("the file ends with %+v", last)
	}
	for i, e := range events {
		if e.Done != i+1 || e.Total != want || e.Record == nil {
			t.Fatalf("event %d is %+v", i, e)
		}
	}
	if e := events[want-1]; e.Left != 0 {
		t.Errorf("after the last trial %s are left", e.Left)
	}
	for name, n := range w.starts {
		if n != 1 {
			t.Errorf("agent %s was started %d times", name, n)
		}
	}
}

// TestPrepare checks what each side is asked for: the client dials the Service, the server listens behind it.
func TestPrepare(t *testing.T) {
	w, p := newWorld("host"), testPlan("host")
	p.Twin, p.Repetitions = false, 1
	p.Workloads = p.Workloads[:1]
	p.Duration, p.Warmup = time.Second, time.Millisecond
	perform(t, w, p, Options{})
	for _, a := range w.asked["host/a"] {
		direct := a.Address == "10.0.0.2" && a.Port == 7000
		service := a.Address == "10.96.0.1" && a.Port == 80
		if a.Side != control.SideClient || !direct && !service || !slices.Equal(a.CPUs, []int{1}) {
			t.Errorf("the client was asked for %+v", a)
		}
	}
	for _, a := range w.asked["host/b"] {
		if a.Side != control.SideServer || a.Address != "" || a.Port != 7000 || !slices.Equal(a.CPUs, []int{2}) {
			t.Errorf("the server was asked for %+v", a)
		}
		if a.Window != time.Second || a.Warmup != time.Millisecond || a.Interval != 50*time.Millisecond || a.Timeout <= 0 {
			t.Errorf("the server was asked for %+v", a)
		}
	}
	if len(w.asked["host/a"]) != 2 || len(w.asked["host/b"]) != 2 {
		t.Errorf("asked %d and %d times", len(w.asked["host/a"]), len(w.asked["host/b"]))
	}
}

func TestSelfHasTwoAgents(t *testing.T) {
	w, p := newWorld("host"), testPlan("host")
	p.Twin, p.Repetitions = false, 1
	p.Paths = []plan.Path{{From: plan.Pod, To: plan.Self}}
	p.Workloads = p.Workloads[:1]
	end, _, _ := perform(t, w, p, Options{})
	if end.Failed != 0 || w.starts["host/a"] != 2 {
		t.Errorf("end %+v, %d agents", end, w.starts["host/a"])
	}
}

// TestStalledTrialKeepsItsSlices: a trial whose path was cut has failed, and what both sides saw is in its record.
func TestStalledTrialKeepsItsSlices(t *testing.T) {
	w, p := newWorld("host"), testPlan("host")
	p.Repetitions = 1
	w.script = func(_ string, q control.Prepare) (*sample.Observation, *control.Error) {
		o, e := ordinary(q)
		for i := range int64(10) {
			row := sample.Interval{StartNs: i * 4e8, EndNs: (i + 1) * 4e8, Operations: 500}
			if i > 5 {
				row.Operations = 0
			}
			o.Intervals = append(o.Intervals, row)
		}
		return o, e
	}
	name, end, err := begin(t, t.Context(), w, p, Options{})
	if err != nil || end.Failed == 0 || end.Failed != end.Trials {
		t.Fatalf("%+v, %v", end, err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := result.NewReader(f, name)
	if err != nil {
		t.Fatal(err)
	}
	if err := all.Each(func(r *result.Record) error {
		if r.Type == result.TypeTrial && (r.Error.Kind != kindStalled || r.Metrics != nil || len(r.Client.Intervals) != 10 || len(r.Server.Intervals) != 10) {
			t.Errorf("%+v", r)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// TestFailedTrialIsKept lets one trial fail in each way that there is: it is a record, measured once, and the others
// are as if nothing had been.
func TestFailedTrialIsKept(t *testing.T) {
	refused := &control.Error{Kind: "connection refused", Message: "10.0.0.2:7000: connection refused"}
	for _, tt := range []struct {
		name, at string
		fault    *control.Error
		want     result.Failure
	}{
		{"client says why", "canal/a", refused, result.Failure{Side: "client", Kind: "connection refused", Message: refused.Message}},
		{"server says why", "canal/b", refused, result.Failure{Side: "server", Kind: "connection refused", Message: refused.Message}},
		{"client dies", "canal/a", controltest.Die, result.Failure{Side: "client", Kind: control.KindGone, Message: controltest.LastWords}},
		{"server dies", "canal/b", controltest.Die, result.Failure{Side: "server", Kind: control.KindGone, Message: controltest.LastWords}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, p := newWorld("host", "canal"), testPlan("canal")
			var mu sync.Mutex
			calls := map[string]int{}
			arrived := make(chan struct{})
			w.script = func(name string, q control.Prepare) (*sample.Observation, *control.Error) {
				mu.Lock()
				calls[name]++
				second := calls[name] == 2 && strings.HasPrefix(name, "canal/")
				mu.Unlock()
				if second && name == tt.at {
					<-arrived
					return nil, tt.fault
				}
				if second {
					close(arrived)
					<-t.Context().Done() // this side is still at it when the other fails
				}
				return ordinary(q)
			}
			end, c, _ := perform(t, w, p, Options{})
			if d := cmp.Diff(everyTrial(p), trialsOf(c), cmpopts.EquateComparable(plan.Variant{})); d != "" {
				t.Error(d)
			}
			var failed []result.Record
			for _, r := range trials(c) {
				if r.Status == result.Failed {
					failed = append(failed, r)
				}
			}
			if len(failed) != 1 || end.Failed != 1 || failed[0].Profile != plan.VariantOf("canal") {
				t.Fatalf("got %d failed trials: %+v", len(failed), failed)
			}
			f := failed[0].Error
			if f.Side != tt.want.Side || f.Kind != tt.want.Kind || !strings.Contains(f.Message, tt.want.Message) || failed[0].Metrics != nil {
				t.Errorf("got %+v, want %+v", f, tt.want)
			}
			if w.starts["canal/a"] != 2 || w.starts["canal/b"] != 2 || w.starts["host/a"] != 1 {
				t.Errorf("agents started: %v", w.starts)
			}
		})
	}
}

func TestAgentThatCannotStart(t *testing.T) {
	w, p := newWorld("host"), testPlan("host")
	p.Twin, p.Repetitions = false, 1
	end, c, _ := perform(t, &broken{world: w}, p, Options{})
	if end.Failed != end.Trials || end.Trials != 4 {
		t.Errorf("got %+v", end)
	}
	for _, r := range trials(c) {
		if r.Error.Kind != control.KindStart || r.Error.Side != control.SideServer || !strings.Contains(r.Error.Message, "no such file") {
			t.Errorf("got %+v", r.Error)
		}
	}
}

// broken is a world whose servers cannot be started.
type broken struct{ *world }

func (b *broken) At(plan.Variant) env.Site { return b }

func (b *broken) Endpoints(ctx context.Context, r plan.Route) (control.Ends, error) {
	ends, err := b.world.Endpoints(ctx, r)
	ends.Servers[0].Start = func(context.Context) (io.ReadWriteCloser, error) { return nil, errors.New("no such file") }
	return ends, err
}

// TestInterruptAndResume gives a run up at random trials, again and again, until it is complete: then every trial is
// in the file exactly once and in the order that it would have had.
func TestInterruptAndResume(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		w, p := newWorld("host", "canal"), testPlan("canal")
		name := filepath.Join(t.TempDir(), "r")
		out, err := result.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		var o Options
		rounds, reason := 0, ""
		for reason != result.Complete {
			ctx, cancel := context.WithCancel(t.Context())
			var left atomic.Int64
			left.Store(1 + r.Int64N(12))
			inTrial := r.IntN(2) == 0
			w.use(func(_ string, q control.Prepare) (*sample.Observation, *control.Error) {
				if left.Load() <= 0 && inTrial {
					cancel()
					<-t.Context().Done() // the trial would go on
				}
				return ordinary(q)
			})
			o.Progress = func(e Event) {
				if left.Add(-1) == 0 && !inTrial {
					cancel()
				}
			}
			end, err := Run(ctx, w, p, out, o)
			cancel()
			if err := errors.Join(err, out.Close()); err != nil {
				t.Fatal(err)
			}
			if reason = end.Reason; reason != result.Complete && reason != result.Interrupted {
				t.Fatalf("ended with %q", reason)
			}
			if o.Resumed, err = result.OpenResume(name); err != nil {
				t.Fatal(err)
			}
			out = o.Resumed.Writer
			rounds++
		}
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(everyTrial(p), trialsOf(load(t, name)), cmpopts.EquateComparable(plan.Variant{})); d != "" {
			t.Fatalf("after %d rounds: %s", rounds, d)
		}
		if rounds < 2 {
			t.Errorf("the run was never interrupted")
		}
	}
}

func TestResumeWantsTheSamePlan(t *testing.T) {
	w, p := newWorld("host", "canal"), testPlan("canal")
	name, _, err := begin(t, t.Context(), w, p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	res, err := result.OpenResume(name)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Close()
	p.Seed++
	if _, err := Run(t.Context(), w, p, res.Writer, Options{Resumed: res}); err == nil || !strings.Contains(err.Error(), "seed") {
		t.Errorf("got %v", err)
	}
	p.Seed--
	w.facts["kernel"] = "7"
	var notes []string
	end, err := Run(t.Context(), w, p, res.Writer, Options{Resumed: res, Progress: func(e Event) { notes = append(notes, e.Note) }})
	if err != nil || end.Trials != 0 || end.Reason != result.Complete {
		t.Errorf("resuming a complete run: %+v, %v", end, err)
	}
	if len(notes) != 1 || notes[0] != `kernel was "6" when the file was created and is "7" now` {
		t.Errorf("got notes %q", notes)
	}
}

// A place that changed while a run was killed: what is gone must not end as complete, and what is new has no place in
// a file whose header says that it was not there.
func TestResumeHoldsToItsHeader(t *testing.T) {
	w, p := newWorld("host", "canal", "macvlan"), testPlan("canal", "macvlan")
	w.profiles[2].Skipped = "no macvlan"
	ctx, cancel := context.WithCancel(t.Context())
	first := Options{Progress: func(e Event) {
		if e.Record != nil {
			cancel()
		}
	}}
	name, end, err := begin(t, ctx, w, p, first)
	if err != nil || end.Trials != 1 {
		t.Fatalf("%+v, %v", end, err)
	}
	again := func() (result.End, error) { return goOn(t, w, name) }
	w.profiles[1].Skipped = "iptables is gone"
	if end, err := again(); err == nil || !strings.Contains(err.Error(), "canal") || !strings.Contains(err.Error(), "iptables is gone") {
		t.Errorf("a profile is gone: %+v, %v", end, err)
	}
	w.profiles[1].Skipped, w.profiles[2].Skipped = "", ""
	w.facts = facts.Facts{"kernel": "7", facts.LoadAverage: "9 9 9"}
	if end, err := again(); err != nil || end.Reason != result.Complete {
		t.Errorf("a profile has come: %+v, %v", end, err)
	}
	for i, r := range trials(load(t, name)) {
		// Only the first was measured under what the header says.
		at := slices.IndexFunc(r.Warnings, func(w sample.Warning) bool { return w.ID == conditionsChanged })
		if (at >= 0) != (i > 0) || at >= 0 && r.Warnings[at].Message != `kernel was "6" when the file was created and is "7" now` {
			t.Errorf("trial %d: warnings %v", i, r.Warnings)
		}
		if r.Profile == plan.VariantOf("macvlan") {
			t.Errorf("measured %s, which the header calls skipped", r.Key())
		}
	}
	// Nothing is left to measure of what is gone now.
	w.profiles[1].Skipped = "iptables is gone"
	if end, err := again(); err != nil || end.Reason != result.Complete || end.Trials != 0 {
		t.Errorf("a complete run: %+v, %v", end, err)
	}
}

// What stays within a node may be faster than its NIC.
func TestLineRateIsOfTheWire(t *testing.T) {
	c := &conductor{env: limited{newWorld()}}
	for _, p := range plan.Paths {
		wire := p.Locality == plan.CrossNode || p.Locality == plan.Remote || p.From == plan.External || p.To == plan.External
		if got := (attempt{conductor: c, Case: plan.Case{Profile: plan.VariantOf("canal"), Path: p}}).conditions().LineRate; (got > 0) != wire {
			t.Errorf("%s: line rate %g", p, got)
		}
	}
}

type limited struct{ *world }

func (limited) Conditions() outcome.Conditions { return outcome.Conditions{LineRate: 1e9} }

func TestBudget(t *testing.T) {
	w, p := newWorld("host", "canal"), testPlan("canal")
	p.Budget = time.Minute
	end, c, events := perform(t, w, p, Options{Began: time.Now().Add(-time.Hour)})
	if end.Reason != result.OverBudget || end.Trials != 0 || len(trials(c)) != 0 {
		t.Errorf("got %+v", end)
	}
	if len(events) != 1 || events[0].Note != "the budget of 1m0s is spent in repetition 1: 36 trials are not measured" {
		t.Errorf("got %+v", events)
	}
	// Spent in the middle: the first trials take the time away.
	p = testPlan("canal")
	p.Budget = time.Hour
	n := 0
	w.script = func(_ string, q control.Prepare) (*sample.Observation, *control.Error) { return ordinary(q) }
	_, end, err := begin(t, t.Context(), w, p, Options{Began: time.Now(), Progress: func(Event) { n++ }})
	if err != nil || end.Reason != result.Complete || n != 36 {
		t.Errorf("within its budget: %+v, %v, %d events", end, err, n)
	}
}

func TestPrecision(t *testing.T) {
	// The trials of canal and ptp lie 30 % above and below in turn; those of ptp around a tenth.
	n := 0
	noisy := func(name string, q control.Prepare) (*sample.Observation, *control.Error) {
		o, err := ordinary(q)
		if profile, _, _ := strings.Cut(name, "/"); q.Side == control.SideClient && (profile == "canal" || profile == "ptp") {
			n++
			o.Operations = []uint64{700, 1300}[n/2%2]
			if profile == "ptp" {
				o.Operations /= 10
			}
		}
		return o, err
	}
	w, p := newWorld("host", "canal", "ptp", "macvlan"), testPlan("canal", "ptp", "macvlan")
	p.Paths, p.Workloads = p.Paths[:1], p.Workloads[:1]
	p.Precision, p.MaxRepetitions = 0.01, 14
	w.script = noisy
	end, c, events := perform(t, w, p, Options{})
	count := map[string]int{}
	for _, tr := range trialsOf(c) {
		count[tr.Profile.String()]++
	}
	// Only canal goes on to the end, and what it is compared with: ptp is decided before, macvlan known as soon as it has an
	// interval.
	most := count["ptp"]
	want := map[string]int{"canal": 14, "host": 14, "host~twin": 14, "ptp": most, "macvlan": 6}
	if d := cmp.Diff(want, count); d != "" || end.Reason != result.Exhausted || most > 12 {
		t.Errorf("%s, %d of ptp: %s", end.Reason, most, d)
	}
	if n := events[len(events)-1].Note; n != "14 repetitions are done; 1 case neither decided nor known to 1%" {
		t.Errorf("got note %q", n)
	}
	w.script = nil
	end, c, _ = perform(t, w, p, Options{})
	if end.Reason != result.Precise || len(trials(c)) != 6*5 {
		t.Errorf("without noise: %s after %d trials", end.Reason, len(trials(c)))
	}
}

func TestSkippedAndNotServed(t *testing.T) {
	w, p := newWorld("host", "canal", "macvlan"), testPlan("canal", "macvlan")
	w.profiles[1].Skipped = "the kernel has no vxlan"
	service := p.Paths[1]
	w.notServed[plan.Single(plan.VariantOf("macvlan"), service)] = "no kube-proxy on this path"
	end, c, _ := perform(t, w, p, Options{})
	for _, r := range trials(c) {
		if r.Profile == plan.VariantOf("canal") || r.Profile == plan.VariantOf("macvlan") && r.Path == service {
			t.Errorf("measured %s", r.Key())
		}
	}
	if want := (2*2 + 1) * 2 * 3; end.Trials != want {
		t.Errorf("got %d trials, want %d", end.Trials, want)
	}
	if got := c.Header.Profiles; got[1].Skipped == "" || got[2].NotServed[service.String()] != "no kube-proxy on this path" {
		t.Errorf("the header has %+v", got)
	}
}

func TestNothingToMeasure(t *testing.T) {
	w, p := newWorld("host", "canal"), testPlan("canal")
	w.profiles[0].Skipped = "no veth"
	w.profiles[1].Skipped = "no vxlan"
	name, _, err := begin(t, t.Context(), w, p, Options{})
	if err == nil || err.Error() != "nothing can be measured: host: no veth; canal: no vxlan" || advice.Of(err) == "" {
		t.Errorf("got %v", err)
	}
	if m, _ := filepath.Glob(name); m != nil {
		t.Error("an empty result file was left")
	}
}

// TestBaselineAlone: what was asked for cannot be measured, and its baseline is no consolation.
func TestBaselineAlone(t *testing.T) {
	w, p := newWorld("host", "macvlan"), testPlan("macvlan")
	p.Paths = p.Paths[1:]
	w.notServed[plan.Single(plan.VariantOf("macvlan"), p.Paths[0])] = "no kube-proxy on this path"
	_, _, err := begin(t, t.Context(), w, p, Options{})
	if err == nil || err.Error() != "nothing can be measured: macvlan does not serve pod-to-service/remote: no kube-proxy on this path" {
		t.Errorf("got %v", err)
	}
}

func TestWindowIsFitted(t *testing.T) {
	w, p := newWorld("host", "canal"), testPlan("canal")
	p.Duration, p.Budget = 0, time.Hour
	_, c, _ := perform(t, w, p, Options{})
	if c.Header.Plan.Duration != plan.LongestFit {
		t.Errorf("the window is %s", c.Header.Plan.Duration)
	}
}

func TestFullDisk(t *testing.T) {
	w, p := newWorld("host", "canal"), testPlan("canal")
	d := &disk{room: 6000}
	end, err := Run(t.Context(), w, p, result.NewWriter(d, "r.jsonl"), Options{})
	if err == nil || !strings.Contains(err.Error(), `write result file "r.jsonl": no space left on device`) || advice.Of(err) == "" {
		t.Fatalf("got %v", err)
	}
	if end.Trials == 0 {
		t.Error("no trial was counted")
	}
	r, err := result.NewReader(bytes.NewReader(d.Bytes()), "r.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for ; err == nil; n++ {
		_, err = r.Next()
	}
	if !errors.Is(err, io.EOF) || r.Warning() != "" || n-1 != end.Trials {
		t.Errorf("%d records are whole of %d: %v %s", n-1, end.Trials, err, r.Warning())
	}
}

// TestPatience has the timeouts of short windows: a reply has time for the round trip that the lab delays.
func TestPatience(t *testing.T) {
	ms := time.Millisecond
	for _, tt := range []struct {
		workload                plan.Spec
		window, roundTrip, want time.Duration
	}{
		{plan.Ping{}, 300 * ms, 100 * ms, 200 * ms}, // ping --delay 50ms --duration 300ms: three round trips fit
		{plan.Ping{}, 300 * ms, 0, 60 * ms},
		{plan.Ping{}, 10 * time.Second, 2 * time.Second, 4 * time.Second},
		{plan.RR{Protocol: plan.UDP}, 50 * ms, 0, 20 * ms},
		{plan.RR{Protocol: plan.UDP}, 20 * time.Second, 0, time.Second},
		{plan.RR{}, 100 * ms, 0, 5 * time.Second},
	} {
		w := plan.Workload{Spec: tt.workload}.Normalize()
		if got := exchangeTimeout(w, tt.window, tt.roundTrip); got != tt.want {
			t.Errorf("%s in a window of %s with round trips of %s: timeout %s, want %s", w, tt.window, tt.roundTrip, got, tt.want)
		}
	}
}
