package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// claimRules compare the claims of a result with its numbers.
var claimRules = []rule{
	{id: "claim-unit", find: func(v *View, found *list) { v.addMisjudged(found, func(s slip) bool { return s.binary }) }},
	{id: "claim-decimal", find: func(v *View, found *list) {
		v.addMisjudged(found, func(s slip) bool { return s.name != "" && !s.binary })
	}},
	{id: "claim-does-not-follow", find: func(v *View, found *list) {
		for _, id := range slices.Sorted(maps.Keys(v.broken)) {
			found.add(id, "it cannot be read: %s", strings.ReplaceAll(v.broken[id].Error(), "\n", "; "))
		}
		v.addMisjudged(found, func(s slip) bool { return s.name == "" })
	}},
	{id: "claim-without-numbers", find: findClaimsWithoutNumbers},
	{id: "claim-one-run", find: findClaimsOfOneRun},
	{id: "claim-two-measures", find: findTwoMeasures},
	{id: "retransmits-per-byte", find: findRetransmitCounts},
	{id: "claim-one-sided", find: findOneSidedClaims},
}

// addMisjudged adds a finding for each claim that the numbers contradict, if wanted returns true for its slip. A
// contradiction that no known slip explains has the zero slip.
func (v *View) addMisjudged(found *list, wanted func(slip) bool) {
	for _, c := range v.claims {
		if _, _, ok := v.claimCells(c); !ok {
			continue
		}
		if d := v.judgeClaim(c); !d.holds && wanted(d.slip) {
			found.add(v.describeClaim(c), "%s", d.saw)
		}
	}
}

// describeClaim returns the id, metric, profiles, path and workload of a claim as one text.
func (v *View) describeClaim(c Claim) string {
	who := c.A
	if c.B != "" {
		who += " over " + c.B
	}
	return fmt.Sprintf("%s: %s of %s on %s under %s", c.ID, c.Metric, who, c.Path, c.Workload)
}

func findClaimsWithoutNumbers(v *View, found *list) {
	for _, c := range v.claims {
		if _, _, ok := v.claimCells(c); ok {
			continue
		}
		say := "claimed: " + cmp.Or(c.Word, claimedText(c.Text))
		if _, known := metric.Lookup(c.Metric); !known {
			say += "; nothing here measures " + c.Metric
		}
		found.add(v.describeClaim(c), "%s", say)
	}
}

func findClaimsOfOneRun(v *View, found *list) {
	n, all := 0, 0
	for _, c := range v.claims {
		a, b, ok := v.claimCells(c)
		compares := c.B != "" || slices.Contains(rankWords, c.Word)
		if !compares {
			continue
		}
		all++
		if ok && (a.N == 1 || b != nil && b.N == 1) {
			n++
		}
	}
	if n > 0 {
		stand := map[bool]string{true: "stands", false: "stand"}[n == 1]
		found.add("claims", "%d of %s %s on one run of a side", n, number.Counted(all, "comparison"), stand)
	}
}

// claimDifference returns by how much the two sides of a claim differ, as a share of the smaller. It uses the measured
// medians, or the claimed ratio if a number is missing. For a rank, it compares A with the next profile. ok is false if
// the size is unknown.
func (v *View) claimDifference(c Claim) (float64, bool) {
	factor := 0.0
	a, b, ok := v.claimCells(c)
	if ok && c.B == "" {
		row := v.rankedCells(c)
		if next := slices.Index(row, a) + 1; next > 0 && next < len(row) {
			b = row[next]
		}
	}
	switch {
	case ok && b != nil && a.Median > 0 && b.Median > 0:
		factor = a.Median / b.Median
	case c.B != "" && c.Low > 0:
		factor = (c.Low + c.High) / 2
	}
	if factor <= 0 {
		return 0, false
	}
	return max(factor, 1/factor) - 1, true
}

// findTwoMeasures finds a double standard: one claim calls two values the same, another claim calls two values
// different, but the values that are called the same differ by more. Claims that the numbers contradict do not count.
func findTwoMeasures(v *View, found *list) {
	var same, other *Claim
	var large, small float64
	for i, c := range v.claims {
		valued := c.B == "" && c.Word == ""
		d, ok := v.claimDifference(c)
		if _, _, measured := v.claimCells(c); valued || c.Word == "worst" || !ok || d == 0 || measured && !v.judgeClaim(c).holds {
			continue
		}
		if c.Word == "same" && d > large {
			same, large = &v.claims[i], d
		}
		if c.Word != "same" && (other == nil || d < small) {
			other, small = &v.claims[i], d
		}
	}
	if same == nil || other == nil || small >= large {
		return
	}
	found.add(same.ID+", "+other.ID, "%.1f%% is called the same (%s), %.1f%% is called a difference (%s)",
		100*large, strings.TrimPrefix(v.describeClaim(*same), same.ID+": "), 100*small, strings.TrimPrefix(v.describeClaim(*other), other.ID+": "))
}

func findRetransmitCounts(v *View, found *list) {
	for _, c := range v.claims {
		if c.Metric != metric.Retransmits || c.B == "" {
			continue
		}
		per := func(profile string) (float64, bool) {
			k := c.cellKey(profile)
			count, moved := v.at[k], v.cell(k.Case, metric.Transferred)
			if count == nil || moved == nil || moved.Median <= 0 {
				return 0, false
			}
			return count.Median / moved.Median * 1e9, true
		}
		a, okA := per(c.A)
		b, okB := per(c.B)
		say := "no bytes are given to divide by"
		if okA && okB {
			say = fmt.Sprintf("per GB they are %.3g of %s and %.3g of %s", a, c.A, b, c.B)
		}
		if okA && okB && b > 0 {
			say += fmt.Sprintf(": %+.0f%%", 100*(a/b-1))
		}
		found.add(v.describeClaim(c), "%s", say)
	}
}

// findOneSidedClaims finds cells in which the order of two profiles is the reverse of their order in a claimed cell, if
// no claim mentions those cells.
func findOneSidedClaims(v *View, found *list) {
	mentioned := map[Key]bool{}
	for _, c := range v.claims {
		mentioned[c.cellKey(c.A)] = true
	}
	type side struct{ metric, a, b string }
	done := map[side]bool{}
	for _, c := range v.claims {
		a, b, ok := v.claimCells(c)
		s := side{c.Metric, c.A, c.B}
		if c.B == "" || !ok || c.Word == "same" || a.Median == b.Median || done[s] {
			continue
		}
		done[s] = true
		var opposite []string
		for _, x := range v.cells {
			if x.Metric != c.Metric || x.Profile.String() != c.A || mentioned[x.Key] {
				continue
			}
			k := x.Key
			k.Profile = plan.VariantOf(c.B)
			if y := v.at[k]; y != nil && (x.Median > y.Median) != (a.Median > b.Median) && x.Median != y.Median {
				opposite = append(opposite, fmt.Sprintf("%s %s: %s and %s", x.Path, x.Workload, medianText(x), medianText(y)))
			}
		}
		if len(opposite) > 0 {
			found.add(v.describeClaim(c), "the other way on %s", strings.Join(opposite, "; "))
		}
	}
}

// findZeroClaims finds claimed times of exactly 0.
func findZeroClaims(v *View, found *list) {
	for _, c := range v.claims {
		if isTimeMetric(c.Metric) && c.B == "" && c.Word == "" && c.Low == 0 {
			found.add(v.describeClaim(c), "0 is claimed")
		}
	}
}
