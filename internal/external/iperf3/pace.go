package iperf3

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// recordFQRate records the rate of --fq-rate, in bit/s a stream, as a warning and a condition. It does nothing if rate is 0.
func recordFQRate(r *adapter.Reading, rate float64) {
	if rate > 0 {
		r.Warn(adapter.Paced, "fq held the sender to %s a stream", number.WithUnit("bit/s", rate))
		r.Condition(fmt.Sprintf("fqrate=%.0f", rate))
	}
}

// recordRateLimit records the rate of -b for a TCP sender, in bit/s a stream, as a warning and a condition.
func recordRateLimit(r *adapter.Reading, rate float64) {
	r.Warn(adapter.Paced, "the sender was held to %s a stream", number.WithUnit("bit/s", rate))
	r.Condition(fmt.Sprintf("target_bitrate=%.0f", rate))
}

// defaultRate is the rate of a UDP client without -b, in bit/s a stream.
const defaultRate = 1 << 20

// leftFQ is the note for output that does not show whether --fq-rate was given.
const leftFQ = "whether fq paced the sender (--fq-rate), which iperf3 prints in JSON since 3.13, and with -d"

// near is how far the sent rate may be from the requested rate, as a share of it.
const near = 0.002

// roundRate rounds a rate to a multiple of step in units of its first digit. Step 1 leaves one digit; step 0.5 leaves two
// digits, the second 0 or 5.
func roundRate(rate, step float64) float64 {
	step *= math.Pow(10, math.Floor(math.Log10(max(rate, 1))))
	return math.Round(rate/step) * step
}

// warnSteadyRate adds a warning of a possible rate limit if the rate of a TCP sender was the same in all intervals and has
// two digits, as with -b or --fq-rate. It adds nothing if r has such a warning. Call it if the output lacks these options.
func warnSteadyRate(r *adapter.Reading) {
	const least, apart = 3, 0.03
	each := r.Metrics[metric.Goodput] / float64(max(r.Workload.Traits().Flows, 1))
	rate, steady := roundRate(each, 0.5), 0
	if r.Client == nil || r.Workload.Traits().Protocol != plan.TCP || math.Abs(each/rate-1) > near || slices.ContainsFunc(r.Warnings, isPaced) {
		return
	}
	for _, row := range r.Client.Intervals[1:] { // the first has a burst
		sent := 8e9 * float64(row.Bytes) / float64(row.EndNs-row.StartNs)
		if math.Abs(sent/r.Metrics[metric.Goodput]-1) > apart {
			return
		}
		steady++
	}
	if steady < least {
		return
	}
	r.Warn(adapter.Paced, "the rate is %.4g bit/s a stream in all intervals: -b, --fq-rate or a shaper may have held the sender, which this output does not say", rate)
	for i := range r.Warnings {
		r.Warnings[i].Message = strings.TrimSuffix(r.Warnings[i].Message, unlimited)
	}
}

// unlimited is the end of a warning that assumes no rate limit of a TCP sender. warnSteadyRate removes it.
const unlimited = ", no rate limit"

func isPaced(w sample.Warning) bool { return w.ID == adapter.Paced }

// assumeRate sets the rate of s, which the output lacks, and adds a warning. offered is the sent rate in bit/s, 0 if
// unknown. If offered is near iperf3's default rate, it sets that rate. Otherwise it sets a rate of one or two digits, as
// users pass to -b, if offered is near one, else no rate. last is what one datagram adds to the rate of a stream, in
// bit/s: a stream may send one datagram too many.
func assumeRate(s *plan.Stream, r *adapter.Reading, offered float64, flows int, last float64) {
	const furthest = 0.04
	each := offered / float64(max(flows, 1))
	is := func(rate float64) bool {
		return offered > 0 && each > rate*(1-near) && each < rate*(1+near)+min(last, furthest*rate)
	}
	asked := roundRate(each, 0.5)
	if !is(asked) || last > near*each {
		asked = roundRate(each, 1) // within a wide margin, only a rate of one digit is unlikely to be chance
	}
	switch {
	case is(defaultRate) || offered > 0 && math.Abs(each/defaultRate-1) < 5*near:
		s.Rate = defaultRate * float64(max(flows, 1))
		r.Warn(adapter.Assumed, "the output does not name the intended rate; assumed: %d bit/s a stream, which iperf3 sends without -b", defaultRate)
		r.Warn(adapter.Paced, "the sender was held to %d bit/s a stream, iperf3's default: its goodput is not a capacity", defaultRate)
	case is(asked):
		s.Rate, r.RateAssumed = asked*float64(max(flows, 1)), true
		r.Warn(adapter.Assumed, "the output does not name the intended rate; assumed from what was sent: %.4g Mbit/s a stream", asked/1e6)
	default:
		r.Warn(adapter.Assumed, "the output does not name the intended rate; assumed: as fast as possible")
	}
}
