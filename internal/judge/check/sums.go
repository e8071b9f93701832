package check

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/measure/outcome"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Tolerances, as shares. Tools print three digits, and the windows of the two sides differ a little.
const (
	sameSum    = 0.02 // a product and its factors, each printed with three digits or more
	sameSide   = 0.05 // two sides or two counters of the same quantity
	sameOrder  = 0.005
	reached    = 0.02 // of an offered load
	sameFactor = 0.003
)

// sumRules check one trial: its numbers must agree with one another.
var sumRules = []rule{
	{id: "rate-times-time", trial: (*trial).rateTimesTimeFault},
	{id: "requests-times-time", trial: (*trial).requestsTimesTimeFault},
	{id: "loss-arithmetic", trial: (*trial).lossArithmeticFault},
	{id: "retransmit-arithmetic", trial: (*trial).retransmitArithmeticFault},
	{id: "loss-and-rate", trial: (*trial).lossAndRateFault},
	{id: "packets-and-rate", trial: (*trial).packetsAndRateFault},
	{id: "offered-load", trial: (*trial).offeredLoadFault},
	{id: "sender-receiver", trial: (*trial).senderReceiverFault},
	{id: "quantiles", trial: (*trial).quantilesFault},
	{id: "concurrency", trial: (*trial).concurrencyFault},
	{id: "idle-connections", trial: (*trial).idleConnectionsFault},
	{id: "zero-time", trial: (*trial).zeroTimeFault, find: findZeroClaims},
	{id: "zero-rate", trial: (*trial).zeroRateFault},
	{id: "call-rate", trial: (*trial).callRateFault},
	{id: "udp-without-loss", trial: (*trial).missingLossFault, find: findUnshownLoss},
	{id: "short-window", trial: (*trial).shortWindowFault},
	{id: "transfer-dies", trial: (*trial).deadTransferFault},
}

func (t *trial) rateTimesTimeFault() string {
	moved, goodput, ok := t.twoMetrics(metric.Transferred, metric.Goodput)
	if !ok || t.seconds <= 0 || nearlyEqual(moved, goodput*t.seconds/8, sameSum) {
		return ""
	}
	return fmt.Sprintf("%s in %.4g s are %s, and %s are stated%s", t.formatMetric(metric.Transferred, moved), t.seconds,
		t.formatMetric(metric.Goodput, 8*moved/t.seconds), t.formatMetric(metric.Goodput, goodput), slipSuffix(moved, goodput*t.seconds/8))
}

// slipSuffix describes the slip by which a and b differ, such as ": bytes taken for bits". It returns "" if no slip does.
func slipSuffix(a, b float64) string {
	if s, ok := findSlip(a, b, sameSum/2); ok {
		return ": " + s.name
	}
	return ""
}

func (t *trial) requestsTimesTimeFault() string {
	n, rate, ok := t.twoMetrics(metric.Requests, metric.RequestRate)
	done, good := rate*t.seconds, n*(1-t.metrics[metric.ErrorRate])
	// The rate of some tools is of all responses, that of others of the good ones.
	if !ok || t.seconds <= 0 || nearlyEqual(n, done, sameSum) || nearlyEqual(good, done, sameSum) || good < done && done < n {
		return ""
	}
	return fmt.Sprintf("%.0f requests in %.4g s are %.4g/s, and %.4g/s are stated%s", n, t.seconds, n/t.seconds, rate,
		slipSuffix(n, rate*t.seconds))
}

func (t *trial) lossArithmeticFault() string {
	lost, all, ok := t.twoMetrics(metric.DatagramsLost, metric.Datagrams)
	stated := t.metrics[metric.FrameLossRate]
	if !ok || all <= 0 || nearlyEqual(lost/all, stated, sameSide) {
		return ""
	}
	return fmt.Sprintf("%.0f of %.0f datagrams are %.3g%%, and %.3g%% is stated%s", lost, all, 100*lost/all, 100*stated, slipSuffix(lost/all, stated))
}

func (t *trial) retransmitArithmeticFault() string {
	segments, moved, ok := t.twoMetrics(metric.Retransmits, metric.Transferred)
	stated, known := t.metrics[metric.RetransmitsPerG]
	per := segments / moved * 1e9
	if !ok || !known || moved <= 0 || nearlyEqual(per, stated, sameSide) {
		return ""
	}
	return fmt.Sprintf("%.0f segments over %s are %.3g per GB, and %.3g is stated%s", segments,
		t.formatMetric(metric.Transferred, moved), per, stated, slipSuffix(per, stated))
}

func (t *trial) lossAndRateFault() string {
	offered, goodput, ok := t.twoMetrics(metric.OfferedLoad, metric.Goodput)
	loss, known := t.metrics[metric.FrameLossRate]
	arrives := offered * (1 - loss)
	if !ok || !known || !t.view.imported() || !t.Workload.Traits().Datagrams() || nearlyEqual(arrives, goodput, sameSide) {
		return ""
	}
	return fmt.Sprintf("of %s offered %.3g%% were lost, which leaves %s, and goodput is %s", t.formatMetric(metric.OfferedLoad, offered),
		100*loss, t.formatMetric(metric.Goodput, arrives), t.formatMetric(metric.Goodput, goodput))
}

