package iperf3

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// iperf3Sum is a row of totals of iperf3's JSON. Pointers distinguish a missing number from 0.
type iperf3Sum struct {
	Start       float64  `json:"start"`
	End         float64  `json:"end"`
	Seconds     float64  `json:"seconds"`
	Bytes       *float64 `json:"bytes"`
	Retransmits *float64 `json:"retransmits"`
	JitterMs    *float64 `json:"jitter_ms"`
	Lost        *float64 `json:"lost_packets"`
	Packets     *float64 `json:"packets"`
	Omitted     bool     `json:"omitted"`
}

// iperf3Doc is one run of iperf3 -J, from either side.
type iperf3Doc struct {
	Start struct {
		Version    string `json:"version"`
		SystemInfo string `json:"system_info"`
		Timestamp  struct {
			Seconds int64 `json:"timesecs"`
		} `json:"timestamp"`
		// Accepted is present in the output of a server.
		Accepted *json.RawMessage `json:"accepted_connection"`
		Test     *iperf3Test      `json:"test_start"`
		// Cookie identifies a test. It is the same on both sides.
		Cookie string `json:"cookie"`
		// Buffer is the value of -w, MSS of -M.
		Buffer int `json:"sock_bufsize"`
		MSS    int `json:"tcp_mss"`
		// Connected are the sockets of the test.
		Connected []struct {
			Host string `json:"remote_host"`
		} `json:"connected"`
	} `json:"start"`
	Title string `json:"title"`
	Extra string `json:"extra_data"`
	// Intervals is a list of iperf3Interval, which is read item by item.
	Intervals json.RawMessage `json:"intervals"`
	End       iperf3End       `json:"end"`
	Error     string          `json:"error"`
	// Event and Data are set with --json-stream, a line for each part.
	Event string          `json:"event"`
	Data  json.RawMessage `json:"data"`
	// iperf3Asked is present in the documents of -d.
	iperf3Asked
	// streamed are the intervals of --json-stream, which has a line for each. ended is true after its event "end".
	streamed []iperf3Interval
	ended    bool
}

type iperf3Interval struct {
	Sum iperf3Sum `json:"sum"`
}

// iperf3Asked has fields of the documents that -d prints before the document of the test. Client and FQ are in the request
// that the client sends to the server. Counted is in the results that each side sends to the other.
type iperf3Asked struct {
	Client  string   `json:"client_version"`
	FQ      float64  `json:"fqrate"`
	Counted *float64 `json:"cpu_util_total"`
}

// debugLine matches a line of -d between documents.
var debugLine = pattern.New(`^(?:warning: (?:Debug|Verbose) output|send_parameters:|(?:send|get)_results$|(?:SND|RCV)BUF is|Setting \S+ (?:socket )?pacing|Congestion algorithm is|Control connection MSS|sent \d+ bytes|tcpi_snd_|interval_len|interval forces)`)

// IsDebug reports whether line is one that iperf3 -d prints between JSON documents. Such lines can be ignored.
func IsDebug(line []byte) bool { return debugLine.Match(line) }

type iperf3Test struct {
	Protocol string  `json:"protocol"`
	Streams  int     `json:"num_streams"`
	Block    int     `json:"blksize"`
	Omit     float64 `json:"omit"`
	// Duration is the value of -t in s, 0 with -n and -k.
	Duration float64  `json:"duration"`
	Reverse  int      `json:"reverse"`
	Bidir    int      `json:"bidir"`
	Target   *float64 `json:"target_bitrate"`
	// FQ is the rate at which the queueing discipline fq paces a stream. Versions before 3.13 do not print it.
	FQ  *float64 `json:"fqrate"`
	GSO int      `json:"gso"`
	GRO int      `json:"gro"`
	// others are the settings without a field, as "key=value".
	others []string
}

// UnmarshalJSON reads the description of a test. It stores the keys that have no field in t.others.
func (t *iperf3Test) UnmarshalJSON(b []byte) error {
	type plain iperf3Test
	if err := json.Unmarshal(b, (*plain)(t)); err != nil {
		return err
	}
	t.others = adapter.Unread(b, "protocol", "num_streams", "blksize", "omit", "reverse", "bidir", "target_bitrate", "fqrate", "gso", "gro",
		"duration", "interval")
	return nil
}

