package outcome

import (
	"maps"
	"slices"

	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// toolChecks are the checks that apply to a trial of a tool. The other checks use the counts and windows of our engine.
var toolChecks = []string{
	softnetDrop, deviceDrop, receiveBuffer, OfferedLoad, AboveLineRate, irqApart, irqUnknown, ksoftirqdHidden, CPUSteal, IdleSoftIRQ,
}

// clientIsTool reports whether a tool was the client.
func (t *trial) clientIsTool() bool { return t.client != nil && t.client.Tool != nil }

// toolOutcome returns the metrics that a tool reported, with our own of its process: CPU time over all its work, and memory.
// It also returns the tool's notes and our warnings. CPU utilization is absent, because only the tool knows the time
// of its window.
func (t *trial) toolOutcome() (map[string]float64, []sample.Warning) {
	maps.Copy(t.metrics, t.client.Tool.Metrics)
	t.deriveDemand()
	t.deriveMemory()
	checked := each.Where(t.failedChecks(), func(w sample.Warning) bool { return slices.Contains(toolChecks, w.ID) })
	return t.metrics, slices.Concat(t.client.Tool.Notes, checked)
}

// shareToolWork gives the server of a tool the work of its client, because the server's own count is unknown. For datagrams,
// lost ones are subtracted.
func (t *trial) shareToolWork() {
	if !t.clientIsTool() || t.server == nil || t.server.Tool == nil {
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
