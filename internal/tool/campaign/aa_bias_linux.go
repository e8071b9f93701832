package main

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/cnibench/cnibench/internal/external"
	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// corrected is by how much the service demand of a cell's trials is corrected to the machine's full speed.
type corrected struct {
	workload plan.Kind
	// doublings is the binary logarithm of the cell's cost over the baseline's.
	doublings float64
	// log is the median over the trials of the logarithm of the undisturbed value over that of the whole window, and error its
	// standard error. A median, since a disturbed trial is rightly corrected by much.
	log, error float64
}

const (
	// fewestCorrected is the least number of trials of a cell.
	fewestCorrected = 4
	// leastError keeps a cell whose few trials agree by chance from deciding alone.
	leastError = 0.0005
	// ofMean and ofDeviation make the median absolute deviation of normal values a standard error of their median.
	ofMean, ofDeviation = 1.2533, 1.4826
)

// correctionsIn returns the corrections of a result file's cells. Those of streams are left out: only their weights depend on
// the machine's speed.
func correctionsIn(file string) (out []corrected, err error) {
	s, err := external.OpenStream(file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var in compare.Collector
	if err := s.Each(in.Add); err != nil {
		return nil, err
	}
	a, err := in.Analyse(s.Header, compare.Options{})
	if err != nil {
		return nil, err
	}
	base := map[plan.Workload]float64{}
	for _, c := range a.Cells {
		if c.Metric == metric.ServiceDemand && c.Profile == plan.VariantOf(profile.Raw) {
			base[c.Workload] = c.Median
		}
	}
	for _, c := range a.Cells {
		logs := each.Of(c.Corrections(), math.Log)
		if c.Metric != metric.ServiceDemand || !c.Workload.Traits().Exchanges() || len(logs) < fewestCorrected || base[c.Workload] == 0 {
			continue
		}
		middle := stat.Median(logs)
		off := stat.Median(each.Of(logs, func(x float64) float64 { return math.Abs(x - middle) }))
		out = append(out, corrected{c.Workload.Kind(), math.Log2(c.Median / base[c.Workload]), middle,
			math.Hypot(leastError, ofMean*ofDeviation*off/math.Sqrt(float64(len(logs))))})
	}
	return out, nil
}

// bias returns by how much more a trial is corrected for each doubling of its cost, as a share, with its standard error: the
// slope of a line through the cells, each weighted by its error. Without three cells the error is infinite.
func bias(of []corrected) (per, error float64) {
	var all, x, y float64
	weight := func(c corrected) float64 { return 1 / (c.error * c.error) }
	for _, c := range of {
		w := weight(c)
		all, x, y = all+w, x+w*c.doublings, y+w*c.log
	}
	x, y = x/all, y/all
	var xx, xy, rest float64
	for _, c := range of {
		xx, xy = xx+weight(c)*(c.doublings-x)*(c.doublings-x), xy+weight(c)*(c.doublings-x)*(c.log-y)
	}
	if len(of) < 3 || xx == 0 {
		return 0, math.Inf(1)
	}
	per = xy / xx
	for _, c := range of {
		off := c.log - y - per*(c.doublings-x)
		rest += weight(c) * off * off
	}
	// Cells that scatter by more than their errors say are as sure as they scatter.
	return per, math.Sqrt(max(1, rest/float64(len(of)-2)) / xx)
}

// renderBias says how the corrections of files grow with the cost.
func renderBias(files int, of []corrected) string {
	var b strings.Builder
	for _, kind := range []plan.Kind{plan.Workload{Spec: plan.RR{}}.Kind(), plan.Workload{Spec: plan.CRR{}}.Kind()} {
		cells := each.Where(of, func(c corrected) bool { return c.workload == kind })
		if per, error := bias(cells); !math.IsInf(error, 1) {
			fmt.Fprintf(&b, "Service demand of `%s`: a trial is corrected by %+.2f %% per doubling of the cost over %s (95 %%: %+.2f to %+.2f; %d cells of %d files).\n",
				kind, 100*per, profile.Raw, 100*(per-1.96*error), 100*(per+1.96*error), len(cells), files)
		}
	}
	return b.String()
}
