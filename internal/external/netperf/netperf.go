package netperf

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

var (
	netperfBanner = pattern.New(`(?m)^(?:MIGRATED )?(SCTP [A-Z]+(?: MANY)?|TCP STREAM|TCP MAERTS|TCP SENDFILE|UDP STREAM|UDP UNIDIRECTIONAL SEND|TCP REQUEST/RESPONSE|` +
		`UDP REQUEST/RESPONSE|TCP Connect/Request/Response|OMNI [A-Za-z|]*|OMNI) ?TEST (?:from|to) `)
	netperfKey     = pattern.New(`(?m)^(THROUGHPUT|PROTOCOL|DIRECTION|[A-Z0-9]+_LATENCY|TRANSACTION_RATE|[A-Z]+(?:_[A-Z0-9]+)+)=(.*)$`)
	netperfNumbers = pattern.New(`^ *[0-9][0-9. -]*$`)
)

func match(b []byte) bool {
	head := b[:min(len(b), 64<<10)]
	return netperfBanner.Match(head) || bytes.HasPrefix(head, []byte("THROUGHPUT=")) || bytes.Contains(head, []byte("\nTHROUGHPUT=")) ||
		bytes.Contains(head, []byte("Throughput,Throughput Units")) || bytes.Contains(head, []byte("establish control: ")) ||
		bytes.Contains(head, []byte("Latency Microseconds,"))
}

// netperfRun is one run within the text.
type netperfRun struct {
	banner string
	// burst is the number of additional concurrent requests, as in the banner.
	burst string
	// keys are the values of the omni output by its selectors.
	keys map[string]string
	// rows are the first two lines of numbers of a classic table; head is the last line of text before them.
	rows [][]float64
	head string
	// titles are the column titles of -o, until their row is read.
	titles []string
	// above has the last lines that were read, unchanged: -O writes its titles over several lines.
	above []string
	// table is the head above the last row of -o or -O.
	table table
	place
	failure string
	// settings are the parts of the banner other than the test's kind and its addresses.
	settings []string
	// sizes and congestion are the workload's, if printed.
	sizes      adapter.Sizes
	congestion string
}

// place has flags of a run, from its position in the output and from messages.
type place struct {
	// below is true if the run is another row of a table, without a banner or head of its own.
	// detailed is true below the table of the test, where -v 2 writes another table.
	// unsure is true if netperf did not reach the requested confidence.
	below, detailed, unsure bool
}

// text decodes the output of netperf: key=value (-k), CSV (-o), titles stacked over values (-O) and the classic tables.
var text = adapter.RunText[*netperfRun]{
	Tool: "netperf", New: func() *netperfRun { return &netperfRun{keys: map[string]string{}} }, After: nextRun, Begins: begins, Indented: true,
	Over:  func(r *netperfRun) bool { return r.failure != "" && r.banner == "" },
	Again: func(r *netperfRun, line string) bool { return line != "" && line == r.failure },
}

// begins reports whether line begins a run: it is a banner, another row of a table, or a failure to connect. In output
// without banners, the first or a repeated key or title begins a run.
func begins(r *netperfRun, line string) bool {
	if netperfBanner.MatchString(line) || r.isFurtherRow(line) {
		return true
	}
	first := r.banner == "" && len(r.keys) == 0
	if !first && strings.HasPrefix(line, "establish control: ") {
		return true
	}
	if m := netperfKey.FindStringSubmatch(line); m != nil {
		return first || r.keys[m[1]] != ""
	}
	return r.titles == nil && len(line) <= longestRow && isTitleLine(line) && (first || len(r.keys) > 0)
}

