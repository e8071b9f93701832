package outcome

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

// spoiled is a sound trial with one thing wrong, or nearly wrong.
type spoiled struct {
	id    string
	says  string // in the message; "" if the check must stay silent
	kind  string // rr, crr, ping, stream, udp
	c     Conditions
	spoil func(w *plan.Workload, c, s *sample.Observation)
}

var cases = []spoiled{
	{softnetDrop, "3 packets", "rr", Conditions{}, func(_ *plan.Workload, c, s *sample.Observation) { c.Host.SoftnetDropped, s.Host.SoftnetDropped = 2, 3 }},

	{deviceDrop, "server: eth0.rx_errors 1, eth0.tx_dropped 4", "rr", Conditions{}, func(_ *plan.Workload, _, s *sample.Observation) {
		s.Host.Devices = map[string]int64{"eth0.tx_dropped": 4, "eth0.rx_errors": 1, "eth0.rx_bytes": 99}
	}},
	{deviceDrop, "", "rr", Conditions{}, func(_ *plan.Workload, _, s *sample.Observation) {
		s.Host.Devices = map[string]int64{"eth0.rx_bytes": 99, "eth0.rx_dropped": -1}
	}},

	{receiveBuffer, "server: 5 datagrams", "udp", Conditions{}, func(_ *plan.Workload, _, s *sample.Observation) { s.Host.SNMP["Udp.RcvbufErrors"] = 5 }},
	{receiveBuffer, "", "rr", Conditions{}, func(_ *plan.Workload, _, s *sample.Observation) { s.Host.SNMP["Udp.RcvbufErrors"] = 5 }},

	{OfferedLoad, "800 Mbit/s left the sender, 820 Mbit/s were intended", "udp", Conditions{}, func(w *plan.Workload, _, _ *sample.Observation) { change(w, func(s *plan.Stream) { s.Rate = 820e6 }) }},
	{OfferedLoad, "", "udp", Conditions{}, func(w *plan.Workload, _, _ *sample.Observation) { change(w, func(s *plan.Stream) { s.Rate = 810e6 }) }},
	{OfferedLoad, "", "udp", Conditions{}, func(w *plan.Workload, _, _ *sample.Observation) { change(w, func(s *plan.Stream) { s.Rate = 0 }) }},

	{Disagree, "transactions", "rr", Conditions{}, func(_ *plan.Workload, _, s *sample.Observation) { s.Operations = 18_900 }},
	{Disagree, "", "rr", Conditions{}, func(_ *plan.Workload, _, s *sample.Observation) { s.Operations = 19_100 }},
	{Disagree, "", "rr", Conditions{}, func(_ *plan.Workload, c, s *sample.Observation) { c.Operations, s.Operations = 5, 3 }},
	{Disagree, "", "rr", Conditions{}, func(_ *plan.Workload, _, s *sample.Observation) { s.ElapsedNs, s.Operations = 2e9, 40_000 }},
	{Disagree, "bytes", "stream", Conditions{}, func(_ *plan.Workload, _, s *sample.Observation) { s.BytesReceived = 9e8 }},
	{Disagree, "", "stream", Conditions{}, func(_ *plan.Workload, c, s *sample.Observation) {
		c.ElapsedNs, c.BytesSent, s.ElapsedNs, s.BytesReceived = 6e7, 168e5, 6e7, 159e5
	}},
	{Disagree, "datagrams", "udp", Conditions{}, func(_ *plan.Workload, _, s *sample.Observation) { s.BytesReceived = 90e6 }},
	{Disagree, "", "udp", Conditions{}, func(_ *plan.Workload, _, s *sample.Observation) { s.BytesReceived, s.Datagrams.Lost = 50e6, 50_000 }},
	{Disagree, "", "ping", Conditions{}, func(_ *plan.Workload, _, s *sample.Observation) { s.Operations = 0 }},

	{Disagree, "requests", "http", Conditions{}, func(_ *plan.Workload, _, s *sample.Observation) { s.Operations = 18_900 }},
	// What is under way on each of 100 connections is no disagreement.
	{Disagree, "", "http", Conditions{}, func(_ *plan.Workload, c, s *sample.Observation) { c.Operations, s.Operations = 2000, 1850 }},
	{fewOperations, "client: only 1999", "http", Conditions{}, func(_ *plan.Workload, c, _ *sample.Observation) { c.Operations = 1999 }},
	{fewOperations, "", "http", Conditions{}, func(_ *plan.Workload, c, _ *sample.Observation) { c.Operations = 2000 }},
	{idleBackend, "2 of 5 backends answered none of 100 connections", "http", Conditions{Backends: 5}, nil},
	{lostMember, "c was lost in step 9, 20.0 ms into the window: 7 steps of 4 members before it and 40 of 4 after it are apart", "rr", Conditions{}, func(w *plan.Workload, c, _ *sample.Observation) {
		*w, *c = jobOf("job(lost=continue)"), *jobSeen()
		c.Job.Loss = &sample.Loss{Name: "c", Step: 9, AfterNs: 20e6, Before: sample.NewHistogram(), Members: 4}
		for range 7 {
			c.Job.Loss.Before.Record(2e6)
		}
	}},
	{straggler, "75% of their time waiting for c alone", "rr", Conditions{}, func(w *plan.Workload, c, _ *sample.Observation) {
		*w, *c = jobOf("job(pattern=shuffle)"), *jobSeen()
		c.Job.ChoiceNs, c.Job.Members[2].LateNs, c.Job.Members[2].Waits = 120e6, 90e6, 100
	}},
	{idleBackend, "", "http", Conditions{Backends: 3}, nil},
	{idleBackend, "", "http", Conditions{Backends: 21}, nil}, // chance may leave one out
	{idleBackend, "", "http", Conditions{}, nil},
	{idleBackend, "", "http", Conditions{Backends: 5}, rolled(sample.Roll{})},
	{Errors, "", "http", Conditions{Backends: 5}, func(w *plan.Workload, c, s *sample.Observation) {
		c.Errors = map[string]uint64{"reset": 3}
		rolled(sample.Roll{})(w, c, s)
	}},
	{idSilentEnd, "the server completed nothing in the last 400ms", "stream", Conditions{}, silentFrom(6, 100e6)},
	{idSilentEnd, "the server completed nothing in the last 32ms", "stream", Conditions{}, silentFrom(6, 8e6)}, // no check before below 100 ms
	{idSilentEnd, "", "stream", Conditions{}, silentFrom(8, 100e6)},
	{idSilentEnd, "the server completed nothing in the last 1.6s", "http", Conditions{}, func(w *plan.Workload, c, s *sample.Observation) {
		change(w, func(s *plan.HTTP) { s.Roll, s.Backends = true, 2 }) // no failure then, and worth a word
		silentFrom(6, 400e6)(w, c, s)
	}},
	{idSilentEnd, "", "stream", Conditions{}, silentFrom(10, 100e6)},
	{shortDrain, "1 of 2 backends still got connections when their drain of 100ms was over", "http", Conditions{Backends: 2},
		rolled(sample.Roll{DrainNs: 1e8, LastNs: 99e6}, sample.Roll{DrainNs: 1e8, LastNs: 20e6})},
	{shortDrain, "", "http", Conditions{Backends: 2}, rolled(sample.Roll{DrainNs: 1e8, LastNs: 20e6})},
	{absentBackend, "1 of 2 backends got no connection", "http", Conditions{Backends: 2},
		rolled(sample.Roll{Returned: true, FirstNs: 5}, sample.Roll{Returned: true})},
	{absentBackend, "", "http", Conditions{Backends: 2}, rolled(sample.Roll{Returned: true, FirstNs: 5})},

	{churnBehind, "4 of 10 changes began", "rr", Conditions{Churn: &sample.Churn{Due: 10, Made: 4}}, nil},
	{churnBehind, "", "rr", Conditions{Churn: &sample.Churn{Due: 10, Made: 9}}, nil},

	{AboveLineRate, "8.00 Gbit/s is more", "stream", Conditions{LineRate: 7.8e9}, nil},
	{AboveLineRate, "", "stream", Conditions{LineRate: 8e9}, nil},
	// 1448 of 1514 bytes are payload, so that a line of 8.1 Gbit/s carries 7.75.
	{AboveLineRate, "7.75 Gbit/s", "stream", Conditions{LineRate: 8.1e9, NIC: "wire", MTU: 1500}, nil},
	{AboveLineRate, "", "stream", Conditions{LineRate: 8.1e9, NIC: "ideal", MTU: 1500}, nil},
	{AboveLineRate, "", "stream", Conditions{NIC: "wire", MTU: 1500}, nil},
	// 1000 of 1042 bytes: 810 Mbit/s carry 777.
	{AboveLineRate, "can carry", "udp", Conditions{LineRate: 805e6, NIC: "wire", MTU: 1500}, nil},
	{AboveLineRate, "", "udp", Conditions{LineRate: 825e6, NIC: "wire", MTU: 1500}, nil},

	{irqApart, "added from /proc/stat", "rr", Conditions{IRQApart: true}, nil},
	{irqApart, "no service demand", "rr", Conditions{IRQApart: true}, func(_ *plan.Workload, c, _ *sample.Observation) { c.Host = nil }},

	{irqUnknown, "cannot tell", "rr", FromFacts(facts.Facts{}), nil},
	{irqUnknown, "", "rr", FromFacts(facts.Facts{facts.IRQAccounting: facts.IRQInTask}), nil},

	{ksoftirqdHidden, "lacks its CPU time", "rr", Conditions{}, func(_ *plan.Workload, c, _ *sample.Observation) { c.Host.KsoftirqdNs = nil }},
	{ksoftirqdHidden, "", "rr", Conditions{IRQApart: true}, func(_ *plan.Workload, c, _ *sample.Observation) { c.Host.KsoftirqdNs = nil }},

	{ksoftirqdHidden, "lacks its CPU time", "rr", Conditions{}, func(_ *plan.Workload, c, s *sample.Observation) { c.Host, s.Host = nil, nil }},
	// The server is on a CPU of its own, whose ksoftirqd is hidden.
	{ksoftirqdHidden, "lacks its CPU time", "rr", Conditions{}, func(_ *plan.Workload, _, s *sample.Observation) {
		s.Host.CPUs = map[int]map[string]int64{1: {sample.Idle: 1e9}}
		s.Host.KsoftirqdNs = nil
	}},

	{IdleSoftIRQ, "a path of 2 CPUs", "rr", Conditions{}, func(_ *plan.Workload, c, s *sample.Observation) {
		c.Host, s.Host = split(3e8, 5e8), split(3e8, 5e8) // one that does not say how much it is
		c.Host.SpanNs, s.Host.SpanNs = 0, 0
	}},
	{IdleSoftIRQ, "and 29% of the time of the path's CPUs is in no task", "rr", Conditions{CPUs: []int{0, 1}}, func(_ *plan.Workload, c, s *sample.Observation) {
		c.Host, s.Host = split(3e8, 5e8), split(3e8, 5e8)
	}},
	{IdleSoftIRQ, "", "rr", Conditions{CPUs: []int{0, 1}}, func(_ *plan.Workload, c, s *sample.Observation) {
		c.Host, s.Host = split(6e8, 8e8), split(6e8, 8e8)
	}},
	{IdleSoftIRQ, "", "rr", Conditions{CPUs: []int{0}}, func(_ *plan.Workload, c, s *sample.Observation) {
		c.Host.CPUs[1], s.Host.CPUs[1] = map[string]int64{sample.Idle: 1e9}, map[string]int64{sample.Idle: 1e9}
	}},
	{IdleSoftIRQ, "", "rr", Conditions{IRQApart: true}, func(_ *plan.Workload, _, s *sample.Observation) {
		s.Host.CPUs = map[int]map[string]int64{1: {sample.Idle: 1e9}}
	}},
	{IdleSoftIRQ, "a shaper releases packets on an idle CPU, whose time is charged to no task: service demand is a lower bound, and 20%", "stream",
		Conditions{LineRate: 1e10, CPUs: []int{0}}, func(_ *plan.Workload, c, s *sample.Observation) {
			c.Host, s.Host = split(299e6, 1), split(299e6, 1)
		}},
	{IdleSoftIRQ, "", "stream", Conditions{LineRate: 1e10, CPUs: []int{0}}, nil},

	{Saturated, "25000 requests were scheduled in the window and 24000 responses arrived, those to earlier requests included", "rr", Conditions{}, open(25_000, 25_000, 1000)},
	{Saturated, "", "rr", Conditions{}, open(24_400, 24_400, 1000)},
	{OfferedLoad, "25000 requests were scheduled in the window and 20000 went out, late ones included", "rr", Conditions{}, open(25_000, 20_000, 1000)},
	{OfferedLoad, "", "rr", Conditions{}, open(25_000, 24_600, 1000)},
	{LateSender, "30.1µs or more late, and the 99th percentile is 50.1µs", "rr", Conditions{}, open(24_000, 24_000, 30_000)},
	{LateSender, "", "rr", Conditions{}, open(24_000, 24_000, 20_000)},
	{LateSender, "", "rr", Conditions{}, func(w *plan.Workload, c, s *sample.Observation) {
		open(24_000, 24_000, 9000)(w, c, s)
		c.RTT = times(24_000, 1)
	}},
	{sharedSpin, "one CPU", "rr", Conditions{}, func(w *plan.Workload, _, _ *sample.Observation) { change(w, func(s *plan.RR) { s.Wait = "spin" }) }},
	{sharedSpin, "", "rr", Conditions{}, func(w *plan.Workload, _, s *sample.Observation) {
		change(w, func(s *plan.RR) { s.Wait = "spin" })
		s.Host.CPUs = map[int]map[string]int64{1: {sample.Idle: 1e9}}
	}},
	{fewOperations, "", "rr", Conditions{}, func(w *plan.Workload, c, s *sample.Observation) {
		open(9, 9, 100)(w, c, s)
		c.Operations, s.Operations = 9, 9
	}},

	{fewOperations, "server: only 3 operations", "crr", Conditions{}, func(_ *plan.Workload, _, s *sample.Observation) { s.Operations = 3 }},
	{fewOperations, "client: only 39 operations", "stream", Conditions{}, func(w *plan.Workload, c, _ *sample.Observation) {
		change(w, func(s *plan.Stream) { s.Flows = 2 })
		c.Operations = 39
	}},
	{fewOperations, "", "stream", Conditions{}, func(w *plan.Workload, c, _ *sample.Observation) {
		change(w, func(s *plan.Stream) { s.Flows = 2 })
		c.Operations = 40
	}},
	{fewOperations, "", "ping", Conditions{}, func(w *plan.Workload, c, _ *sample.Observation) {
		change(w, func(s *plan.Ping) { s.Interval = 1e8 })
		c.Operations = 9
	}},

	{Errors, "client: reset 1, timeout 7; server: reset 2", "rr", Conditions{}, func(_ *plan.Workload, c, s *sample.Observation) {
		c.Errors, s.Errors = map[string]uint64{"timeout": 7, "reset": 1, "no route": 0}, map[string]uint64{"reset": 2}
	}},

	{retransmits, "client: 701 of 700000 segments", "stream", Conditions{}, func(_ *plan.Workload, c, _ *sample.Observation) { c.TCP.Retransmits = 701 }},
	{retransmits, "", "stream", Conditions{}, func(_ *plan.Workload, c, _ *sample.Observation) { c.TCP.Retransmits = 700 }},
	{retransmits, "all of the namespace", "crr", Conditions{}, func(_ *plan.Workload, c, _ *sample.Observation) { c.Host.SNMP["Tcp.RetransSegs"] = 101 }},
	{retransmits, "", "udp", Conditions{}, func(_ *plan.Workload, c, _ *sample.Observation) { c.Host.SNMP["Tcp.RetransSegs"] = 101 }},

	{Congestion, "server: congestion control is bbr instead of cubic", "stream", Conditions{}, func(_ *plan.Workload, _, s *sample.Observation) { s.TCP.Congestion = "bbr" }},
	{Congestion, "", "stream", Conditions{}, func(_ *plan.Workload, _, s *sample.Observation) { s.TCP.Congestion = "" }},

	{meterHeavy, "client: the meter itself used 12%", "rr", Conditions{}, func(_ *plan.Workload, c, _ *sample.Observation) { c.CPU.ProcessNs = 45e7 }},
	{meterHeavy, "", "rr", Conditions{}, func(_ *plan.Workload, c, _ *sample.Observation) {
		c.CPU = sample.CPUTime{ThreadsNs: 1e6, ProcessNs: 8e6}
	}},

	{CPUSteal, "2.0%", "rr", Conditions{}, func(_ *plan.Workload, c, _ *sample.Observation) {
		c.Host.CPUs[0][sample.Steal], c.Host.CPUs[0][sample.Idle] = 2e7, 48e7
	}},
	{CPUSteal, "", "rr", Conditions{}, func(_ *plan.Workload, c, _ *sample.Observation) { c.Host.CPUs[0][sample.Steal] = 5e6 }},

	{CPUThrottled, "server: a limit of CPU time stopped it for 40", "rr", Conditions{}, func(_ *plan.Workload, _, s *sample.Observation) { s.Host.ThrottledNs = 40e6 }},
	{CPUThrottled, "client: a limit", "rr", Conditions{}, func(_ *plan.Workload, c, _ *sample.Observation) { c.Host.ThrottledNs = 1 }},
	{cpuHot, "server: its processor slowed down because it was hot (3 times)", "rr", Conditions{}, func(_ *plan.Workload, _, s *sample.Observation) { s.Host.HotStops = 3 }},
	{CPUThrottled, "", "rr", Conditions{}, func(_ *plan.Workload, c, s *sample.Observation) { c.Host, s.Host = nil, nil }},

	{OtherLoad, "35% of the time", "rr", Conditions{}, idleEnds},
	{OtherLoad, "", "rr", Conditions{IdleBusy: 0.3}, idleEnds},
	{OtherLoad, "", "rr", Conditions{}, func(_ *plan.Workload, c, s *sample.Observation) {
		idleEnds(nil, c, s)
		c.CPU.ProcessNs += 2e8
	}},
	{OtherLoad, "", "rr", Conditions{}, func(_ *plan.Workload, c, s *sample.Observation) {
		idleEnds(nil, c, s)
		s.CPU = sample.CPUTime{} // whose time is not known could have been all of it
	}},

	{fewSamples, "", "rr", Conditions{}, func(_ *plan.Workload, c, _ *sample.Observation) { c.RTT = times(9999, 1) }},
	{fewSamples, "rtt.p99 (10", "rr", Conditions{}, func(_ *plan.Workload, c, _ *sample.Observation) { c.RTT = times(999, 1) }},
	{fewSamples, "rtt.p50, rtt.p90, rtt.p99 (10", "rr", Conditions{}, func(_ *plan.Workload, c, _ *sample.Observation) { c.RTT = times(3, 1) }},
	{fewSamples, "", "udp", Conditions{}, func(_ *plan.Workload, _, s *sample.Observation) { s.Transit = times(9999, 1) }},

	{WindowSkew, "1 s, the server's 1.1 s", "rr", Conditions{}, func(_ *plan.Workload, _, s *sample.Observation) { s.ElapsedNs, s.Operations = 11e8, 22_000 }},
	{WindowSkew, "", "rr", Conditions{}, func(_ *plan.Workload, _, s *sample.Observation) { s.ElapsedNs = 104e7 }},
}

