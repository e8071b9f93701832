package outcome

import (
	"maps"
	"testing"

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
	for _, lost := range []bool{true, false} {
		nodes[1].Lost = nil
		if lost {
			nodes[1].Lost = []string{"b"}
		} else {
			want["idle_cpu.network"], want["idle_memory.network"] = 0.375, 200
		}
		m, warnings := Derive(plan.Workload{Spec: plan.Idle{}}, &sample.Observation{ElapsedNs: 1, Rest: nodes}, nil, Conditions{})
		if !maps.Equal(m, want) || lost != (len(warnings) == 1 && warnings[0].ID == restLost) {
			t.Errorf("lost %v: %v, %v", lost, m, warnings)
		}
	}
}
