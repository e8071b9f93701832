package outcome

import (
	"math"
	"testing"

	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

func times(n int, ns int64) *sample.Histogram {
	h := sample.NewHistogram()
	for i := range n {
		h.Record(ns + int64(i%100))
	}
	return h
}

func ptr(n int64) *int64 { return &n }

// host is a quiet machine of one CPU: 40 % user, 10 % softirq in a window of one second.
func host() *sample.HostDelta {
	return &sample.HostDelta{
		CPUs:   map[int]map[string]int64{0: {sample.User: 4e8, sample.SoftIRQ: 1e8, sample.Idle: 5e8}},
		SpanNs: 1e9, KsoftirqdNs: ptr(1e6), MemoryBytes: 1000, NodeMemoryUsedBytes: 5000,
		SNMP: map[string]int64{"Tcp.OutSegs": 100_000},
	}
}

// change changes the spec of a workload.
func change[S plan.Spec](w *plan.Workload, do func(s *S)) {
	s := w.Spec.(S)
	do(&s)
	w.Spec = s
}

// exchange is a sound trial of rr, crr or ping: 20,000 transactions in a window of one second.
func exchange(kind plan.Kind) (plan.Workload, *sample.Observation, *sample.Observation) {
	w := kind.Default()
	c := &sample.Observation{Side: "client", ElapsedNs: 1e9, Operations: 20_000, RTT: times(20_000, 50_000),
		CPU: sample.CPUTime{ThreadsNs: 4e8, ProcessNs: 41e7}, Host: host()}
	s := &sample.Observation{Side: "server", ElapsedNs: 1e9, Operations: 20_000,
		CPU: sample.CPUTime{ThreadsNs: 2e8, ProcessNs: 205e6}, Host: host()}
	if kind == "crr" {
		c.Connect = times(20_000, 30_000)
	}
	if kind == "rr" {
		c.TCP = &sample.TCPInfo{SegmentsOut: 20_000, Congestion: "cubic"}
		s.TCP = &sample.TCPInfo{SegmentsOut: 20_000, Congestion: "cubic"}
	}
	if kind == "ping" {
		s.Operations, s.CPU.ThreadsNs = 0, 0
	}
	return w, c, s
}

// web is a sound trial of http: 20,000 requests of 1000 B in a window of one second, answered by three backends.
func web() (plan.Workload, *sample.Observation, *sample.Observation) {
	w := plan.Workload{Spec: plan.HTTP{ResponseSize: 1000, Connections: 100, Backends: 3}}.Normalize()
	_, c, s := exchange("http")
	c.BytesReceived, s.BytesSent = 20e6, 20e6
	c.Backends = map[string]sample.Backend{
		"a": {Requests: 5000, Connections: 25}, "b": {Requests: 7000, Connections: 36}, "c": {Requests: 8000, Connections: 39},
	}
	return w, c, s
}

// bulk is a sound trial of a TCP stream: 1 GB in a window of one second.
func bulk() (plan.Workload, *sample.Observation, *sample.Observation) {
	w := plan.Workload{Spec: plan.Stream{}}.Normalize()
	c := &sample.Observation{Side: "client", ElapsedNs: 1e9, Operations: 8000, BytesSent: 1e9,
		CPU: sample.CPUTime{ThreadsNs: 3e8, ProcessNs: 3e8}, TCP: &sample.TCPInfo{Retransmits: 40, SegmentsOut: 700_000, Congestion: "cubic"}, Host: host()}
	s := &sample.Observation{Side: "server", ElapsedNs: 1e9, Operations: 8000, BytesReceived: 1e9,
		CPU: sample.CPUTime{ThreadsNs: 2e8, ProcessNs: 2e8}, TCP: &sample.TCPInfo{SegmentsOut: 300_000, Congestion: "cubic"}, Host: host()}
	return w, c, s
}

// datagrams is a sound trial of a UDP stream: 100,000 datagrams of 1000 B sent, 1 % lost.
func datagrams() (plan.Workload, *sample.Observation, *sample.Observation) {
	w := plan.Workload{Spec: plan.Stream{Protocol: plan.UDP, MessageSize: 1000, Rate: 800e6}}.Normalize()
	c := &sample.Observation{Side: "client", ElapsedNs: 1e9, Operations: 2000, BytesSent: 100e6,
		CPU: sample.CPUTime{ThreadsNs: 5e8, ProcessNs: 5e8}, Host: host()}
	s := &sample.Observation{Side: "server", ElapsedNs: 1e9, Operations: 3000, BytesReceived: 99e6,
		CPU: sample.CPUTime{ThreadsNs: 198e6, ProcessNs: 198e6}, Host: host(), Transit: times(99_000, 2000),
		Datagrams: &sample.Datagrams{Expected: 100_000, Received: 99_000, Lost: 1000, JitterNs: 321}}
	c.Host.CPUs[0][sample.User], c.Host.CPUs[0][sample.Idle] = 6e8, 3e8
	return w, c, s
}

func hasKey(m map[string]float64, name string) bool {
	_, ok := m[name]
	return ok
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(math.Abs(a), math.Abs(b)) }

// coarse are the metrics that come out of a histogram, whose values are off by at most 0.1 %.
var coarse = map[string]bool{metric.PDV: true, "rtt.min": true, "connect_time.min": true, "response_time.min": true}

func TestMetrics(t *testing.T) {
	type sides func() (plan.Workload, *sample.Observation, *sample.Observation)
	of := func(k plan.Kind) sides {
		return func() (plan.Workload, *sample.Observation, *sample.Observation) { return exchange(k) }
	}
	for name, c := range map[string]struct {
		trial sides
		c     Conditions
		want  map[string]float64
		// none lists metrics that must be absent.
		none []string
	}{
		"rr": {of("rr"), Conditions{}, map[string]float64{
			metric.TransactionRate: 20_000, metric.ClientCPU: 20_000, metric.ServerCPU: 10_000, metric.KernelCPU: 50,
			metric.ServiceDemand: 30_050, metric.ErrorRate: 0, metric.Memory: 2000, metric.CPUUtilization: 0.5, metric.SoftIRQShare: 0.2,
			"rtt.min": 50_000,
		}, []string{metric.Goodput, metric.OfferedLoad, metric.PacketRate, metric.RetransmitsPerG, "connect_time.p50"}},
		"crr":  {of("crr"), Conditions{}, map[string]float64{"connect_time.min": 30_000, metric.ServiceDemand: 30_050}, nil},
		"ping": {of("ping"), Conditions{}, map[string]float64{metric.ServiceDemand: 20_050, metric.TransactionRate: 20_000}, []string{metric.ServerCPU}},
		"stream": {bulk, Conditions{}, map[string]float64{
			metric.Goodput: 8e9, metric.RetransmitsPerG: 40, metric.ClientCPU: 300, metric.ServerCPU: 200, metric.KernelCPU: 1,
			metric.ServiceDemand: 501,
		}, []string{metric.OfferedLoad, metric.TransactionRate, metric.FrameLossRate, metric.PacketRate, "rtt.p50", metric.ErrorRate}},
		"udp": {datagrams, Conditions{}, map[string]float64{
			metric.Goodput: 792e6, metric.OfferedLoad: 800e6, metric.PacketRate: 99_000, metric.FrameLossRate: 0.01, metric.Jitter: 321,
			metric.ClientCPU: 5000, metric.ServerCPU: 2000, metric.KernelCPU: 10, metric.ServiceDemand: 7010, metric.PDV: 2099,
		}, []string{metric.RetransmitsPerG, metric.TransactionRate}},
		"http": {web, Conditions{Backends: 3}, map[string]float64{
			metric.RequestRate: 20_000, metric.Goodput: 160e6, metric.Transferred: 20e6, metric.ErrorRate: 0, "response_time.min": 50_000,
			metric.ClientCPU: 20_000, metric.ServerCPU: 10_000, metric.ServiceDemand: 30_050,
			metric.BackendShare + ".min": 0.25, metric.BackendShare + ".max": 0.4, metric.BackendEvenness: math.Exp(-3.26 / 2),
		}, []string{metric.TransactionRate, "rtt.p50", "connect_time.p50", metric.RetransmitsPerG}},
		"a backend got nothing": {web, Conditions{Backends: 4}, map[string]float64{
			metric.BackendShare + ".min": 0, metric.BackendShare + ".max": 0.4,
		}, nil},
		"one server": {web, Conditions{Backends: 1}, map[string]float64{metric.RequestRate: 20_000},
			[]string{metric.BackendShare + ".min", metric.BackendShare + ".max", metric.BackendEvenness}},
		"connections without a response": {func() (plan.Workload, *sample.Observation, *sample.Observation) {
			w, c, s := web()
			c.Backends["a"] = sample.Backend{Requests: 5000, Connections: 24}
			return w, c, s
		}, Conditions{Backends: 3}, map[string]float64{metric.BackendShare + ".max": 0.4}, []string{metric.BackendEvenness}},
		"too few connections for a test": {web, Conditions{Backends: 21}, map[string]float64{metric.BackendShare + ".min": 0},
			[]string{metric.BackendEvenness}},
		"idle is subtracted": {of("rr"), Conditions{IdleBusy: 0.1}, map[string]float64{metric.CPUUtilization: 0.4}, nil},
		"interrupts apart": {of("rr"), Conditions{IRQApart: true, IdleInterrupt: 0.02}, map[string]float64{
			metric.KernelCPU: 8e7 / 20_000, metric.ServiceDemand: 34_000}, nil},
	} {
		w, client, server := c.trial()
		got, _ := Derive(w, client, server, c.c)
		for m, want := range c.want {
			if v, ok := got[m]; !ok || !near(v, want) && !(coarse[m] && math.Abs(v-want) <= want/1000) {
				t.Errorf("%s: %s = %v (%v), want %v", name, m, v, ok, want)
			}
		}
		for _, m := range c.none {
			if v, ok := got[m]; ok {
				t.Errorf("%s: %s = %v, want none", name, m, v)
			}
		}
		for m, v := range got {
			if _, ok := metric.Lookup(m); !ok {
				t.Errorf("%s: %s is not in the catalogue", name, m)
			}
			if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
				t.Errorf("%s: %s = %v", name, m, v)
			}
		}
	}
}

