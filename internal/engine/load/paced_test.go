package load

import (
	"encoding/binary"
	"io"
	"math"
	"net"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/plan"
)

// TestOpenLoopKeepsItsSchedule: as many requests go out and are answered as are due, and the lag is measured for each
// that went out. How large it is depends on the machine; the log says.
func TestOpenLoopKeepsItsSchedule(t *testing.T) {
	for _, w := range []plan.Workload{
		{Spec: plan.RR{Rate: 500, Arrival: plan.Constant}},
		{Spec: plan.RR{Rate: 5000, Arrival: plan.Constant}},
		{Spec: plan.RR{Rate: 5000}},
		{Spec: plan.RR{Rate: 20_000, Flows: 2}},
		{Spec: plan.RR{Rate: 5000, Wait: "spin"}},
		{Spec: plan.RR{Rate: 5000, Protocol: plan.UDP}},
		{Spec: plan.CRR{Rate: 2000}},
		{Spec: plan.HTTP{Rate: 4000}},
		{Spec: plan.HTTP{Rate: 2000, Connection: "close", Arrival: plan.Constant}},
	} {
		t.Run(w.String(), func(t *testing.T) {
			o := options(w)
			o.Window, o.CPUs = 400*time.Millisecond, []int{0}
			client, _ := trial(t, o)
			s := client.Schedule
			if s == nil || s.Lag == nil {
				t.Fatal("no account of the schedule")
			}
			t.Logf("lag p50 %v p99 %v max %v; latency p50 %v p99 %v; %d of %d",
				time.Duration(s.Lag.Quantile(0.5)), time.Duration(s.Lag.Quantile(0.99)), time.Duration(s.Lag.Max()),
				time.Duration(client.RTT.Quantile(0.5)), time.Duration(client.RTT.Quantile(0.99)), s.Sent, s.Due)
			want := w.Traits().Rate * float64(client.ElapsedNs) / 1e9
			if got := float64(s.Due); math.Abs(got-want) > 6*math.Sqrt(want)+2 {
				t.Errorf("%g requests fell due, want about %.0f", got, want)
			}
			if uint64(s.Lag.Count()) > s.Sent || client.RTT.Count() == 0 {
				t.Errorf("lag of %d requests, %d went out", s.Lag.Count(), s.Sent)
			}
		})
	}
}

// stalling answers rr requests of one byte on the flow that a client opens, and is away once for pause.
func stalling(t *testing.T, pause time.Duration) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		b := make([]byte, greetingSize)
		if _, err := io.ReadFull(conn, b); err != nil {
			return
		}
		if _, err := conn.Write(b); err != nil {
			return
		}
		for n := 0; ; n++ {
			if n == 200 {
				time.Sleep(pause)
			}
			if _, err := io.ReadFull(conn, b[:1]); err != nil {
				return
			}
			if _, err := conn.Write(b[:1]); err != nil {
				return
			}
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

// TestOpenLoopOmitsNothing: while the server is away, requests go on falling due, and each is as late as it was. A closed
// loop would have had one slow transaction.
func TestOpenLoopOmitsNothing(t *testing.T) {
	needNamespace(t)
	const pause = 120 * time.Millisecond
	for _, w := range []plan.Workload{
		{Spec: plan.RR{Rate: 2000, Arrival: plan.Constant}},
		{Spec: plan.RR{Rate: 2000}},
		{Spec: plan.RR{}},
	} {
		o := options(w)
		o.Warmup, o.Window, o.Side = 0, 600*time.Millisecond, control.SideClient
		o.Port = stalling(t, pause)
		r := wait(t, start(t.Context(), prepare(t, control.SideClient, o)), 1)[0]
		if r.err != nil {
			t.Fatal(r.err)
		}
		slow := int64(0)
		r.o.RTT.Each(func(ns, n int64) {
			if ns >= int64(pause/2) {
				slow += n
			}
		})
		// What fell due in the first half of the pause, 120 requests, had to wait for the other half.
		if w.Traits().Rate > 0 && slow < 60 || w.Traits().Rate == 0 && slow < 1 {
			t.Errorf("%s: %d slow transactions of %d", w, slow, r.o.Operations)
		}
		if w.Traits().Rate == 0 && slow > 20 {
			t.Errorf("%s: a closed loop has %d transactions that waited for one pause", w, slow)
		}
	}
}

// TestPacedDatagramsAreGivenUp: a server that leaves every fourth request without an answer costs timeouts, and no other
// request its answer.
func TestPacedDatagramsAreGivenUp(t *testing.T) {
	needNamespace(t)
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IP{127, 0, 0, 1}})
	must(t, err)
	defer conn.Close()
	go func() {
		b := make([]byte, 2048)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			if isGreeting(b[:n]) || binary.BigEndian.Uint64(b)%4 != 0 {
				_, _ = conn.WriteToUDPAddrPort(b[:n], from)
			}
		}
	}()
	o := options(plan.Workload{Spec: plan.RR{Protocol: plan.UDP, Rate: 2000}})
	o.Timeout, o.Window, o.Port = 20*time.Millisecond, 400*time.Millisecond, conn.LocalAddr().(*net.UDPAddr).Port
	r := wait(t, start(t.Context(), prepare(t, control.SideClient, o)), 1)[0]
	if r.err != nil {
		t.Fatal(r.err)
	}
	lost := r.o.Errors[timedOut.String()]
	all := float64(lost + r.o.Operations)
	if len(r.o.Errors) != 1 || float64(lost) < all/5 || math.Abs(all-float64(r.o.Schedule.Sent)) > 100+all/5 {
		t.Errorf("%d operations, errors %v, %d sent", r.o.Operations, r.o.Errors, r.o.Schedule.Sent)
	}
}

