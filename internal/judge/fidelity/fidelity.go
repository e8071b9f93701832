// Package fidelity says whether the lab is true: it sets what the lab measured beside what real clusters did, in one
// run.
//
// A result of `cnibench fidelity` has profiles of two kinds. A bare name is of the lab, a name with a context (host@a,
// flannel-vxlan@a) is of a real cluster. Both places have their own bare node, host, and a twin of it. Assess cuts the
// result into places, lets package compare judge each by itself, and forms for every path, workload and metric the
// ratio of the two ratios to the bare node: 1 where the dataplane costs in the lab what it costs on the cluster.
// Package report writes it down.
//
// Everything here is pure.
package fidelity

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

const (
	confidence = 0.95
	// near is how far from 1 a ratio may be at most, with all of its interval, for the lab to count as true there: what
	// service demand repeats to from run to run.
	near = 0.05
)

// Verdict is what a comparison of the lab with a cluster comes to.
type Verdict string

const (
	// Differs means that they differ beyond what instances differ by, and that the test says so.
	Differs Verdict = "differs"
	// Near means that they do not, and that the whole interval is within 5 % of equal.
	Near Verdict = "within 5 %"
	// Undecided is neither.
	Undecided Verdict = "undecided"
)

// Side is one place's part of a Row.
type Side struct {
	// Median is in the base unit of the metric.
	Median float64 `json:"median"`
	// Ratio is to the bare node of the same place; nil in the rows of the bare node.
	Ratio *stat.Effect `json:"to_host"`
}

// Row compares the lab with one cluster: a profile on a path under a workload by a metric.
type Row struct {
	// Profile is the name in the lab, Context the cluster's.
	Profile  string        `json:"profile"`
	Context  string        `json:"context"`
	Path     plan.Path     `json:"path"`
	Workload plan.Workload `json:"workload"`
	Metric   string        `json:"metric"`
	// Lab and Cluster are the two sides; Quotient is the cluster's ratio over the lab's, in the rows of the bare node
	// the cluster's value over the lab's.
	Lab      Side        `json:"lab"`
	Cluster  Side        `json:"cluster"`
	Quotient stat.Effect `json:"cluster_to_lab"`
	// Floor is the share by which Quotient may be off by noise: both places' floors together.
	Floor float64 `json:"floor"`
	// Adjusted is the p value of Quotient, corrected for all rows of the metric.
	Adjusted float64 `json:"p_adjusted"`
	Verdict  Verdict `json:"verdict"`
}

// Bare says whether the row is of the bare node.
func (r Row) Bare() bool { return r.Profile == profile.Host }

// Page is the assessment of one result.
type Page struct {
	Header result.Header `json:"-"`
	// Demand and Rates are the rows by CPU time per unit of work and by rate.
	Demand []Row `json:"service_demand"`
	Rates  []Row `json:"rates"`
	// Kernel is the largest share of ksoftirqd in the lab's service demand; it is left out on both sides. nil if
	// nothing was left out.
	Kernel *float64 `json:"ksoftirqd_share"`
	// Repetitions is how many were measured: those of the plan, or fewer if its budget was spent first.
	Repetitions int `json:"repetitions"`
	// Failed are the cases of which some trials failed, in order.
	Failed []Failure `json:"failed"`
}

// Failure says how many trials of a case failed.
type Failure struct {
	Case   string `json:"case"`
	Failed int    `json:"failed"`
	Tried  int    `json:"trials"`
	// Kind is that of the first.
	Kind string `json:"kind"`
}

// ErrNothing means that the result has no cluster beside the lab.
var ErrNothing = errors.New("not a result of `cnibench fidelity`: it lacks a profile measured in the lab and on a cluster")

// Assess judges a result.
func Assess(h result.Header, recs []result.Record) (*Page, error) {
	p := &Page{Header: h, Demand: []Row{}, Rates: []Row{}}
	recs, p.Kernel = alike(recs)
	lab, err := analyse(h, recs, "")
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{"": true} // the lab
	for _, name := range h.Plan.Profiles {
		context := name.Context()
		if seen[context] {
			continue
		}
		seen[context] = true
		cluster, err := analyse(h, recs, context)
		if err != nil {
			return nil, err
		}
		p.add(pair{lab, cluster, context})
	}
	if len(p.Demand)+len(p.Rates) == 0 {
		return nil, ErrNothing
	}
	settle(p.Demand)
	settle(p.Rates)
	p.Failed = failures(recs)
	for _, r := range recs {
		p.Repetitions = max(p.Repetitions, r.Repetition)
	}
	return p, nil
}

// alike makes service demand on both sides the same thing. What ksoftirqd does cannot be seen in a container, so where
// it is missing in some trials it is taken out of all. It returns the largest share that was taken out.
func alike(recs []result.Record) (out []result.Record, most *float64) {
	out = slices.Clone(recs)
	hidden := func(r result.Record) bool {
		_, known := r.Metrics[metric.KernelCPU]
		_, has := r.Metrics[metric.ServiceDemand]
		return has && !known
	}
	if !slices.ContainsFunc(recs, hidden) {
		return out, nil
	}
	for i, r := range out {
		kernel, known := r.Metrics[metric.KernelCPU]
		if all := r.Metrics[metric.ServiceDemand]; known && all > 0 {
			out[i].Metrics = maps.Clone(r.Metrics)
			out[i].Metrics[metric.ServiceDemand] = all - kernel
			if share := kernel / all; most == nil || share > *most {
				most = &share
			}
		}
	}
	return out, most
}