// TestReversed: the server sends, so the client's bytes are the goodput and the server's retransmits count.
func TestReversed(t *testing.T) {
	w, sender, receiver := bulk()
	change(&w, func(s *plan.Stream) { s.Reverse = true })
	receiver.BytesReceived /= 2
	got, _ := Derive(w, receiver, sender, Conditions{})
	if got[metric.Goodput] != 4e9 || got[metric.RetransmitsPerG] != 80 || got[metric.ClientCPU] != 400 || got[metric.ServerCPU] != 300 {
		t.Errorf("got %v", got)
	}
}

// TestCPUsAreCountedOnce: what one CPU did is divided among nobody twice; what another did is added.
func TestCPUsAreCountedOnce(t *testing.T) {
	w, client, server := exchange("rr")
	*server.Host.KsoftirqdNs = 77e6
	got, _ := Derive(w, client, server, Conditions{})
	if got[metric.KernelCPU] != 50 {
		t.Errorf("one CPU: kernel part %v, want the client's 50", got[metric.KernelCPU])
	}
	// Split placement, and half the transactions in the server's shorter window.
	server.Host.CPUs = map[int]map[string]int64{1: {sample.User: 1e8, sample.SoftIRQ: 2e8, sample.Idle: 2e8}}
	server.ElapsedNs, server.Operations, *server.Host.KsoftirqdNs = 5e8, 10_000, 2e6
	got, _ = Derive(w, client, server, Conditions{})
	if want := 1e6/20_000 + 2e6/10_000; got[metric.KernelCPU] != want {
		t.Errorf("two CPUs: kernel part %v, want %v", got[metric.KernelCPU], want)
	}
	if want := 8. / 15; !near(got[metric.CPUUtilization], want) {
		t.Errorf("two CPUs: utilization %v, want %v", got[metric.CPUUtilization], want)
	}
	got, _ = Derive(w, client, server, Conditions{IRQApart: true})
	if want := 1e8/20_000 + 2e8/10_000.; !near(got[metric.KernelCPU], want) {
		t.Errorf("two CPUs, apart: kernel part %v, want %v", got[metric.KernelCPU], want)
	}
	got, _ = Derive(w, client, server, Conditions{CPUs: []int{0}})
	if got[metric.KernelCPU] != 50 || got[metric.CPUUtilization] != 0.5 {
		t.Errorf("the path is CPU 0 alone: kernel part %v, utilization %v", got[metric.KernelCPU], got[metric.CPUUtilization])
	}
}

