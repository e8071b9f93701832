package external

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

func matchIperf3Text(b []byte) bool {
	s := string(b[:min(len(b), 64<<10)])
	return strings.HasPrefix(s, "iperf3: ") || strings.Contains(s, "\niperf3: ") || iperf3Row.MatchString(s) && !strings.Contains(s, "][*")
}

var (
	iperf3Row      = regexp.MustCompile(`(?m)^\[ *(\d+|SUM)\](\[[TR]X-[CS]\])? +(\d+\.\d+)- *(\d+\.\d+) +sec +(.*)$`)
	iperf3Starting = regexp.MustCompile(`^Starting Test: protocol: (TCP|UDP), (\d+) streams?, (\d+) byte blocks, omitting (\d+) seconds`)
	lostTotal      = regexp.MustCompile(`^(-?\d+)/(\d+)$`)
)

// iperf3Run is one run within the text.
type iperf3Run struct {
	// line is where it begins.
	line          int
	reverse, both bool
	done          bool
	failure       string
	flows, block  int
	omit          float64
	congestion    string
	// rows are the totals at the end by role, single those of each flow, sums those of all.
	single, sums map[string][]string
	lasts        time.Duration
	udp          bool
	intervals    []sample.Interval
	summed       bool
	open         bool
	ids          map[string]bool
}

// iperf3Text is the decoder's state.
type iperf3Text struct {
	batch   Batch
	run     *iperf3Run
	pending string
	faults  faults
}

// decodeIperf3Text reads what iperf3 prints for people, of one run or of several. Its numbers have three digits.
func decodeIperf3Text(b []byte) (Batch, error) {
	t := &iperf3Text{batch: Batch{Tool: "iperf3"}}
	number := 0
	for line := range strings.Lines(string(b)) {
		number++
		line = strings.TrimRight(line, " \t\r\n")
		if err := t.line(number, line); err != nil {
			t.faults.add(number, "%s", err)
		}
		if len(t.batch.Readings) > maxReadings {
			return Batch{}, fmt.Errorf("more than %d trials", maxReadings)
		}
	}
	t.close()
	return t.batch, t.faults.asError()
}

// current is the run that a line belongs to.
func (t *iperf3Text) current(number int) *iperf3Run {
	if t.run == nil {
		t.run = &iperf3Run{line: number, single: map[string][]string{}, sums: map[string][]string{}, ids: map[string]bool{}}
	}
	return t.run
}

func (t *iperf3Text) line(number int, line string) error {
	if message, ok := strings.CutPrefix(line, "iperf3: "); ok {
		message = strings.TrimPrefix(strings.TrimPrefix(message, "error - "), "interrupt - ")
		if t.run != nil && !t.run.done {
			t.run.failure = message
		} else {
			t.closeBefore()
			t.pending = message
		}
		return nil
	}
	switch {
	case strings.HasPrefix(line, "Connecting to host"):
		t.closeBefore()
		t.current(number).open = true
	case strings.HasPrefix(line, "Reverse mode"):
		t.current(number).reverse = true
	case line == "iperf Done.":
		t.current(number).done = true
	case strings.HasPrefix(line, "iperf 3"):
		t.batch.Tool = "iperf3 " + strings.TrimPrefix(line, "iperf ")
	case strings.HasPrefix(line, "Linux "):
		systemFacts(&t.batch, line)
	case strings.HasPrefix(line, "snd_tcp_congestion "):
		t.current(number).congestion = strings.TrimPrefix(line, "snd_tcp_congestion ")
	}
	if m := iperf3Starting.FindStringSubmatch(line); m != nil {
		r := t.current(number)
		r.udp = m[1] == "UDP"
		r.flows, _ = strconv.Atoi(m[2]) // of digits alone; one too large is refused with the workload
		r.block, _ = strconv.Atoi(m[3])
		r.omit, _ = strconv.ParseFloat(m[4], 64)
	}
	if strings.Contains(line, "Total Datagrams") || strings.Contains(line, "Lost/Total") {
		t.current(number).udp = true
	}
	if m := iperf3Row.FindStringSubmatch(line); m != nil {
		return t.row(number, m)
	}
	return nil
}