type iperf3End struct {
	Sum        *iperf3Sum `json:"sum"`
	Sent       *iperf3Sum `json:"sum_sent"`
	Received   *iperf3Sum `json:"sum_received"`
	Congestion string     `json:"sender_tcp_congestion"`
	// Receivers is the receiver's congestion control, the only one that a server prints.
	Receivers string `json:"receiver_tcp_congestion"`
	// SentBack and ReceivedBack are the rows of the reverse direction. They exist in a bidirectional test, even if test_start
	// does not say that the test is bidirectional.
	SentBack     *iperf3Sum       `json:"sum_sent_bidir_reverse"`
	ReceivedBack *iperf3Sum       `json:"sum_received_bidir_reverse"`
	CPU          *json.RawMessage `json:"cpu_utilization_percent"`
}

// twice are the keys that iperf3 3.7 to 3.10 write once for each direction of a bidirectional test, the client's first.
var twice = []string{"intervals.sum", "end.sum", "end.sum_sent", "end.sum_received", "data.sum", "data.sum_sent", "data.sum_received"}

// UnmarshalJSON reads the totals. The two values of a duplicate key belong to the two directions.
func (e *iperf3End) UnmarshalJSON(b []byte) error {
	type plain iperf3End
	if err := json.Unmarshal(b, (*plain)(e)); err != nil {
		return err
	}
	var err error
	for _, key := range []struct {
		name        string
		there, back **iperf3Sum
	}{{"sum", &e.Sum, &e.ReceivedBack}, {"sum_sent", &e.Sent, &e.SentBack}, {"sum_received", &e.Received, &e.ReceivedBack}} {
		if v := adapter.Values(b, key.name); len(v) == 2 {
			*key.there, *key.back = nil, nil
			err = errors.Join(err, json.Unmarshal(v[0], key.there), json.Unmarshal(v[1], key.back))
		}
	}
	return err
}

func matchJSON(b []byte) bool {
	if !adapter.StartsJSON(b) {
		return false
	}
	return bytes.Contains(b, []byte(`"intervals"`)) && bytes.Contains(b, []byte(`"start"`)) ||
		bytes.Contains(b, []byte(`"event"`)) && bytes.Contains(b, []byte(`"iperf `))
}

// DecodeJSON decodes the output of iperf3 -J or --json-stream: one run, several in a row, or a list of runs of -J. It
// fails if a run is cut off, or if its workload is not supported.
func DecodeJSON(b []byte) (adapter.Batch, error) {
	batch := adapter.Batch{}
	if err := adapter.Twice(b, twice...); err != nil {
		return batch, err
	}
	if t := bytes.TrimSpace(b); len(t) > 0 && t[0] == '[' {
		return batch, adapter.EachItem(t, func(doc iperf3Doc) error { return doc.addReading(&batch) })
	}
	d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(b, []byte("\ufeff"))))
	var streamed *iperf3Doc
	var asked *iperf3Asked
	// flush ends a streamed run. A failed run may have no end event.
	flush := func() error {
		doc := streamed
		streamed = nil
		switch {
		case doc == nil:
			return nil
		case !doc.ended && doc.Error == "":
			return errors.New("the test has no end: the output is cut off")
		}
		return doc.addReading(&batch)
	}
	for len(batch.Readings) < adapter.MaxReadings {
		var doc iperf3Doc
		err := d.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return batch, flush()
		}
		if err != nil {
			return adapter.Batch{}, adapter.JSONError(b, d.InputOffset(), err)
		}
		switch {
		case doc.Client != "":
			asked = &doc.iperf3Asked
			continue
		case doc.Counted != nil:
			continue
		case asked != nil && doc.Start.Test != nil && doc.Start.Test.FQ == nil:
			doc.Start.Test.FQ = &asked.FQ
		}
		switch doc.Event {
		case "":
			asked = nil
			if err = flush(); err == nil {
				err = doc.addReading(&batch)
			}
		case "start":
			err = flush()
			fallthrough
		default:
			streamed = cmp.Or(streamed, &iperf3Doc{})
			err = errors.Join(err, doc.addToRun(streamed))
		}
		if err != nil {
			return adapter.Batch{}, fmt.Errorf("line %d: %w", adapter.LineAt(b, d.InputOffset()), err)
		}
	}
	return adapter.Batch{}, fmt.Errorf("more than %d trials", adapter.MaxReadings)
}

