package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// equalRuns measure how far equal runs differ: one plan is run several times, alone and beside neighbours, and the results are
// compared with one another. Nothing differs between them, so every difference is the machine's or the method's.
type equalRuns struct {
	runs, pairs int
	beside      []neighbour
	allowances  string
}

func (o *equalRuns) flags(f *flag.FlagSet) {
	f.IntVar(&o.runs, "runs", 3, "equal `runs` beside each neighbour, at least 2")
	choose(f, &o.beside, "beside", "`neighbours` of runs", neighbours)
	f.IntVar(&o.pairs, "pairs", 60, "`pairs` of equal short files, half of them with a neighbour in one of the two; 0 for none")
	f.StringVar(&o.allowances, "table", "", "`file` of what equal runs differ by beyond their errors, which compare allows for")
}

// whole is the plan of every run, short that of the files that many pairs are made of.
var (
	whole = []string{
		"--profiles", "raw,flannel-vxlan,canal,calico-vxlan,cilium-native",
		"--paths", "pod-to-pod/cross-node,pod-to-pod/same-node,pod-to-service/remote",
		"--workloads", "stream,rr,crr",
	}
	short = []string{
		"--profiles", "raw,flannel-vxlan,canal,cilium-native", "--paths", crossNode, "--workloads", "stream,rr,crr", "--budget", "40s",
	}
)

func (o *equalRuns) measure(ctx context.Context, in setting) (string, error) {
	if o.runs < 2 {
		return "", errors.New("-runs is less than 2")
	}
	text := ""
	var alone []string
	if o.pairs > 0 {
		m, err := o.many(ctx, in)
		if err != nil {
			return "", err
		}
		alone = m.alone
		text = m.render() + "\n"
		if o.allowances != "" {
			if err := os.WriteFile(o.allowances, []byte(allowances(withEarlier(beyond(m.quiet, false), false), withEarlier(beyond(noisy(m.disturbed), true), true))), 0o666); err != nil {
				return "", err
			}
		}
	}
	text += fmt.Sprintf("`cnibench run %s`, %d times beside each neighbour:\n", strings.Join(whole, " "), o.runs)
	for _, n := range o.beside {
		s, err := o.same(ctx, in, n)
		if err != nil {
			return "", err
		}
		files := s.files
		if n.name == nothing.name {
			files = append(files, alone...)
		}
		var all []corrected
		for _, file := range files {
			of, err := correctionsIn(file)
			if err != nil {
				return "", err
			}
			all = append(all, of...)
		}
		text += "\n" + s.render(n.about) + "\n" + renderBias(len(files), all)
	}
	return text, nil
}

// same makes the runs beside a neighbour, and compares all.
func (o *equalRuns) same(ctx context.Context, in setting, n neighbour) (same, error) {
	var s same
	for i := 1; i <= o.runs; i++ {
		file, err := in.runBeside(ctx, filepath.Join(n.name, fmt.Sprint(i)), n, whole)
		if err != nil {
			return s, err
		}
		s.files = append(s.files, file)
		var r report
		if _, err := in.read(ctx, &r, "report", "-f", "json", file); err != nil {
			return s, err
		}
		s.reports = append(s.reports, r)
	}
	for i, file := range s.files {
		for _, other := range s.files[i+1:] {
			var p pair
			alarm, err := in.read(ctx, &p, "compare", "-f", "json", file, other)
			if err != nil {
				return s, err
			}
			if alarm {
				s.alarms++
			}
			s.pairs = append(s.pairs, p)
		}
	}
	return s, nil
}

// runBeside returns the file of a plan that is measured beside a neighbour.
func (in setting) runBeside(ctx context.Context, name string, n neighbour, plan []string) (file string, err error) {
	return in.results(name, func(file string) error {
		defer n.start(ctx)()
		_, _, err := in.said(ctx, append([]string{"run", "--format", "none", "-o", file}, plan...)...)
		return err
	})
}

// Exit codes of a comparison in which something is worse, and of one that decides nothing.
const (
	worse     = 3
	undecided = 4
)

// said runs the program and returns its standard output, and whether it found something worse.
func (in setting) said(ctx context.Context, args ...string) (text string, alarm bool, err error) {
	text, err = output(ctx, in.program, args...)
	var exit *exec.ExitError
	if errors.As(err, &exit) && (exit.ExitCode() == worse || exit.ExitCode() == undecided) {
		return text, exit.ExitCode() == worse, nil
	}
	return text, false, err
}

// read decodes the JSON that the program writes.
func (in setting) read(ctx context.Context, v any, args ...string) (alarm bool, err error) {
	text, alarm, err := in.said(ctx, args...)
	if err != nil {
		return false, err
	}
	return alarm, json.Unmarshal([]byte(text), v)
}

// many are pairs of equal short files, and what they were called.
type many struct {
	quiet, disturbed       []pair // both files alone, and one of them beside a neighbour
	quietCalls, otherCalls int    // pairs of which anything was called better or worse
	files                  int
	alone                  []string
}

// many makes files until there are so many pairs, half of them with a neighbour in one of the two, and compares them.
func (o *equalRuns) many(ctx context.Context, in setting) (many, error) {
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
	for n, disturb := range interleaved(alone, beside) {
		with := nothing
		if disturb {
			with = []neighbour{compiles, bursts}[len(disturbed)%2]
		}
		file, err := in.runBeside(ctx, filepath.Join("pairs", fmt.Sprintf("%02d-%s", n, with.name)), with, short)
		if err != nil {
			return m, err
		}
		if files = append(files, file); disturb {
			disturbed[file] = true
		} else {
			m.alone = append(m.alone, file)
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
			if _, err := in.read(ctx, &p, "compare", "-f", "json", a, b); err != nil {
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

// beyond is what equal runs differ by beyond the errors of their values, or of their quotients where there are some: a
// standard deviation by "kind metric", as a share.
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

// withEarlier returns the root of the mean of two squares for each name: of what was found, and of what compare allows so far.
// The hour of one campaign then counts half.
func withEarlier(found map[string]float64, beside bool) map[string]float64 {
	out := map[string]float64{}
	for name, of := range found {
		kind, measured, _ := strings.Cut(name, " ")
		out[name] = math.Hypot(of, compare.RunToRun(kind, measured, beside)) / math.Sqrt2
	}
	return out
}

// allowances writes them as compare reads them, for pairs that were both measured alone and for those with other work beside
// one.
func allowances(alone, beside map[string]float64) string {
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
