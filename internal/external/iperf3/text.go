package iperf3

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

var (
	textRow      = pattern.New(`(?m)^\[ *(\d+|SUM)\](\[[TR]X-[CS]\])? +(\d+[.,]\d+)- *(\d+[.,]\d+) +sec +(.*)$`)
	textStarting = pattern.New(`^Starting Test: protocol: (\w+), (\d+) streams?, (\d+) byte blocks, omitting (\d+) seconds(?:, (\d+) (bytes|blocks|second)\b)?(?:.*, tos (\d+))?`)
	textHost     = pattern.New(`^\[ *\d+\] local \S+ port \d+ connected to (\S+) port`)
	textLost     = pattern.New(`^(-?\d+)/(\d+)$`)
	// textSetting matches a setting in a line of -V or -d. The pacing rate of -d is in bytes a second. It does not match
	// the default MSS, whose line has a further word.
	textSetting = pattern.New(`^(Cookie:|TCP MSS:|Target Bitrate:|Setting fair-queue socket pacing to|Congestion algorithm is) (\S+)$`)
	// textTitled matches the first line of a run with -T, which begins each of its lines with a title.
	textTitled = pattern.New(`(?m)^(\S.{0,99}?):  Connecting to host `)
	// textOwn matches iperf3's own lines between runs.
	textOwn = pattern.New(`^(?:$|-+$|- -|Usage: iperf3|iperf|Server|Connecting|Linux |Time:|Control connection|Accepted|Test Complete|CPU |\[ *(?:\d+|ID|SUM)\]|snd_|rcv_|Cookie|TCP MSS|send_parameters:|Setting |[{}]$|"\w+":)`)
	// textBandwidth matches -b among the parameters that -d prints before a test.
	textBandwidth = pattern.New(`^"bandwidth":\s+(\d+),$`)
)

func matchText(b []byte) bool {
	s := string(b[:min(len(b), 64<<10)])
	return strings.HasPrefix(s, "iperf3: ") || textTitled.MatchString(s) || strings.Contains(s, "\niperf3: ") || textRow.MatchString(s) && !strings.Contains(s, "][*")
}

// textRun is one run within the text.
type textRun struct {
	textInfo
	udp, reverse, both bool
	// done is true after the last line of a run. theirs is true in the part of --get-server-output. server is true in the
	// output of a server.
	done, theirs, server bool
	// failure is the run's latest error, complaint the line with it.
	failure       string
	complaint     string
	flows, block  int
	omit, seconds float64
	started       time.Time
	ids           map[string]bool
	// single and sums have the words of a row of totals by role, "sender" or "receiver": single of the last flow, sums of
	// all flows (SUM). In the reverse direction of a bidirectional test, the role ends in wayBack.
	single, sums map[string][]string
	// client is true if the client wrote the output. intervals are the time series of single flows, together that of all
	// flows.
	client              bool
	intervals, together []sample.Interval
}

// textInfo has what the text says about a test besides its numbers.
type textInfo struct {
	congestion, host string
	// cookie identifies the test. title is the value of -T. target is the rate of -b, in bit/s a stream.
	cookie, title string
	target        float64
	// asked is the time of -t in s, 0 if unknown.
	asked float64
	// fq is the rate of --fq-rate, in bit/s a stream.
	fq         float64
	conditions []string
	// debug is true after the parameters that -d prints before a test. seen has the rows of totals that were read, by
	// flow, direction and side.
	debug bool
	seen  map[string]bool
}

// wayBack ends the roles of the reverse direction in single and sums.
const wayBack = " back"

// parameters is the line before the parameters of a test with -d.
const parameters = "send_parameters:"

// serverEnd is what a server prints at its end, which is not the end of a test.
const serverEnd = "iperf3: interrupt - the server has terminated"

// coarse is a run time in seconds. Below it, times are less exact than rates, because they are printed with two decimals.
const coarse = 1

// text decodes the output of iperf3 without -J, whose totals have three digits.
var text = adapter.RunText[*textRun]{
	Tool: "iperf3",
	New: func() *textRun {
		return &textRun{single: map[string][]string{}, sums: map[string][]string{}, ids: map[string]bool{}, textInfo: textInfo{seen: map[string]bool{}}}
	},
	Begins: func(run *textRun, line string) bool {
		return strings.HasPrefix(line, parameters) || !run.debug && strings.HasPrefix(line, "Connecting to host") || strings.HasPrefix(line, "Accepted connection from") ||
			textTitled.MatchString(line) || run.done && strings.HasPrefix(line, "iperf3: ") && !strings.HasPrefix(line, serverEnd)
	},
	Foreign: func(run *textRun, line string) bool {
		return (run.done || !run.client && !run.server) && !textOwn.MatchString(line) && (run.title == "" || !strings.HasPrefix(line, run.title+":"))
	},
	Over: func(run *textRun) bool {
		return strings.HasPrefix(run.failure, "parameter error") || strings.HasPrefix(run.failure, "unable to connect") || strings.HasPrefix(run.failure, "unable to start stream listener")
	},
	Again: func(run *textRun, line string) bool {
		return line != "" && line == run.complaint || run.isNextRunRow(line)
	},
}