func (t *trial) packetsAndRateFault() string {
	packets, goodput, ok := t.twoMetrics(metric.PacketRate, metric.Goodput)
	size, stated := goodput/8/packets, t.view.workloadTraits(t.Case).Message
	if !ok || !t.Workload.Traits().Datagrams() || packets <= 0 || nearlyEqual(size, float64(stated), sameSum) {
		return ""
	}
	return fmt.Sprintf("goodput over packet rate is %.0f B a datagram, and datagrams carry %d B%s", size, stated,
		slipSuffix(size, float64(stated)))
}

func (t *trial) offeredLoadFault() string {
	want := t.Workload.Traits().Rate * directions(t.Workload.Traits())
	if !t.Workload.Traits().Datagrams() || want <= 0 || t.hasWarning(outcome.OfferedLoad) {
		return ""
	}
	sent, ok := t.metrics[metric.OfferedLoad]
	if !ok {
		loss := t.metrics[metric.FrameLossRate]
		if !t.has(metric.Goodput) || loss >= 1 {
			return ""
		}
		sent = t.metrics[metric.Goodput] / (1 - loss)
	}
	if nearlyEqual(sent, want, reached) {
		return ""
	}
	say := fmt.Sprintf("%s left the sender, and %s is stated as the load", t.formatMetric(metric.OfferedLoad, sent), t.formatMetric(metric.OfferedLoad, want))
	for _, part := range []struct {
		share float64
		name  string
	}{{0.5, "half"}, {0.25, "a quarter"}, {0.1, "a tenth"}, {0.2, "a fifth"}, {0.75, "three quarters"}} {
		if nearlyEqual(sent/want, part.share, sameFactor) {
			return say + ": exactly " + part.name + ", so that another load was asked for than is stated"
		}
	}
	return say
}

func (t *trial) senderReceiverFault() string {
	sent, got, ok := t.twoMetrics(metric.OfferedLoad, metric.Goodput)
	if !ok || !t.view.imported() || !t.Workload.Traits().Bulk() || nearlyEqual(sent, got, sameSide) {
		return ""
	}
	return fmt.Sprintf("the sender counts %s, the receiver %s%s", t.formatMetric(metric.OfferedLoad, sent), t.formatMetric(metric.Goodput, got), slipSuffix(sent, got))
}

func (t *trial) quantilesFault() string {
	var wrong []string
	for _, f := range metric.Times {
		wrong = append(wrong, t.distributionFaults(f)...)
	}
	return strings.Join(wrong, "; ")
}

// distributionFaults returns the contradictions in the distribution of one family of metrics, such as a p50 above the p90.
func (t *trial) distributionFaults(family string) []string {
	var wrong []string
	get := func(part string) (float64, bool) { x, ok := t.metrics[family+"."+part]; return x, ok }
	atMost := func(low, high string, factor float64) {
		a, okA := get(low)
		b, okB := get(high)
		if okA && okB && a > factor*b*(1+sameOrder) {
			say := ""
			if factor != 1 {
				say = fmt.Sprintf("%g times ", factor)
			}
			wrong = append(wrong, fmt.Sprintf("%s.%s is %s, above %s%s of %s", family, low, t.formatMetric(family+"."+low, a), say, high, t.formatMetric(family+"."+high, b)))
		}
	}
	line := []string{"min", "p50", "p90", "p95", "p99", "p99.9", "max"}
	for i, low := range line {
		for _, high := range line[i+1:] {
			atMost(low, high, 1)
		}
	}
	atMost("min", "mean", 1)
	atMost("mean", "max", 1)
	// A share 1-q of the positive values is at or above the quantile q, so their mean is at least (1-q) times the
	// quantile.
	atMost("p50", "mean", 2)
	atMost("p90", "mean", 10)
	atMost("p99", "mean", 100)
	// The standard deviation of values between min and max is at most half their distance.
	low, okLow := get("min")
	high, okHigh := get("max")
	dev, ok := get("stddev")
	if half := (high - low) / 2; ok && okLow && okHigh && half > 0 && dev > half*(1+2*sameSum) && dev > 1 {
		wrong = append(wrong, fmt.Sprintf("%s.stddev of %s is above half of max less min, %s", family, number.Number(dev), number.Number(half)))
	}
	return wrong
}

// flight is how many requests a closed loop had under way.
type flight struct {
	// under is how many requests were under way on average: the rate times the mean latency.
	// most is how many can be under way at once.
	under float64
	most  int
	// before is the largest share that requests sent before the window may add to under. Such a request counts with its
	// whole latency, at most the longest latency; requests that the end of the window cuts off do not count. It is 0 if
	// unknown.
	before float64
}