// addToRun adds doc, one line of --json-stream, to the run in to. It fails if the line has invalid data.
func (doc *iperf3Doc) addToRun(to *iperf3Doc) error {
	var err error
	switch doc.Event {
	case "start":
		err = json.Unmarshal(doc.Data, &to.Start)
	case "interval":
		var i iperf3Interval
		err = json.Unmarshal(doc.Data, &i)
		to.streamed = append(to.streamed, i)
	case "end":
		to.ended = true
		err = json.Unmarshal(doc.Data, &to.End)
	case "error":
		if err = json.Unmarshal(doc.Data, &to.Error); err == nil && to.Error == "" {
			to.Error = "an error without a message"
		}
	}
	return err
}

// addReading adds the reading of a run to batch. It adds no reading if a server was stopped, or if this side did not observe
// what arrived. It fails if the workload is not supported, or if the run has neither a test nor an error.
func (doc *iperf3Doc) addReading(batch *adapter.Batch) error {
	batch.Tool = cmp.Or(strings.Replace(doc.Start.Version, "iperf ", "iperf3 ", 1), "iperf3")
	batch.SystemFacts(doc.Start.SystemInfo)
	r := adapter.Reading{Run: doc.Start.Cookie}
	if s := doc.Start.Timestamp.Seconds; s > 0 && s < math.MaxInt32 {
		r.Started = time.Unix(s, 0).UTC()
	}
	if t := doc.Start.Test; t != nil {
		w, err := doc.readWorkload(&r)
		if err != nil {
			return err
		}
		r.Workload = w
		batch.Omit(&r, t.Omit)
	}
	switch {
	case doc.Start.Test == nil && strings.HasPrefix(doc.Error, "interrupt - the server has terminated"):
		return nil // the end of a server, and not of a test
	case doc.Error != "":
		r.Fail(adapter.FailureKind(doc.Error), doc.Error)
	case doc.Start.Test == nil:
		return errors.New("it has neither start.test_start nor error")
	default:
		if !doc.setNumbers(batch, &r) {
			return nil
		}
	}
	batch.Readings = append(batch.Readings, r)
	return nil
}

// readWorkload returns the workload that the run reports, and records its other settings in r.
func (doc *iperf3Doc) readWorkload(r *adapter.Reading) (plan.Workload, error) {
	t := doc.Start.Test
	s := plan.Stream{
		Protocol: plan.Protocol(strings.ToLower(t.Protocol)), Flows: t.Streams, MessageSize: t.Block,
		Reverse: t.Reverse != 0, Bidirectional: t.Bidir != 0 || doc.End.ReceivedBack != nil,
	}
	r.Condition(t.others...)
	for _, c := range doc.Start.Connected {
		r.Host(c.Host)
	}
	if s.Buffer = doc.Start.Buffer; doc.Start.MSS > 0 {
		r.Condition(fmt.Sprintf("tcp_mss=%d", doc.Start.MSS))
	}
	if t.FQ != nil {
		recordFQRate(r, *t.FQ)
	}
	switch s.Protocol {
	case plan.TCP:
		if t.Target != nil && *t.Target > 0 {
			recordRateLimit(r, *t.Target)
		}
		s.Congestion = cmp.Or(doc.End.Congestion, doc.End.Receivers)
		if doc.End.Congestion == "" && doc.Error == "" {
			r.Warn(adapter.Assumed, "the output does not name the sender's congestion control; assumed: %s", cmp.Or(s.Congestion, plan.DefaultCongestion))
		}
	case plan.UDP:
		if err := doc.setDatagramLoad(&s, r); err != nil {
			return plan.Workload{}, err
		}
	default:
		return plan.Workload{}, newProtocolError(t.Protocol)
	}
	w := plan.Workload{Spec: s}.Normalize()
	return w, w.Validate()
}

// newProtocolError returns the error for a test by a protocol other than TCP and UDP.
func newProtocolError(protocol string) error {
	return fmt.Errorf("protocol %s is neither TCP nor UDP", adapter.Quoted(protocol))
}

// recordTitle records title, the user's text from -T or --extra-data, as a condition: it may describe what was measured.
func recordTitle(batch *adapter.Batch, r *adapter.Reading, title string) {
	if title != "" {
		batch.LeaveOut("title %s of a run", adapter.Quoted(title))
		if title = adapter.Heading(title); title != "" {
			r.Condition("title=" + title)
		}
	}
}