// isNextRunRow reports whether line is a row of the next run, whose first lines are missing, as in the output of grep: line
// is a total that r has already, or an interval after a total.
func (r *textRun) isNextRunRow(line string) bool {
	m := textRow.FindStringSubmatch(line)
	if m == nil || r.theirs {
		return false
	}
	side := m[5][strings.LastIndex(m[5], " ")+1:]
	if side == "sender" || side == "receiver" {
		return r.seen[m[1]+m[2]+side]
	}
	return len(r.seen) > 0
}

// DecodeText decodes the output of iperf3 without -J, of one or several runs. Its error lists all faults. Archives of knb
// have only such output.
func DecodeText(b []byte) (adapter.Batch, error) { return text.Decode(b) }

// End returns the reading of the run; nil for a server's output of a reversed, bidirectional or unfinished test.
func (r *textRun) End(batch *adapter.Batch) (*adapter.Reading, error) {
	if r.server && r.failure == "" && (r.both || r.totals()["receiver"] == nil) {
		if len(r.ids) > 0 {
			batch.LeaveOut("a server's output of a reversed, bidirectional or unfinished test: the client is a receiver")
		}
		return nil, nil
	}
	if r.both && r.failure == "" && r.udp {
		batch.LeaveOut("the jitter of a bidirectional test")
	}
	out := &adapter.Reading{Window: adapter.Seconds(r.seconds), Started: r.started, Run: r.cookie}
	batch.Omit(out, r.omit)
	out.Host(r.host)
	out.Condition(r.conditions...)
	recordTitle(batch, out, r.title)
	if recordFQRate(out, r.fq); r.fq == 0 && r.failure == "" && !r.debug {
		batch.LeaveOut(leftFQ)
	}
	err := r.fillReading(out)
	if out.EndedEarly(adapter.Seconds(r.asked)); out.Failure == nil {
		batch.Rows(out, r.series())
		if r.cookie == "" && !r.debug {
			warnSteadyRate(out)
		}
	}
	return out, err
}

// Take reads one line.
func (r *textRun) Take(batch *adapter.Batch, line string) error {
	if m := textTitled.FindStringSubmatch(line); m != nil {
		r.title = m[1]
	}
	line = strings.TrimSpace(strings.TrimPrefix(line, r.title+":"))
	if m := textStarting.FindStringSubmatch(line); m != nil {
		if r.udp = m[1] == "UDP"; !r.udp && m[1] != "TCP" {
			return newProtocolError(m[1])
		}
		r.flows, _ = strconv.Atoi(m[2]) // digits only; one too large is refused with the workload
		r.block, _ = strconv.Atoi(m[3])
		r.omit, _ = strconv.ParseFloat(m[4], 64)
		if m[6] == "second" {
			r.asked, _ = strconv.ParseFloat(m[5], 64)
		} else if m[5] != "" {
			r.conditions = append(r.conditions, m[6]+"="+m[5])
		}
		if m[7] != "" && m[7] != "0" {
			r.conditions = append(r.conditions, "tos="+m[7])
		}
		return nil
	}
	if m := textSetting.FindStringSubmatch(line); m != nil {
		return r.readSetting(m[1], m[2])
	}
	if m := textRow.FindStringSubmatch(line); m != nil {
		if r.theirs {
			return nil
		}
		return r.readRow(m)
	}
	if m := textHost.FindStringSubmatch(line); m != nil {
		r.host = m[1]
	}
	if m := textBandwidth.FindStringSubmatch(line); m != nil {
		r.target, _ = strconv.ParseFloat(m[1], 64) // digits only
	}
	name, value, _ := strings.Cut(line, " ")
	switch {
	case line == parameters:
		r.debug = true
	case line == "Server output:":
		r.theirs = true
	case name == "Time:":
		r.started, _ = time.Parse(time.RFC1123, value) // missing if it has another form
	case name == "CPU":
		batch.LeaveOut(leftCPU)
	case strings.HasPrefix(line, "Accepted connection from"):
		r.server = true
	case strings.HasPrefix(line, "Server listening"):
		r.done = r.server
	case strings.HasPrefix(line, serverEnd):
		r.done = true
	case name == "iperf3:":
		r.complaint = line
		r.failure = strings.TrimPrefix(strings.TrimPrefix(value, "error - "), "interrupt - ")
	case line == "iperf Done.":
		r.done = true
	case name == "Reverse":
		r.reverse = true
	case strings.HasPrefix(line, "Connecting to host"):
		r.client = true
	case name == "iperf" && strings.HasPrefix(value, "3"):
		batch.Tool = "iperf3 " + value
	case name == "Linux":
		batch.SystemFacts(line)
	case name == "snd_tcp_congestion":
		r.congestion = value
	case strings.Contains(line, "Total Datagrams"), strings.Contains(line, "Lost/Total"):
		r.udp = true
	}
	return nil
}

