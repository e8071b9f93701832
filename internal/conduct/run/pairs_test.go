package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/control/controltest"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/mesh"
	"github.com/cnibench/cnibench/internal/plan/position"
)

// nodes is a world with so many nodes.
type nodes struct {
	*world
	count int
	// apart are nodes that the environment cannot find the ends of.
	apart string
	// gone says why a node is away, "" if it is not. (optional)
	gone func(node string, failed bool) string
}

func newNodes(count int) *nodes { return &nodes{world: newWorld("host"), count: count} }

func (w *nodes) At(plan.Variant) env.Site { return w }

func (w *nodes) Nodes(context.Context, plan.Variant) ([]mesh.Node, error) {
	var list []mesh.Node
	for i := range w.count {
		list = append(list, mesh.Node{Name: fmt.Sprintf("n%d", i+1)})
	}
	return list, nil
}

func (w *nodes) Away(_ context.Context, p mesh.Pair, failed bool) (node, why string) {
	for _, node := range []string{p.From, p.To} {
		if w.gone == nil {
			break
		}
		if why := w.gone(node, failed); why != "" {
			return node, why
		}
	}
	return "", ""
}

func (w *nodes) Await(context.Context) {}

func (w *nodes) Endpoints(_ context.Context, r plan.Route) (control.Ends, error) {
	if w.apart != "" && r.Pair.String() == w.apart {
		return control.Ends{}, errors.New("the node is away")
	}
	if r.Pair.IsZero() {
		return control.Ends{}, errors.New("no pair is given")
	}
	server := w.endpoint("host/" + r.Pair.To)
	server.Address = "10.0.0.1"
	return control.Ends{Client: w.endpoint("host/" + r.Pair.From), Servers: []control.Endpoint{server}}, nil
}

func pairPlan(which string) plan.Plan {
	p := testPlan("host")
	p.Twin, p.Repetitions = false, 2
	p.Paths = []plan.Path{{From: plan.Host, To: plan.Host, Locality: plan.CrossNode}, {From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}}
	p.Workloads = p.Workloads[:1]
	p.Pairs.Which, p.Lab.Nodes = which, plan.MaxNodes
	return p
}

// TestEveryPairIsARecord: each case is measured between each pair, in both directions, by one agent a node.
func TestEveryPairIsARecord(t *testing.T) {
	w := newNodes(7)
	end, c, events := perform(t, w, pairPlan(mesh.All), Options{})
	seen := map[plan.Trial]bool{}
	for _, trial := range trialsOf(c) {
		seen[trial] = true
	}
	if want := 2 * 2 * 7 * 6 / 2; end.Reason != result.Complete || end.Trials != want || len(seen) != want {
		t.Errorf("%+v, %d different trials, want %d", end, len(seen), want)
	}
	if last := events[len(events)-1]; last.Done != last.Total || last.Total != len(seen) {
		t.Errorf("%d of %d are done", last.Done, last.Total)
	}
	for trial := range seen {
		trial.Pair, trial.Repetition = trial.Pair.Swapped(), 3-trial.Repetition
		if !seen[trial] {
			t.Errorf("%s has no other direction", trial.Key())
		}
	}
	if len(c.Header.Nodes) != 7 || len(w.starts) != 7 || w.starts["host/n1"] != 1 {
		t.Errorf("nodes %v, agents %v", c.Header.Nodes, w.starts)
	}
}

// TestFailedPairs: a pair that cannot be measured is a failed record, and so is one whose ends are not found. The others are
// measured, and a resumed run measures none twice.
func TestFailedPairs(t *testing.T) {
	w := newNodes(5)
	w.apart = "n4 n5"
	w.use(func(name string, p control.Prepare) (*sample.Observation, *control.Error) {
		if name == "host/n3" {
			return nil, &control.Error{Kind: "connect", Message: "connection refused"}
		}
		return ordinary(p)
	})
	end, c, _ := perform(t, w, pairPlan(mesh.All), Options{})
	if end.Reason != result.Complete || end.Trials != 40+8 { // the pair in doubt is measured four times more
		t.Errorf("%+v", end)
	}
	for _, r := range trials(c) {
		bad := r.Pair.From == "n3" || r.Pair.To == "n3" || r.Pair.String() == w.apart
		if (r.Status == result.Failed) != bad {
			t.Errorf("%s: %s, %v", r.Key(), r.Status, r.Error)
		}
	}
}

// TestPairsAreResumed: what a cut run lacks is measured, and nothing else.
func TestPairsAreResumed(t *testing.T) {
	w := newNodes(6)
	ctx, stop := context.WithCancel(t.Context())
	p := pairPlan("sample=8")
	name, end, err := begin(t, ctx, w, p, Options{Progress: func(e Event) {
		if e.Done == 13 {
			stop()
		}
	}})
	if err != nil || end.Reason != result.Interrupted || end.Trials != 13 {
		t.Fatalf("%+v, %v", end, err)
	}
	end, err = goOn(t, w, name)
	all := trialsOf(load(t, name))
	slices.SortFunc(all, func(a, b plan.Trial) int {
		return strings.Compare(fmt.Sprint(a.Key(), a.Repetition), fmt.Sprint(b.Key(), b.Repetition))
	})
	if err != nil || end.Trials != 32-13 || len(all) != 32 || len(slices.Compact(all)) != 32 {
		t.Errorf("%+v, %v: %d trials", end, err, len(all))
	}
}

