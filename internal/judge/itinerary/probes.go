package itinerary

import (
	"fmt"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/journey"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Estimate is a number with its interval (95 %).
type Estimate struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// contains reports whether v is in the interval.
func (e Estimate) contains(v float64) bool { return e.Low <= v && v <= e.High }

// Probes is the cost of the probes of a journey, and the journey without it. Times are in ns.
//
// A probe records how long it ran at an event. The cost of its call and its return is the same for each event. It
// follows from two kinds of windows of the same run: with all probes, and with probes only at both ends of a
// transaction. So the journey without probes is measured by the probes' clock. It must equal the round trip by the
// client's clock, in windows without any probe.
type Probes struct {
	// Unknown is why the cost is unknown, "" if it is known. Otherwise the steps and the total include the probes.
	Unknown string `json:"unknown,omitempty"`
	// Rounds is the number of windows of each kind.
	Rounds int `json:"rounds"`
	// Sum is the cost of all probes between the first step and the last, Event the cost for one event, Call the part of
	// that for the call and the return.
	Sum   Estimate `json:"sum"`
	Event Estimate `json:"event"`
	Call  Estimate `json:"call"`
	// Total is the journey without its probes. Outside is the time of the client's calls before the first step and
	// after the last, which the client's round trip includes. Unprobed is the client's undisturbed round trip without
	// probes.
	Total    Estimate `json:"total"`
	Outside  Estimate `json:"outside"`
	Unprobed Estimate `json:"unprobed"`
	// Off is Total plus Outside minus Unprobed. Meets reports whether that is 0 within the error.
	Off   Estimate `json:"off"`
	Meets bool     `json:"meets"`

	// steps are the costs of the probes before each step.
	steps []float64
}

// fewestRounds is how many rounds an interval needs.
const fewestRounds = 4

// figures are the numbers of Probes for one set of rounds, in the same order.
type figures struct {
	sum, event, call, total, outside, unprobed, off float64
	// probed is the client's undisturbed round trip with all probes.
	probed float64
}

func (f *figures) fieldPointers() []*float64 {
	return []*float64{&f.sum, &f.event, &f.call, &f.total, &f.outside, &f.unprobed, &f.off}
}

// followed are transactions with the same events, and the round of each.
type followed struct {
	all   []transaction
	round []int
}

// newFollowed returns the transactions that take the most common way and begin in a window that window selects,
// with the round of each.
func newFollowed(all []transaction, rounds []journey.Round, window func(journey.Round) journey.Window) (f followed) {
	for _, x := range alikeTransactions(all) {
		if i := slices.IndexFunc(rounds, func(r journey.Round) bool { return window(r).Has(x[0].Time) }); i >= 0 {
			f.all, f.round = append(f.all, x), append(f.round, i)
		}
	}
	return f
}

// none is not the number of a round: undisturbedWithout(none) leaves out no round.
const none = -1

// undisturbedWithout returns the undisturbed transactions of all rounds except one. round is the round to leave out.
func (f followed) undisturbedWithout(round int) []transaction {
	var rest []transaction
	for i, x := range f.all {
		if f.round[i] != round {
			rest = append(rest, x)
		}
	}
	return undisturbedTransactions(rest)
}

// probe is how long the probe of an event ran, and the number of probe calls from this event to the next.
type probe struct{ took, calls float64 }

func (p probe) cost(call float64) float64 { return p.took + p.calls*call }

// medianProbes returns one probe for each event: the median of its running times and of its probe calls up to the
// next event. All transactions must have the same events.
func medianProbes(all []transaction) []probe {
	if len(all) == 0 {
		return nil
	}
	out := make([]probe, len(all[0]))
	for n := range out {
		out[n] = probe{quantile(each.Of(all, func(x transaction) float64 { return float64(x[n].Took) }), 0.5), 1}
		if n+1 < len(out) {
			out[n].calls += quantile(each.Of(all, func(x transaction) float64 { return float64(x[n+1].Vain) }), 0.5)
		}
	}
	return out
}

// sumInnerProbes sums all probes but the last: those between the first step and the last.
func sumInnerProbes(all []probe) (sum probe) {
	for _, p := range all[:len(all)-1] {
		sum.took, sum.calls = sum.took+p.took, sum.calls+p.calls
	}
	return sum
}

// figuresWithout returns the figures of all rounds except round. ok is false if there are too few undisturbed
// transactions, or no round-trip times.
func figuresWithout(t journey.Trace, full, ends followed, round int) (f figures, ok bool) {
	all, few := full.undisturbedWithout(round), ends.undisturbedWithout(round)
	if len(all) < fewest || len(few) < fewest || len(all[0]) == len(few[0]) {
		return f, false
	}
	var plain, whole *sample.Histogram
	for i, r := range t.Rounds {
		if i == round {
			continue
		}
		plain, whole = mergeHistogram(plain, r.Plain.RTT), mergeHistogram(whole, r.All.RTT)
	}
	if plain == nil || whole == nil {
		return f, false
	}
	at, total := medianProbes(all), medianTime(all)
	sum, atEnds := sumInnerProbes(at), sumInnerProbes(medianProbes(few))
	f.call = (total - sum.took - medianTime(few) + atEnds.took) / (sum.calls - atEnds.calls)
	f.sum = sum.cost(f.call)
	f.event = f.sum / float64(len(at)-1)
	f.total = total - f.sum
	last := at[len(at)-1].cost(f.call)
	f.probed = undisturbedMedian(whole)
	f.outside = f.probed - total - last
	f.unprobed = undisturbedMedian(plain)
	f.off = f.total + f.outside - f.unprobed
	return f, true
}

func mergeHistogram(into, h *sample.Histogram) *sample.Histogram {
	if h == nil {
		return into
	}
	if into == nil {
		into = sample.NewHistogram()
	}
	into.Merge(h)
	return into
}

func medianTime(all []transaction) float64 { return quantile(each.Of(all, totalTime), 0.5) }

// undisturbedMedian returns the median of the times that are at most tolerance times longer than the shortest.
func undisturbedMedian(h *sample.Histogram) float64 {
	limit := float64(h.Quantile(fastest)) * tolerance
	var below int64
	h.Each(func(ns, n int64) {
		if float64(ns) <= limit {
			below += n
		}
	})
	return float64(h.Quantile(float64(below) / 2 / float64(h.Count())))
}

// estimateProbeCost estimates the cost of the probes. Its errors come from leaving out one round after the other.
func estimateProbeCost(t journey.Trace, whole, few followed) (p Probes) {
	p.Rounds = len(t.Rounds)
	passed := 0
	for _, r := range t.Rounds {
		passed += r.All.Passed + r.Ends.Passed
	}
	switch {
	case len(t.Ends) == 0:
		p.Unknown = "this kernel has no tracepoint at the end of a transaction"
	case p.Rounds < fewestRounds:
		p.Unknown = fmt.Sprintf("%d rounds of windows are too few", p.Rounds)
	case passed > 0:
		p.Unknown = fmt.Sprintf("%d transactions were not followed, since the buffer was full", passed)
	}
	if p.Unknown != "" {
		return p
	}
	middle, ok := figuresWithout(t, whole, few, none)
	left := make([]figures, p.Rounds)
	for i := range left {
		var known bool
		left[i], known = figuresWithout(t, whole, few, i)
		ok = ok && known
	}
	switch {
	case !ok:
		p.Unknown = "too few transactions were undisturbed in windows with and without all probes"
	case middle.call < 0 || middle.probed < middle.unprobed: // as if probes saved time
		p.Unknown = "the machine changed between the windows: those with probes were the faster ones"
	}
	if p.Unknown != "" {
		return p
	}
	for i, to := range []*Estimate{&p.Sum, &p.Event, &p.Call, &p.Total, &p.Outside, &p.Unprobed, &p.Off} {
		*to = jackknifeEstimate(*middle.fieldPointers()[i], each.Of(left, func(f figures) float64 { return *f.fieldPointers()[i] }))
	}
	p.Meets = p.Off.contains(0)
	for _, x := range medianProbes(whole.undisturbedWithout(none)) {
		p.steps = append(p.steps, x.cost(p.Call.Value))
	}
	return p
}

// jackknifeEstimate returns value with its 95 % interval. without has the values that result if each round is left
// out in turn.
func jackknifeEstimate(value float64, without []float64) Estimate {
	n, mean, squares := float64(len(without)), 0.0, 0.0
	for _, v := range without {
		mean += v / n
	}
	for _, v := range without {
		squares += (v - mean) * (v - mean)
	}
	half := stat.Reach(0.95, n-1) * math.Sqrt(squares*(n-1)/n)
	return Estimate{value, value - half, value + half}
}
