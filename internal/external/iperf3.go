package external

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// iperf3Sum is a row of totals of iperf3's JSON. Pointers tell a number that is missing from one that is 0.
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
		// Accepted is there in what a server writes.
		Accepted *json.RawMessage `json:"accepted_connection"`
		Test     *iperf3Test      `json:"test_start"`
	} `json:"start"`
	// Intervals is a list of iperf3Interval, which is read item by item.
	Intervals json.RawMessage `json:"intervals"`
	End       iperf3End       `json:"end"`
	Error     string          `json:"error"`
	// Event and Data are those of --json-stream, a line for each part.
	Event string          `json:"event"`
	Data  json.RawMessage `json:"data"`
	// streamed are the intervals that came one by one.
	streamed []iperf3Interval
	ended    bool
}

type iperf3Interval struct {
	Sum iperf3Sum `json:"sum"`
}

type iperf3Test struct {
	Protocol string   `json:"protocol"`
	Streams  int      `json:"num_streams"`
	Block    int      `json:"blksize"`
	Omit     float64  `json:"omit"`
	Reverse  int      `json:"reverse"`
	Bidir    int      `json:"bidir"`
	Target   *float64 `json:"target_bitrate"`
}

type iperf3End struct {
	Sum        *iperf3Sum `json:"sum"`
	Sent       *iperf3Sum `json:"sum_sent"`
	Received   *iperf3Sum `json:"sum_received"`
	Congestion string     `json:"sender_tcp_congestion"`
	// Back is there in a bidirectional test, also where test_start does not say so.
	Back *iperf3Sum `json:"sum_received_bidir_reverse"`
	CPU  *struct {
		Host float64 `json:"host_total"`
	} `json:"cpu_utilization_percent"`
}

func matchIperf3JSON(b []byte) bool {
	if !startsJSON(b) {
		return false
	}
	return bytes.Contains(b, []byte(`"intervals"`)) && bytes.Contains(b, []byte(`"start"`)) ||
		bytes.Contains(b, []byte(`"event"`)) && bytes.Contains(b, []byte(`"iperf `))
}

// startsJSON says whether b begins with an object or a list.
func startsJSON(b []byte) bool {
	b = bytes.TrimLeft(b, " \t\r\n\ufeff")
	return len(b) > 0 && (b[0] == '{' || b[0] == '[')
}

// decodeIperf3JSON reads one run of iperf3 -J or several behind each other, and --json-stream.
func decodeIperf3JSON(b []byte) (Batch, error) {
	batch := Batch{}
	d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(b, []byte("\ufeff"))))
	var streamed *iperf3Doc
	// flush ends a streamed run. One that failed may have no end of its own.
	flush := func() error {
		doc := streamed
		streamed = nil
		switch {
		case doc == nil:
			return nil
		case !doc.ended && doc.Error == "":
			return errors.New("a test ends before its end: it is cut")
		}
		return doc.read(&batch)
	}
	for len(batch.Readings) < maxReadings {
		var doc iperf3Doc
		err := d.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return batch, flush()
		}
		if err != nil {
			return Batch{}, jsonError(b, d.InputOffset(), err)
		}
		switch doc.Event {
		case "":
			if err = flush(); err == nil {
				err = doc.read(&batch)
			}
		case "start":
			err = flush()
			streamed = &iperf3Doc{}
			fallthrough
		default:
			err = errors.Join(err, doc.join(&streamed))
		}
		if err != nil {
			return Batch{}, fmt.Errorf("line %d: %w", lineAt(b, d.InputOffset()), err)
		}
	}
	return Batch{}, fmt.Errorf("more than %d trials", maxReadings)
}

// join adds the part of a --json-stream line to those before it.
func (doc *iperf3Doc) join(run **iperf3Doc) error {
	if *run == nil {
		*run = &iperf3Doc{}
	}
	to := *run
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
			to.Error = "an error without words"
		}
	}
	return err
}

// read makes a reading of a run.
func (doc *iperf3Doc) read(batch *Batch) error {
	batch.Tool = strings.Replace(doc.Start.Version, "iperf ", "iperf3 ", 1)
	if batch.Tool == "" {
		batch.Tool = "iperf3"
	}
	systemFacts(batch, doc.Start.SystemInfo)
	r := Reading{}
	if s := doc.Start.Timestamp.Seconds; s > 0 && s < math.MaxInt32 {
		r.Started = time.Unix(s, 0).UTC()
	}
	if t := doc.Start.Test; t != nil {
		if t.Bidir != 0 || doc.End.Back != nil {
			batch.leaveOut("a test in both directions at once (--bidir), which is no workload here")
			return nil
		}
		w, err := doc.workload(&r)
		if err != nil {
			return err
		}
		r.Workload = w
		batch.Warmup = max(batch.Warmup, seconds(t.Omit))
	}
	switch {
	case doc.Error != "":
		r.fail(kindOf(doc.Error), doc.Error)
	case doc.Start.Test == nil:
		return errors.New("it says neither which test it was (start.test_start) nor why there was none (error)")
	default:
		if !doc.measure(batch, &r) {
			return nil
		}
	}
	batch.Readings = append(batch.Readings, r)
	return nil
}

