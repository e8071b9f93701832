package outputs

import (
	"errors"
	"math"
	"strings"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

var (
	uperfStarting = pattern.New(`(?m)^Starting (\d+) (threads|processes) running profile:(\S+)`)
	uperfRow      = pattern.New(`^(Txn\d+|Total) +([\d.]+)([KMGT]?B?) */ *([\d.]+)\(s\) = +([\d.]+)([KMGT]?b/s)? +([\d.]+)op/s$`)
	// uperfRaw is a row of -R: what a transaction has moved since it began.
	uperfRaw = pattern.New(`^timestamp_ms:([\d.]+) +name:(Txn\d+|Total) +nr_bytes:(\d+) +nr_ops:(\d+)$`)
)

func matchUperf(b []byte) bool { return uperfStarting.Match(b) }

// uperfRun is one run. Its transactions open connections, move data, and close the connections. The numbers are of the
// transaction that moved most bytes: rate in bit/s, op in operations per second. dp is the possible error of bytes, in bytes.
type uperfRun struct {
	profile, failure             string
	flows                        int
	bytes, seconds, rate, op, dp float64
	complete                     bool
	// raw is the transaction whose rows of -R are read: its name, and the times in ms of its begin and its last row.
	raw struct {
		name      string
		began, at float64
	}
}

var uperfText = adapter.RunText[*uperfRun]{
	Tool: "uperf", New: func() *uperfRun { return &uperfRun{} }, Begins: func(_ *uperfRun, line string) bool { return uperfStarting.MatchString(line) },
}

// Prefixes of bytes are powers of 1024, of bits powers of 1000. The B is missing if a number fills its column.
var (
	uperfBytes = map[string]float64{"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
	uperfBits  = map[string]float64{"b/s": 1, "Kb/s": 1e3, "Mb/s": 1e6, "Gb/s": 1e9, "Tb/s": 1e12}
)

// hundredth is the step in s of the times that uperf prints.
const hundredth = 0.01

// cutShort is how many operations of each flow may have moved less than a whole message.
const cutShort = 4

// Take reads one line.
func (r *uperfRun) Take(_ *adapter.Batch, line string) error {
	if m := uperfStarting.FindStringSubmatch(line); m != nil {
		var err error
		r.flows, err = adapter.Count(m[1])
		r.profile = m[3]
		return err
	}
	if m := uperfRaw.FindStringSubmatch(line); m != nil {
		return r.readRawRow(m[2], m[1], m[3], m[4])
	}
	m := uperfRow.FindStringSubmatch(line)
	switch {
	case m == nil && (strings.HasPrefix(line, "Error") || strings.Contains(line, "Cannot connect")):
		r.failure = line
		return nil
	case m == nil:
		return nil
	case m[1] == "Total":
		r.complete = true
		return nil
	}
	var bytes, seconds, rate, ops float64
	err := adapter.Amounts([]string{m[2], m[4], m[5], m[7]}, &bytes, &seconds, &rate, &ops)
	unit := uperfBytes[strings.TrimSuffix(m[3], "B")]
	if bytes *= unit; bytes > r.bytes {
		r.bytes, r.seconds, r.rate, r.op = bytes, seconds, rate*uperfBits[m[6]], ops
		_, decimals, _ := strings.Cut(m[2], ".")
		r.dp = math.Pow10(-len(decimals))/2*unit + bytes*hundredth/seconds
	}
	return err
}

// readRawRow reads a row of -R. A transaction begins at the last row of the previous transaction. It ignores the numbers of the
// first transaction, whose begin is unknown.
func (r *uperfRun) readRawRow(name string, row ...string) error {
	var at, bytes, ops float64
	if err := adapter.Amounts(row, &at, &bytes, &ops); err != nil {
		return err
	}
	if name == "Total" {
		r.complete = true
		return nil
	}
	if name != r.raw.name {
		r.raw.name, r.raw.began = name, r.raw.at
	}
	r.raw.at = at
	if seconds := (at - r.raw.began) / 1000; bytes > r.bytes && r.raw.began > 0 && seconds > 0 {
		r.bytes, r.seconds, r.rate, r.op = bytes, seconds, 8*bytes/seconds, ops/seconds
		r.dp = bytes / ops * float64(cutShort*r.flows)
	}
	return nil
}

// End returns the reading of the run, if its profile streams.
func (r *uperfRun) End(batch *adapter.Batch) (*adapter.Reading, error) {
	low := strings.ToLower(r.profile)
	if !strings.Contains(low, "stream") {
		batch.LeaveOut("profile %s: its name does not say that it streams, and its operations count writes and reads apart", adapter.Quoted(r.profile))
		return nil, nil
	}
	out := &adapter.Reading{Window: adapter.Seconds(r.seconds)}
	s := plan.Stream{Flows: r.flows}
	if strings.Contains(low, "udp") {
		s.Protocol = plan.UDP
	}
	if n := r.op * r.seconds; n > 0 && r.bytes > 0 {
		out.Sizes = adapter.SizeRange{Low: int(math.Ceil((r.bytes - r.dp) / n)), High: int((r.bytes + r.dp) / n)}
		s.MessageSize = out.Sizes.Likely()
	}
	out.Workload = plan.Workload{Spec: s}.Normalize()
	out.Warn(adapter.Assumed, "uperf prints neither the protocol nor the message size; assumed: %s by the profile's name, messages of %d B by its operations",
		out.Workload.Traits().Protocol, out.Workload.Traits().Message)
	if r.raw.name == "" {
		out.Warn(adapter.Rounded, "uperf prints three digits")
	}
	switch {
	case r.failure != "":
		out.Fail(adapter.FailureKind(r.failure), r.failure)
	case !r.complete:
		return nil, errors.New("it ends before its total: the output is cut off")
	default:
		out.Received(r.rate)
	}
	if out.Failure == nil && s.Protocol == plan.UDP {
		out.Put(metric.OfferedLoad, r.rate)
		delete(out.Metrics, metric.Goodput)
		batch.LeaveOut("goodput over UDP, of which uperf's client counts what it sent")
	}
	return out, out.Workload.Validate()
}
