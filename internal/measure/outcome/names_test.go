package outcome

import (
	"testing"

	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// TestNames: rates, shares and CPU time are of resolutions, although a server counts queries.
func TestNames(t *testing.T) {
	w := plan.Kind("dns").Default()
	times := sample.NewHistogram()
	for range 900 {
		times.Record(40_000)
	}
	client := &sample.Observation{Side: "client", ElapsedNs: 1e9, Operations: 900, RTT: times, Errors: map[string]uint64{"timeout": 100},
		Names: &sample.Names{Queries: 2500, Waited: 150}, CPU: sample.CPUTime{ThreadsNs: 9_000_000, ProcessNs: 9_000_000}}
	server := &sample.Observation{Side: "server", ElapsedNs: 1e9, Operations: 2250, CPU: sample.CPUTime{ThreadsNs: 4_500_000, ProcessNs: 4_500_000}}
	drops := []sample.Drop{{Host: "node-1", Kind: sample.DropInsert, Packets: 3}, {Host: "node-2", Kind: sample.DropInsert, Packets: 4}, {Host: "node-2", Kind: sample.Clash, Packets: 5}, {Host: "node-1", Device: "eth0", Kind: sample.DropRX, Packets: 9}}
	got, warnings := Derive(w, client, server, Conditions{Drops: drops})
	for name, want := range map[string]float64{
		metric.ResolutionRate: 900, metric.QueryRate: 2500, metric.QueriesPerResolution: 2.5, metric.ResolutionsWaited: 0.15, metric.ErrorRate: 0.1,
		metric.InsertFailed: 7, metric.Clashes: 5, metric.ClientCPU: 10_000, metric.ServerCPU: 5000, metric.ResolutionTime + ".max": 40_000,
	} {
		if v, ok := got[name]; !ok || v < 0.999*want || v > 1.001*want {
			t.Errorf("%s is %v, want %v", name, v, want)
		}
	}
	for _, x := range warnings {
		if x.ID == Disagree {
			t.Error(x.Message)
		}
	}
	if server.Operations != 2250 {
		t.Error("the observation was changed")
	}
	elsewhere, err := plan.ParseWorkload("dns(server=cluster)")
	if err != nil {
		t.Fatal(err)
	}
	got, _ = Derive(elsewhere, client, &sample.Observation{Side: "server", ElapsedNs: 1e9}, Conditions{})
	if _, has := got[metric.ServiceDemand]; has || got[metric.ResolutionRate] != 900 {
		t.Errorf("the CPU time of a server that is not ours is unknown: %v", got)
	}
	if _, has := got[metric.InsertFailed]; has {
		t.Error("what was not read is absent")
	}
}
