package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// power measures what a comparison of two result files can see. It plants a cost of known size into a profile of the lab,
// which every packet between the nodes pays, runs one plan with the cost and without, and counts in how many pairs of files
// the comparison finds it. Pairs without a cost say how often it finds what is not there.
type power struct {
	setting
	pairs     int
	costs     []cost
	workloads string
	// equal counts pairs of files without a cost, alarms those of which anything is called better or worse.
	equal, alarms int
}

func (c *power) flags(f *flag.FlagSet) {
	f.IntVar(&c.pairs, "pairs", 10, "pairs of `files` for each workload and cost")
	choose(f, &c.costs, "costs", "`costs` that are planted", costs)
	f.StringVar(&c.workloads, "workloads", "rr,crr", "`workloads` that pay")
}

// Repetitions of windows are what the default plan has for fifteen cases. What a piece costs is weighed in so many runs, of
// so few repetitions that each has an instance of its own.
const (
	repetitions = 12
	weighings   = 6
	weighed     = 9
)

// margins are those that pairs are judged by: the usual one, and one below the smallest cost.
var margins = []float64{plan.DefaultMargin, 0.01}

// cost is what is planted: pieces of work in the path, all the time or in one slice of ten, or a program beside the
// path that takes the CPU for as long as those slices last.
type cost struct {
	name string
	of   *kind
	// share is that of the subject's service demand that the pieces cost together; in slices there are as many as probe.
	share float64
	when  when
}

type when string

const (
	always when = "all the time"
	sliced when = "in one slice of ten"
	apart  when = "none; another program has the CPU for one slice of ten"
)

var costs = []cost{
	{"0", rules, 0, always}, {"2", rules, 0.02, always}, {"5", rules, 0.05, always}, {"10", rules, 0.1, always},
	{"instructions2", instructions, 0.02, always}, {"instructions5", instructions, 0.05, always}, {"instructions10", instructions, 0.1, always},
	{"copies2", copies, 0.02, always}, {"copies5", copies, 0.05, always}, {"copies10", copies, 0.1, always},
	{"walk5", walks, 0.05, always}, {"burst5", burst5, 0, always}, {"burst10", burst10, 0, always},
	{"workers5", elements, 0.05, always}, {"workers10", elements, 0.1, always},
	{"slices", rules, 0, sliced}, {"apart", rules, 0, apart},
}

func (c cost) String() string { return c.name }

// row is the result of one cost under one workload.
type row struct {
	workload string
	of       *kind
	pieces   int
	when     when
	// twin is true if a twin of the subject has the pieces, and the subject itself has none.
	twin bool
	// share is what was planted, by the cost of a piece, half is half its interval, 0 if that is not known.
	share, half float64
	// seen are the ratios that the pairs showed, whole those of whole windows, verdicts what they were called by each
	// margin.
	seen, whole []float64
	// tail and wholeTail are those of the 99th percentile of round trips.
	tail, wholeTail []float64
	verdicts        map[float64]map[compare.Verdict]int
}

// measure measures every cost under every workload.
func (c *power) measure(ctx context.Context, in setting) (string, error) {
	c.setting = in
	var rows []row
	for name := range strings.SplitSeq(c.workloads, ",") {
		some, err := c.planned(ctx, name)
		if err != nil {
			return "", err
		}
		var equal []compare.Side
		// Costs take turns, so that all of them meet the same hours of the machine.
		for n := range c.pairs {
			base, err := c.measured(ctx, row{workload: name, of: rules, when: always}, fmt.Sprintf("base-%d", n))
			if err != nil {
				return "", err
			}
			equal = append(equal, base)
			for i := range some {
				other, err := c.measured(ctx, some[i], fmt.Sprintf("%s-%d", c.costs[i].name, n))
				if err != nil {
					return "", err
				}
				if err := some[i].judge(base, other); err != nil {
					return "", err
				}
				switch {
				case c.costs[i].name == "0":
					equal = append(equal, other)
				case some[i].when == apart: // nothing is planted either
					if err := c.alarmOf(base, other); err != nil {
						return "", err
					}
				}
			}
		}
		if err := c.alarm(equal); err != nil {
			return "", err
		}
		rows = append(rows, some...)
	}
	return c.render(rows), nil
}

