package plan

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Bounds of a load, as shares of the capacity. Above 1 a queue grows as long as the window lasts.
const (
	minLoad = 0.001
	maxLoad = 2
)

// loadStep is the difference between two loads within a range.
const loadStep = 0.1

// Values of arrival: how requests are scheduled. Without a value, each request follows the previous response.
const (
	// Constant and Poisson follow a schedule that does not wait for responses. Poisson is the default with a rate or a
	// load.
	Constant = "constant"
	Poisson  = "poisson"
	// Saturate sends whenever fewer than SaturationDepth requests are under way on a flow, which measures the capacity.
	Saturate = "saturate"
)

// maxRequestRate is the largest rate in requests per second. SaturationDepth is how many requests Saturate keeps under
// way on a flow.
const (
	maxRequestRate  = 1e8
	SaturationDepth = 32
)

// pacingOptions returns the options that determine when requests are scheduled: arrival, rate and load.
func pacingOptions[S Spec](fields func(s *S) (rate, load *float64, arrival *string)) []option {
	arrivals := wordValues(Constant, Poisson, Saturate)
	arrivals.format = func(s string) string { return strings.TrimPrefix(s, Poisson) } // the default with a rate or a load
	load := fieldOption("load", "load", "intended share of the capacity, which is measured first", loads, func(s *S) *float64 { _, l, _ := fields(s); return l })
	load.spread = func(s string) ([]string, error) {
		loads, err := parseLoads(s)
		return each.Of(loads, FormatShare), err
	}
	return []option{
		fieldOption("arrival", "arrival", "when requests are scheduled; without it, after each response", arrivals, func(s *S) *string { _, _, a := fields(s); return a }),
		fieldOption("rate", "rate", "intended requests per second", requestRates, func(s *S) *float64 { r, _, _ := fields(s); return r }),
		load,
	}
}

// normalizeArrival returns how requests are scheduled: said if it is given, Poisson if only a rate or a load is given,
// and otherwise "".
func normalizeArrival(rate, load float64, said string) string {
	if said == "" && (rate != 0 || load != 0) {
		return Poisson
	}
	return said
}

// checkPacing adds faults for contradictions in the schedule of requests. The values must be normalized.
func (f *faultList) checkPacing(rate, load float64, arrival string) {
	open := arrival == Constant || arrival == Poisson
	f.refuseIf(rate != 0 && load != 0, "rate and load both say how much is intended: give one of them")
	f.refuseIf(open && rate > maxRequestRate, "rate %s is out of range: want at most %s requests per second", formatRate(rate), formatRate(maxRequestRate))
	f.refuseIf(open && rate == 0 && load == 0, "arrival %s needs a rate or a load", arrival)
	f.refuseIf(arrival == Saturate && (rate != 0 || load != 0), "arrival saturate takes no rate and no load: it sends as fast as responses come")
}

// Capacity returns the workload that measures the capacity to which w's load refers: its rate of requests, or of steps for
// a job with a compute share. It returns false if w has neither a load nor a compute share.
func (w Workload) Capacity() (Workload, bool) {
	if w, ok := w.withoutCompute(); ok {
		return w, true
	}
	if w.Traits().Load == 0 {
		return Workload{}, false
	}
	w = w.Without("rate", "load", "arrival", "burst", "roll", "drain")
	if w.Spec.kindEntry() != &httpKind { // http has a request on each connection
		w, _ = w.With("arrival", Saturate) // a workload with a load has this option
	}
	return w, true
}

// Paced returns the workload with this rate in requests per second, rounded to a thousandth, and this share of its
// capacity. A value of 0 removes either. It keeps an arrival other than Poisson. A workload without requests is
// returned unchanged.
func (w Workload) Paced(rate, load float64) Workload {
	if !w.canPace() {
		return w
	}
	w = w.Without("rate", "load")
	if rate > 0 {
		w, _ = w.With("rate", formatRate(rate)) // far below the bound
	}
	if load > 0 {
		w, _ = w.With("load", FormatShare(load))
	}
	return w.Normalize()
}

// canPace reports whether the requests of the workload can follow a schedule.
func (w Workload) canPace() bool {
	_, ok := w.Kind().entry().findOption("load")
	return ok
}

// withCapacities returns list with the missing workloads that measure capacities added, each before the first workload
// that needs it.
func withCapacities(list []Workload) []Workload {
	var all []Workload
	for _, w := range list {
		if c, ok := w.Capacity(); ok && !slices.Contains(list, c) && !slices.Contains(all, c) {
			all = append(all, c)
		}
		all = append(all, w)
	}
	return all
}

// WithLoads returns list with some workloads replaced by one workload for every load of text. It replaces each workload
// that has requests, but no rate, no load and no arrival saturate. It fails for an invalid text, and if there is no
// such workload.
func WithLoads(list []Workload, text string) ([]Workload, error) {
	loads, err := parseLoads(text)
	if err != nil {
		return nil, err
	}
	var all []Workload
	loaded := false
	for _, w := range list {
		t := w.Traits()
		if !w.canPace() || t.Rate != 0 || t.Load != 0 || t.Arrival == Saturate {
			all = append(all, w)
			continue
		}
		loaded = true
		for _, load := range loads {
			all = append(all, w.Paced(0, load))
		}
	}
	if !loaded {
		return nil, errors.New("a load requires rr, crr, http or dns in a closed loop among the workloads")
	}
	return all, nil
}

// parseLoads parses loads separated by commas, each of which may be a range. "10%..95%" is 10 %, 20 % and so on in
// steps of 10 % to 90 %, and 95 %. The result is sorted and has every load once.
func parseLoads(s string) ([]float64, error) {
	var all []float64
	for part := range strings.SplitSeq(s, ",") {
		low, high, ranged := strings.Cut(strings.TrimSpace(part), "..")
		first, err := loads.parse(low)
		if err != nil {
			return nil, err
		}
		last := first
		if ranged {
			if last, err = loads.parse(high); err != nil {
				return nil, err
			}
		}
		if last < first {
			return nil, fmt.Errorf("range %q ends below its beginning", part)
		}
		for i := 0; ; i++ {
			load := math.Round((first+float64(i)*loadStep)*shareGrain) / shareGrain
			if load >= last {
				break
			}
			all = append(all, load)
		}
		all = append(all, last)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// expandText returns a text for each value that s stands for. For a single value this is s alone. It fails if s is not
// a value of the option.
func (o option) expandText(w Workload, s string) ([]string, error) {
	if o.spread != nil {
		return o.spread(s)
	}
	return []string{s}, o.set(&w, s)
}
