package plan

import (
	"strings"
	"testing"
	"time"
)

func TestParseJob(t *testing.T) {
	for in, want := range map[string]string{
		"job": "job",
		"job(pattern=allreduce,via=ring,members=4,size=1Mi)": "job",
		"job(via=doubling,members=8)":                        "job(via=doubling,members=8)",
		"job(pattern=shuffle,skew=0.5)":                      "job(pattern=shuffle,skew=50%)",
		"job(pattern=broadcast,via=tree)":                    "job(pattern=broadcast)",
		"job(pattern=microservice,fanout=2,size=1024)":       "job(pattern=microservice)",
		"job(compute=70%)":                                   "job(compute=70%)",
		"job(pause=20ms,size=64Ki)":                          "job(size=65536,pause=20ms)",
	} {
		readsAs(t, in, want)
	}
}

// readsAs checks the canonical text of a workload, which is read back as the same.
func readsAs(t *testing.T, in, want string) {
	t.Helper()
	w, err := ParseWorkload(in)
	if err != nil || w.String() != want {
		t.Errorf("%s: got %s, want %s (%v)", in, w, want, err)
		return
	}
	if again, err := ParseWorkload(w.String()); err != nil || again != w {
		t.Errorf("%s is read back as %+v, %v", w, again, err)
	}
}

// TestJobFaultsAreListedAtOnce: each option that is wrong is named, those out of bounds and those that do not go together.
func TestJobFaultsAreListedAtOnce(t *testing.T) {
	_, err := ParseWorkload("job(pattern=incast,via=ring,members=1,size=9Mi,skew=96%,compute=95.1%,pause=11s,service=2ms,udp)")
	if err == nil {
		t.Fatal("it is accepted")
	}
	for _, want := range []string{
		"members: 1 is out of range: want 2 to 64", "skew: 96% is out of range: want 0% to 95%", "compute: 95.1% is out of range", "pause: 11s is out of range",
		"via ring is not a way of incast", "service is for microservice", "job runs over tcp, not udp",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	if _, err := ParseWorkload("job(compute=50%,pause=1ms)"); err == nil || !strings.Contains(err.Error(), "give one of them") {
		t.Error(err)
	}
	if _, err := ParseWorkload("job(size=1025Mi)"); err == nil || !strings.Contains(err.Error(), "out of range") {
		t.Error(err)
	}
}

// TestJobNeedsNodes: a lab gets a node for each member where its nodes are not given, and is refused where they are too few.
func TestJobNeedsNodes(t *testing.T) {
	p := Default()
	p.Paths, p.Workloads = []Path{{Pod, Pod, CrossNode}}, []Workload{parsed(t, "job(members=8)")}
	if q := p.ForPairs(func(string) bool { return false }); q.Lab.Nodes != 8 || q.Validate() != nil {
		t.Errorf("%d nodes: %v", q.Lab.Nodes, q.Validate())
	}
	if q := p.ForPairs(func(key string) bool { return key == "lab.nodes" }); q.Lab.Nodes != 2 {
		t.Errorf("%d nodes, and 2 were given", q.Lab.Nodes)
	} else if err := q.Validate(); err == nil || !strings.Contains(err.Error(), "8 members need a node each, and raw has 2: --nodes 8, or fewer members") {
		t.Error(err)
	}
	p.Lab.Nodes, p.Workloads = MaxNodes, []Workload{parsed(t, "job(members=64)")}
	if err := p.Validate(); err == nil || !strings.Contains(err.Error(), "a lab has at most 16 nodes") {
		t.Error(err)
	}
	p.Environment = EnvKubernetes
	if err := p.Validate(); err != nil && strings.Contains(err.Error(), "members") {
		t.Errorf("the nodes of a cluster are not known yet: %v", err)
	}
}

func TestJobPaths(t *testing.T) {
	w := parsed(t, "job")
	for _, p := range Paths {
		if served := w.Barred(p) == ""; served != (p == Path{Pod, Pod, CrossNode} || p == ZeroPath) {
			t.Errorf("%s: %q", p, w.Barred(p))
		}
	}
	c := Case{VariantOf("canal"), Path{Pod, Pod, CrossNode}, w}
	if r := c.Route(); r.Members != 4 || r.Servers != 3 || r.String() != "pod-to-pod/cross-node with a job of 4 members" {
		t.Errorf("%+v %s", r, r)
	}
}

// TestCompute: a share of a step becomes a time, and the job without it is measured first.
func TestCompute(t *testing.T) {
	w := parsed(t, "job(members=8,compute=80%)")
	of, ok := w.Capacity()
	if !ok || of.String() != "job(members=8)" {
		t.Errorf("%s, %v", of, ok)
	}
	if got := w.Computing(100); got.String() != "job(members=8,pause=40ms)" || got.Traits().Interval != 40*time.Millisecond {
		t.Error(got)
	}
	if got := of.Computing(100); got != of {
		t.Error(got)
	}
	p := Default()
	p.Workloads = []Workload{w}
	if got := Texts(p.Settle().Workloads); len(got) != 2 || got[0] != "job(members=8)" {
		t.Error(got)
	}
}

func TestJobsExcludePairsAndExplain(t *testing.T) {
	p := Default()
	p.Lab.Nodes, p.Explain, p.Pairs.Which = 4, true, "all"
	p.Paths, p.Workloads = []Path{{Pod, Pod, CrossNode}}, []Workload{parsed(t, "job")}
	err := p.Validate()
	for _, want := range []string{"job is not measured between pairs of nodes", "has no meaning for a job"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
}

func parsed(t *testing.T, s string) Workload {
	t.Helper()
	w, err := ParseWorkload(s)
	if err != nil {
		t.Fatal(err)
	}
	return w
}