// TestCPUsOfTwoMachines: CPU 0 of the one is not CPU 0 of the other, and each side's kernel part is its own.
func TestCPUsOfTwoMachines(t *testing.T) {
	w, client, server := exchange("rr")
	*client.Host.KsoftirqdNs, *server.Host.KsoftirqdNs = 1e6, 3e6
	near0, _ := Derive(w, client, server, Conditions{})
	apart, _ := Derive(w, client, server, Conditions{Apart: true})
	if one, two := near0[metric.KernelCPU], apart[metric.KernelCPU]; !near(two, 4*one) {
		t.Errorf("kernel part %v on one machine, %v on two: want 4 times as much", one, two)
	}
	server.Host.CPUs = map[int]map[string]int64{0: {sample.User: 1e8, sample.Idle: 3e8}}
	client.Host.CPUs = map[int]map[string]int64{0: {sample.User: 3e8, sample.Idle: 1e8}}
	near0, _ = Derive(w, client, server, Conditions{})
	apart, _ = Derive(w, client, server, Conditions{Apart: true})
	if near0[metric.CPUUtilization] != 0.75 || apart[metric.CPUUtilization] != 0.5 {
		t.Errorf("utilization %v on one machine, %v on two", near0[metric.CPUUtilization], apart[metric.CPUUtilization])
	}
}

