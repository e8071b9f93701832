//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	_ "github.com/cnibench/cnibench/internal/conduct/idle" // what the result is read by
	"github.com/cnibench/cnibench/internal/external/externaltest"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// TestCLIIdle: at rest, nodes use more than the daemons of their network, which use more than nothing. All of it is known from
// samples at least a window apart.
func TestCLIIdle(t *testing.T) {
	p := startRun(t, "--paths", "pod-to-pod/cross-node", "--baseline", "detected", "--no-twin", "--repetitions", "1", "--workloads", "idle(window=30s)")
	if n := len(p.fine(t)); n != 1 {
		t.Errorf("%d trials", n)
	}
	all, err := externaltest.Whole(p.file)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, r := range all {
		if r.Client == nil || r.Client.Rest == nil {
			continue
		}
		if len(r.Client.Rest) != 2 || len(r.Warnings) > 0 {
			t.Errorf("%d nodes, %v", len(r.Client.Rest), r.Warnings)
		}
		for _, n := range r.Client.Rest {
			seen++
			proxy, network := false, 0.0
			for _, part := range n.Parts {
				proxy = proxy || strings.HasSuffix(part.Name, "/kube-proxy")
				if part.Network {
					network += part.Cores
				}
				if span := time.Duration(part.SpanNs); span < 30*time.Second || span > 90*time.Second || part.MemoryBytes == 0 {
					t.Errorf("%s: %+v", n.Node, part)
				}
			}
			if !proxy || network <= 0 || n.Whole.Cores <= network || n.Whole.MemoryBytes == 0 {
				t.Errorf("%+v", n)
			}
			t.Logf("%s: %+v", n.Node, n)
		}
		if cpu := r.Metrics[metric.IdleCPU+".network"]; cpu <= 0 || cpu > 0.5 {
			t.Errorf("%v", r.Metrics)
		}
	}
	if seen != 2 {
		t.Errorf("%d nodes", seen)
	}
}
