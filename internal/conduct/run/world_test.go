package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/control/controltest"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/outcome"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

// world is an environment of scripted agents.
type world struct {
	profiles  []result.Profile
	notServed map[plan.Route]string
	facts     facts.Facts
	// script says what a trial comes to at the endpoint of this name; nil is an ordinary trial.
	script func(endpoint string, p control.Prepare) (*sample.Observation, *control.Error)

	mu     sync.Mutex
	starts map[string]int
	asked  map[string][]control.Prepare
}

func newWorld(profiles ...string) *world {
	w := &world{facts: facts.Facts{"kernel": "6"}, starts: map[string]int{}, asked: map[string][]control.Prepare{}, notServed: map[plan.Route]string{}}
	for _, p := range profiles {
		w.profiles = append(w.profiles, result.Profile{Name: plan.VariantOf(p)})
	}
	return w
}

// use changes the script while agents run.
func (w *world) use(script func(string, control.Prepare) (*sample.Observation, *control.Error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.script = script
}

func (w *world) Facts(context.Context) (facts.Facts, error) { return w.facts, nil }

func (w *world) Profiles(context.Context) ([]result.Profile, error) {
	return append([]result.Profile(nil), w.profiles...), nil
}

func (w *world) Conditions() outcome.Conditions { return outcome.Conditions{} }
func (w *world) Close(context.Context) error    { return nil }

func (w *world) At(plan.Variant) env.Site { return w }

// Endpoints are a, and b, b2, b3 and so on behind the address of b.
func (w *world) Endpoints(_ context.Context, r plan.Route) (control.Ends, error) {
	profile, p := r.Variant.String(), r.Path
	if why, ok := w.notServed[plan.Single(r.Variant, p)]; ok {
		return control.Ends{}, &control.NotServedError{Profile: r.Variant, Path: p.String(), Reason: why}
	}
	client, server := w.endpoint(profile+"/a"), w.endpoint(profile+"/b")
	if p.To == plan.Self {
		server = client
	}
	client.CPUs, server.CPUs = []int{1}, []int{2}
	server.Address, server.ListenPort = "10.0.0.2", 7000
	if p.To == plan.Service {
		server.Address, server.Port = "10.96.0.1", 80
	}
	servers := []control.Endpoint{server}
	for i := 2; i <= r.Servers; i++ {
		next := w.endpoint(fmt.Sprintf("%s/b%d", profile, i))
		next.ListenPort = server.ListenPort
		servers = append(servers, next)
	}
	return control.Ends{Client: client, Servers: servers}, nil
}

func (w *world) endpoint(name string) control.Endpoint {
	start := controltest.Agent(func(p control.Prepare) (*sample.Observation, *control.Error) {
		w.mu.Lock()
		w.asked[name] = append(w.asked[name], p)
		script := w.script
		w.mu.Unlock()
		if script != nil {
			return script(name, p)
		}
		return ordinary(p)
	})
	return control.Endpoint{Name: name, Start: func(ctx context.Context) (io.ReadWriteCloser, error) {
		w.mu.Lock()
		w.starts[name]++
		w.mu.Unlock()
		return start(ctx)
	}}
}

// ordinary is what a trial without incident sees: exactly its window, 1000 transactions.
func ordinary(p control.Prepare) (*sample.Observation, *control.Error) {
	return &sample.Observation{Side: p.Side, ElapsedNs: int64(p.Window), Operations: 1000,
		CPU: sample.CPUTime{ThreadsNs: int64(p.Window) / 2, ProcessNs: int64(p.Window) / 2}}, nil
}

func testPlan(profiles ...string) plan.Plan {
	p := plan.Default()
	p.Profiles, p.Baseline = plan.Variants(profiles...), plan.VariantOf("host")
	p.Paths = []plan.Path{{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}, {From: plan.Pod, To: plan.Service, Locality: plan.Remote}}
	p.Workloads = []plan.Workload{plan.Workload{Spec: plan.RR{}}.Normalize(), plan.Workload{Spec: plan.CRR{}}.Normalize()}
	p.Repetitions, p.Seed = 3, 11
	p.Duration, p.Warmup = 10*time.Millisecond, 0
	return p
}

// perform runs p in w into a new file and returns what is in it.
func perform(t *testing.T, w env.Environment, p plan.Plan, o Options) (result.End, result.Contents, []Event) {
	t.Helper()
	var events []Event
	o.Progress = func(e Event) { events = append(events, e) }
	name, end, err := begin(t, t.Context(), w, p, o)
	if err != nil {
		t.Fatal(err)
	}
	return end, load(t, name), events
}

// begin runs p in w into a new file of this name, which can be taken up again.
func begin(t *testing.T, ctx context.Context, w env.Environment, p plan.Plan, o Options) (name string, end result.End, err error) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "r.jsonl")
	out, err := result.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	end, err = Run(ctx, w, p, out, o)
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return name, end, err
}

// goOn takes the run in a file up again.
func goOn(t *testing.T, w env.Environment, name string) (result.End, error) {
	t.Helper()
	res, err := result.OpenResume(name)
	if err != nil {
		t.Fatal(err)
	}
	end, err := Run(t.Context(), w, res.Start.Plan, res.Writer, Options{Resumed: res})
	if err := res.Close(); err != nil {
		t.Fatal(err)
	}
	return end, err
}

func load(t *testing.T, name string) result.Contents {
	t.Helper()
	c, err := result.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// trials returns the records of a file that are trials.
func trials(c result.Contents) []result.Record {
	var list []result.Record
	for _, r := range c.Records {
		if r.Type == result.TypeTrial {
			list = append(list, r)
		}
	}
	return list
}

func trialsOf(c result.Contents) []plan.Trial {
	var list []plan.Trial
	for _, r := range trials(c) {
		list = append(list, r.Trial)
	}
	return list
}

// everyTrial is the order that a plan without incident is measured in.
func everyTrial(p plan.Plan) []plan.Trial {
	var list []plan.Trial
	for rep := 1; rep <= p.Repetitions; rep++ {
		for _, c := range p.Order(rep) {
			list = append(list, plan.Trial{Case: c, Repetition: rep})
		}
	}
	return list
}

// disk is a file in memory with room for so many bytes.
type disk struct {
	bytes.Buffer
	room int
}

func (d *disk) Write(p []byte) (int, error) {
	if left := d.room - d.Len(); len(p) > left {
		d.Buffer.Write(p[:left])
		return left, errors.New("no space left on device")
	}
	return d.Buffer.Write(p)
}

func (d *disk) Sync() error               { return nil }
func (d *disk) Truncate(size int64) error { d.Buffer.Truncate(int(size)); return nil }
func (d *disk) Close() error              { return nil }