// TestAbsentIsNotZero takes away what a metric stands on and wants the metric gone.
func TestAbsentIsNotZero(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(client, server *sample.Observation)
		c     Conditions
		none  []string
	}{
		"no CPU clock":            {func(c, _ *sample.Observation) { c.CPU = sample.CPUTime{} }, Conditions{}, []string{metric.ServiceDemand, metric.ClientCPU}},
		"no server CPU":           {func(_, s *sample.Observation) { s.CPU = sample.CPUTime{} }, Conditions{}, []string{metric.ServiceDemand, metric.ServerCPU}},
		"no host counters":        {func(c, s *sample.Observation) { c.Host, s.Host = nil, nil }, Conditions{}, []string{metric.KernelCPU, metric.Memory, metric.CPUUtilization, metric.SoftIRQShare}},
		"no ksoftirqd":            {func(c, s *sample.Observation) { c.Host.KsoftirqdNs, s.Host.KsoftirqdNs = nil, nil }, Conditions{}, []string{metric.KernelCPU}},
		"apart and no CPU lines":  {func(c, s *sample.Observation) { c.Host.CPUs, s.Host.CPUs = nil, nil }, Conditions{IRQApart: true}, []string{metric.KernelCPU, metric.ServiceDemand}},
		"no transaction":          {func(c, s *sample.Observation) { c.Operations, s.Operations = 0, 0 }, Conditions{}, []string{metric.ServiceDemand, metric.ErrorRate}},
		"no memory of one side":   {func(c, _ *sample.Observation) { c.Host.MemoryBytes = 0 }, Conditions{}, []string{metric.Memory}},
		"empty histogram":         {func(c, _ *sample.Observation) { c.RTT = sample.NewHistogram() }, Conditions{}, []string{"rtt.min", "rtt.p50", "rtt.max", "rtt.mean", "rtt.stddev"}},
		"one value":               {func(c, _ *sample.Observation) { c.RTT = times(1, 5) }, Conditions{}, []string{"rtt.stddev", "rtt.p50"}},
		"no time passed in ticks": {func(c, s *sample.Observation) { c.Host.CPUs[0], s.Host.CPUs[0] = nil, nil }, Conditions{}, []string{metric.CPUUtilization, metric.SoftIRQShare}},
	} {
		w, client, server := exchange("rr")
		c.spoil(client, server)
		got, _ := Derive(w, client, server, c.c)
		for _, m := range c.none {
			if v, ok := got[m]; ok {
				t.Errorf("%s: %s = %v, want none", name, m, v)
			}
		}
		if name == "no ksoftirqd" && got[metric.ServiceDemand] != 30_000 {
			t.Errorf("%s: service demand %v", name, got[metric.ServiceDemand])
		}
	}
	// A ping at intervals has no rate of its own.
	w, client, server := exchange("ping")
	change(&w, func(s *plan.Ping) { s.Interval = 1e6 })
	if got, _ := Derive(w, client, server, Conditions{}); hasKey(got, metric.TransactionRate) {
		t.Errorf("paced ping: transaction rate %v", got[metric.TransactionRate])
	}
	w, client, server = datagrams()
	server.Datagrams = &sample.Datagrams{}
	server.Transit = nil
	got, _ := Derive(w, client, server, Conditions{})
	for _, m := range []string{metric.FrameLossRate, metric.Jitter, metric.PDV} {
		if v, ok := got[m]; ok {
			t.Errorf("no datagram came: %s = %v", m, v)
		}
	}
}

