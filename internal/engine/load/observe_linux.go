package load

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/kernel/proc"
	"github.com/cnibench/cnibench/internal/kernel/sock"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// observeWindow returns the observation of the window, from the tallies of the threads and from what Run read at both
// edges. It fails if nothing was completed, all flows were lost or a roll failed.
func (t *Trial) observeWindow(begin, end *edge, rows *rows) (*sample.Observation, error) {
	workers := t.workers()
	o := &sample.Observation{
		Side: t.o.Side, ElapsedNs: meanWindowLength(workers, begin, end), Intervals: rows.relativeIntervals(begin.at),
		CPU: sample.CPUTime{ProcessNs: end.process - begin.process, WaitedNs: end.waited - begin.waited},
	}
	var space uint64
	if t.o.Sampled {
		o.BeganNs, space = t.clock.Offset+begin.at, proc.PIDSpace()
	}
	limit := t.earliestNormalEnd(begin, end)
	var counts [kinds]uint64
	missing := 0
	var rtt, connect *sample.Histogram // undisturbed
	for _, w := range workers {
		if t.o.Sampled {
			o.Threads = append(o.Threads, sample.Thread{ID: int(w.count.thread.Load()), Space: space})
		}
		a, b := &w.edges[0], &w.edges[1]
		if w.beside {
			o.Beside = &sample.Beside{BytesSent: b.sent - a.sent, BytesReceived: b.received - a.received}
		} else {
			o.Operations += b.operations - a.operations
			o.BytesSent += b.sent - a.sent
			o.BytesReceived += b.received - a.received
		}
		o.CPU.ThreadsNs += b.cpu - a.cpu
		o.Nice = w.nice
		for k := range counts {
			counts[k] += b.errors[k] - a.errors[k]
		}
		if left := w.count.left.Load(); left > 0 && left < limit {
			counts[w.cause]++
			missing++
		}
		mergeHistogram(&o.RTT, w.hist.rtt.others)
		mergeHistogram(&o.Connect, w.hist.connect.others)
		mergeHistogram(&rtt, w.hist.rtt.undisturbed)
		mergeHistogram(&connect, w.hist.connect.undisturbed)
		if r, ok := w.flow.(*datagramReceiver); ok {
			mergeHistogram(&o.Transit, r.transits.excessHistogram(t.o.Apart))
		}
	}
	mergeHistogram(&o.RTT, rtt)
	mergeHistogram(&o.Connect, connect)
	o.Undisturbed = map[string]float64{}
	for family, h := range map[string]*sample.Histogram{t.traits.Times(): rtt, metric.ConnectTime: connect} {
		if h != nil {
			maps.Insert(o.Undisturbed, h.Percentiles(family))
		}
	}
	o.Schedule = sumSchedules(workers)
	o.TCP = sumTCP(workers, begin.states, end.states)
	o.Backends = sumShares(workers)
	o.Names = sumNames(workers)
	counts[gone] += t.sumDatagrams(o, workers, limit)
	sumDrops(o.Datagrams, begin.drops, end.drops)
	o.Buffers = t.buffersOf(workers)
	if t.traits.Kernel() && t.o.Side == control.SideServer {
		return o, nil
	}
	o.Errors = countsByName(counts)
	var err error
	if o.Rolls, err = t.rolling.observedRolls(); err != nil {
		return nil, asError(t.name(), err)
	}
	switch {
	case o.Operations == 0 && !t.work.mayIdle:
		return nil, t.errorWithKind(counts, t.emptyWindowError(time.Duration(o.CPU.WaitedNs)/time.Duration(t.threads)))
	case missing == t.threads:
		return nil, t.errorWithKind(counts, errGone)
	}
	return o, nil
}

// pauseTCP is the least window that outlasts the first two pauses of TCP after a loss, of 200 and 400 ms.
const pauseTCP = time.Second

