package outcome

import (
	"strings"

	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// rest derives the metrics of idle.
func (t *trial) rest() (map[string]float64, []sample.Warning) {
	if t.client == nil || len(t.client.Rest) == 0 {
		return t.metrics, nil
	}
	var cores, memory float64
	var lost []string
	known := false
	for _, n := range t.client.Rest {
		t.metrics[metric.IdleCPU+"."+n.Side] = n.Whole.Cores
		t.metrics[metric.IdleMemory+"."+n.Side] = float64(n.Whole.MemoryBytes)
		for _, p := range n.Parts {
			if p.Network {
				cores, memory, known = cores+p.Cores, memory+float64(p.MemoryBytes), true
			}
		}
		if len(n.Lost) > 0 {
			lost = append(lost, n.Node+": "+strings.Join(n.Lost, ", "))
		}
	}
	nodes := float64(len(t.client.Rest))
	// A sum without one of its parts is not the sum.
	t.put(metric.IdleCPU+".network", cores/nodes, known && len(lost) == 0)
	t.put(metric.IdleMemory+".network", memory/nodes, known && len(lost) == 0)
	if len(lost) == 0 {
		return t.metrics, nil
	}
	return t.metrics, []sample.Warning{{ID: restLost, Message: "counters of the kubelet did not advance or began anew: " + strings.Join(lost, "; ")}}
}