// workload is what the run says that it sent.
func (doc *iperf3Doc) workload(r *Reading) (plan.Workload, error) {
	t := doc.Start.Test
	w := plan.Workload{Kind: plan.Stream, Protocol: plan.Protocol(strings.ToLower(t.Protocol)), Flows: t.Streams, MessageSize: t.Block, Reverse: t.Reverse != 0}
	switch w.Protocol {
	case plan.TCP:
		if t.Target != nil && *t.Target > 0 {
			r.warn(Paced, "the sender was held to %.4g bit/s a stream", *t.Target)
		}
		if w.Congestion = doc.End.Congestion; w.Congestion == "" && doc.Error == "" {
			r.warn(Assumed, "the congestion control is not said: %s is taken", plan.DefaultCongestion)
		}
	case plan.UDP:
		if t.Target == nil {
			r.warn(Assumed, "the intended rate is not said: as fast as possible is taken")
		} else if w.Rate = *t.Target * float64(t.Streams); !(w.Rate >= 0 && w.Rate <= plan.MaxRate) {
			return w, fmt.Errorf("target_bitrate %v is out of range", *t.Target)
		}
		w.Rate = math.Round(w.Rate)
	default:
		return w, fmt.Errorf("protocol %s is neither TCP nor UDP", quoted(t.Protocol))
	}
	w = w.Normalize()
	return w, w.Validate()
}

// measure reads the totals; false if this side of the run did not see what arrived.
func (doc *iperf3Doc) measure(batch *Batch, r *Reading) bool {
	e := doc.End
	received := e.Received
	if received == nil && r.Workload.Protocol == plan.UDP {
		received = e.Sum // before 3.14 a UDP client may have this one alone
	}
	if received == nil {
		r.fail("error", "iperf3 wrote no end.sum_received")
		return true
	}
	if doc.Start.Accepted != nil && r.Workload.Reverse {
		batch.leaveOut("what the server of a reversed test says: the client knows what arrived")
		return false
	}
	r.Window = seconds(received.Seconds)
	if r.Workload.Protocol == plan.UDP {
		doc.datagrams(r, received)
	} else {
		doc.bytes(r, received)
	}
	if r.Failure == nil {
		if err := doc.series(r); err != nil {
			r.fail("error", fmt.Sprintf("its intervals cannot be read: %v", err))
		}
	}
	if e.CPU != nil {
		batch.leaveOut("cpu_utilization_percent, which is of the iperf3 processes and not of the machines")
	}
	return true
}

// bytes reads the totals of TCP.
func (doc *iperf3Doc) bytes(r *Reading, received *iperf3Sum) {
	n, ok := received.number(received.Bytes)
	if !ok || n == 0 || received.Seconds <= 0 {
		r.fail("error", "the receiver reported no bytes")
		return
	}
	r.put(metric.Transferred, n)
	r.put(metric.Goodput, 8*n/received.Seconds)
	if s := doc.End.Sent; s != nil {
		if retransmits, ok := s.number(s.Retransmits); ok {
			r.put(metric.RetransmitsPerG, retransmits/(n/1e9))
			r.put(metric.Retransmits, retransmits)
		}
	}
}

// datagrams reads the totals of UDP: what arrived is what was sent less what was lost.
func (doc *iperf3Doc) datagrams(r *Reading, received *iperf3Sum) {
	counted := received
	if received.Packets == nil && doc.End.Sum != nil {
		counted = doc.End.Sum
	}
	packets, ok := counted.number(counted.Packets)
	lost, hasLost := counted.number(counted.Lost)
	if !ok || !hasLost || packets == 0 || lost > packets || received.Seconds <= 0 {
		r.fail("error", "the receiver reported no datagrams")
		return
	}
	arrived := packets - lost
	r.put(metric.FrameLossRate, lost/packets)
	r.put(metric.Datagrams, packets)
	r.put(metric.DatagramsLost, lost)
	r.put(metric.PacketRate, arrived/received.Seconds)
	r.put(metric.Goodput, arrived*float64(r.Workload.MessageSize)*8/received.Seconds)
	r.put(metric.Transferred, arrived*float64(r.Workload.MessageSize))
	if jitter, ok := counted.number(counted.JitterMs); ok && arrived > 1 {
		r.put(metric.Jitter, jitter*1e6)
	}
	s := doc.End.Sent
	if s == nil && doc.Start.Accepted == nil && !r.Workload.Reverse {
		s = doc.End.Sum
	}
	if s != nil && s.Seconds > 0 {
		if n, ok := s.number(s.Bytes); ok && n > 0 {
			r.put(metric.OfferedLoad, 8*n/s.Seconds)
		}
	}
}