// planned returns the rows of one workload before they are measured.
func (c *power) planned(ctx context.Context, workload string) ([]row, error) {
	var some []row
	weights := map[*kind]piece{}
	for _, k := range c.costs {
		r := row{workload: workload, of: k.of, when: k.when, verdicts: map[float64]map[compare.Verdict]int{}}
		of := cmp.Or(k.of.as, k.of)
		per, known := weights[of]
		if !known && (k.share > 0 || k.when == sliced || k.of.duty > 0) {
			weigh := c.weigh
			if of.standing {
				weigh = c.weighStanding
			}
			var err error
			if per, err = weigh(ctx, workload, of); err != nil {
				return nil, err
			}
			weights[of] = per
		}
		switch {
		case k.of.duty > 0:
			r.pieces = int(math.Round(inBurst / per.share))
			r.share = inPart(k.of.duty, inBurst)
		case k.when == sliced:
			r.pieces = k.of.probe
			r.share = inPart(duty, float64(r.pieces)*per.share)
		case k.share > 0:
			r.pieces = int(math.Round(k.share / per.share))
			r.share, r.half = float64(r.pieces)*per.share, float64(r.pieces)*per.half
		}
		some = append(some, r)
	}
	return some, nil
}

// inBurst is the cost of a transaction within a burst as a share of one without.
const inBurst = 1.5

// inPart is what a cost in a part of the time adds to the whole: a part with the cost has less work than one without.
func inPart(part, cost float64) float64 { return 1/(1-part+part/(1+cost)) - 1 }

// piece is the cost of one piece as a share of the subject's service demand, and half the interval of that; 0 is not
// known.
type piece struct{ share, half float64 }

// weigh measures a piece, from many: a twin of the subject that has them is measured with the subject itself, in turn within
// one run. Two runs would differ by 1 % without any cost. Undisturbed values are what is tried, so whole windows say it.
func (c *power) weigh(ctx context.Context, workload string, of *kind) (piece, error) {
	var with, without []float64
	for n := range weighings {
		s, err := c.measured(ctx, row{workload: workload, of: of, pieces: of.probe, when: always, twin: true}, fmt.Sprintf("twin-%s-%d", of.name, n))
		if err != nil {
			return piece{}, err
		}
		x, y := twins(s)
		with, without = append(with, x...), append(without, y...)
	}
	e := stat.Paired(with, without, 0.95)
	return pieceOf(workload, of, e.Ratio, (e.High-e.Low)/2)
}

// weighStanding measures a piece of a cost that is paid while another profile is measured, from two runs.
func (c *power) weighStanding(ctx context.Context, workload string, of *kind) (piece, error) {
	var levels [2]float64
	for i := range levels {
		r := row{workload: workload, of: of, pieces: i * of.probe, when: always}
		s, err := c.measured(ctx, r, fmt.Sprintf("probe-%s-%d", of.name, r.pieces))
		if err != nil {
			return piece{}, err
		}
		if levels[i], err = wholeQuotient(s); err != nil {
			return piece{}, err
		}
	}
	return pieceOf(workload, of, levels[1]/levels[0], 0)
}

func pieceOf(workload string, of *kind, ratio, half float64) (piece, error) {
	if !(ratio > 1) {
		return piece{}, fmt.Errorf("%s: %d %s cost nothing that can be measured", workload, of.probe, of.name)
	}
	return piece{(ratio - 1) / float64(of.probe), half / float64(of.probe)}, nil
}

