package outcome

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// lost returns the two sides of a stream whose receiver lacks so many datagrams of 1000.
func lost(n uint64) (client, server *sample.Observation) {
	client = &sample.Observation{Side: "client", ElapsedNs: 1e9, Operations: 1000, BytesSent: 1_400_000, Host: &sample.HostDelta{}}
	server = &sample.Observation{Side: "server", ElapsedNs: 1e9, Operations: 1000 - n, BytesReceived: 1400 * (1000 - n), Host: &sample.HostDelta{},
		Datagrams: &sample.Datagrams{Expected: 1000, Received: 1000 - n, Lost: n}}
	return client, server
}

func TestLocate(t *testing.T) {
	number := func(n uint64) *uint64 { return &n }
	for _, tt := range []struct {
		name  string
		lost  uint64
		drops []sample.Drop
		see   func(c, s *sample.Observation)
		want  map[string]uint64
		says  string
	}{
		{"no counter", 10, []sample.Drop{}, nil, map[string]uint64{onPath: 10}, "10 of 1000 datagrams: 10 path"},
		{"the socket", 10, []sample.Drop{}, func(_, s *sample.Observation) { s.Datagrams.SocketDrops = number(8) },
			map[string]uint64{inSocket: 8, onPath: 2}, "8 socket buffer, 2 path"},
		{"the namespace, where the socket does not say", 10, nil, func(_, s *sample.Observation) { s.Host.SNMP = map[string]int64{"Udp.RcvbufErrors": 9} },
			map[string]uint64{inSocket: 9, onPath: 1}, ""},
		{"the socket rather than the namespace", 10, nil, func(_, s *sample.Observation) {
			s.Datagrams.SocketDrops, s.Host.SNMP = number(0), map[string]int64{"Udp.RcvbufErrors": 9}
		}, map[string]uint64{onPath: 10}, ""},
		{"a machine's backlog is counted once, and not again at its devices", 10,
			[]sample.Drop{{Host: "a", Device: "eth0", Kind: sample.DropTX, Packets: 6}, {Host: "b", Device: "eth0", Kind: sample.DropRX, Packets: 6}},
			func(c, s *sample.Observation) { c.Host.SoftnetDropped, s.Host.SoftnetDropped = 6, 6 },
			map[string]uint64{inBacklog: 6, onPath: 4}, ""},
		{"a shaper, and the tunnel above it", 10,
			[]sample.Drop{{Host: "n", Device: "vxlan", Kind: sample.DropTX, Packets: 7}, {Host: "n", Device: "eth0", Kind: sample.DropQdisc, What: "tbf", Packets: 7}},
			nil, map[string]uint64{inQdisc: 7, onPath: 3}, "10 of 1000 datagrams: 7 qdisc (n eth0 tbf 7), 3 path"},
		{"a device", 10, []sample.Drop{{Host: "n", Device: "eth0", Kind: sample.DropRX, Packets: 4}},
			nil, map[string]uint64{inDevice: 4, onPath: 6}, "4 device (n eth0 rx 4)"},
		{"others' packets are not ours", 10, []sample.Drop{{Device: "eth0", Kind: sample.DropQdisc, What: "tbf", Packets: 1e6}},
			nil, map[string]uint64{inQdisc: 10}, ""},
		{"the ends' devices, where the path cannot be read", 10, nil,
			func(c, _ *sample.Observation) {
				c.Host.Devices = map[string]int64{"eth0.1.tx_dropped": 3, "eth0.rx_bytes": 5}
			},
			map[string]uint64{inDevice: 3, onPath: 7}, "3 device (client eth0.1 tx 3)"},
	} {
		c, s := lost(tt.lost)
		if tt.see != nil {
			tt.see(c, s)
		}
		got, ok := locateLosses(c, s, tt.drops)
		if !ok {
			t.Errorf("%s: nothing is located", tt.name)
			continue
		}
		for _, place := range places {
			if got.At[place] != tt.want[place] {
				t.Errorf("%s: %v, want %v", tt.name, got.At, tt.want)
				break
			}
		}
		if !strings.Contains(got.String(), tt.says) {
			t.Errorf("%s: it says %q, want %q", tt.name, got, tt.says)
		}
	}
	if _, ok := locateLosses(lost0()); ok {
		t.Error("nothing was lost, and it is located")
	}
	if _, ok := locateLosses(nil, nil, nil); ok {
		t.Error("nobody saw anything, and it is located")
	}
}

func lost0() (c, s *sample.Observation, drops []sample.Drop) {
	c, s = lost(0)
	return c, s, []sample.Drop{{Kind: sample.DropQdisc, Packets: 5}}
}

// TestLocateAddsUp draws counters: the places always add up to what was lost.
func TestLocateAddsUp(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		c, s := lost(1 + r.Uint64N(1000))
		c.Host.SoftnetDropped, s.Host.SoftnetDropped = r.Uint64N(100), r.Uint64N(100)
		socket := r.Uint64N(300)
		s.Datagrams.SocketDrops = &socket
		var drops []sample.Drop
		for range r.IntN(5) {
			kind := []string{sample.DropQdisc, sample.DropTX, sample.DropRX}[r.IntN(3)]
			drops = append(drops, sample.Drop{Device: "eth0", Kind: kind, Packets: r.Uint64N(400)})
		}
		l, _ := locateLosses(c, s, drops)
		sum := uint64(0)
		for _, n := range l.At {
			sum += n
		}
		if sum != l.Lost || len(l.At) != len(places) {
			t.Fatalf("%v add up to %d, %d were lost", l.At, sum, l.Lost)
		}
	}
}

