// Package fidelity judges whether the lab is accurate: it compares the lab's measurements with those of real clusters,
// in one run.
//
// A result of `cnibench fidelity` has profiles of two kinds. A bare name is of the lab, a name with a context (host@a,
// flannel-vxlan@a) is of a real cluster. Both places have their own bare node, host, and a twin of it. Assess splits
// the result by place, and package compare compares each cluster with the lab like two results: by quotients to the
// bare node, which are equal if a dataplane costs the same in the lab and on the cluster. Package report renders it.
//
// Everything here is pure.
package fidelity

import (
	"errors"
	"maps"
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
	// near is the share by which a quotient, with its whole interval, may differ from 1 for the lab to count as accurate.
	// It is the run-to-run difference of service demand.
	near = 0.05
)

// Verdict is the result of a comparison of the lab with a cluster.
type Verdict string

// The verdicts. Bare nodes have none, since everything else is compared with them.
const (
	Differs   Verdict = "differs"
	Near      Verdict = "within 5 %"
	Undecided Verdict = "undecided"
)

// verdicts maps the verdicts of package compare to these.
var verdicts = map[compare.Verdict]Verdict{
	compare.Better: Differs, compare.Worse: Differs, compare.Same: Near, compare.Inconclusive: Undecided,
}

// Row compares the lab with one cluster: a profile on a path under a workload in a metric.
type Row struct {
	// Profile is the name in the lab, Context the name of the cluster.
	Profile  plan.Variant  `json:"profile"`
	Context  string        `json:"context"`
	Path     plan.Path     `json:"path"`
	Workload plan.Workload `json:"workload"`
	Metric   string        `json:"metric"`
	// Lab and Cluster are medians in the base unit of the metric.
	Lab     float64 `json:"lab"`
	Cluster float64 `json:"cluster"`
	// Quotient is the cluster's value over the lab's, each divided by the value of its bare node. In the rows of the bare
	// node, the values are not divided.
	Quotient stat.Effect `json:"cluster_to_lab"`
	// Verdict is "" in the rows of the bare node.
	Verdict Verdict `json:"verdict"`
}

// Name returns the name under which a workload is compared: without the options that are made equal in both places, and
// without the NIC model.
func Name(w plan.Workload) string { return w.Without("congestion", "buffer", "nic").String() }

// Bare reports whether the row is about the bare node.
func (r Row) Bare() bool { return r.Profile == plan.VariantOf(profile.Host) }

// Page is the assessment of one result.
type Page struct {
	Header result.Header `json:"-"`
	// Demand and Rates are the rows about CPU time per unit of work and about rates, bare nodes first.
	Demand []Row `json:"service_demand"`
	Rates  []Row `json:"rates"`
	// Kernel is the largest share of ksoftirqd in the lab's service demand, which is excluded on both sides; nil if
	// nothing was excluded.
	Kernel *float64 `json:"ksoftirqd_share"`
	// Repetitions is the number of measured repetitions: the plan's, or fewer if its budget was spent.
	Repetitions int `json:"repetitions"`
	// Failed are the cases with failed trials, in order.
	Failed []Failure `json:"failed"`
}

// Summary counts the CPU times of one profile on one cluster by verdict.
type Summary struct {
	Profile plan.Variant    `json:"profile"`
	Context string          `json:"context"`
	Verdict Verdict         `json:"verdict"`
	Rows    int             `json:"rows"`
	Count   map[Verdict]int `json:"count"`
}

// Summaries judges each profile on each cluster by its CPU times, in the order of Demand. A profile differs if one of its
// rows differs, is within 5 % if all rows are, and is undecided otherwise.
func (p *Page) Summaries() []Summary {
	var all []Summary
	for _, r := range p.Demand {
		if r.Bare() {
			continue
		}
		i := slices.IndexFunc(all, func(s Summary) bool { return s.Profile == r.Profile && s.Context == r.Context })
		if i < 0 {
			i = len(all)
			all = append(all, Summary{Profile: r.Profile, Context: r.Context, Count: map[Verdict]int{}})
		}
		all[i].Rows++
		all[i].Count[r.Verdict]++
	}
	for i, s := range all {
		switch {
		case s.Count[Differs] > 0:
			all[i].Verdict = Differs
		case s.Count[Near] == s.Rows:
			all[i].Verdict = Near
		default:
			all[i].Verdict = Undecided
		}
	}
	return all
}

