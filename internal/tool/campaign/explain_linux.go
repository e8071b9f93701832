package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/explain"
	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// explanations tests explanations of CPU time. It plants a cost of known place into one of two equal instances of a profile,
// measures both with samples in turn, and asks which part the difference went to.
//
// Read plants (what is planted) and row (its result).
type explanations struct {
	plants      []plant
	repetitions int
}

func (c *explanations) flags(f *flag.FlagSet) {
	choose(f, &c.plants, "plants", "`costs` that are planted", plants)
	f.IntVar(&c.repetitions, "repetitions", 30, "`number` of trials, and of sampled trials, of each side")
}

func (c *explanations) measure(ctx context.Context, in setting) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "Windows of %s on %s under %s, each with a sampled trial of twice its length; %d samples in a second.\n\n", window, crossNode, oneByte, sampleRate)
	b.WriteString("| planted | windows of a side | difference, µs/transaction | right part | share | most elsewhere | share | beyond errors | seen from | found |\n|---|---|---|---|---|---|---|---|---|---|\n")
	for _, p := range c.plants {
		file, err := in.results(p.name, func(file string) error { return p.measure(ctx, in.program, c.repetitions, file) })
		if err != nil {
			return "", err
		}
		line, err := p.row(file)
		if err != nil {
			return "", err
		}
		b.WriteString(line)
	}
	return b.String(), nil
}

// A plant is found if the measured change of the right part has at least rightLeast of the difference, and no other
// part is shown to have more than wrongMost of it. It is undecided if only the interval of that share reaches
// rightLeast.
const rightLeast, wrongMost = 0.85, 0.03

// judgement says whether a plant is found, by the share of the difference that its right part has, with its interval,
// and by the share that another part is shown to have.
func judgement(right explain.Interval, beyond float64) string {
	inside := func(share float64) bool { return share >= rightLeast && share <= 2-rightLeast }
	switch {
	case beyond > wrongMost || right.High < rightLeast || right.Low > 2-rightLeast:
		return "no"
	case inside(right.Value):
		return "yes"
	}
	return "undecided"
}

// row says where the difference went.
func (p plant) row(file string) (string, error) {
	d, err := differenceIn(file)
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	scale, total := number.Scale{Unit: "µs", Size: 1e3}, abs(d.Total.Value)
	by := d.Of(p.parts...).By
	right := explain.Interval{Value: by.Value / d.Total.Value, Low: by.Low / d.Total.Value, High: by.High / d.Total.Value}
	if right.Low > right.High {
		right.Low, right.High = right.High, right.Low
	}
	widest, beyond := 0.0, 0.0
	most := explain.Change{Part: explain.Part{Title: "nothing"}}
	for _, c := range d.Changes {
		if slices.Contains(p.parts, c.ID) {
			continue
		}
		low, high := together(c.By, len(d.Changes), d.A.Trials)
		if shown := max(0, low, -high); shown > beyond || shown == beyond && abs(c.By.Value) > abs(most.By.Value) {
			most, beyond = c, shown
		}
		widest = max(widest, (high-low)/2)
	}
	return fmt.Sprintf("| %s | %d | %s (%s to %s) | %s | %s (%s to %s) | %s: %s | %s | %s | %s | %s |\n", p.title, d.A.Trials,
		scale.Format(d.Total.Value), scale.Format(d.Total.Low), scale.Format(d.Total.High), strings.Join(p.parts, ", "),
		number.Percent(right.Value), number.Percent(right.Low), number.Percent(right.High),
		most.Title, scale.Format(most.By.Value), number.Percent(abs(most.By.Value)/total), number.Percent(beyond/total), number.Percent(widest/total), judgement(right, beyond/total)), nil
}

// together is the interval of a change that holds for all parts of a difference at once: of n intervals with a
// confidence of 95 % one in twenty does not have its true value.
func together(i explain.Interval, n, trials int) (low, high float64) {
	free := float64(max(2, trials-1))
	wider := stat.Reach(1-0.05/float64(n), free) / stat.Reach(0.95, free)
	middle, half := (i.Low+i.High)/2, wider*(i.High-i.Low)/2
	return middle - half, middle + half
}

func abs(v float64) float64 { return max(v, -v) }

// differenceIn reads a result and explains its two sides.
func differenceIn(file string) (explain.Difference, error) {
	var sampled explain.Collector
	a, err := analyse(file, sampled.Add)
	if err != nil {
		return explain.Difference{}, err
	}
	sides := sampled.Sides(a.Analysis)
	if len(sides) != 2 {
		return explain.Difference{}, fmt.Errorf("%d sides were sampled", len(sides))
	}
	if sides[0].Profile.IsTwin() {
		sides[0], sides[1] = sides[1], sides[0]
	}
	d, ok := explain.Between(a.Analysis, sides[0], sides[1])
	if !ok {
		return d, fmt.Errorf("no parts: %s", sides[0].Failure+sides[1].Failure)
	}
	return d, nil
}
