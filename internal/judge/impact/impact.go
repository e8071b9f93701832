// Package impact estimates what a result means for the reader's own job: how long its work takes on each profile, its
// CPU time, and the gain of the whole job.
//
// Parse reads the description of the job, Assess applies an analysis to it. Times follow from goodput or from the rate
// of transactions, CPU time from service demand, and differences from the baseline from the comparisons in the report.
// A job is more than its network: Change.Job is Amdahl's law, so that a 70 % faster network does not read as a 70 %
// faster job. Pure: values in, values out; times are in ns.
package impact

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// Estimate is the estimate for a part of a job on each profile.
type Estimate struct {
	Work
	// Path, Workload and Rate, the name of a metric, are the basis of the estimate.
	Path     plan.Path
	Workload plan.Workload
	Rate     string
	// Baseline is the profile that changes are against.
	Baseline plan.Variant
	// Rows are the profiles that have a number, in report order.
	Rows []Row
}

// Row is the estimate for one profile.
type Row struct {
	Profile plan.Variant
	// Time is how long the work takes, CPU the CPU time of both ends and the kernel between them, in ns.
	Time, CPU Quantity
	// TimeChange and CPUChange compare with the baseline; nil without a comparison.
	TimeChange, CPUChange *Change
}

// Quantity is a value with its interval; all NaN if it was not measured, Low and High NaN if it was measured once.
type Quantity struct{ Value, Low, High float64 }

// Known reports whether there is a value.
func (q Quantity) Known() bool { return !math.IsNaN(q.Value) }

// Change is a time as a multiple of the baseline's. Verdict is the verdict of the comparison behind it: unless that is
// better or worse, the ratio claims nothing.
type Change struct {
	Quantity
	Verdict compare.Verdict
	// Need is the approximate number of further repetitions that would decide; 0 if it is decided or unknown.
	Need int
}

// Claimed reports whether the change is significant.
func (c *Change) Claimed() bool {
	return c != nil && c.Known() && (c.Verdict == compare.Better || c.Verdict == compare.Worse)
}

// Job returns the change of the whole job by Amdahl's law, as a share of its time (-0.2 is 20 % less), if the work
// takes share of its time on the baseline, in (0,1].
func (c *Change) Job(share float64) Quantity {
	of := func(ratio float64) float64 { return share * (ratio - 1) }
	return Quantity{of(c.Value), of(c.Low), of(c.High)}
}

// Assess estimates each of works on one path. It fails, with a hint, if the result has no workload for some work.
func Assess(a *compare.Analysis, path plan.Path, works []Work) ([]Estimate, error) {
	var out []Estimate
	var errs []error
	for _, w := range works {
		load, ok := chooseWorkload(a, w.Kind)
		switch {
		case ok:
			out = append(out, estimateWork(a, path, w, load))
		case len(fittingWorkloads(a.Workloads, w.Kind)) > 0:
			errs = append(errs, fmt.Errorf("%s needs a TCP stream under NIC model %s: this result has it with %s, which costs several times as much",
				w.Kind, plan.NICIdeal, plan.NICWire.Label()))
		default:
			errs = append(errs, fmt.Errorf("%s needs a workload that this result does not have: %s", w.Kind, needs[w.Kind].what))
		}
	}
	names := each.Of(a.Workloads, func(w plan.Workload) string { return w.String() })
	hint := "the result has: " + strings.Join(names, ", ")
	if slices.ContainsFunc(a.Workloads, func(w plan.Workload) bool { return nicModel(a, w) == plan.NICWire }) {
		hint += "; measure bulk as NICs carry it: cnibench run --nic " + string(plan.NICIdeal) + " --workloads stream"
	}
	return out, advice.With(errors.Join(errs...), hint)
}

// nicModel returns the NIC model under which the baseline sent a workload.
func nicModel(a *compare.Analysis, w plan.Workload) plan.NIC {
	return a.NIC(plan.Case{Profile: a.Baseline, Workload: w})
}

// needs maps a kind of work to its workloads, and to the metric for its time.
var needs = map[Kind]struct {
	what string
	rate string
	fits func(plan.Workload) bool
}{
	Transfer: {"a TCP stream in one direction", metric.Goodput, isOneWayBulk},
	Sync:     {"a TCP stream in one direction", metric.Goodput, isOneWayBulk},
	Requests: {"rr over TCP in a closed loop", metric.TransactionRate, func(w plan.Workload) bool {
		is := w.Traits()
		return is.Standing() && is.Protocol == plan.TCP && isClosedLoop(w)
	}},
	Connections: {"crr in a closed loop", metric.TransactionRate, func(w plan.Workload) bool {
		return w.Traits().Reconnecting() && isClosedLoop(w)
	}},
}

// isOneWayBulk reports whether w is a TCP stream in one direction: the goodput of both says nothing of a transfer.
func isOneWayBulk(w plan.Workload) bool { t := w.Traits(); return t.Bulk() && !t.Bidirectional }

// isClosedLoop reports whether the network limited the rate of w; in an open loop the rate is the requested one.
func isClosedLoop(w plan.Workload) bool { t := w.Traits(); return t.Arrival == "" && t.Burst <= 1 }

// fittingWorkloads returns the workloads from which the time of a kind of work follows.
func fittingWorkloads(all []plan.Workload, k Kind) []plan.Workload {
	return each.Where(all, needs[k].fits)
}

