package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// same is the result of equal runs.
type same struct {
	files   []string
	reports []report
	pairs   []pair
	// alarms are the pairs in which something was called worse.
	alarms int
}

// report is what the campaign reads of a report.
type report struct {
	Run struct {
		Wall   float64 `json:"wall_seconds"`
		Window float64 `json:"window_seconds"`
	} `json:"run"`
	Cells []cell  `json:"cells"`
	Pairs []floor `json:"noise_floor"`
	// Comparisons are those of the profiles with the baseline.
	Comparisons []struct {
		Metric  string   `json:"metric"`
		Ratio   *float64 `json:"ratio"`
		Verdict string   `json:"verdict"`
	} `json:"comparisons"`
}

// floor is the pair of equal profiles inside a run.
type floor struct {
	Metric string `json:"metric"`
	Twins  []struct {
		Verdict string `json:"verdict"`
	} `json:"twins"`
}

// cell is one number of a report by its two estimates.
type cell struct {
	Profile     string    `json:"profile"`
	Path        string    `json:"path"`
	Workload    string    `json:"workload"`
	Metric      string    `json:"metric"`
	Median      float64   `json:"median"`
	Undisturbed *estimate `json:"undisturbed"`
}

type estimate struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// pair is what the campaign reads of a comparison of two results.
type pair struct {
	Cells       []pairCell   `json:"cells"`
	Differences []difference `json:"differences"`
}

// difference is a condition in which the two runs differ.
type difference struct {
	Name string `json:"name"`
}

// pairCell is a comparison of one number.
type pairCell struct {
	Workload  string `json:"workload"`
	Metric    string `json:"metric"`
	Verdict   string `json:"verdict"`
	Yardstick bool   `json:"yardstick"`
	ratio
	Quotient *ratio `json:"quotient"`
}