// flightEstimate returns the concurrency of a trial; ok is false if a number is missing.
func (t *trial) flightEstimate() (f flight, ok bool) {
	if tool, _ := plan.ToolNamed(t.Workload.Tool); tool.LooseTimes {
		return f, false
	}
	if t.hasWarning(adapter.Corrected) || t.hasWarning(adapter.Rounded) {
		return f, false // the mean is not of the requests sent, or has too few digits
	}
	if t.hasAssumption("connections") {
		return f, false
	}
	is := t.view.workloadTraits(t.Case)
	if !is.Exchanges() || is.Kernel() {
		return f, false
	}
	rate, latency := is.RateMetric(), is.Times()
	f.most = is.Concurrency()
	f.under = t.metrics[rate] * t.metrics[latency+".mean"] / 1e9
	if t.seconds > 0 {
		f.before = t.metrics[latency+".max"] / 1e9 / t.seconds
	}
	return f, t.has(rate, latency+".mean")
}

func (t *trial) concurrencyFault() string {
	f, ok := t.flightEstimate()
	if !ok || f.under <= float64(f.most)*(1+sameSide+f.before) {
		return ""
	}
	return fmt.Sprintf("rate times mean latency is %.3g under way, and there are %d at most", f.under, f.most)
}

func (t *trial) idleConnectionsFault() string {
	f, ok := t.flightEstimate()
	if !ok || f.under >= 0.4*float64(f.most) || t.Workload.Traits().Reconnect || t.hasWarning(adapter.Paced) {
		return "" // opening and closing connections takes the remaining time
	}
	return fmt.Sprintf("rate times mean latency is %.3g under way, of %d", f.under, f.most)
}

func (t *trial) zeroTimeFault() string {
	var zero []string
	for _, name := range slices.Sorted(maps.Keys(t.metrics)) {
		family, _, _ := strings.Cut(name, ".")
		if t.metrics[name] == 0 && (name == metric.Jitter || slices.Contains(metric.Times, family) && isTimeMetric(name)) {
			zero = append(zero, name)
		}
	}
	if len(zero) == 0 {
		return ""
	}
	return strings.Join(zero, ", ") + " is 0"
}

// ratesOfWork are metrics that are positive in every trial without a failure.
var ratesOfWork = []string{metric.Goodput, metric.TransactionRate, metric.RequestRate, metric.PacketRate}

func (t *trial) zeroRateFault() string {
	for _, name := range ratesOfWork {
		if v, ok := t.metrics[name]; ok && v == 0 {
			return name + " is 0 in a trial that did not fail"
		}
	}
	return ""
}

// mostCalls is the highest credible number of send calls of a flow per second.
const mostCalls = 2.5e6

func (t *trial) callRateFault() string {
	goodput, ok := t.metrics[metric.Goodput]
	is := t.view.workloadTraits(t.Case)
	calls := goodput / 8 / float64(is.Message) / float64(is.Flows) / directions(is)
	if !ok || !t.Workload.Traits().Bulk() || calls <= mostCalls || math.IsInf(calls, 0) {
		return ""
	}
	return fmt.Sprintf("%s in messages of %d B are %.3g send calls per second of a flow, one every %.0f ns",
		t.formatMetric(metric.Goodput, goodput), is.Message, calls, 1e9/calls)
}

func (t *trial) missingLossFault() string {
	if !t.Workload.Traits().Datagrams() || !t.has(metric.Goodput) || t.has(metric.FrameLossRate) || t.has(metric.OfferedLoad) {
		return ""
	}
	return fmt.Sprintf("goodput of %s, and neither offered load nor loss", t.formatMetric(metric.Goodput, t.metrics[metric.Goodput]))
}

// findUnshownLoss finds claims about UDP goodput in results without a loss metric.
func findUnshownLoss(v *View, found *list) {
	for _, c := range v.claims {
		udp := c.Workload.Traits().Datagrams() && c.Metric == metric.Goodput
		k := c.cellKey(c.A)
		if udp && v.cell(k.Case, metric.Goodput) == nil && v.cell(k.Case, metric.FrameLossRate) == nil && v.cell(k.Case, metric.OfferedLoad) == nil {
			found.add(v.describeClaim(c), "neither offered load nor loss is given")
		}
	}
}

// Limits below which a window is too short to judge.
const (
	// fewEchoes is the least number of exchanges of a ping. shortFlow is the least length in seconds of a flow without a
	// warm-up.
	fewEchoes = 20
	shortFlow = 2
)

func (t *trial) shortWindowFault() string {
	is := t.Workload.Traits()
	if every := is.Interval.Seconds(); is.Kernel() && every > 0 && t.seconds > 0 && t.seconds/every < fewEchoes {
		return fmt.Sprintf("%.0f echoes", t.seconds/every)
	}
	if t.Workload.Traits().Bulk() && t.view.imported() && t.view.header.Plan.Warmup == 0 && t.seconds > 0 && t.seconds < shortFlow {
		return fmt.Sprintf("%.3g s without a warm-up", t.seconds)
	}
	return ""
}
