// Package fidelity says whether the lab is true: it sets what the lab measured beside what real clusters did, in one run.
//
// A result of `cnibench fidelity` has profiles of two kinds. A bare name is of the lab, a name with a context (host@a,
// flannel-vxlan@a) is of a real cluster. Both places have their own bare node, host, and a twin of it. Assess cuts the
// result into places, lets package compare judge each by itself, and forms for every path, workload and metric the ratio
// of the two ratios to the bare node: 1 where the dataplane costs in the lab what it costs on the cluster. Package
// report writes it down.
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
	// Differs means that they differ beyond the noise floor, and that the test says so.
	Differs Verdict = "differs"
	// Near means that they do not, and that the whole interval is within 5 % of equal.
	Near Verdict = "within 5 %"
	// Undecided is neither.
	Undecided Verdict = "undecided"
)

// Side is one place's part of a Row.
type Side struct {
	// Median is in the base unit of the metric.
	Median float64
	// Ratio is to the bare node of the same place; NaN in the rows of the bare node.
	Ratio stat.Effect
}

// Row compares the lab with one cluster: a profile on a path under a workload by a metric.
type Row struct {
	// Profile is the name in the lab, Context the cluster's.
	Profile, Context string
	Path             plan.Path
	Workload         plan.Workload
	Metric           string
	// Lab and Cluster are the two sides; Quotient is the cluster's ratio over the lab's, in the rows of the bare node the
	// cluster's value over the lab's.
	Lab, Cluster Side
	Quotient     stat.Effect
	// Floor is the share by which Quotient may be off by noise: both places' floors together.
	Floor float64
	// Adjusted is the p value of Quotient, corrected for all rows of the metric.
	Adjusted float64
	Verdict  Verdict
}

// Bare says whether the row is of the bare node.
func (r Row) Bare() bool { return r.Profile == profile.Host }

// Page is the assessment of one result.
type Page struct {
	Header result.Header
	// Demand and Rates are the rows by CPU time per unit of work and by rate.
	Demand, Rates []Row
	// Kernel is the largest share of ksoftirqd in the lab's service demand; it is left out on both sides. NaN if nothing
	// was left out.
	Kernel float64
	// Repetitions is how many were measured: those of the plan, or fewer if its budget was spent first.
	Repetitions int
	// Failed are the cases of which some trials failed, in order.
	Failed []Failure
}

// Failure says how many trials of a case failed.
type Failure struct {
	Case          string
	Failed, Tried int
	// Kind is that of the first.
	Kind string
}

// ErrNothing means that the result has no cluster beside the lab.
var ErrNothing = errors.New("not a result of `cnibench fidelity`: it lacks a profile measured in the lab and on a cluster")