// setDatagramLoad sets the rate of a UDP test in s. It sets the mode GSO if the kernel segmented and merged the datagrams.
// It fails if the rate is out of range.
func (doc *iperf3Doc) setDatagramLoad(s *plan.Stream, r *adapter.Reading) error {
	t := doc.Start.Test
	switch {
	case t.GSO != 0 && t.GRO != 0:
		s.Mode = plan.GSO
	case t.GSO != 0 || t.GRO != 0:
		r.Condition(fmt.Sprintf("gso=%d", t.GSO), fmt.Sprintf("gro=%d", t.GRO))
	}
	if t.Target == nil {
		sent := cmp.Or(doc.End.Sent, doc.End.Sum, &iperf3Sum{})
		offered := 0.0
		if n, ok := validCount(sent.Bytes); ok && sent.Seconds > 0 {
			offered = 8 * n / sent.Seconds
		}
		assumeRate(s, r, offered, t.Streams, float64(t.Block)*8/max(sent.Seconds, coarse))
	} else if s.Rate = *t.Target * float64(t.Streams); !(s.Rate >= 0 && s.Rate <= plan.MaxRate) {
		return fmt.Errorf("target_bitrate %v is out of range", *t.Target)
	}
	s.Rate = math.Round(s.Rate)
	return nil
}

// leftCPU is the note that the CPU utilization is left out, for JSON and text.
const leftCPU = "cpu_utilization_percent, which is of the iperf3 processes and not of the machines"

// way has the rows of totals of one direction. received is what arrived, counted is the row with the number of datagrams, and
// sent is what was sent, nil if unknown.
type way struct{ received, counted, sent *iperf3Sum }

// directionTotals returns the one or two directions of the test; nil if the total of what arrived is missing for one of them.
func (doc *iperf3Doc) directionTotals(is plan.Traits) []way {
	e := doc.End
	there := way{e.Received, e.Received, e.Sent}
	if is.Protocol == plan.UDP {
		there.received = cmp.Or(e.Received, e.Sum) // before 3.14 a UDP client may have only this row
		there.counted = there.received
		if there.received != nil && there.received.Packets == nil {
			there.counted = cmp.Or(e.Sum, there.received)
		}
		if e.Sent == nil && doc.Start.Accepted == nil && !is.Reverse {
			there.sent = e.Sum
		}
	}
	back := way{e.ReceivedBack, e.ReceivedBack, e.SentBack}
	switch {
	case there.received == nil, is.Bidirectional && back.received == nil:
		return nil
	case is.Bidirectional:
		return []way{there, back}
	}
	return []way{there}
}

// setNumbers sets the numbers of r from the totals, or makes r a failed trial. It returns false if r must be left out: this
// side of the run did not observe what arrived.
func (doc *iperf3Doc) setNumbers(batch *adapter.Batch, r *adapter.Reading) bool {
	is := r.Workload.Traits()
	ways := doc.directionTotals(is)
	if ways == nil {
		if e := doc.End; cmp.Or(e.Sum, e.Sent, e.Received) == nil {
			r.Fail("interrupted", "it has no totals: the run did not end")
		} else {
			r.Fail("error", "iperf3 wrote no end.sum_received")
		}
		return true
	}
	if doc.Start.Accepted != nil && (is.Reverse || is.Bidirectional) {
		batch.LeaveOut("a server's output of a reversed or bidirectional test: the client is a receiver")
		return false
	}
	r.Window = adapter.Seconds(ways[0].received.Seconds)
	if is.Protocol == plan.UDP {
		recordDatagrams(batch, r, ways, is)
	} else {
		recordBytes(r, ways)
	}
	r.EndedEarly(adapter.Seconds(doc.Start.Test.Duration))
	switch {
	case r.Failure != nil:
	case is.Bidirectional:
		batch.LeaveOut("the intervals of a bidirectional test")
	default:
		if err := doc.storeIntervals(batch, r); err != nil {
			r.Fail("error", fmt.Sprintf("cannot read its intervals: %v", err))
		}
	}
	if doc.End.CPU != nil {
		batch.LeaveOut(leftCPU)
	}
	if doc.Start.Test.FQ == nil {
		batch.LeaveOut(leftFQ)
		warnSteadyRate(r)
	}
	recordTitle(batch, r, strings.TrimSpace(doc.Title+" "+doc.Extra))
	return true
}

