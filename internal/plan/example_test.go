package plan

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestWindowOfItsOwn: a workload's window is that of its trials and of the time that a plan takes.
func TestWindowOfItsOwn(t *testing.T) {
	w, err := ParseWorkload("stream(window=20s)")
	if err != nil || w.String() != "stream(window=20s)" {
		t.Fatalf("%s: %v", w, err)
	}
	if window, _ := w.Measured(time.Second, 0); window != 20*time.Second {
		t.Errorf("measured for %s", window)
	}
	if _, err := ParseWorkload("stream(window=2h)"); err == nil {
		t.Error("two hours were accepted")
	}
	p := Plan{Workloads: []Workload{w, {Spec: RR{}}}, Duration: 2 * time.Second}
	if got := p.TrialTime(); got < 11*time.Second || got > 12*time.Second {
		t.Errorf("a trial takes %s", got)
	}
}

// TestExamples loads every example, and expects of those with the name of a preset that they are its plan.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Parse(filepath.Base(file), f)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if err != nil {
			t.Error(err)
			continue
		}
		if want := filepath.Base(file); p.Name+".yaml" != want {
			t.Errorf("%s has the name %q", want, p.Name)
		}
		for _, note := range p.Fit(len(p.Cases())).Notes(len(p.Cases())) {
			if !strings.Contains(note, "is not measured on") {
				t.Errorf("%s: %s", file, note)
			}
		}
		names = append(names, p.Name)
		if slices.Contains(Presets, p.Name) {
			if d := p.Differ(Preset(p.Name)); d != nil {
				t.Errorf("%s is not the preset of its name: it differs in %v", file, d)
			}
		}
	}
	slices.Sort(names)
	if want := []string{"calico-dataplanes", "canal-vs-cilium", "cluster", "demo", "dns", "jobs", "kind-calico-cilium", "nine-paths", "pod-start", "quick", "rolling-update", "standard",
		"what-if-big-tcp", "what-if-congestion", "what-if-conntrack", "what-if-gro", "what-if-kube-proxy", "what-if-mtu", "what-if-nodeport", "what-if-pod-mtu", "what-if-rps"}; !slices.Equal(names, want) {
		t.Errorf("got examples %v, want %v", names, want)
	}
}