// row reads a line of the tables: id, role in a bidirectional test, from, to, and the rest.
func (t *iperf3Text) row(number int, m []string) error {
	r := t.current(number)
	if m[2] != "" {
		r.both = true
		return nil
	}
	from, err1 := amount(m[3])
	to, err2 := amount(m[4])
	rest := strings.Fields(m[5])
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if len(rest) < 4 {
		return errors.New("the row is cut")
	}
	role := rest[len(rest)-1]
	sum := m[1] == "SUM"
	if !sum {
		r.ids[m[1]] = true
	}
	if role == "sender" || role == "receiver" {
		table := r.single
		if sum {
			table = r.sums
		}
		table[role] = rest
		r.lasts = max(r.lasts, seconds(to-from))
		return nil
	}
	n, err := iperf3Amount(rest[0], rest[1])
	if err != nil {
		return err
	}
	// With several flows their sum is the series, and it comes after them.
	if sum && !r.summed {
		r.summed, r.intervals = true, nil
	}
	if sum == r.summed {
		r.intervals = append(r.intervals, sample.Interval{
			StartNs: int64(seconds(from)), EndNs: int64(seconds(to)), Bytes: uint64(n), Warmup: role == "(omitted)",
		})
	}
	return nil
}

// iperf3Units are what its text puts behind numbers: bytes in powers of 1024, bits in powers of 1000.
var iperf3Units = map[string]float64{
	"Bytes": 1, "KBytes": 1 << 10, "MBytes": 1 << 20, "GBytes": 1 << 30, "TBytes": 1 << 40,
	"bits/sec": 1, "Kbits/sec": 1e3, "Mbits/sec": 1e6, "Gbits/sec": 1e9, "Tbits/sec": 1e12,
	"Bytes/sec": 8, "KBytes/sec": 8 << 10, "MBytes/sec": 8 << 20, "GBytes/sec": 8 << 30, "TBytes/sec": 8 << 40,
}

// iperf3Amount reads a number with its unit: bytes, or bit/s.
func iperf3Amount(value, unit string) (float64, error) {
	size, ok := iperf3Units[unit]
	if !ok {
		return 0, fmt.Errorf("unknown unit %s", quoted(unit))
	}
	v, err := amount(value)
	return v * size, err
}

// closeBefore ends the run that stands, because another begins.
func (t *iperf3Text) closeBefore() {
	if t.run != nil {
		t.close()
	}
}

// close makes a reading of the run that stands. A complaint that came before its lines, as when two streams were written
// to one file, is its own if it did not come to its end.
func (t *iperf3Text) close() {
	r := t.run
	t.run = nil
	if t.pending != "" && (r == nil || r.done) {
		failed := Reading{}
		failed.fail(kindOf(t.pending), t.pending)
		t.batch.Readings, t.pending = append(t.batch.Readings, failed), ""
	}
	if r == nil {
		return
	}
	if r.failure == "" {
		r.failure, t.pending = t.pending, ""
	}
	if r.both {
		t.batch.leaveOut("a test in both directions at once (--bidir), which is no workload here")
		return
	}
	out := Reading{Window: r.lasts}
	if err := r.read(&out); err != nil {
		t.faults.add(r.line, "the run that begins here: %s", err)
		return
	}
	t.batch.Warmup = max(t.batch.Warmup, seconds(r.omit))
	t.batch.Readings = append(t.batch.Readings, out)
}