// Assess judges a result.
func Assess(h result.Header, recs []result.Record) (*Page, error) {
	p := &Page{Header: h}
	recs, p.Kernel = alike(recs)
	lab, err := analyse(h, recs, "")
	if err != nil {
		return nil, err
	}
	for _, context := range contexts(h.Plan.Profiles) {
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

// contexts are those of the clusters in the order of the plan.
func contexts(names []plan.Variant) []string {
	var all []string
	for _, name := range names {
		if context := name.Context(); context != "" && !slices.Contains(all, context) {
			all = append(all, context)
		}
	}
	return all
}

// alike makes service demand on both sides the same thing. What ksoftirqd does cannot be seen in a container, so where it
// is missing in some trials it is taken out of all. It returns the largest share that was taken out.
func alike(recs []result.Record) ([]result.Record, float64) {
	out := slices.Clone(recs)
	hidden := func(r result.Record) bool {
		_, known := r.Metrics[metric.KernelCPU]
		_, has := r.Metrics[metric.ServiceDemand]
		return has && !known
	}
	most := math.NaN()
	if !slices.ContainsFunc(recs, hidden) {
		return out, most
	}
	for i, r := range out {
		kernel, known := r.Metrics[metric.KernelCPU]
		all, has := r.Metrics[metric.ServiceDemand]
		if !known || !has || all <= 0 {
			continue
		}
		changed := maps.Clone(r.Metrics)
		changed[metric.ServiceDemand] = all - kernel
		out[i].Metrics = changed
		if share := kernel / all; math.IsNaN(most) || share > most {
			most = share
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
	floors := q.floors()
	for _, cell := range q.cluster.Cells {
		if cell.Metric != metric.ServiceDemand && cell.Metric != cell.Workload.Traits().RateMetric {
			continue
		}
		row, ok := q.row(cell)
		if !ok {
			continue
		}
		row.Floor = floors[floorKey{cell.Workload, cell.Metric}]
		if cell.Metric == metric.ServiceDemand {
			p.Demand = append(p.Demand, row)
		} else {
			p.Rates = append(p.Rates, row)
		}
	}
}

type floorKey struct {
	workload plan.Workload
	metric   string
}

// floors are what noise may do to a quotient: both places have their part in it.
func (q pair) floors() map[floorKey]float64 {
	all := map[floorKey]float64{}
	for _, f := range q.cluster.Floors {
		for _, g := range q.lab.Floors {
			if f.Workload == g.Workload && f.Metric == g.Metric {
				all[floorKey{f.Workload, f.Metric}] = (1+f.Share)*(1+g.Share) - 1
			}
		}
	}
	return all
}

// row compares one cell of the cluster with the lab's; false if there is nothing to compare.
func (q pair) row(cell compare.Cell) (Row, bool) {
	mine, ok := q.lab.Cell(cell.Key)
	if !ok || mine.N == 0 || cell.N == 0 {
		return Row{}, false
	}
	r := Row{Profile: string(cell.Profile), Context: q.context, Path: cell.Path, Workload: cell.Workload, Metric: cell.Metric}
	r.Lab = Side{mine.Median, none()}
	r.Cluster = Side{cell.Median, none()}
	there, here := byRepetition(cell), byRepetition(mine)
	if !r.Bare() {
		theirs, okThere := over(q.cluster, cell.Key)
		ours, okHere := over(q.lab, cell.Key)
		if !okThere || !okHere {
			return Row{}, false
		}
		r.Lab.Ratio, r.Cluster.Ratio = ours.effect(), theirs.effect()
		there, here = theirs.quotients(), ours.quotients()
	}
	a, b := common(there, here)
	r.Quotient = stat.Paired(a, b, confidence)
	return r, r.Quotient.N > 0
}

func none() stat.Effect { return stat.Effect{Ratio: math.NaN(), Low: math.NaN(), High: math.NaN()} }

// beside is a cell and that of the bare node of its place.
type beside struct{ own, bare map[int]float64 }

// over finds the bare node's cell for k: on the same path, or where it has none, between the nodes.
func over(a *compare.Analysis, k compare.Key) (beside, bool) {
	own, ok := a.Cell(k)
	if !ok {
		return beside{}, false
	}
	k.Profile = profile.Host
	bare, ok := a.Cell(k)
	if !ok {
		k.Path = plan.ZeroPath
		bare, ok = a.Cell(k)
	}
	return beside{byRepetition(own), byRepetition(bare)}, ok
}

func (b beside) effect() stat.Effect {
	own, bare := common(b.own, b.bare)
	return stat.Paired(own, bare, confidence)
}

// quotients are the ratios of each repetition that both have.
func (b beside) quotients() map[int]float64 {
	all := map[int]float64{}
	for rep, v := range b.own {
		if w := b.bare[rep]; w > 0 {
			all[rep] = v / w
		}
	}
	return all
}

func byRepetition(c compare.Cell) map[int]float64 {
	all := map[int]float64{}
	for _, s := range c.Samples {
		all[s.Repetition] = s.Value
	}
	return all
}

// common returns the values of the repetitions that both have, in order.
func common(x, y map[int]float64) (a, b []float64) {
	var reps []int
	for rep := range x {
		if _, ok := y[rep]; ok {
			reps = append(reps, rep)
		}
	}
	slices.Sort(reps)
	for _, rep := range reps {
		a, b = append(a, x[rep]), append(b, y[rep])
	}
	return a, b
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
	slices.SortStableFunc(rows, func(x, y Row) int {
		return cmp.Or(compareBare(x, y), strings.Compare(x.Profile, y.Profile), strings.Compare(x.Context, y.Context))
	})
}

// compareBare puts the bare node first.
func compareBare(x, y Row) int {
	switch {
	case x.Bare() == y.Bare():
		return 0
	case x.Bare():
		return -1
	}
	return 1
}

func (r Row) judge() Verdict {
	e := r.Quotient
	off := math.Abs(math.Log(e.Ratio))
	switch {
	case math.IsNaN(e.Ratio) || e.Confidence < confidence:
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
	at := map[string]*Failure{}
	for _, r := range recs {
		if r.Type != result.TypeTrial {
			continue
		}
		f := at[r.Key()]
		if f == nil {
			f = &Failure{Case: r.Key()}
			at[r.Key()] = f
		}
		f.Tried++
		if r.Status == result.OK {
			continue
		}
		f.Failed++
		if f.Kind == "" && r.Error != nil {
			f.Kind = r.Error.Kind
		}
	}
	var all []Failure
	for _, name := range slices.Sorted(maps.Keys(at)) {
		if at[name].Failed > 0 {
			all = append(all, *at[name])
		}
	}
	return all
}
