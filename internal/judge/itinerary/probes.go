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

// contains says whether the interval has a value.
func (e Estimate) contains(v float64) bool { return e.Low <= v && v <= e.High }

// Probes is what the probes cost that a journey was followed with, and what is left without them. Times are in ns.
//
// A probe notes how long it was at an event. Its call and its return are the same for each event. They follow from two sorts of windows
// of the same run: with all probes, and with those at both ends of a transaction alone. So the journey less its probes comes from the
// clock of the probes. The round trip that it must meet is of the client's clock, in windows without any probe.
type Probes struct {
	// Unknown says why the cost is not known, "" if it is. The steps and the total have the probes in them then.
	Unknown string `json:"unknown,omitempty"`
	// Rounds is how many windows of each sort there were.
	Rounds int `json:"rounds"`
	// Sum is what all probes cost between the first step and the last, Event the same for one event, Call the part of it that is the call
	// and the return.
	Sum   Estimate `json:"sum"`
	Event Estimate `json:"event"`
	Call  Estimate `json:"call"`
	// Total is the journey less its probes. Outside is the time of the client's calls before the first step and after the last, which the
	// client's round trip has as well. Unprobed is the client's undisturbed round trip without probes.
	Total    Estimate `json:"total"`
	Outside  Estimate `json:"outside"`
	Unprobed Estimate `json:"unprobed"`
	// Off is how much longer Total and Outside are than Unprobed. Meets says whether they are equal within the error.
	Off   Estimate `json:"off"`
	Meets bool     `json:"meets"`

	// steps are the costs of the probes before each step.
	steps []float64
}

// fewestRounds is how many rounds an interval needs.
const fewestRounds = 4

// figures are numbers of the same rounds, in the order of Probes.
type figures struct {
	sum, event, call, total, outside, unprobed, off float64
	// probed is the client's undisturbed round trip with all probes.
	probed float64
}

func (f *figures) all() []*float64 {
	return []*float64{&f.sum, &f.event, &f.call, &f.total, &f.outside, &f.unprobed, &f.off}
}

// followed are transactions that took the same way, and the rounds that each is of.
type followed struct {
	all   []transaction
	round []int
}

// within are the transactions that most are like, as far as they lie in a window that is meant.
func within(all []transaction, rounds []journey.Round, window func(journey.Round) journey.Window) (f followed) {
	for _, x := range mostAlike(all) {
		if i := slices.IndexFunc(rounds, func(r journey.Round) bool { return window(r).Has(x[0].Time) }); i >= 0 {
			f.all, f.round = append(f.all, x), append(f.round, i)
		}
	}
	return f
}

// none is the round of nothing.
const none = -1

// without are undisturbed ones of all rounds but one.
func (f followed) without(round int) []transaction {
	var rest []transaction
	for i, x := range f.all {
		if f.round[i] != round {
			rest = append(rest, x)
		}
	}
	return undisturbed(rest)
}

// probe is how long the probe of an event is at it, and how many calls of probes there are from this event to the next.
type probe struct{ took, calls float64 }

func (p probe) cost(call float64) float64 { return p.took + p.calls*call }

// probed are the probes of transactions, by their medians.
func probed(all []transaction) []probe {
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

// inner adds up the probes between the first step and the last. The last one is not.
func inner(all []probe) (sum probe) {
	for _, p := range all[:len(all)-1] {
		sum.took, sum.calls = sum.took+p.took, sum.calls+p.calls
	}
	return sum
}

// figuresWithout are those of all rounds but one. ok is false with too few undisturbed transactions.
func figuresWithout(t journey.Trace, full, ends followed, round int) (f figures, ok bool) {
	all, few := full.without(round), ends.without(round)
	if len(all) < fewest || len(few) < fewest || len(all[0]) == len(few[0]) {
		return f, false
	}
	var plain, whole *sample.Histogram
	for i, r := range t.Rounds {
		if i == round {
			continue
		}
		plain, whole = merged(plain, r.Plain.RTT), merged(whole, r.All.RTT)
	}
	if plain == nil || whole == nil {
		return f, false
	}
	at, total := probed(all), median(all)
	sum, atEnds := inner(at), inner(probed(few))
	f.call = (total - sum.took - median(few) + atEnds.took) / (sum.calls - atEnds.calls)
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

func merged(into, h *sample.Histogram) *sample.Histogram {
	if h == nil {
		return into
	}
	if into == nil {
		into = sample.NewHistogram()
	}
	into.Merge(h)
	return into
}

func median(all []transaction) float64 { return quantile(each.Of(all, total), 0.5) }

// undisturbedMedian is the median of the times that are about as short as the shortest.
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

// probes finds what probes cost. Its errors come from leaving out one round after the other.
func probes(t journey.Trace, whole, few followed) (p Probes) {
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
		*to = jackknifed(*middle.all()[i], each.Of(left, func(f figures) float64 { return *f.all()[i] }))
	}
	p.Meets = p.Off.contains(0)
	for _, x := range probed(whole.without(none)) {
		p.steps = append(p.steps, x.cost(p.Call.Value))
	}
	return p
}

// jackknifed is an estimate whose error comes from the values that it has without each of its rounds.
func jackknifed(value float64, without []float64) Estimate {
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