// readSetting reads a setting of a test from -V or -d.
func (r *textRun) readSetting(name, value string) (err error) {
	switch name {
	case "Cookie:":
		r.cookie = value
	case "TCP MSS:":
		r.conditions = append(r.conditions, "tcp_mss="+value)
	case "Target Bitrate:":
		r.target, err = adapter.Amount(value)
	case "Congestion algorithm is":
		r.congestion = value
	default:
		r.fq, err = adapter.Amount(value)
		r.fq *= 8
	}
	return err
}

// totals returns the rows of totals over all flows, by role.
func (r *textRun) totals() map[string][]string {
	if len(r.sums) == 0 && len(r.ids) == 1 {
		return r.single
	}
	return r.sums
}

// readRow reads a row of the tables. m[1:] are its id, its role in a bidirectional test, its begin and end in s, and the rest.
func (r *textRun) readRow(m []string) error {
	to, err := adapter.Amount(m[4])
	words := strings.Fields(m[5])
	switch {
	case err != nil:
		return err
	case len(words) < 4:
		return errors.New("the row is cut off")
	}
	table, way := r.single, ""
	if r.both = r.both || m[2] != ""; m[2] == "[RX-C]" {
		way = wayBack
	}
	if m[1] == "SUM" {
		table = r.sums
	} else if way == "" {
		r.ids[m[1]] = true
	}
	if role := words[len(words)-1]; role == "sender" || role == "receiver" {
		table[role+way] = words
		r.seen[m[1]+m[2]+role] = true
		r.done = r.done || r.server
		r.seconds = max(r.seconds, to)
		return nil
	}
	from, err := adapter.Amount(m[3])
	bytes, _, err2 := textAmounts(words)
	if err = errors.Join(err, err2); err != nil {
		return err
	}
	// The intervals of --bidir overlap, so they are not recorded.
	omitted := words[len(words)-1] == "(omitted)"
	if omitted {
		r.omit = max(r.omit, to)
	}
	if to > from && !r.both && len(r.together) < adapter.MaxReadings && len(r.intervals) < adapter.MaxReadings {
		row := sample.Interval{StartNs: int64(from * 1e9), EndNs: int64(to * 1e9), Bytes: uint64(bytes), Warmup: omitted}
		if m[1] == "SUM" {
			r.together = append(r.together, row)
		} else {
			r.intervals = append(r.intervals, row)
		}
	}
	return nil
}

// series returns the client's time series. It has no intervals for a server, a bidirectional test or a run shorter than
// coarse, nor if the rows of several flows have no sums.
func (r *textRun) series() *sample.Observation {
	rows := r.together
	if len(rows) == 0 && len(r.ids) == 1 {
		rows = r.intervals
	}
	if !r.client || r.both || r.seconds < coarse {
		rows = nil
	}
	o := &sample.Observation{Side: "client", ElapsedNs: int64(r.seconds * 1e9)}
	for _, i := range rows {
		switch {
		case i.Warmup: // the clock of the omitted rows starts at 0, like the window's
			i.StartNs, i.EndNs = i.StartNs-int64(r.omit*1e9), i.EndNs-int64(r.omit*1e9)
		case r.reverse:
			o.BytesReceived += i.Bytes
		default:
			o.BytesSent += i.Bytes
		}
		o.Intervals = append(o.Intervals, i)
	}
	return o
}