type ratio struct {
	Ratio float64 `json:"ratio"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// spread are the metrics whose spread is shown.
var spread = []string{metric.ServiceDemand, metric.TransactionRate, metric.Goodput, metric.RTT + ".p50", metric.RTT + ".p99", metric.ConnectTime + ".p50"}

// render writes how far the runs lie apart, and what the comparisons of equal results say.
func (s same) render(about string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: the largest over the smallest of the runs' values, less 1, over the cells, median / 90th percentile; quotients are undisturbed values over those of %s.\n\n", about, profile.Raw)
	b.WriteString("| workload | metric | whole windows | undisturbed | quotients | half-width of the interval | pairs shown the same |\n|---|---|---|---|---|---|---|\n")
	var rows, better, worse, quotientsBetter, quotientsWorse int
	for _, workload := range s.workloads() {
		for _, name := range spread {
			typical := s.spreads(workload, name, func(_ report, x cell) float64 { return x.Median })
			if len(typical) == 0 {
				continue
			}
			undisturbed := s.spreads(workload, name, func(_ report, x cell) float64 { return x.value() })
			quotients := s.spreads(workload, name, func(r report, x cell) float64 {
				i := slices.IndexFunc(r.Cells, func(y cell) bool { return y.Profile == profile.Raw && y.Workload == workload && y.Metric == name })
				if i < 0 || x.Profile == profile.Raw || r.Cells[i].value() == 0 {
					return 0
				}
				return x.value() / r.Cells[i].value()
			})
			if len(undisturbed) > 0 {
				rows++
				count(middle(undisturbed), middle(typical), &better, &worse)
				count(middle(quotients), middle(undisturbed), &quotientsBetter, &quotientsWorse)
			}
			counts, judged := s.verdicts(workload, name)
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %d of %d |\n", workload, name,
				quantiles(typical), quantiles(undisturbed), quantiles(quotients), quantiles(s.halfWidths(workload, name)), counts["same"], judged)
		}
	}
	fmt.Fprintf(&b, "\nOf %d rows, undisturbed values repeat better than whole windows in %d and worse in %d; quotients repeat better than undisturbed values in %d and worse in %d (medians, by more than 0.1 %%).\n",
		rows, better, worse, quotientsBetter, quotientsWorse)
	differ, decided := s.decided()
	fmt.Fprintf(&b, "\nWithin the runs %d of these values differ from the baseline's by 5 %% or more; %d of them are decided.", differ, decided)
	wall, window, twins, twinVerdicts := 0.0, 0.0, 0, map[string]int{}
	for _, r := range s.reports {
		wall, window = wall+r.Run.Wall, window+r.Run.Window
		for _, f := range r.Pairs {
			for _, t := range f.Twins {
				twinVerdicts[t.Verdict]++
				if t.Verdict != "" {
					twins++
				}
			}
		}
	}
	all, judged := s.verdicts("", "")
	fmt.Fprintf(&b, " Of %d comparisons of two of the runs %d found something worse; of their %d cells %d are better, %d worse, %d the same. ",
		len(s.pairs), s.alarms, judged, all["better"], all["worse"], all["same"])
	fmt.Fprintf(&b, "Inside the runs the equal pair has %d cells: %d better, %d worse, %d the same. %.0f %% of the time was in windows.\n",
		twins, twinVerdicts["better"], twinVerdicts["worse"], twinVerdicts["same"], 100*window/wall)
	return b.String()
}

// decided counts the shown values that differ from the baseline's by 5 % or more, and those with a verdict.
func (s same) decided() (differ, decided int) {
	for _, r := range s.reports {
		for _, x := range r.Comparisons {
			if x.Verdict == "" || x.Ratio == nil || !slices.Contains(spread, x.Metric) || math.Abs(math.Log(*x.Ratio)) < math.Log(1.05) {
				continue
			}
			if differ++; x.Verdict != "inconclusive" {
				decided++
			}
		}
	}
	return differ, decided
}

// value is the undisturbed value, 0 without one.
func (c cell) value() float64 {
	if c.Undisturbed == nil {
		return 0
	}
	return c.Undisturbed.Value
}

// workloads are those of the first run, in its order.
func (s same) workloads() []string {
	var out []string
	for _, x := range s.reports[0].Cells {
		if !slices.Contains(out, x.Workload) {
			out = append(out, x.Workload)
		}
	}
	return out
}

// verdicts counts those of all pairs that are judged, of one metric under one workload or, with "", of all.
func (s same) verdicts(workload, name string) (counts map[string]int, judged int) {
	counts = map[string]int{}
	for _, p := range s.pairs {
		for _, x := range p.Cells {
			if x.Verdict != "" && (workload == "" || x.Workload == workload) && (name == "" || x.Metric == name) {
				counts[x.Verdict]++
				judged++
			}
		}
	}
	return counts, judged
}

// halfWidths are those of the intervals of undisturbed values, as shares, in order.
func (s same) halfWidths(workload, name string) []float64 {
	var out []float64
	for _, r := range s.reports {
		for _, x := range r.Cells {
			if u := x.Undisturbed; u != nil && x.Workload == workload && x.Metric == name {
				out = append(out, max(u.High/u.Value-1, 1-u.Low/u.Value))
			}
		}
	}
	slices.Sort(out)
	return out
}

// spreads returns for each cell that all runs have by how much its values differ.
func (s same) spreads(workload, name string, value func(report, cell) float64) []float64 {
	values := map[[2]string][]float64{} // by profile and path
	for _, r := range s.reports {
		for _, x := range r.Cells {
			if x.Workload == workload && x.Metric == name {
				if v := value(r, x); v > 0 {
					k := [2]string{x.Profile, x.Path}
					values[k] = append(values[k], v)
				}
			}
		}
	}
	var out []float64
	for _, vs := range values {
		if len(vs) == len(s.reports) {
			out = append(out, slices.Max(vs)/slices.Min(vs)-1)
		}
	}
	slices.Sort(out)
	return out
}

// count counts which of two spreads is smaller, by more than the last digit that is shown.
func count(a, b float64, smaller, larger *int) {
	const digit = 0.001
	switch {
	case a < b-digit:
		*smaller++
	case a > b+digit:
		*larger++
	}
}

// middle is the median of sorted shares, 0 of none.
func middle(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	return xs[len(xs)/2]
}

// quantiles writes the median and the 90th percentile of sorted shares.
func quantiles(xs []float64) string {
	if len(xs) == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f / %.1f %%", 100*middle(xs), 100*xs[(len(xs)*9)/10])
}
