package outcome

import (
	"testing"

	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// TestOpenLoop: rates that were asked for describe and are no results; the client's CPU time, part of which goes by the
// clock, is no cost of the path.
func TestOpenLoop(t *testing.T) {
	lag := sample.NewHistogram()
	for range 1000 {
		lag.Record(700)
	}
	for _, kind := range []string{"rr", "crr", "http"} {
		w, client, server := sound(kind)
		w = w.Paced(0, 0.5)
		client.Schedule = &sample.Schedule{Due: client.Operations, Sent: client.Operations - 1, Lag: lag}
		got, _ := Derive(w, client, server, Conditions{Capacity: 60_000, IdleBusy: 0.02})
		rate := float64(client.Operations) * 1e9 / float64(client.ElapsedNs)
		for name, want := range map[string]float64{
			metric.Capacity: 60_000, metric.IntendedRate: 30_000, metric.AnsweredRate: rate,
			metric.OfferedRate:      float64(client.Operations-1) * 1e9 / float64(client.ElapsedNs),
			metric.SendLag + ".p50": 700, metric.SendLag + ".p99": 700, metric.SendLag + ".max": 700,
		} {
			if v, ok := got[name]; !ok || v < want*0.999 || v > want*1.001 {
				t.Errorf("%s: %s is %v (%v), want %v", kind, name, v, ok, want)
			}
		}
		for _, name := range []string{metric.TransactionRate, metric.RequestRate, metric.ServiceDemand, metric.ClientCPU} {
			if v, ok := got[name]; ok {
				t.Errorf("%s: %s is %v and should be absent", kind, name, v)
			}
		}
		if got[metric.ServerCPU] <= 0 {
			t.Errorf("%s: the server's CPU time is absent", kind)
		}
	}
}

// TestUnknownCapacity: what is not known is absent, never 0.
func TestUnknownCapacity(t *testing.T) {
	w, client, server := sound("rr")
	w = w.Paced(0, 0.5)
	client.Schedule = nil
	got, _ := Derive(w, client, server, Conditions{})
	for _, name := range []string{metric.Capacity, metric.IntendedRate, metric.OfferedRate, metric.SendLag + ".p50", metric.SendLag + ".max"} {
		if v, ok := got[name]; ok {
			t.Errorf("%s is %v", name, v)
		}
	}
	client.Schedule = &sample.Schedule{Due: 20, Sent: 20, Lag: times(3, 5)}
	if got, _ = Derive(w, client, server, Conditions{}); got[metric.SendLag+".max"] == 0 {
		t.Error("no longest lag")
	}
	if _, ok := got[metric.SendLag+".p50"]; ok {
		t.Error("a median of three values")
	}
}

// TestNoDemandOfWhoSpins: CPU time that is spent whatever is sent, or on a stream beside, is no transaction's.
func TestNoDemandOfWhoSpins(t *testing.T) {
	for name, change := range map[string]func(*plan.Workload){
		"spin":  func(w *plan.Workload) { change(w, func(s *plan.RR) { s.Wait = "spin" }) },
		"under": func(w *plan.Workload) { change(w, func(s *plan.RR) { s.Under = "stream" }) },
	} {
		w, client, server := sound("rr")
		change(&w)
		server.Beside = &sample.Beside{BytesReceived: 125_000_000}
		got, _ := Derive(w, client, server, Conditions{IdleBusy: 0.02})
		for _, m := range []string{metric.ServiceDemand, metric.ClientCPU, metric.ServerCPU, metric.KernelCPU} {
			if v, ok := got[m]; ok {
				t.Errorf("%s: %s is %v", name, m, v)
			}
		}
		if got[metric.TransactionRate] <= 0 || got[metric.BesideGoodput] != 8*125e6*1e9/float64(server.ElapsedNs) {
			t.Errorf("%s: %v", name, got)
		}
		if _, ok := got[metric.CPUUtilization]; ok != (name == "under") {
			t.Errorf("%s: CPU utilization %v", name, ok)
		}
	}
}
