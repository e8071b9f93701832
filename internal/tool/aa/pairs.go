package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/tool/toolbox"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// short is the plan of the files that many pairs are made of.
var short = []string{
	"--profiles", "raw,flannel-vxlan,canal,cilium-native", "--paths", "pod-to-pod/cross-node", "--workloads", "stream,rr,crr", "--budget", "40s",
}

// many are pairs of equal short files, and what they were called.
type many struct {
	quiet, disturbed       []pair // both files alone, and one of them beside a neighbour
	quietCalls, otherCalls int    // pairs of which anything was called better or worse
	files                  int
}

// measureMany makes files until there are so many pairs, half of them with a neighbour in one of the two, and compares them.
func measureMany(ctx context.Context, o options) (many, error) {
	var m many
	half := o.pairs / 2
	alone, beside := 2, 1
	for alone*(alone-1)/2 < half {
		alone++
	}
	for alone*beside < o.pairs-half {
		beside++
	}
	var files []string
	disturbed := map[string]bool{}
	turns := interleaved(alone, beside)
	for n, disturb := range turns {
		with := toolbox.All[0]
		if disturb {
			with = toolbox.All[1+len(disturbed)%(len(toolbox.All)-1)]
		}
		file := filepath.Join(o.dir, "pairs", fmt.Sprintf("%02d-%s.jsonl", n, with.Name))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			return m, err
		}
		if err := run(ctx, o.program, file, with, short); err != nil {
			return m, err
		}
		if files = append(files, file); disturb {
			disturbed[file] = true
		}
	}
	m.files = len(files)
	for i, a := range files {
		for _, b := range files[i+1:] {
			of, calls, most := &m.quiet, &m.quietCalls, half
			if disturbed[a] != disturbed[b] {
				of, calls, most = &m.disturbed, &m.otherCalls, o.pairs-half
			}
			if disturbed[a] && disturbed[b] || len(*of) == most {
				continue
			}
			var p pair
			if _, err := read(ctx, &p, o.program, "compare", "-f", "json", a, b); err != nil {
				return m, err
			}
			if *of = append(*of, p); p.calls() {
				*calls++
			}
		}
	}
	return m, nil
}

// interleaved spreads the files beside a neighbour evenly among those without: true is one beside.
func interleaved(alone, beside int) []bool {
	out := make([]bool, alone+beside)
	for i := range beside {
		out[(2*i+1)*len(out)/(2*beside)] = true
	}
	return out
}

// calls says whether anything in the pair is better or worse.
func (p pair) calls() bool {
	return slices.ContainsFunc(p.Cells, func(c pairCell) bool { return c.Verdict == "better" || c.Verdict == "worse" })
}

// render says what the pairs were called.
func (m many) render() string {
	return fmt.Sprintf("`cnibench run %s`, %d files, each two of which are equal: %d of %d pairs that were both measured alone have anything called better or worse; with a neighbour in one of the two, %d of %d have.\n",
		strings.Join(short, " "), m.files, m.quietCalls, len(m.quiet), m.otherCalls, len(m.disturbed))
}

// beyond is what equal runs differ by beyond the errors of their values, or of their quotients where there are some: a standard
// deviation by "kind metric", as a share.
func beyond(pairs []pair, beside bool) map[string]float64 {
	sums, counts := map[string]float64{}, map[string]float64{}
	for _, p := range pairs {
		for _, c := range p.Cells {
			// Tails are called the same or not by few events. Goodput has no undisturbed value to allow anything for.
			if c.Yardstick || !c.judged() || strings.Contains(c.Metric, ".p9") || c.Metric == metric.Goodput {
				continue
			}
			kind, _, _ := strings.Cut(c.Workload, "(")
			allowed := math.Log1p(compare.RunToRun(kind, c.Metric, beside))
			of := c.ratio
			if c.Quotient != nil {
				of = *c.Quotient
			}
			error, off := math.Log(of.High/of.Low)/2/1.96, math.Log(of.Ratio)
			sums[kind+" "+c.Metric] += off*off - error*error + allowed*allowed
			counts[kind+" "+c.Metric]++
		}
	}
	out := map[string]float64{}
	for k, sum := range sums {
		out[k] = math.Expm1(math.Sqrt(max(0, sum/counts[k])))
	}
	return out
}

// judged says whether the cell has a ratio with an interval.
func (c pairCell) judged() bool {
	return c.Verdict != "" && c.Ratio > 0 && c.Low > 0 && c.High > c.Low && (c.Quotient == nil || c.Quotient.Low > 0 && c.Quotient.High > c.Quotient.Low)
}

// table writes them as compare reads them, for pairs that were both measured alone and for those with other work beside one.
func table(alone, beside map[string]float64) string {
	var b strings.Builder
	b.WriteString("# kind of workload, metric, percent alone, percent beside other work; written by make aa\n")
	names := maps.Clone(alone)
	maps.Copy(names, beside)
	for _, k := range slices.Sorted(maps.Keys(names)) {
		if of := max(alone[k], beside[k]); of >= 0.0005 {
			fmt.Fprintf(&b, "%s %.2f %.2f\n", k, 100*alone[k], 100*of)
		}
	}
	return b.String()
}

// noisy are the pairs of which one was measured beside other work.
func noisy(pairs []pair) []pair {
	return slices.DeleteFunc(slices.Clone(pairs), func(p pair) bool {
		return !slices.ContainsFunc(p.Differences, func(d difference) bool { return d.Name == compare.OtherWork })
	})
}
