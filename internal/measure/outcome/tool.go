package outcome

import (
	"maps"
	"slices"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// toolChecks are the doubts that can be had of a trial that a tool has measured. The others are about what our engine
// counts, and about the edges of its windows.
var toolChecks = []string{
	SoftnetDrop, DeviceDrop, ReceiveBuffer, OfferedLoad, AboveLineRate, IRQApart, IRQUnknown, KsoftirqdHidden, CPUSteal, IdleSoftIRQ,
}

// byTool says whether a tool was the client.
func (t *trial) byTool() bool { return t.client != nil && t.client.Tool != nil }

// tool takes what a tool measured, and adds what our own processes saw around it: CPU time over all that the tool did in
// its life, and memory. CPU utilization stays absent, because only the tool knows when its window was.
func (t *trial) tool() (map[string]float64, []result.Warning) {
	said := t.client.Tool
	maps.Copy(t.metrics, said.Metrics)
	t.demand()
	t.memory()
	var found []result.Warning
	for _, n := range said.Notes {
		found = append(found, result.Warning(n))
	}
	for _, w := range t.check() {
		if slices.Contains(toolChecks, w.ID) {
			found = append(found, w)
		}
	}
	return t.metrics, found
}

// share gives a server that is a tool, and counts nothing that we can read, the work of its client. Of datagrams it has
// had those that were not lost.
func (t *trial) share() {
	if !t.byTool() || t.server == nil || t.server.Tool == nil {
		return
	}
	copied := *t.server.Tool
	copied.Work = t.client.Tool.Work
	if t.is.Datagrams() {
		copied.Work *= 1 - t.client.Tool.Metrics[metric.FrameLossRate]
	}
	observed := *t.server.Observation
	observed.Tool = &copied
	t.server = &side{Observation: &observed, is: t.is}
}
