// Command power measures what a comparison of two result files can see. It plants a cost of known size into a profile of the
// lab, rules in the path of every forwarded packet, runs one plan with the cost and without, and counts in how many pairs of
// files the comparison finds it. Pairs without a cost say how often it finds what is not there.
//
// Read campaign (what is measured), plant_linux.go (the cost) and table.go (what is written).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/tool/insert"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

const (
	// subject is the profile that the cost is planted into, path where it is measured.
	subject = plan.Variant("bridge")
	path    = "pod-to-pod/cross-node"
	// probing is how many rules tell what one costs.
	probing = 400
	// repetitions of windows are what the default plan has for fifteen cases.
	repetitions = 12
	window      = 300 * time.Millisecond
)

// shares are the costs that are planted, as shares of the subject's service demand.
var shares = []float64{0, 0.02, 0.05, 0.1}

// workloads are what is measured.
var workloads = []string{"rr", "crr"}

func main() {
	pairs := flag.Int("pairs", 10, "pairs of `files` for each workload and cost")
	document := flag.String("document", "", "Markdown `file` whose table is replaced")
	keep := flag.String("keep", "", "`directory` for the results; those that are there are judged again and not measured; empty removes them")
	flag.Parse()
	if flag.NArg() != 1 || *pairs < 1 {
		fmt.Fprintln(os.Stderr, "usage: power [-pairs N] [-document FILE] [-keep DIR] CNIBENCH")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := write(ctx, flag.Arg(0), *pairs, *document, *keep); err != nil {
		fmt.Fprintln(os.Stderr, "power:", err)
		os.Exit(1)
	}
}

func write(ctx context.Context, program string, pairs int, document, dir string) error {
	if dir == "" {
		made, err := os.MkdirTemp("", "power-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(made)
		dir = made
	}
	rows, err := campaign{program, dir}.rows(ctx, pairs)
	if err != nil {
		return err
	}
	table := render(rows, pairs)
	fmt.Print(table)
	if document == "" {
		return nil
	}
	return insert.Table(document, "power", table)
}

// campaign measures with a cnibench, into a directory.
type campaign struct{ program, dir string }

// row is what came of one cost under one workload.
type row struct {
	workload string
	rules    int
	// share is what was planted, by the cost of a rule.
	share float64
	// seen are the ratios that the pairs showed, verdicts what they were called.
	seen     []float64
	verdicts map[compare.Verdict]int
}

// rows measures every cost under every workload.
func (c campaign) rows(ctx context.Context, pairs int) ([]row, error) {
	var rows []row
	for _, name := range workloads {
		perRule, err := c.perRule(ctx, name)
		if err != nil {
			return nil, err
		}
		var some []row
		for _, share := range shares {
			rules := int(math.Round(share / perRule))
			some = append(some, row{workload: name, rules: rules, share: float64(rules) * perRule, verdicts: map[compare.Verdict]int{}})
		}
		// Costs take turns, so that all of them meet the same hours of the machine.
		for n := range pairs {
			base, err := c.measured(ctx, name, 0, fmt.Sprintf("base-%d", n))
			if err != nil {
				return nil, err
			}
			for i := range some {
				other, err := c.measured(ctx, name, some[i].rules, fmt.Sprintf("%d-%d", int(100*shares[i]), n))
				if err != nil {
					return nil, err
				}
				if err := some[i].judge(base, other); err != nil {
					return nil, err
				}
			}
		}
		rows = append(rows, some...)
	}
	return rows, nil
}

// perRule is the cost of one rule as a share of the subject's service demand, from many.
func (c campaign) perRule(ctx context.Context, workload string) (float64, error) {
	var levels []float64
	for _, rules := range []int{0, probing} {
		s, err := c.measured(ctx, workload, rules, fmt.Sprintf("probe-%d", rules))
		if err != nil {
			return 0, err
		}
		v, err := demand(s, subject)
		if err != nil {
			return 0, err
		}
		base, err := demand(s, s.Baseline)
		if err != nil {
			return 0, err
		}
		levels = append(levels, v/base)
	}
	share := (levels[1]/levels[0] - 1) / probing
	if share <= 0 {
		return 0, fmt.Errorf("%s: %d rules cost nothing that can be measured", workload, probing)
	}
	return share, nil
}

func demand(s compare.Side, profile plan.Variant) (float64, error) {
	for _, c := range s.Cells {
		if c.Profile == profile && c.Metric == metric.ServiceDemand && c.N > 0 {
			return c.Median, nil
		}
	}
	return 0, fmt.Errorf("%s: no service demand of %s", s.Name, profile)
}

// judge adds the verdict on a pair of files.
func (r *row) judge(a, b compare.Side) error {
	p, err := compare.NewPair(a, b, nil)
	if err != nil {
		return err
	}
	// As the command does: what it shows is what it judges as one family.
	p = p.Only(func(k compare.Key) bool {
		m, _ := metric.Lookup(k.Metric)
		return m.Headline
	})
	for _, m := range p.Matches {
		if m.Profile == subject && m.Metric == metric.ServiceDemand {
			r.verdicts[m.Verdict]++
			r.seen = append(r.seen, m.Ratio)
			return nil
		}
	}
	return errors.New("the pair has no comparison of " + string(subject))
}

// measured reads the file of a name, and measures it first if it is not there.
func (c campaign) measured(ctx context.Context, workload string, rules int, name string) (compare.Side, error) {
	file := filepath.Join(c.dir, workload, name+".jsonl")
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return compare.Side{}, err
	}
	if _, err := os.Stat(file); err != nil {
		fmt.Fprintf(os.Stderr, "power: %s with %d rules: %s\n", workload, rules, file)
		if err := c.measure(ctx, workload, rules, file); err != nil {
			return compare.Side{}, errors.Join(fmt.Errorf("%s: %w", file, err), os.Remove(file))
		}
	}
	return read(file)
}

// read analyses a file.
func read(file string) (compare.Side, error) {
	f, err := os.Open(file)
	if err != nil {
		return compare.Side{}, err
	}
	defer f.Close() // it was only read
	r, err := result.NewReader(f, file)
	if err != nil {
		return compare.Side{}, err
	}
	var c compare.Collector
	if err := r.Each(func(rec *result.Record) error { return c.Add(rec) }); err != nil {
		return compare.Side{}, err
	}
	a, err := c.Analyse(r.Header(), compare.Options{})
	return compare.Side{Name: file, Header: r.Header(), Analysis: a}, err
}

// median of what pairs showed.
func median(xs []float64) float64 { return stat.Summarize(slices.Clone(xs), 0.95).Median }