// emptyWindowError returns the error of a window without a completed operation. If the window was too short, the error says
// how long it should be. waited is how long each load thread was ready without getting its CPU: a long wait means that
// the machine is the cause.
func (t *Trial) emptyWindowError(waited time.Duration) error {
	switch window := t.o.Window; {
	case t.traits.Names.Given():
		return errors.New("no name was resolved in the window")
	case waited > window/2:
		return fmt.Errorf("nothing was completed in the window of %v: each load thread waited %v for its CPU, which something else held; stop that, or use a window of at least %v",
			window, waited.Round(time.Millisecond), max(pauseTCP, 2*waited).Round(time.Second))
	case t.o.Setup > defaultSetup && window < t.o.Setup:
		return fmt.Errorf("nothing was completed in the window of %v: the path is slow; use a window of at least %v", window, t.o.Setup)
	case t.traits.Protocol == plan.TCP && window < pauseTCP:
		return fmt.Errorf("nothing was completed in the window of %v: the path is slow, or TCP pauses after a loss; use a window of at least %v",
			window, pauseTCP)
	case t.traits.Protocol != plan.TCP && window < 5*time.Second:
		return fmt.Errorf("nothing was completed in the window of %v: each reply was awaited for %v; use a window of several round trips",
			window, t.o.Timeout)
	}
	return errors.New("nothing was completed in the window")
}

// meanWindowLength returns the mean length of the threads' windows in ns. A thread may mark an edge late, and its counts
// belong to the window that it marked. Lost flows are left out unless all are lost.
func meanWindowLength(workers []*worker, begin, end *edge) int64 {
	var sum, n, sumLost, lost int64
	for _, w := range workers {
		length := w.edges[1].at - w.edges[0].at
		if left := w.count.left.Load(); left > 0 && left < end.at {
			sumLost, lost = sumLost+length, lost+1
			continue
		}
		sum, n = sum+length, n+1
	}
	switch {
	case n > 0 && sum > 0:
		return sum / n
	case n == 0 && sumLost > 0:
		return sumLost / lost
	}
	return max(end.at-begin.at, 1)
}

// earliestNormalEnd returns the time from which the end of a flow is not a failure. The two sides' windows differ a little, so
// a client may leave before the server's window ends. On a client, the end of the server is always a failure.
func (t *Trial) earliestNormalEnd(begin, end *edge) int64 {
	if t.o.Side == control.SideClient {
		return end.at
	}
	return begin.at + t.earliestLeave()
}

// clientMayHaveLeft reports whether a client may have left this server by now.
func (t *Trial) clientMayHaveLeft() bool {
	begin := t.edges[0].Load()
	return t.phase.Load() >= window && t.now() >= begin+t.earliestLeave()
}

// earliestLeave returns how long after the start of a server's window a client may leave, in ns.
func (t *Trial) earliestLeave() int64 {
	skew := max(100*time.Millisecond, t.o.Window/10)
	return int64(t.o.Window - skew)
}

// sumSchedules adds up the requests due and sent of all flows of an open loop, and merges the distributions of their
// lags. It returns nil in a closed loop.
func sumSchedules(workers []*worker) *sample.Schedule {
	var sum *sample.Schedule
	for _, w := range workers {
		f, ok := w.flow.(interface{ paced() *pace })
		if !ok || f.paced().lag == nil {
			continue
		}
		if sum == nil {
			sum = &sample.Schedule{}
		}
		p := f.paced()
		sum.Due += p.edges[1].due - p.edges[0].due
		sum.Sent += p.edges[1].sent - p.edges[0].sent
		mergeHistogram(&sum.Lag, p.lag)
	}
	return sum
}

func mergeHistogram(into **sample.Histogram, h *sample.Histogram) {
	if h == nil {
		return
	}
	if *into == nil {
		*into = sample.NewHistogram()
	}
	(*into).Merge(h)
}

func countsByName(counts [kinds]uint64) map[string]uint64 {
	var m map[string]uint64
	for k, n := range counts {
		if n == 0 {
			continue
		}
		if m == nil {
			m = map[string]uint64{}
		}
		m[kind(k).String()] = n
	}
	return m
}

// readTCPStates reads TCP_INFO of every standing TCP flow. It returns nil for workloads without such flows.
func (t *Trial) readTCPStates() map[*worker]sock.TCPState {
	if !t.work.standing || t.traits.Protocol != plan.TCP {
		return nil
	}
	return readSockets(t.workers(), sock.State)
}

