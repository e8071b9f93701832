package outcome

import (
	"testing"

	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// TestBothDirections: what goes each way is told apart and added up, in each side's own window.
func TestBothDirections(t *testing.T) {
	client := &sample.Observation{Side: "client", ElapsedNs: 1e9, Operations: 9, BytesSent: 125e6, BytesReceived: 50e6,
		CPU: sample.CPUTime{ThreadsNs: 1}, TCP: &sample.TCPInfo{Retransmits: 3}}
	server := &sample.Observation{Side: "server", ElapsedNs: 2e9, Operations: 9, BytesSent: 100e6, BytesReceived: 250e6,
		CPU: sample.CPUTime{ThreadsNs: 1}, TCP: &sample.TCPInfo{Retransmits: 2}}
	w := plan.Workload{Spec: plan.Stream{Bidirectional: true}}.Normalize()
	m, warnings := Derive(w, client, server, Conditions{LineRate: 1e9, NIC: "wire", MTU: 1500})
	for name, want := range map[string]float64{
		metric.Goodput: 1.4e9, "goodput.forward": 1e9, "goodput.reverse": 4e8, metric.RetransmitsPerG: 4 / 0.175,
	} {
		if got := m[name]; got < want*0.999999 || got > want*1.000001 {
			t.Errorf("%s is %g, want %g", name, got, want)
		}
	}
	for _, x := range warnings {
		if x.ID == AboveLineRate || x.ID == Disagree {
			t.Errorf("doubted: %+v", x)
		}
	}
	if m, _ := Derive(w, client, nil, Conditions{}); m[metric.Goodput] != 0 {
		t.Error("one direction alone makes a goodput")
	}
}

func TestBothDirectionsOfDatagrams(t *testing.T) {
	side := func(name string, lost uint64) *sample.Observation {
		return &sample.Observation{Side: name, ElapsedNs: 1e9, Operations: 200, BytesSent: 140_000, BytesReceived: 1400 * (100 - lost),
			Datagrams: &sample.Datagrams{Expected: 100, Received: 100 - lost, Lost: lost, JitterNs: 10}}
	}
	w := plan.Workload{Spec: plan.Stream{Protocol: plan.UDP, Bidirectional: true, Rate: 1.12e6}}.Normalize()
	m, warnings := Derive(w, side("client", 1), side("server", 3), Conditions{})
	for name, want := range map[string]float64{
		metric.FrameLossRate: 0.02, metric.PacketRate: 196, metric.OfferedLoad: 2.24e6, "loss.path": 0.02, metric.Jitter: 10,
	} {
		if m[name] != want {
			t.Errorf("%s is %g, want %g", name, m[name], want)
		}
	}
	for _, x := range warnings {
		if x.ID == OfferedLoad || x.ID == Disagree {
			t.Errorf("doubted: %+v", x)
		}
	}
}

// TestMixCountsOperations: datagrams of several sizes are counted, not reckoned from their bytes.
func TestMixCountsOperations(t *testing.T) {
	c, s := lost(0)
	s.Operations = 900
	m, _ := Derive(plan.Workload{Spec: plan.Stream{Protocol: plan.UDP, Mix: plan.IMIX}}.Normalize(), c, s, Conditions{})
	if m[metric.PacketRate] != 900 {
		t.Errorf("packet rate %g", m[metric.PacketRate])
	}
}