// open makes an open loop of a trial: so many requests were scheduled and sent, each so late, and 24,000 were answered
// within 50 us.
func open(due, sent uint64, lag int64) func(*plan.Workload, *sample.Observation, *sample.Observation) {
	return func(w *plan.Workload, c, s *sample.Observation) {
		*w = w.Paced(float64(due), 0)
		c.Operations, s.Operations, c.RTT = 24_000, 24_000, times(24_000, 50_000)
		c.Schedule = &sample.Schedule{Due: due, Sent: sent, Lag: times(int(sent), lag)}
	}
}

func sound(kind string) (plan.Workload, *sample.Observation, *sample.Observation) {
	switch kind {
	case "stream":
		return bulk()
	case "udp":
		return datagrams()
	case "http":
		return web()
	}
	return exchange(plan.Kind(kind))
}

// rolled makes a trial of http one whose backends were rolled.
func rolled(rolls ...sample.Roll) func(*plan.Workload, *sample.Observation, *sample.Observation) {
	return func(w *plan.Workload, _, s *sample.Observation) {
		change(w, func(h *plan.HTTP) {
			h.Roll, h.Backends, h.Drain, h.Connection = true, len(rolls)+1, 100*time.Millisecond, "close"
		})
		s.Rolls = rolls
	}
}