// textUnits has the units of the text, in bytes and bit/s. Prefixes of bytes are powers of 1024, of bits powers of 1000.
var textUnits = map[string]float64{
	"Bytes": 1, "KBytes": 1 << 10, "MBytes": 1 << 20, "GBytes": 1 << 30, "TBytes": 1 << 40,
	"bits/sec": 1, "Kbits/sec": 1e3, "Mbits/sec": 1e6, "Gbits/sec": 1e9, "Tbits/sec": 1e12,
	"Bytes/sec": 8, "KBytes/sec": 8 << 10, "MBytes/sec": 8 << 20, "GBytes/sec": 8 << 30, "TBytes/sec": 8 << 40,
}

// textAmounts reads the transfer in bytes and the rate in bit/s at the start of a row.
func textAmounts(words []string) (bytes, rate float64, err error) {
	for i, to := range []*float64{&bytes, &rate} {
		size, ok := textUnits[words[2*i+1]]
		if !ok {
			return 0, 0, fmt.Errorf("unknown unit %s", adapter.Quoted(words[2*i+1]))
		}
		v, err := adapter.Amount(words[2*i])
		if err != nil {
			return 0, 0, err
		}
		*to = v * size
	}
	return bytes, rate, nil
}

// fillReading sets the workload and the numbers of out from the run. It fails if the receiver's total is missing.
func (r *textRun) fillReading(out *adapter.Reading) error {
	totals := r.totals()
	if r.failure != "" {
		out.Fail(adapter.FailureKind(r.failure), r.failure)
		if len(r.ids) == 0 && r.flows == 0 {
			return nil
		}
		return r.setWorkload(out, r.block, 0)
	}
	var received, sent [][]string
	ways := []string{""}
	if r.both {
		ways = append(ways, wayBack)
	}
	for _, way := range ways {
		received, sent = append(received, totals["receiver"+way]), append(sent, totals["sender"+way])
	}
	if slices.ContainsFunc(received, func(words []string) bool { return words == nil }) {
		return errors.New("the receiver's total is missing: the output is cut off, a server's, or of UDP before 3.2 (use -J)")
	}
	if r.udp {
		return r.setUDPNumbers(out, received, sent)
	}
	if err := r.setWorkload(out, r.block, 0); err != nil {
		return err
	}
	return r.setTCPNumbers(out, received, sent)
}

// setTCPNumbers sets the numbers of TCP from the totals, a row for each direction.
func (r *textRun) setTCPNumbers(out *adapter.Reading, received, sent [][]string) error {
	var arrived, again float64
	var rates []float64
	counted := true
	for i, words := range received {
		bytes, rate, err := textAmounts(words)
		if err != nil {
			return err
		}
		if significantDigits(words[2]) < significantDigits(words[0]) && r.seconds >= coarse { // in the units of -f t a rate has two decimals, or none
			rate = 8 * bytes / r.seconds
		}
		if rate == 0 {
			out.Fail("error", "the receiver reported no bytes")
			return nil
		}
		if sent[i] != nil && strings.Trim(sent[i][0], "0.,") == "" {
			out.Fail("interrupted", "the sender reported no bytes: the run did not end")
			return nil
		}
		arrived, rates = arrived+bytes, append(rates, rate)
		// The sender's row has its retransmits before its last word if the kernel counts them.
		if counted = counted && len(sent[i]) == 6; !counted {
			continue
		}
		n, err := adapter.Count(sent[i][4])
		if err != nil {
			return err
		}
		again += float64(n)
	}
	recordGoodput(out, rates)
	if r.seconds < coarse && !r.both {
		out.Window = adapter.Seconds(arrived * 8 / rates[0])
	}
	out.Put(metric.Transferred, arrived)
	if counted {
		out.Retransmitted(again, arrived)
	}
	return nil
}

// significantDigits returns the number of significant digits of a number, without leading zeros.
func significantDigits(s string) int {
	return len(strings.TrimLeft(strings.ReplaceAll(s, ".", ""), "0"))
}