// readSockets calls read with the socket of each flow of the workload and returns the results. It leaves out a flow
// whose socket cannot be read, such as one that joined too late.
func readSockets[T any](workers []*worker, read func(fd int) (T, error)) map[*worker]T {
	all := map[*worker]T{}
	for _, w := range workers {
		if w.beside {
			continue
		}
		if v, err := read(w.fd); err == nil {
			all[w] = v
		}
	}
	return all
}

// sumTCP adds up the TCP counters of the flows that existed at both edges, and averages their windows and round trips.
// It returns nil without such flows.
func sumTCP(workers []*worker, begin, end map[*worker]sock.TCPState) *sample.TCPInfo {
	if begin == nil {
		return nil
	}
	var sum sample.TCPInfo
	var flows int64
	for _, w := range workers {
		a, before := begin[w]
		b, after := end[w]
		if !before || !after {
			continue
		}
		flows++
		// The kernel's counters wrap at 2^32; so does the difference.
		sum.Retransmits += uint64(b.Retransmits - a.Retransmits)
		sum.SegmentsOut += uint64(b.SegmentsOut - a.SegmentsOut)
		sum.SegmentsIn += uint64(b.SegmentsIn - a.SegmentsIn)
		sum.CwndSegments += uint64(b.CwndSegments)
		sum.RTTNs += int64(b.RTT)
		sum.RTTVarNs += int64(b.RTTVar)
		if flows == 1 {
			sum.MSSBytes = b.MSS
			sum.Congestion, _ = sock.Congestion(w.fd) // "" if the read fails
		}
	}
	if flows == 0 {
		return nil
	}
	sum.CwndSegments /= uint64(flows)
	sum.RTTNs /= flows
	sum.RTTVarNs /= flows
	return &sum
}

// sumDatagrams adds the receivers' ledgers to o. It returns the number of flows whose datagrams stopped arriving before
// limit: sequence numbers do not show what a dead path loses at the end.
func (t *Trial) sumDatagrams(o *sample.Observation, workers []*worker, limit int64) uint64 {
	var silent uint64
	var known float64 // flows whose jitter is known
	for _, w := range workers {
		r, ok := w.flow.(*datagramReceiver)
		if !ok {
			continue
		}
		if o.Datagrams == nil {
			o.Datagrams = &sample.Datagrams{}
		}
		l, d := &r.ledger, o.Datagrams
		d.Expected += l.expectedCount()
		d.Received += l.received
		d.Lost += l.lostCount()
		d.Reordered += l.reordered
		d.Duplicates += l.duplicates
		if mean := l.jitter.mean(); mean > 0 {
			known++
			d.JitterNs += mean
		}
		d.SilentNs = max(d.SilentNs, limit-r.latest)
		gap := int64(t.o.Window) / int64(max(l.received, 1))
		if l.received > 0 && r.latest < limit-max(10*gap, int64(100*time.Millisecond)) {
			silent++
		}
	}
	if known > 0 {
		o.Datagrams.JitterNs /= known
	}
	return silent
}

// readDrops reads how many datagrams each receiving socket has dropped. It returns nil if the workload does not count
// datagrams. A kernel before 4.12 has no such counter; the sum is then absent.
func (t *Trial) readDrops() map[*worker]sock.Memory {
	if !t.work.straggles {
		return nil
	}
	return readSockets(t.workers(), sock.MemoryOf)
}

// buffersOf returns the sizes of the socket buffers of a stream's first flow. It returns nil for other workloads, and
// if the kernel does not report the sizes.
func (t *Trial) buffersOf(workers []*worker) *sample.Buffers {
	if t.traits.Exchanges() || len(workers) == 0 {
		return nil
	}
	m, err := sock.MemoryOf(workers[0].fd)
	if err != nil {
		return nil
	}
	return &sample.Buffers{ReceiveBytes: uint64(m.ReceiveBuffer), SendBytes: uint64(m.SendBuffer)}
}

// sumDrops adds up the drops of sockets that existed at both edges.
func sumDrops(d *sample.Datagrams, begin, end map[*worker]sock.Memory) {
	if d == nil {
		return
	}
	for w, after := range end {
		before, ok := begin[w]
		if !ok {
			continue
		}
		if d.SocketDrops == nil {
			d.SocketDrops = new(uint64)
		}
		*d.SocketDrops += uint64(after.Drops - before.Drops) // wraps as the counter does
	}
}