// TestLossIsDerived: a stream has the places as shares of what was expected, and none where nothing was lost.
func TestLossIsDerived(t *testing.T) {
	w := plan.Workload{Spec: plan.Stream{Protocol: plan.UDP}}.Normalize()
	c, s := lost(10)
	m, _ := Derive(w, c, s, Conditions{Drops: []sample.Drop{{Kind: sample.DropQdisc, Packets: 7}}})
	if m["loss.qdisc"] != 0.007 || m["loss.path"] != 0.003 {
		t.Errorf("%v", m)
	}
	c, s = lost(0)
	m, _ = Derive(w, c, s, Conditions{})
	for _, place := range places {
		if _, ok := m[metric.Loss+"."+place]; ok {
			t.Errorf("nothing was lost, and there is %s", place)
		}
		if _, ok := metric.Lookup(metric.Loss + "." + place); !ok {
			t.Errorf("%s is not in the catalogue", place)
		}
	}
}

func TestNewProbe(t *testing.T) {
	w := plan.Throughput{Loss: 0.01, MessageSize: 1400}
	c, s := lost(10)
	p := NewProbe(w, 5e6, c, s, nil)
	want := result.Probe{Rate: 5e6, Offered: 11.2e6, Delivered: 11.088e6, Lost: 10, Expected: 1000, Held: true,
		At: map[string]uint64{inSocket: 0, inBacklog: 0, inQdisc: 0, inDevice: 0, onPath: 10}, Where: "10 of 1000 datagrams: 10 path"}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Error(diff)
	}
	c, s = lost(11)
	if NewProbe(w, 5e6, c, s, nil).Held {
		t.Error("more than the accepted loss holds")
	}
	if p := NewProbe(w, 5e6, nil, nil, nil); p.Held || p.Expected != 0 {
		t.Errorf("what nobody saw holds: %+v", p)
	}
}

func TestDeriveSearch(t *testing.T) {
	w := plan.Throughput{}
	at := func(n uint64) map[string]uint64 { return map[string]uint64{inQdisc: n, onPath: 0} }
	probes := []result.Probe{
		{Rate: 0, Offered: 50e6, Delivered: 11e6, Lost: 70, Expected: 100, At: at(70)},
		{Rate: 12e6, Offered: 12e6, Delivered: 11e6, Lost: 8, Expected: 100, At: at(8)},
		{Rate: 11e6, Offered: 11e6, Delivered: 11e6, Expected: 100, Held: true},
		{Rate: 11.5e6, Offered: 11.5e6, Delivered: 11.5e6, Expected: 100, Held: true, Confirming: true},
		{Rate: 11.5e6, Offered: 11.4e6, Delivered: 11.3e6, Lost: 1, Expected: 100, Confirming: true},
		{Rate: 11.2e6, Offered: 11.2e6, Delivered: 11.2e6, Expected: 100, Held: true, Confirming: true},
		{Rate: 11.2e6, Offered: 11.0e6, Delivered: 11.0e6, Expected: 100, Held: true, Confirming: true},
	}
	c, s := lost(0)
	m, _ := DeriveSearch(w, result.Record{Probes: probes, Client: c, Server: s}, Conditions{})
	for name, want := range map[string]float64{
		metric.Throughput: 11.1e6, metric.FirstFailing: 11.4e6, metric.PacketRate: 11.1e6 / 8 / 1400, metric.FrameLossRate: 0,
	} {
		if m[name] != want {
			t.Errorf("%s is %g, want %g", name, m[name], want)
		}
	}
	for _, name := range []string{metric.Goodput, metric.OfferedLoad} {
		if _, ok := m[name]; ok {
			t.Errorf("a search has a %s", name)
		}
	}
	// As fast as possible holds: the highest that two have offered, and nothing failed.
	flat := []result.Probe{
		{Offered: 9e6, Delivered: 9.1e6, Expected: 9, Held: true}, {Offered: 5e6, Delivered: 5e6, Expected: 9, Held: true, Confirming: true},
		{Offered: 9.5e6, Delivered: 8.9e6, Expected: 9, Held: true, Confirming: true},
	}
	m, _ = DeriveSearch(w, result.Record{Probes: flat, Client: c, Server: s}, Conditions{})
	if _, ok := m[metric.FirstFailing]; ok || m[metric.Throughput] != 8.9e6 {
		t.Errorf("%v", m)
	}
}

// TestWideGap has searches that end with rates that neither were confirmed nor failed.
func TestWideGap(t *testing.T) {
	held := result.Probe{Rate: 74e6, Offered: 74e6, Delivered: 74e6, Expected: 1000, Held: true, Confirming: true}
	failed := result.Probe{Rate: 93.8e6, Offered: 93.8e6, Lost: 5, Expected: 1000, Confirming: true}
	short := held
	short.Rate, short.Offered = 90e6, 60e6
	near := held
	near.Rate, near.Offered, near.Delivered = 93e6, 93e6, 93e6
	for _, tt := range []struct {
		probes []result.Probe
		want   string
	}{
		{[]result.Probe{failed, held, held}, "74.0 Mbit/s were confirmed and 93.8 Mbit/s failed, more than 1 % apart"},
		{[]result.Probe{failed, held, held, short}, "the sender offered 60.0 Mbit/s where 90.0 Mbit/s were intended"},
		{[]result.Probe{failed, held, held, near, near}, ""},
		{[]result.Probe{failed}, ""},
		{[]result.Probe{held, held}, ""},
	} {
		if got := describeWideGap(tt.probes); (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%d probes: %q, want %q", len(tt.probes), got, tt.want)
		}
	}
}