// Take reads one line.
func (r *netperfRun) Take(_ *adapter.Batch, line string) error {
	if m := netperfBanner.FindStringSubmatch(line); m != nil {
		*r = netperfRun{keys: map[string]string{}, banner: strings.TrimSpace(m[1]), settings: bannerSettings(line)}
		_, r.burst, _ = strings.Cut(line, "first burst ")
		return nil
	}
	if m := netperfKey.FindStringSubmatch(line); m != nil {
		r.keys[m[1]] = strings.TrimSpace(m[2])
		return nil
	}
	if len(line) > longestRow {
		return errors.New("the line is too long for netperf")
	}
	defer r.keepLine(line)
	r.detailed = r.detailed || strings.HasPrefix(line, "Alignment ")
	switch {
	case r.detailed, r.readStackedRow(line), line == "":
	case isErrorLine(line):
		r.failure = cmp.Or(r.failure, line)
	case isTitleLine(line):
		r.titles, r.below = strings.Split(line, ","), false
	case r.titles != nil && strings.Contains(line, ","):
		return r.readValues(line)
	case netperfNumbers.MatchString(line):
		var row []float64
		for _, s := range strings.Fields(line) {
			v, err := adapter.Number(s)
			if err != nil {
				return err
			}
			row = append(row, v)
		}
		if len(r.rows) < 2 {
			r.rows = append(r.rows, row)
		}
	case strings.HasPrefix(line, "!!! Desired confidence"):
		r.unsure = true
	case len(r.rows) == 0: // text after the numbers does not belong to the run
		r.head = line
	}
	return nil
}

// isErrorLine reports whether a line is an error.
func isErrorLine(line string) bool {
	complaints := []string{"establish control: ", "netperf: ", "Could not establish the control connection", "data send error", "netperf_send", "recv_response: ", "specified file too small"}
	return slices.ContainsFunc(complaints, func(s string) bool { return strings.Contains(line, s) })
}

// netperfTitles maps the column titles of -o to the selectors of -k.
var netperfTitles = map[string]string{
	"Throughput": "THROUGHPUT", "Throughput Units": "THROUGHPUT_UNITS", "Elapsed Time (sec)": "ELAPSED_TIME",
	"Minimum Latency Microseconds": "MIN_LATENCY", "Maximum Latency Microseconds": "MAX_LATENCY",
	"50th Percentile Latency Microseconds": "P50_LATENCY", "90th Percentile Latency Microseconds": "P90_LATENCY",
	"99th Percentile Latency Microseconds": "P99_LATENCY", "Mean Latency Microseconds": "MEAN_LATENCY",
	"Stddev Latency Microseconds": "STDDEV_LATENCY", "Transaction Rate Tran/s": "TRANSACTION_RATE",
	"Round Trip Latency usec/tran": "RT_LATENCY", "Request Size Bytes": "REQUEST_SIZE", "Response Size Bytes": "RESPONSE_SIZE",
	"Local Transport Retransmissions": "LOCAL_TRANSPORT_RETRANS", "Remote Transport Retransmissions": "REMOTE_TRANSPORT_RETRANS",
	"Local Send Size": "LOCAL_SEND_SIZE", "Local Send Throughput": "LOCAL_SEND_THROUGHPUT", "Protocol": "PROTOCOL", "Direction": "DIRECTION",
	"Local Send Calls": "LOCAL_SEND_CALLS", "Remote Recv Calls": "REMOTE_RECV_CALLS", "Remote Send Size": "REMOTE_SEND_SIZE",
	"Initial Burst Requests": "BURST_SIZE", "Local Congestion Control Algorithm": "LOCAL_CONG_CONTROL",
}

func isTitleLine(line string) bool {
	titles := strings.Split(line, ",")
	return len(titles) > 1 && slices.ContainsFunc(titles, func(title string) bool { return netperfTitles[title] != "" })
}

// longestRow bounds a line in bytes; a line of all selectors has some thousands.
const longestRow = 64 << 10

// stackedLines is how many lines the titles of -O take.
const stackedLines = 4

// keepLine stores a line for titles that may be stacked above a row of -O.
func (r *netperfRun) keepLine(line string) {
	r.above = append(r.above, line)
	if n := len(r.above) - stackedLines; n > 0 {
		r.above = r.above[n:]
	}
}