// Failure counts the failed trials of a case, and all its trials.
type Failure struct {
	Case   string `json:"case"`
	Failed int    `json:"failed"`
	Tried  int    `json:"trials"`
	// Kind is the kind of the first failure.
	Kind string `json:"kind"`
}

// errNothing means that the result has no cluster in addition to the lab, or too few repetitions.
var errNothing = errors.New("not a result of `cnibench fidelity`: no profile was measured twice, with its bare node, in the lab and a cluster")

// Assess compares each cluster of a result with the lab. It fails if no profile was measured with its bare node in
// the lab and on a cluster, at least twice.
func Assess(h result.Header, recs []result.Record) (*Page, error) {
	p := &Page{Header: h, Demand: []Row{}, Rates: []Row{}, Failed: countFailures(recs)}
	recs, p.Kernel = equalizeDemandScope(recs)
	for _, r := range recs {
		p.Repetitions = max(p.Repetitions, r.Repetition)
	}
	lab, err := p.analysePlace(recs, "")
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{"": true} // the lab
	for _, v := range h.Plan.Profiles {
		if context := v.Context(); !seen[context] {
			seen[context] = true
			if err := p.addCluster(lab, recs, context); err != nil {
				return nil, err
			}
		}
	}
	if len(p.Demand)+len(p.Rates) == 0 {
		return nil, errNothing
	}
	bareFirst := func(r, s Row) int {
		switch {
		case r.Bare() == s.Bare():
			return 0
		case r.Bare():
			return -1
		}
		return 1
	}
	slices.SortStableFunc(p.Demand, bareFirst)
	slices.SortStableFunc(p.Rates, bareFirst)
	return p, nil
}

// equalizeDemandScope makes the service demand of both sides comparable. A container cannot observe ksoftirqd, so if it is
// missing in some trials, it is removed from all. most is the largest removed share, nil if nothing was removed.
func equalizeDemandScope(recs []result.Record) (out []result.Record, most *float64) {
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

// analysePlace analyses the trials of one place: of the cluster with this context, or of the lab if context is "". It drops
// the context from the profiles' names, so that both places have the same names.
func (p *Page) analysePlace(recs []result.Record, context string) (compare.Side, error) {
	var own []result.Record
	for _, r := range recs {
		if r.Type == result.TypeTrial && r.Profile.Context() == context {
			r.Profile = r.Profile.Local()
			own = append(own, r)
		}
	}
	h := p.Header
	h.Plan.Profiles, h.Profiles, h.Plan.Baseline = nil, nil, plan.VariantOf(profile.Host)
	a, err := compare.Analyse(h, own, compare.Options{Confidence: confidence, Margin: near})
	return compare.Side{Name: context, Header: h, Analysis: a}, err
}

// addCluster appends the rows that compare a cluster with the lab; none if they have no cell in common.
func (p *Page) addCluster(lab compare.Side, recs []result.Record, context string) error {
	cluster, err := p.analysePlace(recs, context)
	if err != nil {
		return err
	}
	all, err := compare.NewPair(lab, cluster, nil)
	if err != nil {
		return nil //nolint:nilerr // nothing in common: no row
	}
	for _, m := range all.Only(func(k compare.Key) bool {
		return k.Metric == metric.ServiceDemand || k.Metric == k.Workload.Traits().RateMetric()
	}).Matches {
		rows := &p.Rates
		if m.Metric == metric.ServiceDemand {
			rows = &p.Demand
		}
		if m.Yardstick || !m.Common.IsZero() {
			*rows = append(*rows, Row{m.Profile, context, m.Path, m.Workload, m.Metric, m.A.Median, m.B.Median, m.Effect, verdicts[m.Verdict]})
		}
	}
	return nil
}

// countFailures counts the failed trials of each case. It omits cases without a failure.
func countFailures(recs []result.Record) []Failure {
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