// silentFrom has the server complete nothing from a row on; each row is so many ns long.
func silentFrom(row int, each int64) func(*plan.Workload, *sample.Observation, *sample.Observation) {
	return func(_ *plan.Workload, c, s *sample.Observation) {
		for i := range 10 {
			r := sample.Interval{StartNs: int64(i) * each, EndNs: int64(i+1) * each, Operations: 500}
			c.Intervals = append(c.Intervals, r)
			if i >= row {
				r.Operations = 0
			}
			s.Intervals = append(s.Intervals, r)
		}
	}
}

// TestStalled: a path that was cut within the window is no path that was measured.
func TestStalled(t *testing.T) {
	for name, c := range map[string]struct {
		row  int
		each int64
		do   func(*plan.Workload, *sample.Observation, *sample.Observation)
		want string
	}{
		"cut":            {row: 6, each: 400e6, want: "the server completed nothing in the last 1.6s of its window"},
		"at the end":     {row: 8, each: 400e6},
		"short window":   {row: 6, each: 100e6},
		"never busy":     {row: 0, each: 400e6},
		"busy all along": {row: 10, each: 400e6},
		"few operations": {row: 6, each: 400e6, do: func(_ *plan.Workload, _, s *sample.Observation) {
			for i := range s.Intervals {
				s.Intervals[i].Operations = min(s.Intervals[i].Operations, 3)
			}
		}},
		"of a tool": {row: 6, each: 400e6, do: func(_ *plan.Workload, _, s *sample.Observation) { s.Tool = &sample.Tool{} }},
		"bursts":    {row: 6, each: 400e6, do: func(w *plan.Workload, _, _ *sample.Observation) { *w = plan.Workload{Spec: plan.RR{Burst: 50}} }},
		"rolled": {row: 6, each: 400e6, do: func(w *plan.Workload, _, _ *sample.Observation) {
			*w = plan.Workload{Spec: plan.HTTP{Roll: true, Backends: 2}}
		}},
		"warm-up alone": {row: 6, each: 400e6, do: func(_ *plan.Workload, _, s *sample.Observation) {
			for i := range s.Intervals[:6] {
				s.Intervals[i].Warmup = true
			}
		}},
	} {
		w, client, server := sound("stream")
		silentFrom(c.row, c.each)(&w, client, server)
		if c.do != nil {
			c.do(&w, client, server)
		}
		if got := Stalled(w, client, server); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if got := Stalled(plan.Workload{}, nil, nil); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}

func TestWarnings(t *testing.T) {
	rung := map[string]bool{}
	for i, c := range cases {
		w, client, server := sound(c.kind)
		if c.spoil != nil {
			c.spoil(&w, client, server)
		}
		_, warnings := Derive(w, client, server, c.c)
		at := slices.IndexFunc(warnings, func(w sample.Warning) bool { return w.ID == c.id })
		switch {
		case c.says == "" && at >= 0:
			t.Errorf("case %d, %s: false alarm: %s", i, c.id, warnings[at].Message)
		case c.says != "" && at < 0:
			t.Errorf("case %d, %s: silent, want %q", i, c.id, c.says)
		case c.says != "" && !strings.Contains(warnings[at].Message, c.says):
			t.Errorf("case %d, %s: says %q, want %q in it", i, c.id, warnings[at].Message, c.says)
		}
		rung[c.id] = rung[c.id] || at >= 0
	}
	for _, c := range checks {
		id := c.id
		if !rung[id] {
			t.Errorf("no case rings %s", id)
		}
	}
}

// TestSoundTrialsAreNotDoubted: an alarm that always rings says nothing.
func TestSoundTrialsAreNotDoubted(t *testing.T) {
	for _, kind := range []string{"rr", "crr", "ping", "stream", "udp", "http"} {
		w, client, server := sound(kind)
		if _, warnings := Derive(w, client, server, Conditions{IdleBusy: 0.02}); len(warnings) != 0 {
			t.Errorf("%s: %v", kind, warnings)
		}
	}
}

func TestWarningsAreInTheManual(t *testing.T) {
	manual, err := os.ReadFile("../../../docs/reference/warnings.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range checks {
		id := c.id
		if !strings.Contains(string(manual), "\n| `"+id+"` |") {
			t.Errorf("docs/reference/warnings.md does not say what %s means", id)
		}
	}
}

// split is the account of a machine of two CPUs which were idle for so long in a second.
func split(idle0, idle1 int64) *sample.HostDelta {
	h := host()
	h.CPUs = map[int]map[string]int64{0: {sample.Idle: idle0}, 1: {sample.Idle: idle1}}
	h.IdleNs = map[int]int64{0: idle0, 1: idle1}
	return h
}

// idleEnds are ends that took 15 % of the time of a CPU that was busy for half of it.
func idleEnds(_ *plan.Workload, c, s *sample.Observation) {
	c.CPU, s.CPU = sample.CPUTime{ThreadsNs: 1e8, ProcessNs: 1e8}, sample.CPUTime{ThreadsNs: 5e7, ProcessNs: 5e7}
}