// setWorkload sets the workload that the text reports, with warnings about what is assumed. size is the size of messages in
// bytes; offered is the sent rate in bit/s; both are 0 if unknown.
func (r *textRun) setWorkload(out *adapter.Reading, size int, offered float64) error {
	s := plan.Stream{
		Flows: max(r.flows, len(r.ids)), MessageSize: size, Reverse: r.reverse, Bidirectional: r.both, Congestion: r.congestion,
	}
	switch {
	case r.udp && r.target > 0:
		s.Protocol, s.Rate = plan.UDP, math.Round(r.target*float64(s.Flows))
	case r.udp:
		s.Protocol = plan.UDP
		assumeRate(&s, out, offered, s.Flows, float64(size)*8/max(r.seconds, coarse))
		s.Rate = math.Round(s.Rate)
	case r.target > 0:
		recordRateLimit(out, r.target)
	}
	w := plan.Workload{Spec: s}.Normalize()
	var assumed []string
	if r.block == 0 {
		assumed = append(assumed, fmt.Sprintf("messages of %d B", w.Traits().Message))
	}
	if r.congestion == "" && !r.udp {
		assumed = append(assumed, w.Traits().Congestion)
	}
	if r.cookie == "" && !r.debug && !r.udp { // only -V and -d name the rate
		assumed = append(assumed, "no rate limit")
	}
	if len(assumed) > 0 {
		out.Warn(adapter.Assumed, "the text does not show the whole workload; assumed: %s", strings.Join(assumed, ", "))
	}
	out.Warn(adapter.Rounded, "iperf3's text has three digits")
	out.Workload = w
	return w.Validate()
}

// setUDPNumbers reads the totals of UDP, a row for each direction: transfer and rate, then "jitter ms lost/total (share)".
func (r *textRun) setUDPNumbers(out *adapter.Reading, received, sent [][]string) error {
	var lost, total, offered, jitter float64
	var rates []float64
	sizes := adapter.SizeRange{High: math.MaxInt}
	for i, words := range received {
		if len(words) < 8 || words[5] != "ms" {
			return errors.New("the receiver's total shows no jitter and loss")
		}
		missing, all, err := parseLoss(words)
		_, rate, err2 := textAmounts(words)
		if err = errors.Join(adapter.Amounts(words[4:], &jitter), err, err2); err != nil {
			return err
		}
		lost, total, rates = lost+missing, total+all, append(rates, rate)
		sizes = intersectSizes(sizes, datagramSizes(words, all-missing))
		if sent[i] != nil {
			// A sender's row that is unreadable does not affect what arrived. Its bytes have one divisor, the
			// receiver's two.
			_, rate, _ := textAmounts(sent[i])
			offered += rate
			if _, datagrams, err := parseLoss(sent[i]); err == nil {
				sizes = datagramSizes(sent[i], datagrams)
			}
		}
	}
	size, arrived := r.block, total-lost
	if size == 0 && arrived > 0 && sizes.High < math.MaxInt {
		size, out.Sizes = sizes.Likely(), sizes
	}
	each := offered / float64(len(received))
	if offered == 0 && r.seconds > 0 { // a server does not print the sent rate
		each = total * float64(size) * 8 / r.seconds / float64(len(received))
	}
	if err := r.setWorkload(out, size, each); err != nil {
		return err
	}
	if total == 0 || arrived <= 0 {
		out.Fail("error", "the receiver reported no datagrams")
		return nil
	}
	recordGoodput(out, rates)
	out.Lost(lost, total)
	if r.seconds > 0 {
		out.Put(metric.PacketRate, arrived/r.seconds)
	}
	if arrived > 1 && !r.both {
		out.Put(metric.Jitter, jitter*1e6)
	}
	if offered > 0 {
		out.Put(metric.OfferedLoad, offered)
	}
	return nil
}

// parseLoss parses "lost/total" in a row of datagrams. It fails if the row does not have it.
func parseLoss(words []string) (lost, total float64, err error) {
	if len(words) < 7 {
		return 0, 0, errors.New("the row shows no loss")
	}
	m := textLost.FindStringSubmatch(words[6])
	if m == nil {
		return 0, 0, fmt.Errorf("%s is not lost/total", adapter.Quoted(words[6]))
	}
	err = adapter.Amounts(m[1:], &lost, &total)
	return lost, total, err
}

// datagramSizes returns the possible sizes of a datagram, given a row's rounded bytes and its number of datagrams.
func datagramSizes(words []string, datagrams float64) adapter.SizeRange {
	bytes, _, err := textAmounts(words)
	if err != nil || datagrams <= 0 {
		return adapter.SizeRange{High: math.MaxInt}
	}
	_, decimals, _ := strings.Cut(words[0], ".")
	half := math.Pow10(-len(decimals)) / 2 * textUnits[words[1]]
	return adapter.SizeRange{Low: int(math.Ceil((bytes - half) / datagrams)), High: int((bytes + half) / datagrams)}
}

// intersectSizes returns the intersection of two ranges, or b if they do not overlap.
func intersectSizes(a, b adapter.SizeRange) adapter.SizeRange {
	if low, high := max(a.Low, b.Low), min(a.High, b.High); low <= high {
		return adapter.SizeRange{Low: low, High: high}
	}
	return b
}
