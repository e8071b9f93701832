package outputs

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

var (
	qperfSection = pattern.New(`(?m)^([a-z0-9_]+_(?:bw|lat)):$`)
	qperfValue   = pattern.New(`^ *([a-z_]+) += +(.+)$`)
	qperfFailure = pattern.New(`failed to|cannot|unable to|no route|refused|timed out`)
)

func matchQperf(b []byte) bool {
	return qperfSection.Match(b) && (strings.Contains(string(b), " = ") || qperfFailure.Match(b))
}

// qperfRun is one test. Its latencies are half of a round trip; readings have the whole.
type qperfRun struct {
	test   string
	values map[string]string
	failed string
}

var qperfText = adapter.RunText[*qperfRun]{
	Tool: "qperf", New: func() *qperfRun { return &qperfRun{values: map[string]string{}} },
	Begins: func(_ *qperfRun, line string) bool { return qperfSection.MatchString(line) },
}

// Take reads one line.
func (r *qperfRun) Take(_ *adapter.Batch, line string) error {
	if m := qperfSection.FindStringSubmatch(line); m != nil {
		r.test = m[1]
	} else if m := qperfValue.FindStringSubmatch(line); m != nil {
		r.values[m[1]] = strings.TrimSpace(m[2])
	} else if qperfFailure.MatchString(line) {
		r.failed = line
	}
	return nil
}

// decodeQperf reads all tests. A loop over sizes prints the same test for each size, and may not print the size. If the
// values of such runs differ by more than qperfUnlike, each run gets a condition, since they are not repetitions.
func decodeQperf(b []byte) (adapter.Batch, error) {
	batch, err := qperfText.Decode(b)
	sizeless := map[plan.Workload][]*adapter.Reading{}
	for i := range batch.Readings {
		r := &batch.Readings[i]
		if slices.ContainsFunc(r.Warnings, func(w sample.Warning) bool { return w.ID == adapter.Assumed }) {
			sizeless[r.Workload] = append(sizeless[r.Workload], r)
		}
	}
	for _, runs := range sizeless {
		var values []float64
		for _, r := range runs {
			if v := max(r.Metrics[metric.Goodput], r.Metrics[metric.TransactionRate]); v > 0 {
				values = append(values, v)
			}
		}
		for i, r := range runs {
			if len(runs) > 1 {
				r.Warn(adapter.Assumed, "%d runs of this test without a size may be a loop over sizes (-oo): import each by itself, or print sizes by -v", len(runs))
			}
			if len(values) > 1 && slices.Max(values) > qperfUnlike*slices.Min(values) {
				r.Condition(fmt.Sprintf("run=%d", i+1))
			}
		}
	}
	return batch, err
}

// qperfUnlike is the ratio above which two runs of one test are not repetitions.
const qperfUnlike = 2

// Default sizes of qperf's messages in bytes.
const (
	qperfTCPMessage = 64 << 10
	qperfUDPMessage = 32 << 10
)

