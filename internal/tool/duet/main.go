// Command duet measures whether two profiles are compared better at the same time than in turn. What disturbs both at once
// cancels out of their ratio, but they disturb each other. It runs one plan in turn, at the same time on one CPU, and at the
// same time on two CPUs that are swapped half-way, all as long, and shows by how much the ratio scatters.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/tool/toolbox"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

const (
	baseline, subject = "raw", "flannel-vxlan"
	// repetitions are those of a run in turn, of which five make a block.
	repetitions, blocks = 25, 5
)

var workloads = []string{"rr", "crr"}

// part is one run: some profiles on some CPUs, as often as they fill the time that a run in turn takes.
type part struct {
	profiles, cpus string
	repetitions    int
}

// way is how two profiles are compared: what runs at the same time, step by step.
type way struct {
	name  string
	steps [][]part
}

var ways = []way{
	{"in turn", [][]part{{{baseline + "," + subject, "0,1", repetitions}}}},
	{"at the same time, on one CPU", [][]part{{{baseline, "0,1", 2 * repetitions}, {subject, "0,1", 2 * repetitions}}}},
	{"at the same time, on two CPUs in turn", [][]part{
		{{baseline, "0", repetitions}, {subject, "1", repetitions}},
		{{baseline, "1", repetitions}, {subject, "0", repetitions}},
	}},
}

func main() {
	rounds := flag.Int("rounds", 3, "`number` of runs of each way beside each neighbour")
	names := flag.String("beside", "nothing,compile", "`neighbours`, separated by commas")
	document := flag.String("document", "", "Markdown `file` whose table is replaced")
	flag.Parse()
	beside, err := toolbox.Parse(*names)
	if err != nil || flag.NArg() != 1 || *rounds < 1 {
		toolbox.Usage("duet [-rounds N] [-beside NEIGHBOURS] [-document FILE] CNIBENCH")
	}
	toolbox.Exit("duet", func(ctx context.Context) error {
		return toolbox.Kept("", func(dir string) error {
			table, err := measured(ctx, flag.Arg(0), dir, *rounds, beside)
			if err != nil {
				return err
			}
			return toolbox.Publish(*document, "duet", flag.Arg(0), table)
		})
	})
}

// measured measures every way beside every neighbour, and returns the table.
func measured(ctx context.Context, program, dir string, rounds int, beside []toolbox.Neighbour) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%d times %d s of each way; a block is a fifth of a run.\n\n", rounds, 2*2*repetitions*3/10)
	b.WriteString("| beside | workload | way | " + subject + " : " + baseline + " | scatter of a block |\n|---|---|---|---|---|\n")
	for _, n := range beside {
		// Ways take turns, so that all of them meet the same minutes of the machine.
		seen := map[string][]float64{}
		for range rounds {
			for _, w := range ways {
				stop := n.Start(ctx)
				ratios, err := w.measure(ctx, program, dir)
				stop()
				if err != nil {
					return "", fmt.Errorf("%s: %w", w.name, err)
				}
				for workload, r := range ratios {
					seen[workload+w.name] = append(seen[workload+w.name], r...)
				}
			}
		}
		for _, workload := range workloads {
			for _, w := range ways {
				all := seen[workload+w.name]
				fmt.Fprintf(&b, "| %s | `%s` | %s | %.3f | %.1f %% |\n", n.Name, workload, w.name, stat.Mean(all), 100*scatter(all))
			}
		}
	}
	return b.String(), nil
}

// measure runs the way once. It returns the ratio in each block, the mean of all steps, by workload.
func (w way) measure(ctx context.Context, program, dir string) (map[string][]float64, error) {
	ratios := map[string][]float64{}
	for _, step := range w.steps {
		values := map[string]map[string][]float64{baseline: {}, subject: {}}
		err := each.AtOnce(step, func(i int, p part) error { return p.run(ctx, program, file(dir, i)) })
		for i := range step {
			err = errors.Join(err, read(file(dir, i), values), os.Remove(file(dir, i)))
		}
		if err != nil {
			return nil, err
		}
		for _, workload := range workloads {
			if n := min(len(values[subject][workload]), len(values[baseline][workload])); n < repetitions/2 {
				return nil, fmt.Errorf("%s: %d trials of %s or %s did not fail", workload, n, subject, baseline)
			}
			of, to := perBlock(values[subject][workload]), perBlock(values[baseline][workload])
			if ratios[workload] == nil {
				ratios[workload] = slices.Repeat([]float64{1}, blocks)
			}
			for i := range blocks {
				ratios[workload][i] *= math.Pow(of[i]/to[i], 1/float64(len(w.steps)))
			}
		}
	}
	return ratios, nil
}

func file(dir string, i int) string { return filepath.Join(dir, fmt.Sprintf("%d.jsonl", i)) }

// run measures the profiles of a part into a file.
func (p part) run(ctx context.Context, program, file string) error {
	first, _, _ := strings.Cut(p.profiles, ",")
	_, err := toolbox.Output(ctx, "taskset", "-c", p.cpus, program, "run", "--format", "none", "--no-twin", "--budget", "0",
		"--profiles", p.profiles, "--baseline", first, "--paths", "pod-to-pod/cross-node", "--workloads", strings.Join(workloads, ","),
		"--duration", "300ms", "--repetitions", fmt.Sprint(p.repetitions), "-o", file)
	return err
}

// read adds the service demands in a file, in the order of its trials. A failed trial has none.
func read(file string, values map[string]map[string][]float64) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close() // it was only read
	r, err := result.NewReader(f, file)
	if err != nil {
		return err
	}
	return r.Each(func(rec *result.Record) error {
		v, ok := rec.Metrics[metric.ServiceDemand]
		if ok && rec.Type == result.TypeTrial {
			of, workload := values[rec.Profile.String()], rec.Workload.String()
			of[workload] = append(of[workload], v)
		}
		return nil
	})
}

// perBlock returns the mean of each block of values.
func perBlock(values []float64) []float64 {
	return each.Of(slices.Collect(slices.Chunk(values, len(values)/blocks)), stat.Mean)
}

// scatter is the standard deviation of the logarithms.
func scatter(values []float64) float64 {
	mean, sum := stat.Mean(values), 0.0
	for _, v := range values {
		sum += math.Log(v/mean) * math.Log(v/mean)
	}
	return math.Sqrt(sum / float64(len(values)-1))
}
