package idle

import (
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

// TestRest: the network's share is the mean over both nodes, and is absent if one of its daemons is.
func TestRest(t *testing.T) {
	use := func(cores float64, bytes uint64) sample.Usage { return sample.Usage{Cores: cores, MemoryBytes: bytes} }
	nodes := []sample.NodeRest{
		{Node: "n1", Side: "client", Whole: use(0.5, 900), Parts: []sample.RestPart{{Name: "a", Network: true, Usage: use(0.25, 100)}, {Name: "kubelet", Usage: use(0.125, 50)}}},
		{Node: "n2", Side: "server", Whole: use(0.25, 800), Parts: []sample.RestPart{{Name: "a", Network: true, Usage: use(0.5, 300)}}},
	}
	want := map[string]float64{"idle_cpu.client": 0.5, "idle_cpu.server": 0.25, "idle_memory.client": 900, "idle_memory.server": 800}
	for _, silent := range []bool{true, false} {
		nodes[1].Lost = nil
		if silent {
			nodes[1].Lost = []string{"b"}
		} else {
			want["idle_cpu.network"], want["idle_memory.network"] = 0.375, 200
		}
		m, warnings := deriveMetrics(&sample.Observation{ElapsedNs: 1, Rest: nodes})
		if !maps.Equal(m, want) || silent != (len(warnings) == 1 && warnings[0].ID == lost) {
			t.Errorf("lost %v: %v, %v", silent, m, warnings)
		}
	}
}

// TestPlanned: its window is its own, not the plan's, long enough for two samples of a kubelet, and on one path alone.
func TestPlanned(t *testing.T) {
	w, err := plan.ParseWorkload("idle")
	if err != nil || w.Window != defaultWindow || w.String() != "idle" {
		t.Errorf("%v %v %s", err, w.Window, w)
	}
	if w, err = plan.ParseWorkload("idle(window=30s)"); err != nil || w.String() != "idle(window=30s)" {
		t.Errorf("%v %s", err, w)
	}
	p := plan.Default()
	p.Environment, p.Profiles, p.Baseline, p.Paths, p.Duration = plan.EnvKubernetes, plan.Variants("cilium-native"), plan.VariantOf("host"), []plan.Path{onlyPath}, time.Second
	for window, sound := range map[time.Duration]bool{3 * time.Second: false, leastWindow: true} {
		w.Window = window
		p.Workloads = []plan.Workload{w}
		err := p.Validate()
		short := err != nil && strings.Contains(err.Error(), "idle(window=3s): the samples of a kubelet are up to 20s apart: give a window of 30s or more")
		if sound != (err == nil) || sound == short {
			t.Errorf("%s: %v", window, err)
		}
	}
	for _, path := range plan.Paths {
		if barred := w.Barred(path) != ""; barred == (path == onlyPath) {
			t.Errorf("%s: barred %v", path, barred)
		}
	}
}

func TestWarningIsInTheManual(t *testing.T) {
	manual, err := os.ReadFile("../../../docs/reference/warnings.md")
	if err != nil || !strings.Contains(string(manual), lost) {
		t.Errorf("docs/reference/warnings.md does not say what %s means (%v)", lost, err)
	}
}