// parseNumber returns a count that is there and can be one; iperf3 writes -1 for one that it could not have.
func (*iperf3Sum) number(v *float64) (float64, bool) {
	if v == nil || *v < 0 || *v > 1e18 {
		return 0, false
	}
	return *v, true
}

// series keeps the intervals of the side that wrote the run, if that is the client.
func (doc *iperf3Doc) series(r *Reading) error {
	if doc.Start.Accepted != nil || r.Window <= 0 {
		return nil
	}
	o := &sample.Observation{Side: "client", ElapsedNs: int64(r.Window)}
	omit := seconds(doc.Start.Test.Omit)
	take := func(i iperf3Interval) error {
		n, ok := i.Sum.number(i.Sum.Bytes)
		from, to := seconds(i.Sum.Start), seconds(i.Sum.End)
		if !ok || to <= from {
			return nil
		}
		// The clock of the omitted rows starts at 0, as that of the window does.
		if i.Sum.Omitted {
			from, to = from-omit, to-omit
		} else if r.Workload.Reverse {
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
	if err := eachItem(doc.Intervals, take); err != nil {
		return err
	}
	if len(o.Intervals) > 0 {
		r.Client = o
	}
	return nil
}

// longest bounds a time that a stranger states: no trial lasts a year.
const longest = 365 * 24 * time.Hour

// seconds turns a number of seconds into a duration; what cannot be one is 0.
func seconds(s float64) time.Duration {
	if !(s > 0 && s < longest.Seconds()) {
		return 0
	}
	return time.Duration(math.Round(s * 1e9))
}

// systemFacts takes apart what uname says: "Linux NODE RELEASE ... MACHINE".
func systemFacts(batch *Batch, uname string) {
	words := strings.Fields(uname)
	if len(words) < 4 || words[0] != "Linux" {
		return
	}
	batch.fact(facts.Kernel, words[2])
	machine := words[len(words)-1]
	if m := map[string]string{"x86_64": "amd64", "aarch64": "arm64"}[machine]; m != "" {
		machine = m
	}
	batch.fact(facts.Architecture, machine)
}

// eachItem reads a JSON list item by item, so that a list of millions is not held at once. No list is an empty one.
func eachItem[T any](b []byte, take func(T) error) error {
	d := json.NewDecoder(bytes.NewReader(b))
	open, err := d.Token()
	if errors.Is(err, io.EOF) || err == nil && open == nil {
		return nil
	}
	if err != nil {
		return jsonError(b, d.InputOffset(), err)
	}
	if open != json.Delim('[') {
		return errors.New("there is no list where one is wanted")
	}
	for n := 1; d.More(); n++ {
		var item T
		if err := d.Decode(&item); err != nil {
			return jsonError(b, d.InputOffset(), err)
		}
		if n > maxReadings {
			return fmt.Errorf("more than %d items", maxReadings)
		}
		if err := take(item); err != nil {
			return fmt.Errorf("item %d: %w", n, err)
		}
	}
	if _, err := d.Token(); err != nil {
		return jsonError(b, d.InputOffset(), err)
	}
	return alone(b, d)
}

// alone refuses a second result behind the one that d has read; text behind it may be a tool's last words.
func alone(b []byte, d *json.Decoder) error {
	if startsJSON(b[min(d.InputOffset(), int64(len(b))):]) {
		return fmt.Errorf("line %d: a second result begins: give each a file of its own", lineAt(b, d.InputOffset()))
	}
	return nil
}

// lineAt returns the number of the line of b that holds offset.
func lineAt(b []byte, offset int64) int {
	return 1 + bytes.Count(b[:min(max(offset, 0), int64(len(b)))], []byte("\n"))
}

// jsonError says in which line JSON is wrong, and what cut JSON is.
func jsonError(b []byte, offset int64, err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		offset = max(offset, syntax.Offset)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || syntax != nil && int(syntax.Offset) >= len(bytes.TrimSpace(b)) {
		return fmt.Errorf("line %d: it is cut in the middle", lineAt(b, int64(len(b))))
	}
	return fmt.Errorf("line %d: %w", lineAt(b, offset), err)
}
