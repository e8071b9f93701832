package idle

import (
	"slices"
	"testing"

	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
)

// TestAtRest: nodes first, then the network's daemons, then the rest; a part of one node counts half; what one profile lacks
// is absent and not 0.
func TestAtRest(t *testing.T) {
	node := func(side string, cores float64, parts ...sample.RestPart) sample.NodeRest {
		return sample.NodeRest{Side: side, Whole: sample.Usage{Cores: cores, MemoryBytes: 9e6}, Parts: parts}
	}
	use := func(name string, network bool, cores float64) sample.RestPart {
		return sample.RestPart{Name: name, Network: network, Usage: sample.Usage{Cores: cores, MemoryBytes: 4e6}}
	}
	trial := func(p plan.Variant, agent float64, more ...sample.RestPart) report.Kept {
		agents := append(more, use("kube-system/agent", true, agent))
		return report.Kept{Profile: p, Of: []sample.NodeRest{node("client", 0.5, agents...), node("server", 0.25, use("kube-system/agent", true, agent))}}
	}
	profiles := plan.Variants("cilium-native", "canal", "host")
	grids := restGrids(profiles, []report.Kept{trial(plan.VariantOf("canal"), 0.01), trial(plan.VariantOf("canal"), 0.03), trial(plan.VariantOf("canal"), 0.02), trial(plan.VariantOf("cilium-native"), 0.04, use("kube-system/operator", true, 0.02), use("kubelet", false, 0.03))})
	cpu := grids[0]
	want := [][]string{{"50.0", "50.0"}, {"25.0", "25.0"}, {"4.00", "2.00"}, {"1.00", "–"}, {"1.50", "–"}}
	if !slices.Equal(cpu.Columns, []string{"cilium-native", "canal"}) || cpu.Title != "CPU at rest (%)" || !slices.EqualFunc(cpu.Cells, want, slices.Equal) ||
		!slices.Equal(cpu.Labels, []string{"node of the client", "node of the server", "kube-system/agent", "kube-system/operator", "kubelet"}) {
		t.Errorf("%+v", cpu)
	}
	if memory := grids[1]; memory.Title != "Memory at rest (MB)" || memory.Cells[3][0] != "2.00" {
		t.Errorf("%+v", memory)
	}
	half := trial(plan.VariantOf("canal"), 0.02, use("other pods", false, 0.03))
	nodes := half.Of.([]sample.NodeRest)
	nodes[1].Parts, nodes[1].Lost, nodes[0].LostOthers = nil, []string{"kube-system/agent"}, []string{"other pods"}
	if cpu := restGrids(profiles, []report.Kept{half})[0]; !slices.Equal(cpu.Labels, []string{"node of the client", "node of the server"}) {
		t.Errorf("a part that one node lost: %+v", cpu)
	}
	if grids = restGrids(profiles, nil); grids != nil {
		t.Errorf("%+v", grids)
	}
}