// chooseWorkload returns the first matching workload, with the most flows for Sync, otherwise with the fewest. Bulk data
// without NIC offload are not used: machines that run jobs have it.
func chooseWorkload(a *compare.Analysis, k Kind) (plan.Workload, bool) {
	all := slices.DeleteFunc(fittingWorkloads(a.Workloads, k), func(w plan.Workload) bool { return nicModel(a, w) == plan.NICWire })
	if len(all) == 0 {
		return plan.Workload{}, false
	}
	flows := func(v, w plan.Workload) int { return v.Traits().Flows - w.Traits().Flows }
	if k == Sync {
		return slices.MaxFunc(all, flows), true
	}
	return slices.MinFunc(all, flows), true
}

func estimateWork(a *compare.Analysis, path plan.Path, w Work, load plan.Workload) Estimate {
	e := Estimate{Work: w, Path: path, Workload: load, Rate: needs[w.Kind].rate, Baseline: a.Baseline}
	// A rate of r units a second takes units/r seconds; service demand is ns for each KB or transaction.
	units, works := w.Amount, w.Amount
	if w.Kind.isBulk() {
		units, works = 8*w.Amount, w.Amount/1000
	}
	for _, p := range a.Profiles {
		rate := compare.Key{Case: plan.Case{Profile: p, Path: path, Workload: load}, Metric: e.Rate}
		cost := compare.Key{Case: plan.Case{Profile: p, Path: path, Workload: load}, Metric: metric.ServiceDemand}
		row := Row{Profile: p, Time: divideByQuantity(cellMedian(a, rate), units*1e9), CPU: multiplyQuantity(cellMedian(a, cost), works)}
		if !row.Time.Known() && !row.CPU.Known() {
			continue
		}
		if x, ok := findComparison(a, rate); ok {
			row.TimeChange = &Change{divideByQuantity(Quantity{x.Ratio, x.Low, x.High}, 1), x.Verdict, x.Need}
		}
		if x, ok := findComparison(a, cost); ok {
			row.CPUChange = &Change{Quantity{x.Ratio, x.Low, x.High}, x.Verdict, x.Need}
		}
		e.Rows = append(e.Rows, row)
	}
	return e
}

// Forecast compares the predicted time of a job's step with the measured one.
type Forecast struct {
	Workload plan.Workload
	// Bytes are the bytes of the member with the most to send or to receive. From is the stream whose goodput they are
	// divided by.
	Bytes int
	From  plan.Workload
	Rows  []Told
}

// Told has the times of the exchange for one profile in ns: the predicted one (Said) and the measured one (Took).
type Told struct {
	Profile    plan.Variant
	Said, Took Quantity
}

// Error returns the relative error of the prediction: -0.5 means that half of the measured time was predicted.
func (t Told) Error() float64 { return t.Said.Value/t.Took.Value - 1 }

// Forecasts predicts how long the jobs of a result take to exchange their data, without their compute, and compares
// that with the measured times. It returns nil without a stream.
func Forecasts(a *compare.Analysis, path plan.Path) (all []Forecast) {
	from, ok := chooseWorkload(a, Transfer)
	if !ok {
		return nil
	}
	for _, w := range a.Workloads {
		shape := w.Normalize().Traits().Job
		if shape.Members == 0 || shape.Data() == 0 {
			continue
		}
		f := Forecast{Workload: w, Bytes: shape.Busiest(), From: from}
		for _, p := range a.Profiles {
			said := divideByQuantity(cellMedian(a, compare.Key{Case: plan.Case{Profile: p, Path: path, Workload: from}, Metric: metric.Goodput}), 8e9*float64(f.Bytes))
			took := cellMedian(a, compare.Key{Case: plan.Case{Profile: p, Path: path, Workload: w}, Metric: metric.ExchangeTime + ".mean"})
			if said.Known() && took.Known() {
				f.Rows = append(f.Rows, Told{p, said, took})
			}
		}
		if len(f.Rows) > 0 {
			all = append(all, f)
		}
	}
	return all
}

// cellMedian returns a cell's median with its interval.
func cellMedian(a *compare.Analysis, k compare.Key) Quantity {
	nan := math.NaN()
	c, ok := a.Cell(k)
	switch {
	case !ok || c.N == 0:
		return Quantity{nan, nan, nan}
	case c.N == 1:
		return Quantity{c.Median, nan, nan}
	}
	return Quantity{c.Median, c.Low, c.High}
}

func findComparison(a *compare.Analysis, k compare.Key) (compare.Comparison, bool) {
	return each.First(a.Comparisons, func(x compare.Comparison) bool { return x.Key == k })
}

// multiplyQuantity returns q multiplied by a factor. A product that is not positive and finite becomes NaN.
func multiplyQuantity(q Quantity, by float64) Quantity {
	return Quantity{positiveOrNaN(q.Value * by), positiveOrNaN(q.Low * by), positiveOrNaN(q.High * by)}
}

// divideByQuantity returns v divided by q; the ends of the interval swap. A quotient that is not positive and finite
// becomes NaN.
func divideByQuantity(q Quantity, v float64) Quantity {
	return Quantity{positiveOrNaN(v / q.Value), positiveOrNaN(v / q.High), positiveOrNaN(v / q.Low)}
}

func positiveOrNaN(v float64) float64 {
	if !(v > 0) || math.IsInf(v, 0) {
		return math.NaN()
	}
	return v
}
