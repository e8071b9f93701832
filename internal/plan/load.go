package plan

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Bounds of a load, as shares of the capacity. Above 1 a queue grows as long as the window lasts.
const (
	MinLoad = 0.001
	MaxLoad = 2
)

// loadStep is the distance of the loads within a range.
const loadStep = 0.1

// loadGrain is what loads are rounded to, so that a load and its text are each other's equal.
const loadGrain = 1e4

// arrive takes over from w how requests fall due.
func (w *Workload) arrive(from Workload) {
	if from.Kind != RR && from.Kind != CRR && from.Kind != HTTP {
		return
	}
	w.Rate, w.Load, w.Arrival = from.Rate, from.Load, from.Arrival
	if w.Arrival == "" && (w.Rate != 0 || w.Load != 0) {
		w.Arrival = Poisson
	}
}

// Open says whether requests follow a schedule that waits for no response.
func (w Workload) Open() bool { return w.Arrival == Constant || w.Arrival == Poisson }

// Capacity returns the workload whose rate is the capacity that Load is a share of; false if w has no Load. It is the
// same workload with as much under way as it takes to keep the path busy: SaturationDepth requests on each flow of rr
// and crr; http has a request on each connection.
func (w Workload) Capacity() (Workload, bool) {
	if w.Load == 0 {
		return Workload{}, false
	}
	c := w.Normalize()
	c.Load, c.Rate, c.Burst, c.Arrival, c.Roll = 0, 0, 0, Saturate, false
	if w.Kind == HTTP {
		c.Arrival = ""
	}
	return c.Normalize(), true
}

// withCapacities returns the workloads with those that measure the capacity of others, each before the first that needs
// it.
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

// WithLoads returns the workloads with each that knows requests, and has no rate or load yet, in place of itself once
// for every load. It is an error if there is none.
func WithLoads(list []Workload, loads []float64) ([]Workload, error) {
	var all []Workload
	loaded := false
	for _, w := range list {
		w = w.Normalize()
		takes := w.Kind == RR || w.Kind == CRR || w.Kind == HTTP
		if !takes || w.Rate != 0 || w.Load != 0 || w.Arrival == Saturate {
			all = append(all, w)
			continue
		}
		loaded = true
		for _, load := range loads {
			w.Load = load
			all = append(all, w.Normalize())
		}
	}
	if !loaded {
		return nil, errors.New("a load is for rr, crr and http in a closed loop, and there is none among the workloads")
	}
	return all, nil
}

// ParseLoad reads a share of the capacity: "50%" or "0.5", from 0.1 % to 200 %.
func ParseLoad(s string) (float64, error) {
	digits, percent := strings.CutSuffix(s, "%")
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil || strings.ContainsAny(digits, "xXpP_") {
		return 0, fmt.Errorf("%q is not a load: want a share of the capacity such as 50%% or 0.5", s)
	}
	if percent {
		v /= 100
	}
	if !(v >= MinLoad && v <= MaxLoad) {
		return 0, fmt.Errorf("load %s is out of range: want 0.1%% to 200%%", s)
	}
	return math.Round(v*loadGrain) / loadGrain, nil
}

// FormatLoad writes a load the way ParseLoad reads it: "50%".
func FormatLoad(load float64) string {
	return strconv.FormatFloat(math.Round(load*loadGrain)/100, 'f', -1, 64) + "%"
}

// ParseLoads reads loads separated by commas, of which each may be a range: "10%..95%" is 10 %, 20 % and so on in steps
// of 10 % to 90 %, and 95 %. The result rises and has every load once.
func ParseLoads(s string) ([]float64, error) {
	var loads []float64
	for part := range strings.SplitSeq(s, ",") {
		low, high, ranged := strings.Cut(strings.TrimSpace(part), "..")
		first, err := ParseLoad(low)
		if err != nil {
			return nil, err
		}
		last := first
		if ranged {
			if last, err = ParseLoad(high); err != nil {
				return nil, err
			}
		}
		if last < first {
			return nil, fmt.Errorf("range %q ends below its beginning", part)
		}
		for i := 0; ; i++ {
			load := math.Round((first+float64(i)*loadStep)*loadGrain) / loadGrain
			if load >= last {
				break
			}
			loads = append(loads, load)
		}
		loads = append(loads, last)
	}
	slices.Sort(loads)
	return slices.Compact(loads), nil
}

// spreadLoads turns a range into its loads.
func spreadLoads(s string) ([]string, error) {
	loads, err := ParseLoads(s)
	var texts []string
	for _, load := range loads {
		texts = append(texts, FormatLoad(load))
	}
	return texts, err
}

// try reads s as the option of a workload of a kind, and returns it, or the texts of what it stands for.
func (o option) try(kind Kind, s string) ([]string, error) {
	if o.spread != nil {
		return o.spread(s)
	}
	return []string{s}, o.set(&Workload{Kind: kind}, s)
}

// checkArrival says what does not go together in how requests fall due. w is normalized.
func (w Workload) checkArrival() error {
	var errs []error
	refuse := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	refuse(w.Rate != 0 && w.Load != 0, "rate and load both say how much is intended: give one of them")
	refuse(w.Open() && w.Rate > MaxRequestRate, "rate %s is out of range: want at most %s requests per second", formatRate(w.Rate), formatRate(MaxRequestRate))
	refuse(w.Open() && w.Rate == 0 && w.Load == 0, "arrival %s needs a rate or a load", w.Arrival)
	if w.Arrival == Saturate {
		refuse(w.Rate != 0 || w.Load != 0, "arrival saturate takes no rate and no load: it sends as fast as responses come")
		refuse(w.Burst != 0, "arrival saturate takes no burst: there are always %d requests under way on a flow", SaturationDepth)
		refuse(w.Kind == HTTP, "http has no arrival saturate: a closed loop over its connections is what it can do")
	}
	return errors.Join(errs...)
}
