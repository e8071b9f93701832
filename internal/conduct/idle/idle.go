// Package idle implements the workload that sends nothing: it measures the CPU time and memory that nodes and their daemons
// use at rest. It registers the workload for plans, its measurement, its metrics and its section of a report.
package idle

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/conduct/run"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

const (
	// defaultWindow is the default window of idle. leastWindow is the shortest window that a plan may have: the samples of a
	// kubelet are up to 20 s apart.
	defaultWindow = time.Minute
	leastWindow   = 30 * time.Second
	// sampleWait is the usual time that a trial waits for samples in addition to its window; longestWait is the
	// maximum.
	sampleWait  = 20 * time.Second
	longestWait = 90 * time.Second
)

// lost is the ID of the warning that counters of daemons did not advance or were reset.
const lost = "rest-lost"

// onlyPath is the only path that idle is measured on.
var onlyPath = plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}

func init() {
	run.Rest{
		Quiet: plan.Quiet{
			Name: "idle", About: "nothing: it reads what the nodes of a cluster and their daemons use at rest", Title: title,
			Window: defaultWindow, Wait: sampleWait, Decides: []string{metric.IdleCPU + ".network", metric.IdleMemory + ".network"},
			Barred: barredReason, Unfit: unfitReason,
		},
		Unable: unableReason, Limit: longestWait, Read: observeRest, Derive: deriveMetrics,
	}.Register()
	report.Addition{Of: usageOf, Section: section}.Register()
}

func barredReason(p plan.Path) string {
	if p != onlyPath {
		return "it reads the nodes of " + onlyPath.String()
	}
	return ""
}

func unfitReason(window time.Duration) string {
	if window < leastWindow {
		return fmt.Sprintf("the samples of a kubelet are up to 20s apart: give a window of %s or more", leastWindow)
	}
	return ""
}

func unableReason(at env.Site) string {
	if _, rests := at.(env.Rester); !rests {
		return "idle reads the daemons of a cluster's nodes, and there are none"
	}
	return ""
}

// observeRest returns the CPU time and memory that the nodes of a path use during the window. Agents of earlier trials keep
// running, but do nothing.
func observeRest(ctx context.Context, at env.Site, k plan.Case, window time.Duration) (*sample.Observation, error) {
	return at.(env.Rester).Rest(ctx, k.Profile, k.Path, window)
}

// deriveMetrics returns the metrics of an observation. If any counter was lost, it returns a warning and omits the sums over
// the daemons of the network.
func deriveMetrics(seen *sample.Observation) (map[string]float64, []sample.Warning) {
	metrics := map[string]float64{}
	var cores, memory float64
	var silent []string
	known := false
	for _, n := range seen.Rest {
		metrics[metric.IdleCPU+"."+n.Side] = n.Whole.Cores
		metrics[metric.IdleMemory+"."+n.Side] = float64(n.Whole.MemoryBytes)
		for _, p := range n.Parts {
			if p.Network {
				cores, memory, known = cores+p.Cores, memory+float64(p.MemoryBytes), true
			}
		}
		if len(n.Lost) > 0 {
			silent = append(silent, n.Node+": "+strings.Join(n.Lost, ", "))
		}
	}
	if len(silent) > 0 { // a sum without one of its parts is wrong
		return metrics, []sample.Warning{{ID: lost, Message: "counters of the kubelet did not advance or began anew: " + strings.Join(silent, "; ")}}
	}
	if nodes := float64(len(seen.Rest)); known {
		metrics[metric.IdleCPU+".network"], metrics[metric.IdleMemory+".network"] = cores/nodes, memory/nodes
	}
	return metrics, nil
}
