package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// duet measures whether two profiles are compared better at the same time than in turn. What disturbs both at once cancels
// out of their ratio, but they disturb each other. It runs one plan in turn, at the same time on one CPU, and at the same
// time on two CPUs that are swapped half-way, all as long, and shows by how much the ratio scatters.
type duet struct {
	rounds int
	beside []neighbour
}

func (d *duet) flags(f *flag.FlagSet) {
	f.IntVar(&d.rounds, "rounds", 3, "`number` of runs of each way beside each neighbour")
	d.beside = []neighbour{nothing, compiles}
	choose(f, &d.beside, "beside", "`neighbours` of runs", neighbours)
}

const (
	first, second = profile.Raw, "flannel-vxlan"
	// turns are the repetitions of a run in turn, of which five make a block.
	turns, blocks = 25, 5
)

var exchanges = []string{"rr", "crr"}

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
	{"in turn", [][]part{{{first + "," + second, "0,1", turns}}}},
	{"at the same time, on one CPU", [][]part{{{first, "0,1", 2 * turns}, {second, "0,1", 2 * turns}}}},
	{"at the same time, on two CPUs in turn", [][]part{
		{{first, "0", turns}, {second, "1", turns}},
		{{first, "1", turns}, {second, "0", turns}},
	}},
}

// measure measures every way beside every neighbour.
func (d *duet) measure(ctx context.Context, in setting) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%d times %d s of each way; a block is a fifth of a run.\n\n", d.rounds, 2*2*turns*3/10)
	b.WriteString("| beside | workload | way | " + second + " : " + first + " | scatter of a block |\n|---|---|---|---|---|\n")
	for _, n := range d.beside {
		// Ways take turns, so that all of them meet the same minutes of the machine.
		seen := map[string][]float64{}
		for round := range d.rounds {
			for i, w := range ways {
				stop := n.start(ctx)
				ratios, err := w.measure(ctx, in, fmt.Sprintf("%s-%d-%d", n.name, round, i))
				stop()
				if err != nil {
					return "", fmt.Errorf("%s: %w", w.name, err)
				}
				for workload, r := range ratios {
					seen[workload+w.name] = append(seen[workload+w.name], r...)
				}
			}
		}
		for _, workload := range exchanges {
			for _, w := range ways {
				all := seen[workload+w.name]
				fmt.Fprintf(&b, "| %s | `%s` | %s | %.3f | %.1f %% |\n", n.name, workload, w.name, stat.Mean(all), 100*scatter(all))
			}
		}
	}
	return b.String(), nil
}

// measure runs the way once, into files of this name. It returns the ratio in each block, the mean of all steps, by workload.
func (w way) measure(ctx context.Context, in setting, name string) (map[string][]float64, error) {
	ratios := map[string][]float64{}
	for n, step := range w.steps {
		files := make([]string, len(step))
		err := each.AtOnce(step, func(i int, p part) (err error) {
			files[i], err = in.results(fmt.Sprintf("%s-%d-%d", name, n, i), func(file string) error { return p.run(ctx, in.program, file) })
			return err
		})
		if err != nil {
			return nil, err
		}
		values, err := demands(files)
		if err != nil {
			return nil, err
		}
		for _, workload := range exchanges {
			if n := min(len(values[second][workload]), len(values[first][workload])); n < turns/2 {
				return nil, fmt.Errorf("%s: %d trials of %s or %s did not fail", workload, n, second, first)
			}
			of, to := perBlock(values[second][workload]), perBlock(values[first][workload])
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

// run measures the profiles of a part into a file.
func (p part) run(ctx context.Context, program, file string) error {
	baseline, _, _ := strings.Cut(p.profiles, ",")
	_, err := output(ctx, "taskset", "-c", p.cpus, program, "run", "--format", "none", "--no-twin", "--budget", "0",
		"--profiles", p.profiles, "--baseline", baseline, "--paths", crossNode, "--workloads", strings.Join(exchanges, ","),
		"--duration", window.String(), "--repetitions", fmt.Sprint(p.repetitions), "-o", file)
	return err
}

// demands returns the service demands in files by profile and workload, in the order of trials. A failed trial has none.
func demands(files []string) (map[string]map[string][]float64, error) {
	values := map[string]map[string][]float64{first: {}, second: {}}
	for _, file := range files {
		c, err := result.Load(file)
		if err != nil {
			return nil, err
		}
		for _, r := range c.Records {
			if v, ok := r.Metrics[metric.ServiceDemand]; ok && r.Type == result.TypeTrial {
				of, workload := values[r.Profile.String()], r.Workload.String()
				of[workload] = append(of[workload], v)
			}
		}
	}
	return values, nil
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