// TestJitterOfOneBatch: datagrams that came in one batch have one time, from which no jitter can be taken.
func TestJitterOfOneBatch(t *testing.T) {
	for _, c := range []struct {
		received uint64
		jitter   float64
		want     bool
	}{{64, 0, false}, {1, 5, false}, {64, 5, true}} {
		w, client, server := datagrams()
		server.Datagrams = &sample.Datagrams{Expected: 64, Received: c.received, JitterNs: c.jitter}
		if got, _ := Derive(w, client, server, Conditions{}); hasKey(got, metric.Jitter) != c.want {
			t.Errorf("%d datagrams with jitter %v: %v", c.received, c.jitter, got[metric.Jitter])
		}
	}
}

// TestMissingSides: whatever is missing, Derive comes back.
func TestMissingSides(t *testing.T) {
	for _, spec := range []plan.Spec{
		plan.RR{}, plan.RR{Protocol: plan.UDP}, plan.CRR{}, plan.Ping{}, plan.Stream{}, plan.Stream{Protocol: plan.UDP}, plan.HTTP{}, nil,
	} {
		w := plan.Workload{Spec: spec}
		_, client, server := exchange("rr")
		for _, c := range []*sample.Observation{nil, {}, {ElapsedNs: 1}, client} {
			for _, s := range []*sample.Observation{nil, {}, {ElapsedNs: 1}, server} {
				got, _ := Derive(w, c, s, Conditions{IRQApart: true, LineRate: 1})
				for m, v := range got {
					if math.IsNaN(v) || math.IsInf(v, 0) {
						t.Errorf("%s: %s = %v", w, m, v)
					}
				}
			}
		}
	}
	if got, warnings := Derive(plan.Workload{Spec: plan.RR{}}, nil, nil, Conditions{}); len(got) != 0 || len(warnings) != 0 {
		t.Errorf("nothing was seen, and %v, %v came of it", got, warnings)
	}
}

// TestPercentilesNeedValues puts the number of values at, and one below, what each percentile needs.
func TestPercentilesNeedValues(t *testing.T) {
	for name, n := range map[string]int{"rtt.p50": 20, "rtt.p90": 100, "rtt.p99": 1000, "rtt.p99.9": 10_000} {
		w, client, server := exchange("rr")
		for _, count := range []int{n - 1, n} {
			client.RTT = times(count, 1000)
			got, _ := Derive(w, client, server, Conditions{})
			if _, ok := got[name]; ok != (count == n) {
				t.Errorf("%s of %d values: %v", name, count, ok)
			}
		}
	}
}

// scaled multiplies every count and time of an observation that lasted longer by k.
func scaled(o *sample.Observation, k uint64) *sample.Observation {
	s := *o
	n := int64(k)
	s.ElapsedNs *= n
	s.Operations *= k
	s.BytesSent *= k
	s.BytesReceived *= k
	s.CPU = sample.CPUTime{ThreadsNs: o.CPU.ThreadsNs * n, ProcessNs: o.CPU.ProcessNs * n}
	s.Errors = map[string]uint64{}
	for kind, count := range o.Errors {
		s.Errors[kind] = count * k
	}
	if o.TCP != nil {
		tcp := *o.TCP
		tcp.Retransmits *= k
		tcp.SegmentsOut *= k
		s.TCP = &tcp
	}
	if o.Datagrams != nil {
		d := *o.Datagrams
		d.Expected, d.Received, d.Lost = d.Expected*k, d.Received*k, d.Lost*k
		s.Datagrams = &d
	}
	h := *o.Host
	h.KsoftirqdNs = ptr(*o.Host.KsoftirqdNs * n)
	h.CPUs = map[int]map[string]int64{}
	for c, modes := range o.Host.CPUs {
		h.CPUs[c] = map[string]int64{}
		for m, ns := range modes {
			h.CPUs[c][m] = ns * n
		}
	}
	s.Host = &h
	return &s
}