// TestPairsAtOnce: as many run at once as the plan says, and no node twice.
func TestPairsAtOnce(t *testing.T) {
	w := newNodes(8)
	busy, most := map[string]bool{}, 0
	w.use(func(name string, p control.Prepare) (*sample.Observation, *control.Error) {
		w.mu.Lock()
		if busy[name] {
			t.Errorf("%s is busy", name)
		}
		busy[name] = true
		most = max(most, len(busy))
		w.mu.Unlock()
		defer func() {
			w.mu.Lock()
			delete(busy, name)
			w.mu.Unlock()
		}()
		return ordinary(p)
	})
	p := pairPlan(mesh.All)
	p.Pairs.Concurrency = 3
	end, c, _ := perform(t, w, p, Options{})
	if want := 2 * 2 * 28; end.Failed != 0 || len(trials(c)) != want || most > 6 {
		t.Errorf("%+v, %d trials, %d agents at once", end, len(trials(c)), most)
	}
}

// TestPairsNeedNodes: a plan that does not fit the nodes is bad input.
func TestPairsNeedNodes(t *testing.T) {
	for count, want := range map[int]string{1: "pairs: a pair needs two nodes, and there is one: n1", 3: "pairs: sample=4: 3 nodes have 3 pairs; want at most that, or all"} {
		_, _, err := begin(t, t.Context(), newNodes(count), pairPlan("sample=4"), Options{})
		var faults position.Faults
		if !errors.As(err, &faults) || faults.Error() != want {
			t.Errorf("%d nodes: %v", count, err)
		}
	}
	if _, _, err := begin(t, t.Context(), newWorld("host"), pairPlan(mesh.All), Options{}); err == nil || !strings.Contains(err.Error(), "does not measure pairs") {
		t.Errorf("a world without nodes: %v", err)
	}
}

// BenchmarkThousandNodes measures a sample of the pairs of 1,000 nodes with an agent each: docs/how-to/find-the-slow-node.md.
func BenchmarkThousandNodes(b *testing.B) {
	for b.Loop() {
		w := newNodes(1000)
		p := pairPlan("sample=10000")
		p.Environment = plan.EnvKubernetes
		p.Profiles, p.Baseline = plan.Variants("host"), plan.VariantOf("host")
		p.Duration, p.Pairs.Concurrency = time.Millisecond, 100
		name := filepath.Join(b.TempDir(), "r.jsonl")
		out, err := result.Create(name)
		if err != nil {
			b.Fatal(err)
		}
		end, err := Run(b.Context(), w, p, out, Options{})
		if err = errors.Join(err, out.Close()); err != nil || end.Reason != result.Complete {
			b.Fatal(end, err)
		}
		var seen runtime.MemStats
		runtime.ReadMemStats(&seen)
		size, err := os.Stat(name)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(end.Trials), "trials")
		b.ReportMetric(float64(len(w.starts)), "agents")
		b.ReportMetric(float64(seen.Sys)/1e6, "MB")
		b.ReportMetric(float64(size.Size())/1e6, "MB-file")
	}
}

// TestNodesGoAndComeBack: trials in which a node goes are failed records that name it. Its other pairs are left out until it
// is back. What is still missing at the end is no record, and a resumed run measures it.
func TestNodesGoAndComeBack(t *testing.T) {
	for _, back := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) { testNodesGoAndComeBack(t, back, controltest.Die, 1) })
		// The agents of a kubelet that stops fall silent, some time before it is known.
		synctest.Test(t, func(t *testing.T) { testNodesGoAndComeBack(t, back, controltest.Silence, 3) })
	}
}

// testNodesGoAndComeBack has n3 go, which is known after so many failed trials.
func testNodesGoAndComeBack(t *testing.T, back bool, how *control.Error, known int) {
	w := newNodes(5)
	asked, failures, dead := 0, 0, false
	w.use(func(name string, p control.Prepare) (*sample.Observation, *control.Error) {
		if name == "host/n3" && failures < known {
			dead = true
			return nil, how
		}
		return ordinary(p)
	})
	w.gone = func(node string, failed bool) string {
		if node != "n3" || !dead {
			return ""
		}
		if failed {
			failures++
		}
		if failures < known {
			return ""
		}
		if asked++; back && asked > 7 {
			return ""
		}
		return "its pods are gone"
	}
	var notes []string
	name, end, err := begin(t, t.Context(), w, pairPlan(mesh.All), Options{Progress: func(e Event) {
		if e.Note != "" {
			notes = append(notes, e.Note)
		}
	}})
	all := trials(load(t, name))
	failed := slices.DeleteFunc(slices.Clone(all), func(r result.Record) bool { return r.Status == result.OK })
	if err != nil || len(failed) != known || !strings.HasSuffix(failed[known-1].Error.Message, "; node n3: its pods are gone") {
		t.Fatalf("%v, failed: %+v", err, failed)
	}
	for _, r := range failed {
		if r.Error.Side == "" || !strings.Contains(r.Error.Message, "agent at host/n3: ") {
			t.Errorf("%s: %+v", r.Key(), r.Error)
		}
	}
	said := strings.Join(notes, "\n")
	if back {
		if end.Reason != result.Complete || len(all) < 40 || !strings.Contains(said, "node n3 is away, and its pairs are left out until it is back: its pods are gone\nnode n3 is back") {
			t.Errorf("%+v, %d trials\n%s", end, len(all), said)
		}
		return
	}
	if end.Reason != result.Away || len(all) >= 40 || !strings.Contains(said, "not measured: n3 away; --resume") {
		t.Errorf("%+v, %d trials\n%s", end, len(all), said)
	}
	w.gone, w.count = nil, 6 // n3 is back, and n6 is new
	end, err = goOn(t, w, name)
	keys := map[string]bool{}
	for _, r := range trials(load(t, name)) {
		keys[fmt.Sprint(r.Key(), r.Repetition)] = true
	}
	if err != nil || end.Reason != result.Complete || len(keys) < 40 || strings.Contains(fmt.Sprint(keys), "n6") {
		t.Errorf("resumed: %+v, %v, %d different trials", end, err, len(keys))
	}
}
