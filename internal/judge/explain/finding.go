package explain

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// minor is the share of the difference below which parts have no line of their own.
const minor = 0.01

// spread is the share of the difference above which the parts without a line of their own are mentioned together.
const spread = 0.1

// Named reports whether a part has its own line: it is significant, and at least the share minor of the difference. The
// unexplained part always has one.
func (d Difference) Named(c Change) bool {
	return c.ID == Unexplained.ID || !c.Noise && math.Abs(c.By.Value) >= minor*max(math.Abs(d.Total.Value), d.A.Demand.Value*minor)
}

// isSpreadOut reports whether a relevant share of the difference is spread over parts that are each small or not significant.
func (d Difference) isSpreadOut() bool {
	return !d.Nothing && !d.Spread.Noise && d.Spread.Parts > 1 && math.Abs(d.Spread.By.Value) >= spread*math.Abs(d.Total.Value)
}

// most is the share of the difference at which largestFamilies stops to add families.
const most = 2. / 3

// Findings returns sentences about the composition of the difference.
func (d Difference) Findings() []string {
	scale := number.Common(d.A.Unit, d.A.Demand.Value, d.B.Demand.Value)
	a, b := d.A.Name(), d.B.Name()
	if d.Prediction != nil {
		said := d.describeTotal(scale)
		if named := d.describeFamilies(scale); named != "" && !d.Nothing {
			said = append(said, named)
		}
		return append(said, d.Prediction.findings(d, scale)...)
	}
	if d.Nothing {
		why := "the difference is not beyond doubt"
		if d.Margin {
			why = "the difference is within the margin"
		}
		return []string{fmt.Sprintf("There is nothing to explain: %s costs %s and %s %s %s; %s.", a, scale.Format(d.A.Demand.Value), b, scale.Format(d.B.Demand.Value), scale.Unit, why)}
	}
	cheap, dear := d.A, d.B
	if d.Total.Value < 0 {
		cheap, dear = d.B, d.A
	}
	said := d.describeTotal(scale)
	if named := d.describeFamilies(scale); named != "" {
		said = append(said, named)
	}
	if d.isSpreadOut() {
		said = append(said, fmt.Sprintf("%s of the difference (%s) is spread over %d other parts, each within its error or small.",
			number.Percent(d.Spread.By.Value/d.Total.Value), scale.Format(math.Abs(d.Spread.By.Value)), d.Spread.Parts))
	}
	if saved := describeSaving(dear, cheap, scale); saved != "" {
		said = append(said, saved)
	}
	return said
}

// describeTotal describes how much more or less the second side costs.
func (d Difference) describeTotal(scale number.Scale) []string {
	more := "more"
	if d.Total.Value < 0 {
		more = "less"
	}
	return []string{fmt.Sprintf("%s costs %s %s %s than %s.", d.B.Name(), scale.Format(math.Abs(d.Total.Value)), scale.Unit, more, d.A.Name())}
}

// largestFamilies returns the families that explain most of the difference, and their share of it.
func (d Difference) largestFamilies() (families []Change, share float64) {
	for _, c := range d.Families {
		if c.By.Value*d.Total.Value <= 0 || c.Noise || c.ID == Unexplained.Family {
			continue
		}
		families = append(families, c)
		if share += c.By.Value / d.Total.Value; share >= most {
			break
		}
	}
	return families, share
}

// describeFamilies names the families that explain most of the difference, "" if none does.
func (d Difference) describeFamilies(scale number.Scale) string {
	families, share := d.largestFamilies()
	if len(families) == 0 {
		return ""
	}
	names := each.Of(families, func(c Change) string { return fmt.Sprintf("%s (%s)", c.Title, scale.Format(math.Abs(c.By.Value))) })
	return fmt.Sprintf("%s of the difference: %s.", number.Percent(share), strings.Join(names, ", "))
}

// describeSaving describes what the more expensive side would save without its largest removable part.
func describeSaving(dear, cheap Side, scale number.Scale) string {
	part := func(s Side, r Removal) (time float64) {
		for _, id := range r.partsOn(s.Path) {
			time += s.Part(id).Time.Value
		}
		return time
	}
	best := slices.MaxFunc(removals, func(x, y Removal) int { return cmp.Compare(part(dear, x), part(dear, y)) })
	time := part(dear, best)
	if time < 0.02*dear.Demand.Value || time <= part(cheap, best) {
		return ""
	}
	return fmt.Sprintf("%s would save about %s %s %s.", dear.Name(), scale.Format(time), scale.Unit, best.Without)
}

// Common returns the parts that of returns for at least one of the sides, without repetitions. Parts with the largest
// value on any side come first.
func Common(sides []Side, of func(Side) []Valued) []Part {
	largest := map[Part]float64{}
	for _, s := range sides {
		for _, p := range of(s) {
			largest[p.Part] = max(largest[p.Part], p.Value)
		}
	}
	return slices.SortedFunc(maps.Keys(largest), func(x, y Part) int {
		return cmp.Or(cmp.Compare(largest[y], largest[x]), cmp.Compare(x.ID, y.ID))
	})
}