var netperfWords = pattern.New(`\S+`)

// readStackedRow reads line if it is a row of -O, whose values begin below the first letters of their titles, and reports
// whether it is one.
func (r *netperfRun) readStackedRow(line string) bool {
	starts := netperfWords.Regexp().FindAllStringIndex(line, adapter.MaxNames)
	if len(r.above) < stackedLines || len(starts) == 0 || starts[0][0] != 0 {
		return false
	}
	found, known := map[string]string{}, 0
	for i, at := range starts {
		end := len(line) + 1000 // the last title may be longer than its value
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		var title []string
		for _, head := range r.above {
			if word := strings.TrimSpace(head[min(at[0], len(head)):min(end, len(head))]); word != "" {
				title = append(title, word)
			}
		}
		name, ok := netperfTitles[strings.Join(title, " ")]
		switch {
		case len(title) == 0:
			return false
		case ok:
			known++
		default:
			name = strings.Join(title, " ")
		}
		found[name] = line[at[0]:at[1]]
	}
	if known == 0 {
		return false
	}
	r.table = table{stack: slices.Clone(r.above[len(r.above)-stackedLines:]), words: len(starts)}
	maps.Copy(r.keys, found)
	return true
}

// readValues reads the row below the titles of -o.
func (r *netperfRun) readValues(line string) error {
	f, err := csv.NewReader(strings.NewReader(line)).Read()
	if err != nil {
		return err
	}
	if len(f) != len(r.titles) {
		return fmt.Errorf("%d values below %d titles", len(f), len(r.titles))
	}
	for i, title := range r.titles {
		r.keys[cmp.Or(netperfTitles[title], title)] = strings.TrimSpace(f[i])
	}
	r.titles, r.table = nil, table{titles: r.titles}
	return nil
}

// End returns the reading of the run, nil if the run is empty.
func (r *netperfRun) End(batch *adapter.Batch) (*adapter.Reading, error) {
	if r.banner == "" && r.failure == "" && len(r.keys) == 0 && len(r.rows) == 0 {
		return nil, nil
	}
	if burst := cmp.Or(r.keys["BURST_SIZE"], r.burst, "0"); strings.Trim(burst, "0.") != "" && !strings.HasPrefix(burst, "-") {
		batch.LeaveOut("a test with %s more requests under way at once: not a supported workload", adapter.Quoted(burst))
		return nil, nil
	}
	out := &adapter.Reading{}
	return out, r.fillReading(batch, out)
}

// netperfKinds maps the names of tests in banners to workloads.
var netperfKinds = map[string]plan.Workload{
	"TCP STREAM": {Spec: plan.Stream{}}, "TCP SENDFILE": {Spec: plan.Stream{Mode: "sendfile"}}, "TCP MAERTS": {Spec: plan.Stream{Reverse: true}},
	"UDP STREAM": {Spec: plan.Stream{Protocol: plan.UDP}}, "UDP UNIDIRECTIONAL SEND": {Spec: plan.Stream{Protocol: plan.UDP}}, "TCP REQUEST/RESPONSE": {Spec: plan.RR{}},
	"UDP REQUEST/RESPONSE": {Spec: plan.RR{Protocol: plan.UDP}}, "TCP Connect/Request/Response": {Spec: plan.CRR{Close: "fin"}},
}

// netperfDirections maps the directions of the omni output, where the protocol is separate, to workloads.
var netperfDirections = map[string]plan.Workload{
	"Send": {Spec: plan.Stream{}}, "Receive": {Spec: plan.Stream{Reverse: true}}, "Send|Recv": {Spec: plan.RR{}}, "Connect|Send|Recv": {Spec: plan.CRR{Close: "fin"}},
}

