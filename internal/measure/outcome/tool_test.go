package outcome

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// toolRun is what the agents of a tool's client and server saw: 2 s of window within a life of 3 s.
func toolRun(metrics map[string]float64, work float64) (client, server *sample.Observation) {
	ksoftirqd := int64(10_000)
	client = &sample.Observation{
		Side: "client", ElapsedNs: 2e9, CPU: sample.CPUTime{ThreadsNs: 3e6, ProcessNs: 3e6},
		Host: &sample.HostDelta{CPUs: map[int]map[string]int64{1: {"user": 1e9, "idle": 2e9}}, KsoftirqdNs: &ksoftirqd, MemoryBytes: 10},
		Tool: &sample.Tool{Name: "x", Metrics: metrics, Work: work, Notes: []sample.Warning{{ID: "tool-limits", Message: "no warm-up"}}},
	}
	server = &sample.Observation{
		Side: "server", ElapsedNs: 3e9, CPU: sample.CPUTime{ThreadsNs: 1e6, ProcessNs: 1e6},
		Host: &sample.HostDelta{CPUs: map[int]map[string]int64{1: {"user": 1e9, "idle": 2e9}}, MemoryBytes: 20},
		Tool: &sample.Tool{Name: "x"},
	}
	return client, server
}

func TestTool(t *testing.T) {
	rr := plan.Workload{Spec: plan.RR{}, Tool: "netperf"}
	http := plan.Workload{Spec: plan.HTTP{}, Tool: "wrk"}
	udp := plan.Workload{Spec: plan.Stream{Protocol: plan.UDP, Rate: 100e6}, Tool: "iperf3"}
	ping := plan.Workload{Spec: plan.Ping{}, Tool: "ping"}
	ours := &sample.Observation{Side: "server", ElapsedNs: 1e9, Operations: 500, CPU: sample.CPUTime{ThreadsNs: 2e6}}
	for name, tt := range map[string]struct {
		w      plan.Workload
		said   map[string]float64
		work   float64
		server *sample.Observation // in place of the tool's
		want   map[string]float64
	}{
		"both sides are the tool": {rr, map[string]float64{metric.TransactionRate: 400}, 1000, nil, map[string]float64{
			metric.TransactionRate: 400, metric.ClientCPU: 3000, metric.ServerCPU: 1000, metric.KernelCPU: 10, metric.ServiceDemand: 4010, metric.Memory: 30,
		}},
		"the server is ours": {http, map[string]float64{metric.RequestRate: 400}, 1000, ours, map[string]float64{
			metric.RequestRate: 400, metric.ClientCPU: 3000, metric.ServerCPU: 4000, metric.KernelCPU: 10, metric.ServiceDemand: 7010,
		}},
		"what was lost the server has not had": {udp, map[string]float64{metric.FrameLossRate: 0.5, metric.OfferedLoad: 99e6}, 1000, nil, map[string]float64{
			metric.FrameLossRate: 0.5, metric.OfferedLoad: 99e6, metric.ClientCPU: 3000, metric.ServerCPU: 2000, metric.KernelCPU: 10,
			metric.ServiceDemand: 5010, metric.Memory: 30,
		}},
		"the kernel answers": {ping, map[string]float64{"rtt.mean": 5}, 1000, &sample.Observation{Side: "server", ElapsedNs: 1e9}, map[string]float64{
			"rtt.mean": 5, metric.ClientCPU: 3000, metric.KernelCPU: 10, metric.ServiceDemand: 3010,
		}},
		"it does not say what it did": {rr, map[string]float64{metric.TransactionRate: 400}, 0, nil, map[string]float64{
			metric.TransactionRate: 400, metric.Memory: 30,
		}},
	} {
		client, server := toolRun(tt.said, tt.work)
		if tt.server != nil {
			server = tt.server
		}
		got, warnings := Derive(tt.w, client, server, Conditions{})
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if want := []sample.Warning{{ID: "tool-limits", Message: "no warm-up"}}; !cmp.Equal(want, warnings) {
			t.Errorf("%s: warnings %v", name, warnings)
		}
		if server.Tool != nil && server.Tool.Work != 0 {
			t.Errorf("%s: the observation was changed", name)
		}
	}
}

// TestToolChecks are the doubts that a tool's trial can raise.
func TestToolChecks(t *testing.T) {
	client, server := toolRun(map[string]float64{metric.OfferedLoad: 50e6, metric.Goodput: 2e9}, 1000)
	client.Host.SoftnetDropped = 3
	_, warnings := Derive(plan.Workload{Spec: plan.Stream{Protocol: plan.UDP, Rate: 100e6}, Tool: "iperf3"}, client, server, Conditions{LineRate: 1e9})
	ids := map[string]bool{}
	for _, w := range warnings {
		ids[w.ID] = true
	}
	for _, id := range []string{softnetDrop, OfferedLoad, AboveLineRate} {
		if !ids[id] {
			t.Errorf("no %s in %v", id, warnings)
		}
	}
	for _, id := range []string{Disagree, WindowSkew, fewOperations} {
		if ids[id] {
			t.Errorf("%s of a tool", id)
		}
	}
}
