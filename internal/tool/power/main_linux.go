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
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/tool/insert"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

const (
	// subject is the profile that the cost is planted into, path where it is measured.
	subject = plan.Variant("bridge")
	path    = "pod-to-pod/cross-node"
	// probing is how many rules tell what one costs, and are there in one slice of ten.
	probing = 400
	// repetitions of windows are what the default plan has for fifteen cases.
	repetitions = 12
	window      = 300 * time.Millisecond
)

// cost is what is planted: rules in the path, all the time or in one slice of ten, or a program beside the path that takes
// the CPU for as long as those slices last.
type cost struct {
	name string
	// share is that of the subject's service demand that rules cost together; those of slices are probing.
	share float64
	when  when
}

type when string

const (
	always when = "all the time"
	sliced when = "in one slice of ten"
	apart  when = "none; another program has the CPU for one slice of ten"
)

var costs = []cost{{"0", 0, always}, {"2", 0.02, always}, {"5", 0.05, always}, {"10", 0.1, always}, {"slices", 0, sliced}, {"apart", 0, apart}}

func main() {
	var c campaign
	flag.IntVar(&c.pairs, "pairs", 10, "pairs of `files` for each workload and cost")
	flag.IntVar(&c.times, "times", 1, "how many `times` the default plan's repetitions")
	only := flag.String("costs", names(costs), "`costs` that are planted")
	of := flag.String("workloads", "rr,crr", "`workloads`, separated by commas")
	document := flag.String("document", "", "Markdown `file` whose table is replaced")
	table := flag.String("table", "power", "`name` of that table")
	flag.StringVar(&c.dir, "keep", "", "`directory` for the results; those that are there are judged again and not measured; empty removes them")
	flag.Parse()
	for _, k := range costs {
		if strings.Contains(","+*only+",", ","+k.name+",") {
			c.costs = append(c.costs, k)
		}
	}
	c.workloads = strings.Split(*of, ",")
	if c.program = flag.Arg(0); flag.NArg() != 1 || min(c.pairs, c.times) < 1 || names(c.costs) != *only {
		fmt.Fprintf(os.Stderr, "usage: power [-pairs N] [-times N] [-costs %s] [-workloads rr,crr] [-document FILE] [-table NAME] [-keep DIR] CNIBENCH\n", names(costs))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := c.write(ctx, *document, *table); err != nil {
		fmt.Fprintln(os.Stderr, "power:", err)
		os.Exit(1)
	}
}

func names(some []cost) string {
	return strings.Join(each.Of(some, func(c cost) string { return c.name }), ",")
}

// campaign is what is measured with a cnibench, into a directory.
type campaign struct {
	program, dir string
	pairs, times int
	costs        []cost
	workloads    []string
}

func (c campaign) write(ctx context.Context, document, name string) error {
	if c.dir == "" {
		made, err := os.MkdirTemp("", "power-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(made)
		c.dir = made
	}
	rows, err := c.rows(ctx)
	if err != nil {
		return err
	}
	table := c.render(rows)
	fmt.Print(table)
	if document == "" {
		return nil
	}
	return insert.Table(document, name, table)
}

// row is what came of one cost under one workload.
type row struct {
	workload string
	rules    int
	when     when
	// share is what was planted, by the cost of a rule.
	share float64
	// seen are the ratios that the pairs showed, whole those of whole windows, verdicts what they were called.
	seen     []float64
	whole    []float64
	verdicts map[compare.Verdict]int
}

// rows measures every cost under every workload.
func (c campaign) rows(ctx context.Context) ([]row, error) {
	var rows []row
	for _, name := range c.workloads {
		perRule, err := c.perRule(ctx, name)
		if err != nil {
			return nil, err
		}
		some := each.Of(c.costs, func(k cost) row {
			r := row{workload: name, when: k.when, verdicts: map[compare.Verdict]int{}}
			switch k.when {
			case always:
				r.rules = int(math.Round(k.share / perRule))
				r.share = float64(r.rules) * perRule
			case sliced:
				// A slice with rules has less work than one without.
				r.rules = probing
				r.share = 1/(1-duty+duty/(1+probing*perRule)) - 1
			}
			return r
		})
		// Costs take turns, so that all of them meet the same hours of the machine.
		for n := range c.pairs {
			base, err := c.measured(ctx, row{workload: name, when: always}, fmt.Sprintf("base-%d", n))
			if err != nil {
				return nil, err
			}
			for i := range some {
				other, err := c.measured(ctx, some[i], fmt.Sprintf("%s-%d", c.costs[i].name, n))
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
		s, err := c.measured(ctx, row{workload: workload, rules: rules, when: always}, fmt.Sprintf("probe-%d", rules))
		if err != nil {
			return 0, err
		}
		q, err := quotient(s, func(c *compare.Cell) float64 { return c.Median })
		if err != nil {
			return 0, err
		}
		levels = append(levels, q)
	}
	share := (levels[1]/levels[0] - 1) / probing
	if share <= 0 {
		return 0, fmt.Errorf("%s: %d rules cost nothing that can be measured", workload, probing)
	}
	return share, nil
}

// wholeQuotient is that of whole windows.
func wholeQuotient(s compare.Side) (float64, error) {
	return quotient(s, func(c *compare.Cell) float64 { return c.Recorded().Median })
}

// quotient is the service demand of the subject over that of the baseline.
func quotient(s compare.Side, value func(*compare.Cell) float64) (float64, error) {
	of := map[plan.Variant]float64{}
	for i := range s.Cells {
		if c := &s.Cells[i]; c.Metric == metric.ServiceDemand && c.N > 0 {
			of[c.Profile] = value(c)
		}
	}
	if of[subject] == 0 || of[s.Baseline] == 0 {
		return 0, fmt.Errorf("%s: no service demand of %s or of %s", s.Name, subject, s.Baseline)
	}
	return of[subject] / of[s.Baseline], nil
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
			before, err := wholeQuotient(a)
			if err != nil {
				return err
			}
			after, err := wholeQuotient(b)
			r.whole = append(r.whole, after/before)
			return err
		}
	}
	return errors.New("the pair has no comparison of " + string(subject))
}

// measured reads the file of a name, and measures it first if it is not there.
func (c campaign) measured(ctx context.Context, r row, name string) (compare.Side, error) {
	file := filepath.Join(c.dir, r.workload, name+".jsonl")
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return compare.Side{}, err
	}
	if _, err := os.Stat(file); err != nil {
		fmt.Fprintf(os.Stderr, "power: %s with %d rules %s: %s\n", r.workload, r.rules, r.when, file)
		if err := c.measure(ctx, r, file); err != nil {
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
func median(xs []float64) float64 { return stat.Summarize(xs, 0.95).Median }