// fillReading sets the workload and the numbers of out from the run. The workload stays empty if the output does not name
// the test.
func (r *netperfRun) fillReading(batch *adapter.Batch, out *adapter.Reading) (err error) {
	if strings.HasPrefix(r.banner, "SCTP") {
		return errors.New("a test of SCTP: no workload has that")
	}
	w, known := netperfKinds[r.banner]
	if !known {
		w, known = netperfDirections[r.keys["DIRECTION"]]
		known = known && r.keys["PROTOCOL"] != ""
		if known {
			protocol := plan.Protocol(strings.ToLower(r.keys["PROTOCOL"]))
			if protocol != plan.TCP && protocol != plan.UDP {
				return fmt.Errorf("protocol %s is neither TCP nor UDP", adapter.Quoted(r.keys["PROTOCOL"]))
			}
			if w, err = w.With("protocol", string(protocol)); err != nil {
				return err // this kind does not have the option
			}
		}
	}
	switch {
	case r.failure != "":
		out.Fail(adapter.FailureKind(r.failure), r.failure)
	case len(r.keys) > 0:
		if err := r.readOmni(batch, out, &w); err != nil {
			return err
		}
	default:
		if strings.Contains(r.head, "us/") {
			batch.LeaveOut(machineCPU)
		}
		if err := r.readClassicTable(batch, out, &w); err != nil {
			return err
		}
	}
	if !known {
		return nil
	}
	if rr, ok := w.Spec.(plan.RR); ok && rr.Protocol == plan.UDP && out.Failure == nil && min(rr.RequestSize, rr.ResponseSize) < plan.MinDatagram {
		w.Tool = "netperf" // our engine has no datagrams of this size
	}
	out.Workload = w.Normalize()
	r.recordConditions(out)
	if taken := r.unprintedSettings(out.Workload); taken != "" && out.Failure == nil {
		out.Warn(adapter.Assumed, "netperf does not print the whole workload; assumed: %s", taken)
	}
	return out.Workload.Validate()
}

// unprintedSettings returns a list of the settings of a normalized workload that netperf did not print, "" if it printed all.
func (r *netperfRun) unprintedSettings(w plan.Workload) string {
	var taken []string
	t := w.Traits()
	switch exchanges := t.Exchanges(); {
	case !exchanges && r.sizes.Message != t.Message:
		taken = append(taken, fmt.Sprintf("messages of %d B", t.Message))
	case exchanges && (r.sizes.Request != t.Request || r.sizes.Response != t.Response):
		taken = append(taken, fmt.Sprintf("requests of %d B and responses of %d B", t.Request, t.Response))
	}
	if t.Congestion != r.congestion {
		taken = append(taken, t.Congestion)
	}
	return strings.Join(taken, ", ")
}