// End returns the reading of the test, if it is a supported workload.
func (r *qperfRun) End(batch *adapter.Batch) (*adapter.Reading, error) {
	out := &adapter.Reading{}
	size, said, err := r.messageSize()
	if err != nil {
		return nil, err
	}
	switch r.test {
	case "":
		return nil, nil
	case "tcp_bw", "udp_bw":
		s := plan.Stream{Protocol: plan.Protocol(r.test[:3]), MessageSize: size}
		if !said {
			s.MessageSize = map[string]int{"tcp_bw": qperfTCPMessage, "udp_bw": qperfUDPMessage}[r.test]
		}
		buffer, err2 := qperfSize(r.values["sock_buf_size"])
		s.Buffer = buffer
		out.Workload = plan.Workload{Spec: s}.Normalize()
		err = errors.Join(err2, r.setBandwidth(out))
	case "tcp_lat", "udp_lat":
		s := plan.RR{Protocol: plan.Protocol(r.test[:3]), RequestSize: max(size, 1), ResponseSize: max(size, 1)}
		if s.Protocol == plan.UDP && s.RequestSize < plan.MinDatagram {
			out.Condition(fmt.Sprintf("message=%d", s.RequestSize)) // below the least size of a workload
			s.RequestSize, s.ResponseSize = 0, 0
		}
		out.Workload = plan.Workload{Spec: s}.Normalize()
		err = r.setLatency(out)
	default:
		batch.LeaveOut("test %s: not a supported workload", r.test)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !said {
		out.Warn(adapter.Assumed, "qperf did not print its message size (-vv does); assumed: its default")
	}
	if seconds, err := qperfQuantity(r.values["time"], "s"); err == nil {
		out.Window = adapter.Seconds(seconds)
	}
	batch.LeaveOut("whether it was over IPv6, since qperf prints no address")
	batch.LeaveOut("CPU time, which is of the whole machines")
	out.Warn(adapter.Rounded, "qperf prints three digits")
	return out, out.Workload.Validate()
}

var errQperfCut = errors.New("the test has no number: the output is cut off")

// setBandwidth sets the rate of a transfer in out. If qperf printed the rates of sender and receiver, it sets the receiver's
// rate as goodput, and the offered load and the loss.
func (r *qperfRun) setBandwidth(out *adapter.Reading) error {
	sent, got := r.values["send_bw"], r.values["recv_bw"]
	if got == "" {
		got = r.values["bw"]
	}
	if got == "" && r.failed == "" {
		return errQperfCut
	}
	if got == "" {
		out.Fail(adapter.FailureKind(r.failed), "qperf reported no bandwidth: "+r.failed)
		return nil
	}
	rate, err := qperfQuantity(got, "bit/s")
	if err != nil {
		return err
	}
	if out.Received(rate); sent != "" && out.Failure == nil {
		offered, err := qperfQuantity(sent, "bit/s")
		if err != nil {
			return err
		}
		out.Put(metric.OfferedLoad, offered)
		if offered > 0 {
			out.Put(metric.FrameLossRate, max(0, 1-rate/offered))
		}
	}
	return nil
}

// setLatency sets the round-trip time, of which qperf prints half, and the rate that follows from it.
func (r *qperfRun) setLatency(out *adapter.Reading) error {
	if r.values["latency"] == "" && r.failed == "" {
		return errQperfCut
	}
	if r.values["latency"] == "" {
		out.Fail(adapter.FailureKind(r.failed), "qperf reported no latency: "+r.failed)
		return nil
	}
	ns, err := qperfQuantity(r.values["latency"], "ns")
	if err == nil && ns > 0 {
		out.Time(metric.RTT, "mean", 2*ns)
		out.Put(metric.TransactionRate, 1e9/(2*ns))
	}
	return err
}

// messageSize returns the size of a message in bytes, printed as "64 KiB (65,536)" or "1 bytes"; false if it is not printed.
func (r *qperfRun) messageSize() (int, bool, error) {
	text := r.values["msg_size"]
	if text == "" {
		return 0, false, nil
	}
	v, err := qperfSize(text)
	return v, true, err
}

// qperfSize reads a size in bytes, 0 for an empty text.
func qperfSize(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	if _, exact, ok := strings.Cut(text, "("); ok {
		text = strings.ReplaceAll(strings.TrimSuffix(exact, ")"), ",", "") + " bytes"
	}
	v, err := qperfQuantity(text, "B")
	return adapter.Whole(v), err
}

// qperfQuantity reads a number followed by qperf's unit, and converts it into the unit want. Prefixes are powers of
// 1000.
func qperfQuantity(text, want string) (float64, error) {
	words := strings.Fields(text)
	if len(words) < 2 {
		return 0, fmt.Errorf("%s is not a number with a unit", adapter.Quoted(text))
	}
	v, err := adapter.Amount(strings.ReplaceAll(words[0], ",", ""))
	if err != nil {
		return 0, err
	}
	unit := strings.NewReplacer("bytes/", "B/", "bits/", "bit/").Replace(words[1]) // the form of -uu and -ub
	switch {
	case unit == "bytes":
		unit = "B"
	case unit == "sec":
		unit = "s"
	case strings.HasSuffix(unit, "/sec"):
		unit = strings.TrimSuffix(unit, "ec")
		if !strings.HasSuffix(unit, "B/s") && !strings.HasSuffix(unit, "bit/s") {
			unit = strings.TrimSuffix(unit, "b/s") + "bit/s"
		}
		if prefix, ok := strings.CutPrefix(unit, "K"); ok && !strings.HasPrefix(prefix, "i") {
			unit = "k" + prefix
		}
	}
	v, err = number.Convert(v, unit, want)
	if err == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
		err = fmt.Errorf("%s is out of range", adapter.Quoted(text))
	}
	return v, err
}