// recordGoodput records the sum of rates, in bit/s, as the goodput. If there are two rates, it also records the goodput
// of each direction.
func recordGoodput(r *adapter.Reading, rates []float64) {
	sum := 0.0
	for i, rate := range rates {
		sum += rate
		if len(rates) > 1 {
			r.Put(metric.Goodput+[]string{".forward", ".reverse"}[i], rate)
		}
	}
	r.Put(metric.Goodput, sum)
}

// recordBytes records the totals of TCP in r: transferred bytes, goodput, and retransmits if they were counted.
func recordBytes(r *adapter.Reading, ways []way) {
	var arrived, again float64
	var rates []float64
	counted := true
	for _, w := range ways {
		n, ok := validCount(w.received.Bytes)
		if !ok || n == 0 || w.received.Seconds <= 0 {
			r.Fail("error", "the receiver reported no bytes")
			return
		}
		arrived += n
		rates = append(rates, 8*n/w.received.Seconds)
		if w.sent == nil {
			counted = false
			continue
		}
		retransmits, ok := validCount(w.sent.Retransmits)
		again += retransmits
		counted = counted && ok
	}
	r.Put(metric.Transferred, arrived)
	recordGoodput(r, rates)
	if counted {
		r.Retransmitted(again, arrived)
	}
}

// recordDatagrams records the totals of UDP in r: what arrived is what was sent less what was lost.
func recordDatagrams(batch *adapter.Batch, r *adapter.Reading, ways []way, is plan.Traits) {
	var packets, lost, rate, offered float64
	var rates []float64
	for _, w := range ways {
		n, ok := validCount(w.counted.Packets)
		missing, hasLost := validCount(w.counted.Lost)
		if !ok || !hasLost || n == 0 || missing > n || w.received.Seconds <= 0 {
			r.Fail("error", "the receiver reported no datagrams")
			return
		}
		packets += n
		lost += missing
		rate += (n - missing) / w.received.Seconds
		rates = append(rates, (n-missing)*float64(is.Message)*8/w.received.Seconds)
		if w.sent != nil && w.sent.Seconds > 0 {
			if n, ok := validCount(w.sent.Bytes); ok {
				offered += 8 * n / w.sent.Seconds
			}
		}
	}
	r.Lost(lost, packets)
	r.Put(metric.PacketRate, rate)
	recordGoodput(r, rates)
	r.Put(metric.Transferred, (packets-lost)*float64(is.Message))
	switch jitter, ok := validCount(ways[0].counted.JitterMs); {
	case len(ways) > 1:
		batch.LeaveOut("the jitter of a bidirectional test")
	case ok && packets-lost > 1:
		r.Put(metric.Jitter, jitter*1e6)
	}
	if offered > 0 {
		r.Put(metric.OfferedLoad, offered)
	}
}

// validCount returns a count, and false if the count is missing or out of range. iperf3 writes -1 for an unavailable count.
func validCount(v *float64) (float64, bool) {
	if v == nil || *v < 0 || *v > 1e18 {
		return 0, false
	}
	return *v, true
}

// storeIntervals stores the intervals of the run in r, if the client wrote them.
func (doc *iperf3Doc) storeIntervals(batch *adapter.Batch, r *adapter.Reading) error {
	if doc.Start.Accepted != nil || r.Window <= 0 {
		return nil
	}
	o := &sample.Observation{Side: "client", ElapsedNs: int64(r.Window)}
	omit := adapter.Seconds(doc.Start.Test.Omit)
	take := func(i iperf3Interval) error {
		n, ok := validCount(i.Sum.Bytes)
		from, to := adapter.Seconds(i.Sum.Start), adapter.Seconds(i.Sum.End)
		if !ok || to <= from {
			return nil
		}
		// The clock of the omitted rows starts at 0, like the window's.
		if i.Sum.Omitted {
			from, to = from-omit, to-omit
		} else if r.Workload.Traits().Reverse {
			o.BytesReceived += uint64(n)
		} else {
			o.BytesSent += uint64(n)
		}
		o.Intervals = append(o.Intervals, sample.Interval{StartNs: int64(from), EndNs: int64(to), Bytes: uint64(n), Warmup: i.Sum.Omitted})
		return nil
	}
	for _, i := range doc.streamed {
		if err := take(i); err != nil {
			return err
		}
	}
	if err := adapter.EachItem(doc.Intervals, take); err != nil {
		return err
	}
	batch.Rows(r, o)
	return nil
}