// read makes a reading of a run.
func (r *iperf3Run) read(out *Reading) error {
	if len(r.ids) > 0 || r.flows > 0 {
		w, err := r.workload(out)
		if err != nil {
			return err
		}
		out.Workload = w
	}
	if r.failure != "" {
		out.fail(kindOf(r.failure), r.failure)
		return nil
	}
	totals := r.sums
	if len(totals) == 0 && len(r.ids) == 1 {
		totals = r.single
	}
	received := totals["receiver"]
	if received == nil {
		return errors.New("it has no receiver's total: it is cut, or from a server")
	}
	rate, err := iperf3Amount(received[2], received[3])
	if err != nil {
		return err
	}
	bytes, err := iperf3Amount(received[0], received[1])
	if err != nil {
		return err
	}
	if r.udp {
		return r.datagrams(out, received, totals["sender"])
	}
	if bytes == 0 {
		out.fail("error", "the receiver reported no bytes")
		return nil
	}
	out.put(metric.Goodput, rate)
	out.put(metric.Transferred, bytes)
	// The sender's row has its retransmits before its last word, if the kernel counts them.
	if s := totals["sender"]; len(s) == 6 {
		n, err := count(s[4])
		if err != nil {
			return err
		}
		out.put(metric.RetransmitsPerG, float64(n)/(bytes/1e9))
		out.put(metric.Retransmits, float64(n))
	}
	r.series(out)
	return nil
}

// workload is as much as the text says, and what is assumed of the rest.
func (r *iperf3Run) workload(out *Reading) (plan.Workload, error) {
	w := plan.Workload{Kind: plan.Stream, Protocol: plan.TCP, Flows: max(r.flows, len(r.ids)), MessageSize: r.block, Reverse: r.reverse, Congestion: r.congestion}
	if r.udp {
		w.Protocol = plan.UDP
	}
	w = w.Normalize()
	var taken []string
	if r.block == 0 {
		taken = append(taken, fmt.Sprintf("messages of %d B", w.MessageSize))
	}
	if r.congestion == "" && !r.udp {
		taken = append(taken, w.Congestion)
	}
	if r.udp {
		taken = append(taken, "as fast as possible")
	}
	if len(taken) > 0 {
		out.warn(Assumed, "the text does not say all of the workload: %s taken", strings.Join(taken, " and "))
	}
	out.warn(Rounded, "iperf3's text has three digits")
	return w, w.Validate()
}

// datagrams reads the totals of UDP, "jitter ms lost/total (share)" behind amount and rate.
func (r *iperf3Run) datagrams(out *Reading, received, sent []string) error {
	if len(received) < 8 || received[5] != "ms" {
		return errors.New("the receiver's total has no jitter and loss")
	}
	m := lostTotal.FindStringSubmatch(received[6])
	if m == nil {
		return fmt.Errorf("%s is not lost/total", quoted(received[6]))
	}
	lost, err1 := amount(m[1])
	total, err2 := amount(m[2])
	jitter, err3 := amount(received[4])
	rate, err4 := iperf3Amount(received[2], received[3])
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	if total == 0 || lost > total {
		out.fail("error", "the receiver reported no datagrams")
		return nil
	}
	out.put(metric.Goodput, rate)
	out.put(metric.FrameLossRate, lost/total)
	out.put(metric.Datagrams, total)
	out.put(metric.DatagramsLost, lost)
	if s := r.lasts.Seconds(); s > 0 {
		out.put(metric.PacketRate, (total-lost)/s)
	}
	if total-lost > 1 {
		out.put(metric.Jitter, jitter*1e6)
	}
	if len(sent) > 3 {
		if rate, err := iperf3Amount(sent[2], sent[3]); err == nil && rate > 0 {
			out.put(metric.OfferedLoad, rate)
		}
	}
	r.series(out)
	return nil
}

func (r *iperf3Run) series(out *Reading) {
	if out.Window <= 0 || len(r.intervals) == 0 {
		return
	}
	o := &sample.Observation{Side: "client", ElapsedNs: int64(out.Window)}
	omit := int64(seconds(r.omit))
	for _, i := range r.intervals {
		if i.EndNs <= i.StartNs {
			continue
		}
		if i.Warmup {
			i.StartNs, i.EndNs = i.StartNs-omit, i.EndNs-omit
		}
		o.Intervals = append(o.Intervals, i)
	}
	out.Client = o
}
