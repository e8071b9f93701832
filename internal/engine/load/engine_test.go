package load

import (
	"slices"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

// everyWorkload has each workload in each of its modes.
var everyWorkload = []plan.Workload{
	{Spec: plan.Stream{}},
	{Spec: plan.Stream{Flows: 3, MessageSize: 1024, Congestion: "reno"}},
	{Spec: plan.Stream{Mode: "sendfile"}},
	{Spec: plan.Stream{Mode: "trunc", Reverse: true}},
	{Spec: plan.Stream{Protocol: plan.UDP}},
	{Spec: plan.Stream{Protocol: plan.UDP, Flows: 2, MessageSize: 16}},
	{Spec: plan.Stream{Protocol: plan.UDP, Rate: 50e6}},
	{Spec: plan.Stream{Protocol: plan.UDP, Rate: 50e6, Flows: 2, Reverse: true}},
	{Spec: plan.Stream{Protocol: plan.UDP, Mix: plan.IMIX}},
	{Spec: plan.Stream{Protocol: plan.UDP, Mix: plan.IMIX, Rate: 20e6, Flows: 2}},
	{Spec: plan.Stream{Protocol: plan.UDP, Mode: plan.GSO}},
	{Spec: plan.Stream{Protocol: plan.UDP, Mode: plan.GSO, MessageSize: 64, Flows: 2, Reverse: true}},
	{Spec: plan.Stream{Protocol: plan.UDP, Mode: plan.GSO, Rate: 50e6, MessageSize: 1000}},
	{Spec: plan.Stream{Protocol: plan.UDP, Buffer: 1 << 20}},
	{Spec: plan.Stream{Buffer: 1 << 20}},
	{Spec: plan.RR{}},
	{Spec: plan.RR{Flows: 3, RequestSize: 1024, ResponseSize: 100_000}},
	{Spec: plan.RR{Protocol: plan.UDP}},
	{Spec: plan.RR{Protocol: plan.UDP, Flows: 3, RequestSize: 1400, ResponseSize: 64}},
	{Spec: plan.CRR{}},
	{Spec: plan.CRR{Flows: 3, RequestSize: 1024, ResponseSize: 1024}},
	{Spec: plan.CRR{RequestSize: 1 << 20, ResponseSize: 1 << 20}},
	{Spec: plan.CRR{Close: "fin", ResponseSize: 100_000}},
	{Spec: plan.HTTP{}},
	{Spec: plan.HTTP{Threads: 1, Connections: 1, ResponseSize: 100_000}},
	{Spec: plan.HTTP{Connections: 101, ResponseSize: 1 << 20}},
	{Spec: plan.HTTP{Connection: "close", Threads: 3, Connections: 20}},
	{Spec: plan.HTTP{Connection: "close", Threads: 1, Connections: 1, ResponseSize: 1 << 20}},
	{Spec: plan.RR{Wait: "spin"}},
	{Spec: plan.RR{Protocol: plan.UDP, Wait: "spin", Flows: 2}},
	{Spec: plan.RR{Burst: 16}},
	{Spec: plan.RR{Protocol: plan.UDP, Burst: 16}},
	{Spec: plan.RR{Arrival: plan.Saturate}},
	{Spec: plan.RR{Protocol: plan.UDP, Arrival: plan.Saturate, Flows: 2}},
	{Spec: plan.RR{Rate: 3000}},
	{Spec: plan.RR{Rate: 3000, Arrival: plan.Constant, Flows: 3, RequestSize: 1024, ResponseSize: 100_000}},
	{Spec: plan.RR{Rate: 3000, Burst: 8, Wait: "spin"}},
	{Spec: plan.RR{Protocol: plan.UDP, Rate: 3000, Flows: 2}},
	{Spec: plan.RR{Protocol: plan.UDP, Rate: 3000, Arrival: plan.Constant, Burst: 4}},
	{Spec: plan.HTTP{Rate: 2000}},
	{Spec: plan.HTTP{Rate: 2000, Connection: "close", Arrival: plan.Constant, Threads: 3, Connections: 20}},
	{Spec: plan.HTTP{Rate: 1000, Threads: 1, Connections: 1, ResponseSize: 100_000}},
	{Spec: plan.RR{Under: "stream"}},
	{Spec: plan.RR{Rate: 500, Under: "stream", Flows: 2}},
	{Spec: plan.CRR{Wait: "spin"}},
	{Spec: plan.CRR{Arrival: plan.Saturate}},
	{Spec: plan.CRR{Rate: 2000}},
	{Spec: plan.CRR{Rate: 2000, Flows: 2, Arrival: plan.Constant, Close: "fin", RequestSize: 300_000, ResponseSize: 300_000}},
	{Spec: plan.CRR{Wait: "spin", Close: "fin", RequestSize: 1 << 20, ResponseSize: 100_000}},
	{Spec: plan.Ping{}},
	{Spec: plan.Ping{Flows: 2, Interval: 2 * time.Millisecond}},
	plan.Kind("dns").Default(),
	plan.Kind("dns").Default().Paced(2000, 0),
}

func TestEveryWorkload(t *testing.T) {
	for _, w := range everyWorkload {
		t.Run(w.String(), func(t *testing.T) {
			o := options(w)
			o.Timeout = time.Second // a busy machine keeps a side waiting for longer than the default of UDP
			client, server := trial(t, o)
			o.Workload = o.Workload.Normalize()
			checkSide(t, o, client)
			checkSide(t, o, server)
			checkBytes(t, o.Workload, client, server)
			checkTimes(t, o.Workload, client)
			sender, receiver := client, server
			if w.Traits().Reverse {
				sender, receiver = server, client
			}
			if w.Traits().Datagrams() {
				checkDatagrams(t, sender, receiver)
			}
		})
	}
}

func TestBothAddressFamilies(t *testing.T) {
	for _, w := range []plan.Workload{
		{Spec: plan.Stream{}}, {Spec: plan.Stream{Protocol: plan.UDP, Rate: 1e7}}, {Spec: plan.RR{}},
		{Spec: plan.RR{Protocol: plan.UDP}}, {Spec: plan.CRR{}}, {Spec: plan.Ping{}}, {Spec: plan.HTTP{}},
		{Spec: plan.HTTP{Connection: "close"}},
	} {
		for _, c := range []struct{ listen, dial string }{{"::1", "::1"}, {"", "::1"}, {"", "127.0.0.1"}} {
			t.Run(w.String()+" "+c.listen+" "+c.dial, func(t *testing.T) {
				needNamespace(t)
				if w.Traits().Protocol != "icmp" { // raw sockets queue the replies of all pings, and drop their own when the queue is full
					t.Parallel()
				}
				o := options(w)
				o.Timeout, o.Window = time.Second, 500*time.Millisecond // others use the machine, too, all at once
				o.Address = c.listen
				client, _ := exchange(t, o, c.dial)
				if client.Operations == 0 || failures(client) > 0 {
					t.Errorf("%d operations, errors %v", client.Operations, client.Errors)
				}
			})
		}
	}
}

// failures counts all errors but what a paced sender did not offer, which a busy machine may cause.
func failures(o *sample.Observation) uint64 {
	var n uint64
	for kind, count := range o.Errors {
		if kind != notOffered.String() {
			n += count
		}
	}
	return n
}

// checkSide checks what holds for every side of every workload.
func checkSide(t *testing.T, o control.Prepare, got *sample.Observation) {
	t.Helper()
	w := o.Workload
	pingServer := w.Traits().Kernel() && got.Side == "server"
	if (got.Operations == 0) != pingServer {
		t.Errorf("%s: %d operations", got.Side, got.Operations)
	}
	if n := failures(got); n > 0 {
		t.Errorf("%s: errors at a normal end: %v", got.Side, got.Errors)
	}
	// The server's window is cut if the client leaves first.
	if elapsed := time.Duration(got.ElapsedNs); got.Side == "client" && elapsed < o.Window/2 || elapsed <= 0 {
		t.Errorf("%s: elapsed %v, window %v", got.Side, elapsed, o.Window)
	}
	// Threads mark the edges a moment after Run has read the clock of the process.
	if got.CPU.ThreadsNs <= 0 != pingServer || got.CPU.ProcessNs < got.CPU.ThreadsNs/2 {
		t.Errorf("%s: CPU %+v", got.Side, got.CPU)
	}
	if standing := w.Traits().Bulk() || w.Traits().Protocol == plan.TCP && w.Kind() == "rr"; (got.TCP != nil) != standing {
		t.Errorf("%s: TCP %+v", got.Side, got.TCP)
	}
	if got.TCP != nil && (got.TCP.Congestion != w.Traits().Congestion || got.TCP.SegmentsOut == 0 || got.TCP.CwndSegments == 0) {
		t.Errorf("%s: TCP %+v, want congestion control %s and segments", got.Side, got.TCP, w.Traits().Congestion)
	}
	checkRows(t, o, got)
}

// checkRows: rows join each other, the warm-up ends where the window begins, and they add up.
func checkRows(t *testing.T, o control.Prepare, got *sample.Observation) {
	t.Helper()
	if len(got.Intervals) < 2 {
		t.Fatalf("%s: %d rows", got.Side, len(got.Intervals))
	}
	var sum uint64
	var used int64
	for i, r := range got.Intervals {
		if r.EndNs <= r.StartNs || r.Warmup != (r.StartNs < 0) {
			t.Errorf("%s: row %d: %+v", got.Side, i, r)
		}
		if i > 0 && !r.Warmup && r.StartNs != 0 && r.StartNs != got.Intervals[i-1].EndNs {
			t.Errorf("%s: row %d does not join the one before", got.Side, i)
		}
		if !r.Warmup {
			sum += r.Operations
			used += r.CPUNs
		}
		if r.CPUNs < 0 || r.CPUNs > (r.EndNs-r.StartNs)*int64(max(o.Workload.Traits().Flows, 1)+1)*2 {
			t.Errorf("%s: row %d used %d ns of CPU", got.Side, i, r.CPUNs)
		}
	}
	// Run reads the counters a moment before or after the threads mark the edge: a batch or an operation per flow, and
	// what a delayed Run missed.
	if sum == 0 && got.Operations > 0 || sum < got.Operations/2 || sum > 2*got.Operations+100 {
		t.Errorf("%s: rows add up to %d operations of %d", got.Side, sum, got.Operations)
	}
	if all := got.CPU.ThreadsNs; used < all/2 || used > 2*all+int64(5*time.Millisecond) {
		t.Errorf("%s: rows add up to %d ns of CPU of %d", got.Side, used, all)
	}
}

func checkBytes(t *testing.T, w plan.Workload, client, server *sample.Observation) {
	t.Helper()
	if !w.Traits().Exchanges() {
		sender, receiver := client, server
		if w.Traits().Reverse {
			sender, receiver = server, client
		}
		if sender.BytesSent == 0 || receiver.BytesReceived == 0 || sender.BytesReceived != 0 || receiver.BytesSent != 0 {
			t.Errorf("sender %d/%d receiver %d/%d bytes sent/received",
				sender.BytesSent, sender.BytesReceived, receiver.BytesSent, receiver.BytesReceived)
		}
		return
	}
	if w.Traits().Names.Given() {
		return // see TestNames
	}
	request, response := uint64(w.Traits().Request), uint64(w.Traits().Response)
	if w.Traits().Kernel() {
		request, response = uint64(w.Traits().Message), uint64(w.Traits().Message)
	}
	if client.BytesSent != client.Operations*request || client.BytesReceived != client.Operations*response {
		t.Errorf("client: %d operations, %d bytes sent, %d received", client.Operations, client.BytesSent, client.BytesReceived)
	}
	if server.BytesSent != server.Operations*response || server.BytesReceived != server.Operations*request {
		t.Errorf("server: %d operations, %d bytes sent, %d received", server.Operations, server.BytesSent, server.BytesReceived)
	}
}

// checkTimes: each operation of the window is in the distributions exactly once.
func checkTimes(t *testing.T, w plan.Workload, client *sample.Observation) {
	t.Helper()
	if !w.Traits().Exchanges() {
		if client.RTT != nil {
			t.Error("a stream has round-trip times")
		}
		return
	}
	if uint64(client.RTT.Count()) != client.Operations {
		t.Errorf("%d operations, %d round-trip times", client.Operations, client.RTT.Count())
	}
	if client.RTT.Min() < 1000 {
		t.Errorf("a round trip of %d ns", client.RTT.Min())
	}
	if w.Traits().Work == plan.Request {
		if (client.Connect != nil) != w.Traits().Reconnect || client.Connect != nil && client.Connect.Count() == 0 {
			t.Errorf("connect times %v", client.Connect)
		}
		return
	}
	if !w.Traits().Reconnect {
		return
	}
	if uint64(client.Connect.Count()) != client.Operations || client.Connect.Mean() >= client.RTT.Mean() {
		t.Errorf("%d connect times, mean %v of %v", client.Connect.Count(), client.Connect.Mean(), client.RTT.Mean())
	}
}

func checkDatagrams(t *testing.T, sender, receiver *sample.Observation) {
	t.Helper()
	d := receiver.Datagrams
	if d == nil || sender.Datagrams != nil {
		t.Fatalf("datagrams: sender %+v, receiver %+v", sender.Datagrams, receiver.Datagrams)
	}
	if d.Received+d.Lost != d.Expected || d.Received == 0 || d.Duplicates != 0 || d.Reordered != 0 {
		t.Errorf("%+v", d)
	}
	// Each datagram of the window is one operation; stragglers come after it. Of very many every second time is kept, or
	// fewer.
	times := uint64(receiver.Transit.Count())
	if receiver.Operations > d.Received+64 || times > receiver.Operations || times < min(receiver.Operations, mostPassages/4) {
		t.Errorf("%d operations, %d transit times, %+v", receiver.Operations, receiver.Transit.Count(), d)
	}
}

// TestServerOutlivesItsWindow: a client is served after the server's window has ended.
func TestServerOutlivesItsWindow(t *testing.T) {
	for _, w := range []plan.Workload{{Spec: plan.RR{}}, {Spec: plan.CRR{}}, {Spec: plan.RR{Protocol: plan.UDP}}, {Spec: plan.Stream{Reverse: true}}} {
		t.Run(w.String(), func(t *testing.T) {
			needNamespace(t)
			o := options(w)
			o.Timeout = 10 * time.Second // a busy machine must not fail it
			s, c := pair(t, o)
			// The server's window is over before the client's begins.
			server := wait(t, start(t.Context(), s), 1)[0]
			if w.Traits().Exchanges() && server.err == nil {
				t.Errorf("a server that nobody asked reports %d operations", server.o.Operations)
			}
			client := wait(t, start(t.Context(), c), 1)[0]
			if client.err != nil || len(client.o.Errors) > 0 {
				t.Errorf("client after the server's window: %v, %+v", client.err, client.o)
			}
		})
	}
}

// TestClientMayLeaveFirst: the end of the client's window just before the server's is a normal end.
func TestClientMayLeaveFirst(t *testing.T) {
	for _, w := range []plan.Workload{{Spec: plan.RR{}}, {Spec: plan.Stream{Flows: 2}}, {Spec: plan.Stream{Reverse: true}}} {
		t.Run(w.String(), func(t *testing.T) {
			needNamespace(t)
			// A busy machine may start the client so late that it does not leave first; it will not do so every time.
			for try := 1; ; try++ {
				elapsed, window := leaveFirst(t, w)
				if elapsed < window {
					return
				}
				if try == 10 {
					t.Fatalf("the server counts %v of %v although its flows went earlier", elapsed, window)
				}
			}
		})
	}
}

// leaveFirst runs a trial whose client has no warm-up, and so is done sooner. It returns how long the server counted, and
// its window.
func leaveFirst(t *testing.T, w plan.Workload) (elapsed, window time.Duration) {
	t.Helper()
	o := options(w)
	s := prepare(t, "server", o)
	o.Port, o.Warmup = s.Port(), 0
	c := prepare(t, "client", o)
	serving, loading := start(t.Context(), s), start(t.Context(), c)
	client := wait(t, loading, 1)[0]
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	server := wait(t, serving, 1)[0]
	if client.err != nil || server.err != nil || len(server.o.Errors) > 0 {
		t.Fatalf("client %v, server %v %+v", client.err, server.err, server.o)
	}
	return time.Duration(server.o.ElapsedNs), o.Window
}

// TestSilentClientsEdge: a client that has ended its window and stays is silent. The server's thread then learns of the end
// of its own window by a pulse, up to 25 ms late, and its count still ends with the window.
func TestSilentClientsEdge(t *testing.T) {
	needNamespace(t)
	const tries = 6
	late := 0
	for range tries {
		o := options(plan.Workload{Spec: plan.RR{}})
		own := o
		own.Window += 5 * time.Millisecond
		s := prepare(t, "server", own)
		o.Port = s.Port()
		c := prepare(t, "client", o)
		serving, loading := start(t.Context(), s), start(t.Context(), c)
		client, server := wait(t, loading, 1)[0], wait(t, serving, 1)[0]
		if client.err != nil || server.err != nil {
			t.Fatal(client.err, server.err)
		}
		if time.Duration(server.o.ElapsedNs) > own.Window+2*time.Millisecond {
			late++
		}
	}
	if late > tries/2 {
		t.Errorf("%d of %d servers counted beyond their windows", late, tries)
	}
}

func TestEdgesAreCalledOnceEach(t *testing.T) {
	needNamespace(t)
	s, c := pair(t, options(plan.Workload{Spec: plan.RR{}}))
	serving := start(t.Context(), s)
	var calls []bool
	if _, err := c.Run(t.Context(), func(end bool) { calls = append(calls, end) }); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(calls, []bool{false, true}) {
		t.Errorf("edges called with %v", calls)
	}
	if _, err := c.Run(t.Context(), func(bool) {}); kindOf(err) != KindUsage {
		t.Errorf("a second run: %v", err)
	}
	wait(t, serving, 1)
}