// TestLongerIsTheSame: a window that lasts k times as long and counts k times as much gives the same numbers, on either
// side alone, too: each side is divided by its own window and its own count.
func TestLongerIsTheSame(t *testing.T) {
	trials := map[string]func() (plan.Workload, *sample.Observation, *sample.Observation){
		"stream": bulk, "udp": datagrams,
		"rr": func() (plan.Workload, *sample.Observation, *sample.Observation) { return exchange("rr") },
	}
	for name, trial := range trials {
		for _, c := range []Conditions{{}, {IdleBusy: 0.07, IdleInterrupt: 0.01}, {IRQApart: true}} {
			w, client, server := trial()
			client.Errors = map[string]uint64{"timeout": 3}
			want, _ := Derive(w, client, server, c)
			for _, k := range [][2]uint64{{7, 7}, {1, 3}, {5, 1}} {
				got, _ := Derive(w, scaled(client, k[0]), scaled(server, k[1]), c)
				for m, v := range want {
					// Whole ns are left where idle time is taken off.
					if math.Abs(got[m]-v) > 1e-6*v {
						t.Errorf("%s, client x %d, server x %d: %s = %v, want %v", name, k[0], k[1], m, got[m], v)
					}
				}
				if len(got) != len(want) {
					t.Errorf("%s: %d metrics, want %d", name, len(got), len(want))
				}
			}
		}
	}
}

// TestMoreCPUTimeNeverCostsLess: service demand is monotonic in every part of it.
func TestMoreCPUTimeNeverCostsLess(t *testing.T) {
	w, client, server := exchange("rr")
	base, _ := Derive(w, client, server, Conditions{})
	for name, more := range map[string]func(c, s *sample.Observation){
		"client":    func(c, _ *sample.Observation) { c.CPU.ThreadsNs *= 2 },
		"server":    func(_, s *sample.Observation) { s.CPU.ThreadsNs *= 2 },
		"ksoftirqd": func(c, _ *sample.Observation) { *c.Host.KsoftirqdNs *= 2 },
	} {
		_, c, s := exchange("rr")
		more(c, s)
		if got, _ := Derive(w, c, s, Conditions{}); got[metric.ServiceDemand] <= base[metric.ServiceDemand] {
			t.Errorf("more %s: service demand %v, was %v", name, got[metric.ServiceDemand], base[metric.ServiceDemand])
		}
	}
	apart, _ := Derive(w, client, server, Conditions{IRQApart: true})
	if apart[metric.ServiceDemand] <= base[metric.ServiceDemand] {
		t.Errorf("interrupts added: %v, was %v", apart[metric.ServiceDemand], base[metric.ServiceDemand])
	}
}

func TestFromFacts(t *testing.T) {
	got := FromFacts(facts.Facts{facts.MTU: "1500", facts.NIC: "wire", facts.IdleBusy: "0.0312", facts.IdleInterrupt: "0.001", facts.IRQAccounting: facts.IRQApart})
	if got.MTU != 1500 || got.NIC != "wire" || got.IdleBusy != 0.0312 || got.IdleInterrupt != 0.001 || !got.IRQApart {
		t.Errorf("got %+v", got)
	}
	for _, f := range []facts.Facts{nil, {facts.MTU: "big", facts.IdleBusy: "?", facts.IRQAccounting: facts.IRQInTask}} {
		if got := FromFacts(f); got.MTU != 0 || got.IdleBusy != 0 || got.IRQApart {
			t.Errorf("of %v: %+v", f, got)
		}
	}
}

// What a path loses after the last datagram that came is known to the sender alone. Before, a path that was dead for the last
// 29 % of a window had lost nothing.
func TestLossAfterTheLastDatagram(t *testing.T) {
	for name, tt := range map[string]struct {
		received, expected uint64
		silent             int64
		want               float64
	}{
		"dead for the last 29 %":           {71_000, 71_000, 290e6, 0.29},
		"and one in a hundred before":      {70_290, 71_000, 290e6, 0.2971},
		"the windows are a little shifted": {96_000, 96_000, 40e6, 0},
		"the rest is in a queue":           {71_000, 71_000, 1e6, 0},
	} {
		w, c, s := datagrams()
		s.BytesReceived = tt.received * 1000
		s.Datagrams = &sample.Datagrams{Expected: tt.expected, Received: tt.received, Lost: tt.expected - tt.received, SilentNs: tt.silent}
		m, _ := Derive(w, c, s, Conditions{})
		if got := m[metric.FrameLossRate]; math.Abs(got-tt.want) > 1e-6 {
			t.Errorf("%s: %g, want %g", name, got, tt.want)
		}
		if p := NewProbe(plan.Throughput{MessageSize: 1000}, 800e6, c, s, nil); p.Held != (tt.want == 0) {
			t.Errorf("%s: a probe that held: %v", name, p.Held)
		}
	}
}
