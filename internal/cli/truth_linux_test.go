package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// TestTruthLossIsLocated offers a shaped NIC more than it takes: what is missing is what its queueing discipline
// counted, in the stream and, above its throughput, in the search.
func TestTruthLossIsLocated(t *testing.T) {
	file := filepath.Join(t.TempDir(), "located.jsonl")
	s := execute(t, cnibench(t), "run", "--profiles", "ptp", "--baseline", "ptp", "--no-twin", "--paths", "pod-to-pod/cross-node", "-o", file, "--line-rate", "20M",
		"--workloads", "stream(udp,rate=60M),throughput(rate=60M)", "--repetitions", "1", "--duration", "600ms", "--warmup", "200ms")
	if s.code != exitFine {
		t.Fatalf("exit code %d: %s", s.code, s.stderr)
	}
	c, err := result.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, r := range c.Records {
		if r.Profile != plan.VariantOf("ptp") || r.Type != result.TypeTrial {
			continue
		}
		checked++
		if r.Status != result.OK {
			t.Errorf("%s failed: %+v", r.Workload, r.Error)
			continue
		}
		lost, at := 0.0, r.Metrics[metric.Loss+".qdisc"]
		for _, m := range metric.All() {
			if strings.HasPrefix(m.Name, metric.Loss+".") {
				lost += r.Metrics[m.Name]
			}
		}
		// The edges of the readings are not those of the receiver's window to the packet.
		if t.Logf("%s: %.4g lost, %.4g of it in the discipline", r.Workload, lost, at); lost == 0 || at < 0.9*lost {
			t.Errorf("%s: %v", r.Workload, r.Metrics)
		}
	}
	if checked != 2 {
		t.Errorf("%d trials, want 2", checked)
	}
}
