package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// report is what the campaign reads of a report.
type report struct {
	Cells []cell `json:"cells"`
}

// cell is one number of a report by its two estimates.
type cell struct {
	Profile     string  `json:"profile"`
	Path        string  `json:"path"`
	Workload    string  `json:"workload"`
	Metric      string  `json:"metric"`
	Median      float64 `json:"median"`
	Undisturbed *struct {
		Value float64 `json:"value"`
	} `json:"undisturbed"`
}

// pair is what the campaign reads of a comparison of two results.
type pair struct {
	Cells []struct {
		Verdict string `json:"verdict"`
	} `json:"cells"`
}

// shown are the metrics whose spread is shown.
var shown = []string{metric.ServiceDemand, metric.TransactionRate, metric.Goodput, "rtt.p50"}

// render writes how far the runs lie apart, and what the comparisons of equal results say.
func render(plan []string, all []report, pairs []pair) string {
	var b strings.Builder
	fmt.Fprintf(&b, "`cnibench run %s`, %d times; the largest over the smallest of the runs' values, less 1, over the cells:\n\n", strings.Join(plan, " "), len(all))
	b.WriteString("| workload | metric | cells | typical: median, 90th percentile | undisturbed: median, 90th percentile |\n|---|---|---|---|---|\n")
	for _, workload := range workloads(all) {
		for _, name := range shown {
			typical := spreads(all, workload, name, func(c cell) float64 { return c.Median })
			undisturbed := spreads(all, workload, name, func(c cell) float64 {
				if c.Undisturbed == nil {
					return 0
				}
				return c.Undisturbed.Value
			})
			if len(typical) > 0 {
				fmt.Fprintf(&b, "| `%s` | %s | %d | %s | %s |\n", workload, name, len(typical), quantiles(typical), quantiles(undisturbed))
			}
		}
	}
	counts, most := map[string]int{}, 0
	for _, p := range pairs {
		for _, c := range p.Cells {
			counts[c.Verdict]++
			most++
		}
	}
	fmt.Fprintf(&b, "\nThe %d comparisons of two of the runs have %d cells: %d better, %d worse, %d same, %d inconclusive.\n",
		len(pairs), most-counts[""], counts["better"], counts["worse"], counts["same"], counts["inconclusive"])
	return b.String()
}

// workloads are those of the first run, in its order.
func workloads(all []report) []string {
	var out []string
	for _, c := range all[0].Cells {
		if !slices.Contains(out, c.Workload) {
			out = append(out, c.Workload)
		}
	}
	return out
}

// spreads returns for each cell that all runs have by how much its values differ.
func spreads(all []report, workload, name string, value func(cell) float64) []float64 {
	values := map[cell][]float64{}
	for _, r := range all {
		for _, c := range r.Cells {
			if c.Workload == workload && c.Metric == name {
				if v := value(c); v > 0 {
					k := cell{Profile: c.Profile, Path: c.Path}
					values[k] = append(values[k], v)
				}
			}
		}
	}
	var out []float64
	for _, vs := range values {
		if len(vs) == len(all) {
			out = append(out, slices.Max(vs)/slices.Min(vs)-1)
		}
	}
	slices.Sort(out)
	return out
}

// quantiles writes the median and the 90th percentile of sorted shares.
func quantiles(xs []float64) string {
	if len(xs) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%, %.1f %% (%d)", 100*xs[len(xs)/2], 100*xs[(len(xs)*9)/10], len(xs))
}
