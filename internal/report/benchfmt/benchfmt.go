// Package benchfmt writes the trials of a report in the Go benchmark format, so that benchstat and the tools around it
// read them.
//
// A line is one trial, with all its metrics:
//
//	BenchmarkCNI/profile=canal/path=pod-to-pod/locality=cross-node/workload=rr 1 58400 cpu-ns/op 17100 transactions/s
//
// so that `benchstat -col /profile` compares profiles. Two kinds of lines come first: the facts of the run as configuration,
// without those that differ between any two runs, and the better direction of each unit. Units are named as in Go's own
// benchmarks (see unitOf). A line omits numbers that the trial does not have. Failed trials have no line of their own; a
// line "--- FAIL", which readers of the format ignore, counts them.
package benchfmt

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// Render writes the facts of d, the better direction of each unit, then the trials. It fails if it cannot write to w.
func Render(w io.Writer, d report.Document) error {
	a := cmp.Or(d.Analysis, &compare.Analysis{})
	b := bufio.NewWriter(w)
	for _, f := range fileConfiguration(d) {
		fmt.Fprintf(b, "%s: %s\n", f[0], f[1])
	}
	for _, s := range unitMetadata(a) {
		fmt.Fprintln(b, s)
	}
	for _, c := range groupTrials(a) {
		c.writeTrials(b)
	}
	return b.Flush()
}

// configKey matches the keys that the format allows and that cannot be mistaken for another kind of line.
var configKey = pattern.New(`^[a-z][a-z0-9_.-]*$`)

// goNames maps facts to the names that Go's own benchmarks use.
var goNames = map[string]string{facts.Architecture: "goarch", facts.CPUModel: "cpu"}

// mostValue is the largest width of a configuration value, in columns. Readers of the format stop at a line above 64 KiB.
const mostValue = 2000

// fileConfiguration returns the keys and values of the run. It omits facts that differ between any two runs, because
// benchstat only compares lines with the same configuration.
func fileConfiguration(d report.Document) [][2]string {
	var out [][2]string
	add := func(key, value string) {
		value = number.Truncate(strings.TrimSpace(number.Clean(value)), mostValue)
		taken := slices.ContainsFunc(out, func(f [2]string) bool { return f[0] == key })
		if value != "" && !taken && configKey.MatchString(key) {
			out = append(out, [2]string{key, value})
		}
	}
	add("plan", d.Run.Plan.Name)
	add("environment", d.Run.Plan.Environment)
	for _, name := range d.Facts.Names() {
		if !facts.OfTheMoment(name) {
			add(cmp.Or(goNames[name], name), d.Facts[name])
		}
	}
	return out
}

// unitMetadata returns a line for each unit that says whether lower or higher values are better. It omits other units.
func unitMetadata(a *compare.Analysis) []string {
	word := map[metric.Better]string{metric.Lower: "lower", metric.Higher: "higher"}
	var out []string
	for i := range a.Cells {
		c := &a.Cells[i]
		m, _ := metric.Lookup(c.Metric)
		u, _ := unitOf(c.Metric, c.Unit)
		if m.Better != metric.Neither {
			out = append(out, "Unit "+u+" better="+word[m.Better])
		}
	}
	return each.Once(out)
}

// group has the trials of one case.
type group struct {
	name string
	// trials has the formatted metrics of each repetition.
	trials map[int][]string
	failed int
}

// groupTrials groups the values of cells by case and repetition. Cases are in the order of the report.
func groupTrials(a *compare.Analysis) []*group {
	var all []*group
	at := map[plan.Case]*group{}
	for i := range a.Cells {
		c := &a.Cells[i]
		g := at[c.Case]
		if g == nil {
			g = &group{name: benchmarkName(c.Case), trials: map[int][]string{}}
			at[c.Case] = g
			all = append(all, g)
		}
		g.failed = c.Failed
		u, size := unitOf(c.Metric, c.Unit)
		for _, s := range c.Recorded().Samples {
			g.trials[s.Repetition] = append(g.trials[s.Repetition], strconv.FormatFloat(s.Value/size, 'g', -1, 64)+" "+u)
		}
	}
	return all
}

// writeTrials writes a line for each repetition, and one for failed trials.
func (g *group) writeTrials(w io.Writer) {
	repetitions := slices.Sorted(maps.Keys(g.trials))
	for _, r := range repetitions {
		fmt.Fprintf(w, "Benchmark%s 1 %s\n", g.name, strings.Join(g.trials[r], " "))
	}
	if g.failed > 0 {
		fmt.Fprintf(w, "--- FAIL: Benchmark%s (%d of %s)\n", g.name, g.failed, number.Counted(g.failed+len(repetitions), "trial"))
	}
}

// benchmarkName returns the benchmark name of a case. The locality is a part of its own, because a slash separates parts.
func benchmarkName(c plan.Case) string {
	path, locality, _ := strings.Cut(c.Path.String(), "/")
	out := "CNI/profile=" + namePart(c.Profile.String()) + "/path=" + namePart(path)
	if locality != "" {
		out += "/locality=" + namePart(locality)
	}
	return out + "/workload=" + namePart(c.Workload.String())
}

// namePart returns s with "_" for spaces and slashes, which may not occur in a part of a name.
func namePart(s string) string {
	return strings.NewReplacer(" ", "_", "/", "_").Replace(number.Clean(s))
}

// stems has the first part of the unit for metrics of CPU time per unit of work: "cpu" in "cpu-ns/op".
var stems = map[string]string{
	metric.ServiceDemand: "cpu", metric.ClientCPU: "client-cpu", metric.ServerCPU: "server-cpu", metric.KernelCPU: "ksoftirqd-cpu",
}

// unitOf returns the unit in which metric m is written, such as "cpu-ns/op", "cpu-ns/B", "B/s" or "rtt-p99-ns". Each metric
// has a unit of its own, because benchstat makes one table per unit. base is the unit of the recorded values. The caller
// divides these values by size.
func unitOf(m, base string) (unit string, size float64) {
	stem := stems[m]
	if stem == "" {
		// The first point separates a family from its member, a second one is a decimal point: rtt.p99.9.
		stem = strings.ReplaceAll(strings.Replace(m, ".", "-", 1), "_", "-")
	}
	switch base {
	case "ns/transaction", "ns/request":
		return stem + "-ns/op", 1
	case "ns/KB":
		return stem + "-ns/B", 1000
	case "bit/s":
		if m == metric.Goodput {
			return "B/s", 8
		}
		return stem + "-B/s", 8
	case "1/s":
		return strings.TrimSuffix(stem, "-rate") + "s/s", 1
	case "1/GB":
		return strings.TrimSuffix(stem, "-per-gb") + "/GB", 1
	case "1":
		return stem, 1
	}
	return stem + "-" + base, 1
}