// TestOverload: a path that is asked for far more than it can do is late, and says so: what falls due goes on, what is
// sent does not.
func TestOverload(t *testing.T) {
	for _, w := range []plan.Workload{{Spec: plan.RR{Rate: 5e7}}, {Spec: plan.CRR{Rate: 5e6}}, {Spec: plan.HTTP{Rate: 5e6}}} {
		o := options(w)
		client, _ := trial(t, o)
		s := client.Schedule
		if s.Sent >= s.Due/2 || client.Operations == 0 || failures(client) > 0 {
			t.Errorf("%s: %d due, %d sent, %d answered, errors %v", w, s.Due, s.Sent, client.Operations, client.Errors)
		}
	}
}

// TestStreamBesideRR: the stream moves bytes that are no transaction's.
func TestStreamBesideRR(t *testing.T) {
	w := plan.Workload{Spec: plan.RR{Under: "stream", Flows: 2}}
	client, server := trial(t, options(w))
	if client.Beside == nil || server.Beside == nil || client.Beside.BytesSent == 0 || server.Beside.BytesReceived == 0 {
		t.Fatalf("client %+v, server %+v", client.Beside, server.Beside)
	}
	if client.BytesSent != client.Operations || client.RTT.Count() == 0 {
		t.Errorf("%d bytes in %d transactions", client.BytesSent, client.Operations)
	}
}

// TestClosedLoopsDoNotPause: what becomes due by a response goes out at once, also when it was the last one under way. A
// thread that slept until its next pulse would do 40 bursts a second.
func TestClosedLoopsDoNotPause(t *testing.T) {
	for _, w := range []plan.Workload{
		{Spec: plan.RR{Burst: 2}}, {Spec: plan.RR{Burst: 2, Protocol: plan.UDP}}, {Spec: plan.RR{Arrival: plan.Saturate}},
		{Spec: plan.RR{Arrival: plan.Saturate, Protocol: plan.UDP}}, {Spec: plan.CRR{Arrival: plan.Saturate}},
	} {
		o := options(w)
		o.CPUs = []int{0} // where the server runs first, all responses are there at once
		client, _ := trial(t, o)
		pulses := uint64(client.ElapsedNs/int64(tick)) + 2
		if most := pulses * uint64(w.Normalize().Traits().Concurrency()); client.Operations <= most {
			t.Errorf("%s: %d transactions in %d pulses", w, client.Operations, pulses)
		}
	}
}