// keyNumbers returns the values in r.keys that are imported, as numbers. It leaves out negative numbers, which netperf did not
// measure.
func (r *netperfRun) keyNumbers() (map[string]float64, error) {
	values := map[string]float64{}
	for _, key := range slices.Sorted(maps.Keys(r.keys)) {
		text := r.keys[key]
		switch key {
		case "THROUGHPUT_UNITS", "PROTOCOL", "DIRECTION", "LOCAL_CONG_CONTROL":
			continue
		}
		if !netperfWanted[key] || text == "" {
			continue
		}
		v, err := adapter.Number(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		if v >= 0 {
			values[key] = v
		}
	}
	return values, nil
}

// netperfWanted are the selectors that are read.
var netperfWanted = func() map[string]bool {
	wanted := map[string]bool{}
	for _, key := range netperfTitles {
		wanted[key] = true
	}
	return wanted
}()

// readOmni sets the numbers and the workload from the values of -k, -o and -O.
func (r *netperfRun) readOmni(batch *adapter.Batch, out *adapter.Reading, w *plan.Workload) error {
	v, err := r.keyNumbers()
	if err != nil {
		return err
	}
	leaveOutKeys(batch, r.keys)
	units := r.keys["THROUGHPUT_UNITS"]
	if units == "" {
		units = map[bool]string{true: "Trans/s", false: "10^6bits/s"}[w.Traits().Exchanges()]
		out.Warn(adapter.Assumed, "netperf's output has no units; assumed: %s", units)
	}
	if err := r.setNumbers(batch, out, w, v, units); err != nil {
		return err
	}
	if congestion := r.keys["LOCAL_CONG_CONTROL"]; congestion != "" && w.Traits().Protocol != plan.UDP && !w.Traits().Reverse {
		r.congestion = congestion
		*w, err = w.With("congestion", congestion)
	}
	return err
}

// setNumbers sets the numbers of a test, and the sizes of its workload. v has values by the selectors of -k; units is the
// unit of the throughput.
func (r *netperfRun) setNumbers(batch *adapter.Batch, out *adapter.Reading, w *plan.Workload, v map[string]float64, units string) error {
	out.Window = adapter.Seconds(v["ELAPSED_TIME"])
	r.sizes = adapter.Sizes{Message: adapter.Whole(max(v["LOCAL_SEND_SIZE"], v["REMOTE_SEND_SIZE"])),
		Request: adapter.Whole(v["REQUEST_SIZE"]), Response: adapter.Whole(v["RESPONSE_SIZE"])}
	*w = adapter.Sized(w.Spec, r.sizes)
	if units != "Trans/s" {
		return r.setStreamNumbers(out, v, units, *w)
	}
	rate, has := v["THROUGHPUT"]
	if !has {
		rate = v["TRANSACTION_RATE"]
	}
	if rate == 0 {
		out.Fail("error", "no transaction was completed")
		return nil
	}
	out.Put(metric.TransactionRate, rate)
	for key, member := range map[string]string{
		"MIN_LATENCY": "min", "MAX_LATENCY": "max", "MEAN_LATENCY": "mean", "STDDEV_LATENCY": "stddev", "P50_LATENCY": "p50", "P90_LATENCY": "p90", "P99_LATENCY": "p99",
	} {
		out.Time(metric.RTT, member, v[key]*1e3)
	}
	// netperf computes RT_LATENCY from the rate; it is not measured.
	if _, ok := out.Metrics["rtt.mean"]; !ok && v["RT_LATENCY"] > 0 {
		batch.LeaveOut("RT_LATENCY, which netperf computes from the rate")
	}
	return nil
}

// setStreamNumbers sets the numbers of a stream: goodput, retransmits, offered load and loss, as far as v has them.
func (r *netperfRun) setStreamNumbers(out *adapter.Reading, v map[string]float64, units string, w plan.Workload) error {
	scale, ok := netperfUnits[units]
	if !ok {
		return fmt.Errorf("unknown unit of throughput %s", adapter.Quoted(units))
	}
	rate := v["THROUGHPUT"] * scale
	out.Received(rate)
	if bytes := rate / 8 * v["ELAPSED_TIME"]; bytes > 0 {
		out.Put(metric.Transferred, bytes)
		sender := "LOCAL"
		if s, ok := w.Spec.(plan.Stream); ok && s.Reverse {
			sender = "REMOTE"
		}
		if n, ok := v[sender+"_TRANSPORT_RETRANS"]; ok {
			out.Retransmitted(n, bytes)
		}
	}
	if s, ok := v["LOCAL_SEND_THROUGHPUT"]; ok && s > 0 && strings.EqualFold(r.keys["PROTOCOL"], "UDP") {
		out.Put(metric.OfferedLoad, s*scale)
	}
	if sent, got := v["LOCAL_SEND_CALLS"], v["REMOTE_RECV_CALLS"]; sent > 0 && got > 0 && got <= sent && r.isUDP() {
		out.Lost(sent-got, sent)
	}
	return nil
}

func (r *netperfRun) isUDP() bool {
	return strings.HasPrefix(r.banner, "UDP") || strings.EqualFold(r.keys["PROTOCOL"], "UDP")
}

// netperfUnits maps netperf's units of throughput to their size in bit/s. Prefixes of bytes are powers of 1024.
var netperfUnits = map[string]float64{
	"10^0bits/s": 1, "10^3bits/s": 1e3, "10^6bits/s": 1e6, "10^9bits/s": 1e9,
	"Bytes/s": 8, "KBytes/s": 8 << 10, "MBytes/s": 8 << 20, "GBytes/s": 8 << 30,
}

// machineCPU is the note that netperf's CPU numbers are left out: a reading has the CPU time of processes.
const machineCPU = "netperf's CPU utilization and service demand, which are of the whole machines"

// leaveOutKeys lists the values that are not imported as left out. It skips empty values, and -1, which netperf writes for
// what it did not measure.
func leaveOutKeys(batch *adapter.Batch, keys map[string]string) {
	unread := 0
	for key, value := range keys {
		switch low := strings.ToLower(key); {
		case netperfWanted[key], value == "", strings.HasPrefix(value, "-1"):
		case strings.Contains(low, "cpu") && strings.Contains(low, "util"), strings.HasSuffix(low, "_sd"), strings.Contains(low, "service demand"):
			batch.LeaveOut(machineCPU)
		default:
			unread++
		}
	}
	if unread > 0 {
		batch.LeaveOut("%s of netperf without a metric here", number.Counted(unread, "further value"))
	}
}

// readClassicTable reads the table of numbers, whose columns depend on the test.
func (r *netperfRun) readClassicTable(batch *adapter.Batch, out *adapter.Reading, w *plan.Workload) error {
	if len(r.rows) == 0 {
		return errors.New("it has no row of numbers: the output is cut off, or in another form")
	}
	first, unit := r.rows[0], r.classicUnit()
	switch {
	case unit == "" && (w.Traits().Bulk() || w.Traits().Datagrams()):
		return errors.New("its columns have no known unit of throughput")
	case w.Traits().Datagrams():
		return r.readClassicUDP(out, w, netperfUnits[unit])
	case w.Traits().Bulk() && len(first) >= 5:
		v := map[string]float64{"LOCAL_SEND_SIZE": first[2], "ELAPSED_TIME": first[3], "THROUGHPUT": first[4]}
		return r.setNumbers(batch, out, w, v, unit)
	case w.Traits().Exchanges() && len(first) >= 6:
		v := map[string]float64{"REQUEST_SIZE": first[2], "RESPONSE_SIZE": first[3], "ELAPSED_TIME": first[4], "THROUGHPUT": first[5]}
		return r.setNumbers(batch, out, w, v, "Trans/s")
	}
	return errors.New("unknown table, or the output is cut off")
}

// readClassicUDP reads the two rows of UDP_STREAM: what was sent, and what arrived. It fails if the receiver's row is
// missing.
func (r *netperfRun) readClassicUDP(out *adapter.Reading, w *plan.Workload, scale float64) error {
	if len(r.rows) < 2 || len(r.rows[0]) < 6 || len(r.rows[1]) < 4 {
		return errors.New("the receiver's row is missing: the output is cut off")
	}
	sent, got := r.rows[0], r.rows[1]
	r.sizes.Message = adapter.Whole(sent[1])
	*w = adapter.Sized(w.Spec, r.sizes)
	out.Window = adapter.Seconds(sent[2])
	if got[2] == 0 || sent[3] == 0 || got[2] > sent[3] {
		out.Fail("error", "the receiver reported no datagrams")
		return nil
	}
	out.Put(metric.Goodput, got[3]*scale)
	out.Put(metric.OfferedLoad, sent[5]*scale)
	out.Lost(sent[3]-got[2], sent[3])
	if s := got[1]; s > 0 {
		out.Put(metric.PacketRate, got[2]/s)
	}
	return nil
}

// classicUnit returns the unit among the words above the numbers, "" for none. Columns about the CPU may follow it.
func (r *netperfRun) classicUnit() string {
	for _, word := range strings.Fields(r.head) {
		if unit := strings.TrimSuffix(word, "ec"); netperfUnits[unit] > 0 { // "10^6bits/sec"
			return unit
		}
	}
	return ""
}
