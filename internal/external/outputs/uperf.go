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
)

func matchUperf(b []byte) bool { return uperfStarting.Match(b) }

// uperfRun is one run. Its transactions open connections, move data and close them: the one that moved most counts.
type uperfRun struct {
	profile, failure             string
	flows                        int
	bytes, seconds, rate, op, dp float64
	complete                     bool
}

var uperfText = adapter.RunText[*uperfRun]{
	Tool: "uperf", New: func() *uperfRun { return &uperfRun{} }, Begins: func(_ *uperfRun, line string) bool { return uperfStarting.MatchString(line) },
}

// Bytes have prefixes of 1024, bits of 1000.
var (
	uperfBytes = map[string]float64{"": 1, "B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
	uperfBits  = map[string]float64{"b/s": 1, "Kb/s": 1e3, "Mb/s": 1e6, "Gb/s": 1e9, "Tb/s": 1e12}
)

// Take reads one line.
func (r *uperfRun) Take(_ *adapter.Batch, line string) error {
	if m := uperfStarting.FindStringSubmatch(line); m != nil {
		var err error
		r.flows, err = adapter.Count(m[1])
		r.profile = m[3]
		return err
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
	if bytes *= uperfBytes[m[3]]; bytes > r.bytes {
		r.bytes, r.seconds, r.rate, r.op = bytes, seconds, rate*uperfBits[m[6]], ops
		_, decimals, _ := strings.Cut(m[2], ".")
		r.dp = math.Pow10(-len(decimals)) / 2 * uperfBytes[m[3]]
	}
	return err
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
	out.Warn(adapter.Rounded, "uperf prints three digits")
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