// twins returns the whole windows of the subject's twin and those of the subject, in the order of repetitions that have
// both.
func twins(s compare.Side) (twin, original []float64) {
	of := func(profile plan.Variant) []compare.Sample {
		c, _ := s.Cell(compare.Key{Case: plan.Case{Profile: profile, Path: s.Paths[0], Workload: s.Workloads[0]}, Metric: metric.ServiceDemand})
		return c.Recorded().Samples
	}
	mine := of(subject)
	for _, x := range of(subject.Twin()) {
		if i := slices.IndexFunc(mine, func(y compare.Sample) bool { return y.Repetition == x.Repetition }); i >= 0 {
			twin, original = append(twin, x.Value), append(original, mine[i].Value)
		}
	}
	return twin, original
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

// judge adds the verdicts on a pair of files.
func (r *row) judge(a, b compare.Side) error {
	for _, margin := range margins {
		m, err := match(a, b, margin)
		if err != nil {
			return err
		}
		if r.verdicts[margin] == nil {
			r.verdicts[margin] = map[compare.Verdict]int{}
		}
		if margin == margins[0] {
			r.seen = append(r.seen, m.Ratio)
		}
		r.verdicts[margin][m.Verdict]++
	}
	before, err := wholeQuotient(a)
	if err != nil {
		return err
	}
	after, err := wholeQuotient(b)
	if err != nil {
		return err
	}
	r.whole = append(r.whole, after/before)
	x, y := tailOf(a), tailOf(b)
	if x != nil && y != nil {
		r.tail = append(r.tail, y.Median/x.Median)
		r.wholeTail = append(r.wholeTail, y.Recorded().Median/x.Recorded().Median)
	}
	return nil
}

// tailOf is the cell of the subject's 99th percentile.
func tailOf(s compare.Side) *compare.Cell {
	i := slices.IndexFunc(s.Cells, func(c compare.Cell) bool { return c.Profile == subject && c.Metric == metric.RTT+".p99" && c.N > 0 })
	if i < 0 {
		return nil
	}
	return &s.Cells[i]
}

// alarm compares every two of equal files.
func (c *power) alarm(sides []compare.Side) error {
	for i, a := range sides {
		for _, b := range sides[i+1:] {
			if err := c.alarmOf(a, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// alarmOf compares two files without a cost.
func (c *power) alarmOf(a, b compare.Side) error {
	p, err := shown(a, b, plan.DefaultMargin)
	if err != nil {
		return err
	}
	c.equal++
	if slices.ContainsFunc(p.Matches, func(m compare.Match) bool { return m.Verdict == compare.Worse || m.Verdict == compare.Better }) {
		c.alarms++
	}
	return nil
}

// shown is a pair as the command judges it by a margin: what it shows is one family.
func shown(a, b compare.Side, margin float64) (*compare.Pair, error) {
	p, err := compare.NewPair(a, b, nil)
	if err != nil {
		return nil, err
	}
	p.Margin = margin
	return p.Only(func(k compare.Key) bool {
		m, _ := metric.Lookup(k.Metric)
		return m.Headline
	}), nil
}

// match is the comparison of the subject's service demand.
func match(a, b compare.Side, margin float64) (compare.Match, error) {
	p, err := shown(a, b, margin)
	if err != nil {
		return compare.Match{}, err
	}
	i := slices.IndexFunc(p.Matches, func(m compare.Match) bool { return m.Profile == subject && m.Metric == metric.ServiceDemand })
	if i < 0 {
		return compare.Match{}, errors.New("the pair has no comparison of " + subject.String())
	}
	return p.Matches[i], nil
}

// measured reads the file of a name, and measures it first if it is not there.
func (c *power) measured(ctx context.Context, r row, name string) (compare.Side, error) {
	file, err := c.results(filepath.Join(r.workload, name), func(file string) error { return c.plant(ctx, r, file) })
	if err != nil {
		return compare.Side{}, err
	}
	return analyse(file, func(*result.Record) error { return nil })
}

// median of what pairs showed.
func median(xs []float64) float64 { return stat.Summarize(xs, 0.95).Median }

// render writes what was found.
func (c *power) render(rows []row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d pairs of files for each row, each file with raw, its twin and %s on %s: %d windows of %s, every second on an instance of its own. Planted are rules that no packet matches, before all others of the forwarding nodes. BPF programs on the nodes' network devices are planted, too: they count, copy, or read a map that the caches do not keep; what a piece costs is measured with many, in a twin of the profile within one run. Both shown values are medians of the pairs. Verdicts: worse / better / the same / undecided.\n\n",
		c.pairs, subject, crossNode, repetitions, window)
	b.WriteString("| workload | cost | planted | shown | by whole windows | p99 shown | by whole windows |")
	for _, m := range margins {
		fmt.Fprintf(&b, " margin %.0f %% |", 100*m)
	}
	b.WriteString("\n|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		what, least, half := fmt.Sprintf("%d %s %s", r.pieces, r.of.name, r.when), "", ""
		if r.half > 0 {
			half = fmt.Sprintf(" ± %.1f", 100*r.half)
		}
		if r.of.duty > 0 {
			what = fmt.Sprintf("%d %s", r.pieces, r.of.name)
		}
		switch r.when {
		case apart:
			what = string(r.when)
		case sliced:
			least = "at least " // their coming and going costs, too
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s%+.1f%s %% | %+.1f %% | %+.1f %% |", r.workload, what, least, 100*r.share, half, 100*(median(r.seen)-1), 100*(median(r.whole)-1))
		if len(r.tail) > 0 {
			fmt.Fprintf(&b, " %+.0f %% | %+.0f %% |", 100*(median(r.tail)-1), 100*(median(r.wholeTail)-1))
		} else {
			b.WriteString(" – | – |")
		}
		for _, m := range margins {
			v := r.verdicts[m]
			fmt.Fprintf(&b, " %d / %d / %d / %d |", v[compare.Worse], v[compare.Better], v[compare.Same], v[compare.Inconclusive])
		}
		b.WriteString("\n")
	}
	if c.equal > 0 {
		fmt.Fprintf(&b, "\nOf %d pairs of files without a cost, %d have anything called better or worse. Pairs beside another program are among them.\n", c.equal, c.alarms)
	}
	return b.String()
}