// analyse judges the trials of one place by themselves, under the names that profiles have in the lab.
func analyse(h result.Header, recs []result.Record, context string) (*compare.Analysis, error) {
	var own []result.Record
	for _, r := range recs {
		if r.Type != result.TypeTrial || r.Profile.Context() != context {
			continue
		}
		r.Profile = r.Profile.Local()
		own = append(own, r)
	}
	h.Plan.Profiles, h.Profiles, h.Plan.Baseline = nil, nil, profile.Host
	return compare.Analyse(h, own, compare.Options{Confidence: confidence})
}

// pair is the lab beside one cluster.
type pair struct {
	lab, cluster *compare.Analysis
	context      string
}

// add appends the rows of a pair.
func (p *Page) add(q pair) {
	for _, cell := range q.cluster.Cells {
		rows := &p.Rates
		switch cell.Metric {
		case metric.ServiceDemand:
			rows = &p.Demand
		case cell.Workload.Traits().RateMetric:
		default:
			continue
		}
		if row, ok := q.row(cell); ok {
			*rows = append(*rows, row)
		}
	}
}

// row compares one cell of the cluster with the lab's; false if there is nothing to compare.
func (q pair) row(cell compare.Cell) (Row, bool) {
	mine, ok := q.lab.Cell(cell.Key)
	if !ok || mine.N == 0 || cell.N == 0 {
		return Row{}, false
	}
	r := Row{Profile: string(cell.Profile), Context: q.context, Path: cell.Path, Workload: cell.Workload, Metric: cell.Metric}
	here, there := mine.Samples, cell.Samples
	if !r.Bare() {
		bareHere, okHere := bare(q.lab, cell.Key)
		bareThere, okThere := bare(q.cluster, cell.Key)
		if !okHere || !okThere {
			return Row{}, false
		}
		r.Lab.Ratio, r.Cluster.Ratio = paired(here, bareHere), paired(there, bareThere)
		here, there = quotients(here, bareHere), quotients(there, bareThere)
	}
	r.Lab.Median, r.Cluster.Median = mine.Median, cell.Median
	quotient := paired(there, here)
	if quotient == nil {
		return Row{}, false
	}
	r.Quotient = *quotient
	// Both places have their part in what noise may do to the quotient.
	r.Floor = (1+q.cluster.Widening(&cell))*(1+q.lab.Widening(&mine)) - 1
	return r, true
}

// bare returns the samples of the bare node that stand beside k: on the same path, or where it has none, between the
// nodes.
func bare(a *compare.Analysis, k compare.Key) ([]compare.Sample, bool) {
	k.Profile = profile.Host
	c, ok := a.Cell(k)
	if !ok {
		k.Path = plan.ZeroPath
		c, ok = a.Cell(k)
	}
	return c.Samples, ok
}

// paired compares the samples of the repetitions that both have; nil if they have no ratio.
func paired(x, y []compare.Sample) *stat.Effect {
	var a, b []float64
	for s, t := range compare.Pairs(x, y) {
		a, b = append(a, s.Value), append(b, t.Value)
	}
	if e := stat.Paired(a, b, confidence); !math.IsNaN(e.Ratio) {
		return &e
	}
	return nil
}

// quotients are the ratios of each repetition that both have.
func quotients(x, y []compare.Sample) []compare.Sample {
	var all []compare.Sample
	for s, t := range compare.Pairs(x, y) {
		if t.Value > 0 {
			all = append(all, compare.Sample{Repetition: s.Repetition, Value: s.Value / t.Value})
		}
	}
	return all
}

// settle corrects the p values of rows for their number, and judges each.
func settle(rows []Row) {
	ps := make([]float64, len(rows))
	for i, r := range rows {
		ps[i] = r.Quotient.P
	}
	adjusted := stat.Adjust(ps)
	for i := range rows {
		rows[i].Adjusted = adjusted[i]
		rows[i].Verdict = rows[i].judge()
	}
	first := func(r Row) int {
		if r.Bare() {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(rows, func(x, y Row) int {
		return cmp.Or(first(x)-first(y), strings.Compare(x.Profile, y.Profile), strings.Compare(x.Context, y.Context))
	})
}

func (r Row) judge() Verdict {
	e := r.Quotient
	off := math.Abs(math.Log(e.Ratio))
	switch {
	case e.Confidence < confidence:
		return Undecided
	case r.Adjusted <= 1-confidence && off > math.Log1p(r.Floor):
		return Differs
	case e.Low >= 1/(1+near) && e.High <= 1+near:
		return Near
	}
	return Undecided
}

// failures counts the trials of each case that failed.
func failures(recs []result.Record) []Failure {
	at := map[string]Failure{}
	for _, r := range recs {
		if r.Type != result.TypeTrial {
			continue
		}
		f := at[r.Key()]
		f.Case = r.Key()
		f.Tried++
		if r.Status != result.OK {
			f.Failed++
			if f.Kind == "" && r.Error != nil {
				f.Kind = r.Error.Kind
			}
		}
		at[r.Key()] = f
	}
	all := slices.SortedFunc(maps.Values(at), func(f, g Failure) int { return strings.Compare(f.Case, g.Case) })
	return slices.DeleteFunc(all, func(f Failure) bool { return f.Failed == 0 })
}
