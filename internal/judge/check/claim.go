package check

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Claim is a machine-checkable statement about the numbers of a result. A fact called "claim", or "claim." and a name,
// is one claim, or several with semicolons between them; docs/reference/check.md has the forms.
//
// The metric may be unmeasured: the rule claim-without-numbers reports that.
type Claim struct {
	// ID is the name of the fact, with a number if the fact has several claims. Text is the claim as written.
	ID, Text string
	Metric   string
	// A is the claim's profile. B is the profile compared with it, "" if the claim names one profile.
	A, B     string
	Path     plan.Path
	Workload plan.Workload
	// Word is "better", "worse", "same", "best", "second" or "worst", "" if a number is claimed.
	Word string
	// Low and High are the claimed value in the metric's base unit, or the claimed ratio of A to B if B is set. They
	// are equal unless a range is claimed. Step is one unit of the last claimed digit, in the same unit.
	Low, High, Step float64
}

// pairWords are the words of claims that compare two profiles. rankWords are those of claims that compare one profile
// with all.
var (
	pairWords = []string{"better", "worse", "same"}
	rankWords = []string{"best", "second", "worst"}
)

// claimsOf parses the claims among facts, in the order of their names. It also returns the errors of unreadable claims.
func claimsOf(f facts.Facts) ([]Claim, map[string]error) {
	var list []Claim
	broken := map[string]error{}
	for _, name := range f.Names() {
		if name != "claim" && !strings.HasPrefix(name, "claim.") {
			continue
		}
		texts := splitTrimmed(f[name], ";")
		for i, text := range texts {
			id := name
			if len(texts) > 1 {
				id = fmt.Sprintf("%s(%d)", name, i+1)
			}
			c, err := parseClaim(text)
			if err != nil {
				broken[id] = err
				continue
			}
			c.ID = id
			list = append(list, c)
		}
	}
	return list, broken
}

// parseClaim parses one claim. It fails if a part is missing or cannot be read; the error names that part.
func parseClaim(text string) (Claim, error) {
	c := Claim{Text: strings.TrimSpace(text)}
	var who, path, rest string
	rest = c.Text
	for _, part := range []struct {
		into *string
		word string
	}{{&c.Metric, " of "}, {&who, " on "}, {&path, " under "}} {
		var ok bool
		if *part.into, rest, ok = strings.Cut(rest, part.word); !ok {
			return Claim{}, fmt.Errorf("it lacks %q: want METRIC of PROFILE [over PROFILE] on PATH under WORKLOAD = VALUE, or is WORD", strings.TrimSpace(part.word))
		}
		*part.into = strings.TrimSpace(*part.into)
	}
	c.A, c.B, _ = strings.Cut(who, " over ")
	c.A, c.B = strings.TrimSpace(c.A), strings.TrimSpace(c.B)
	var errs []error
	note := func(err error) { errs = append(errs, err) }
	var err error
	c.Path, err = plan.ParsePath(path)
	note(err)
	workload, said, is := strings.Cut(rest, " is ")
	if !is {
		// The options of a workload have an = without spaces.
		var ok bool
		if workload, said, ok = strings.Cut(rest, " = "); !ok {
			return Claim{}, errors.New("it claims nothing: want = VALUE or is WORD at its end")
		}
	}
	c.Workload, err = plan.ParseWorkload(strings.TrimSpace(workload))
	note(err)
	if is {
		note(c.setWord(strings.TrimSpace(said)))
	} else {
		note(c.setValue(strings.TrimSpace(said)))
	}
	if c.Metric == "" || c.A == "" {
		note(errors.New("the metric or the profile is empty"))
	}
	return c, errors.Join(errs...)
}

func (c *Claim) setWord(word string) error {
	allowed := rankWords
	if c.B != "" {
		allowed = pairWords
	}
	if !slices.Contains(allowed, word) {
		return fmt.Errorf("%q is not one of %s", word, strings.Join(allowed, ", "))
	}
	c.Word = word
	return nil
}

func (c *Claim) setValue(said string) error {
	i := strings.LastIndexAny(said, "0123456789.") + 1
	number, unitOf := said[:i], strings.TrimSpace(said[i:])
	low, high, ranged := strings.Cut(number, "..")
	if !ranged {
		high = low
	}
	a, errA := parseNumber(low)
	b, errB := parseNumber(high)
	if errA != nil || errB != nil {
		return fmt.Errorf("%q is not a value: want a number with a unit, LOW..HIGH with a unit, +N%% or Nx", said)
	}
	switch {
	case c.B != "" && unitOf == "x":
	case c.B != "" && unitOf == "%":
		a, b = quantity{1 + a.value/100, a.step / 100}, quantity{1 + b.value/100, b.step / 100}
		if strings.HasPrefix(low, "-") && ranged && !strings.ContainsAny(high, "+-") { // -5..10% is a fall of 5 to 10
			b.value = 2 - b.value
			a, b = b, a
		}
	case c.B != "":
		return fmt.Errorf("%q compares two profiles: want +N%% or Nx", said)
	default:
		base := metric.UnitFor(c.Metric, c.Workload.Traits().Work)
		if base == "" {
			return nil // of a metric that is not in the catalogue
		}
		var err error
		if a, err = a.convertUnit(unitOf, base); err != nil {
			return err
		}
		if b, err = b.convertUnit(unitOf, base); err != nil {
			return err
		}
	}
	c.Low, c.High, c.Step = min(a.value, b.value), max(a.value, b.value), max(a.step, b.step)
	return nil
}

// cellKey returns the key of the cell that a claim is about, for a profile.
func (c Claim) cellKey(profile string) Key {
	return Key{Case: plan.Case{Profile: plan.VariantOf(profile), Path: c.Path, Workload: c.Workload}, Metric: c.Metric}
}

// claimCells returns the cells of A and B. ok is true if the claim has all the cells that it needs.
func (v *View) claimCells(c Claim) (a, b *Cell, ok bool) {
	a, b = v.at[c.cellKey(c.A)], v.at[c.cellKey(c.B)]
	ok = a != nil && (c.B == "" || b != nil)
	return a, b, ok
}

// similar is the share by which two medians may differ and still be called the same. If the intervals overlap, they may
// differ more.
const similar = 0.15

// verdict is the judgement of a claim by the numbers. If the claim does not hold, saw describes the contradiction, and slip
// is the mistake that explains it, if any does.
type verdict struct {
	holds bool
	saw   string
	slip  slip
}

// judgeClaim compares a claim with the numbers. The claim must have its cells (see claimCells).
func (v *View) judgeClaim(c Claim) verdict {
	a, b, _ := v.claimCells(c)
	switch {
	case slices.Contains(rankWords, c.Word):
		return v.judgeRank(c, a)
	case c.Word != "":
		return judgeDirection(c, a, b)
	case c.B != "":
		return judgeFactor(c, a.Median/b.Median)
	}
	return judgeValue(c, a)
}

// fitsRange reports whether the measured x lies between low and high, allowing for the rounding of the claim.
func (c Claim) fitsRange(x, low, high float64) bool {
	room := c.Step // half a unit for the rounding, half for the error of the values it was computed from
	return x >= low-room-sameFactor*math.Abs(low) && x <= high+room+sameFactor*math.Abs(high)
}

func judgeValue(c Claim, a *Cell) verdict {
	type end struct {
		name              string
		claimed, measured float64
	}
	ends := []end{{"the numbers say", c.Low, a.Median}}
	if c.Low != c.High {
		ends = []end{{"the lowest is", c.Low, a.Min}, {"the highest is", c.High, a.Max}}
	}
	d := verdict{holds: true}
	for _, e := range ends {
		if e.claimed == 0 && isTimeMetric(c.Metric) || c.fitsRange(e.measured, e.claimed, e.claimed) {
			continue // the rule zero-time reports a claimed time of 0
		}
		if d.holds {
			d = verdict{saw: claimedText(c.Text) + " is claimed"}
		}
		d.saw += ", and " + e.name + " " + formatValue(a.Key, e.measured)
		if s, ok := findSlip(e.claimed, e.measured, max(sameFactor, min(0.03, c.Step/e.claimed))); ok {
			d.slip = s
			d.saw += ": " + s.name
		}
	}
	return d
}

// isTimeMetric reports whether a metric is a time, other than a standard deviation.
func isTimeMetric(name string) bool {
	m, ok := metric.Lookup(name)
	return ok && m.Unit == "ns" && !strings.HasSuffix(name, ".stddev")
}

func judgeFactor(c Claim, factor float64) verdict {
	if !number.Finite(factor) || c.fitsRange(factor, c.Low, c.High) {
		return verdict{holds: number.Finite(factor), saw: "there is no ratio to 0"}
	}
	return verdict{saw: fmt.Sprintf("%s is claimed, and the numbers give %.3gx, %+.0f%%", claimedText(c.Text), factor, 100*(factor-1))}
}

// claimedText returns the text of a claim after its = sign.
func claimedText(text string) string {
	return strings.TrimSpace(text[strings.LastIndex(text, " = ")+3:])
}

func judgeDirection(c Claim, a, b *Cell) verdict {
	m, _ := metric.Lookup(c.Metric)
	say := fmt.Sprintf("%s of %s and %s of %s", medianText(a), c.A, medianText(b), c.B)
	apartBy := relativeDifference(a.Median, b.Median)
	overlap := a.Low <= b.High && b.Low <= a.High
	switch {
	case c.Word == "same":
		return verdict{holds: overlap && a.N > 1 || apartBy <= similar, saw: fmt.Sprintf("called the same: %s, %.0f%% apart", say, 100*apartBy)}
	case m.Better == metric.Neither:
		return verdict{saw: "called " + c.Word + ": " + say + "; " + c.Metric + " has no better direction"}
	case a.Median == b.Median:
		return verdict{saw: "called " + c.Word + ": " + say + ": no difference"}
	}
	better := (a.Median > b.Median) == (m.Better == metric.Higher)
	return verdict{holds: better == (c.Word == "better"), saw: "called " + c.Word + ": " + say}
}

// rankedCells returns the cells of all profiles that have the claimed number, best first.
func (v *View) rankedCells(c Claim) []*Cell {
	m, _ := metric.Lookup(c.Metric)
	var row []*Cell
	for _, cell := range v.cells {
		if cell.Key == c.cellKey(cell.Profile.String()) {
			row = append(row, cell)
		}
	}
	slices.SortStableFunc(row, func(x, y *Cell) int {
		order := cmp.Compare(x.Median, y.Median)
		if m.Better == metric.Higher {
			return -order
		}
		return order
	})
	return row
}

// judgeRank judges A's rank among all profiles that have the number.
func (v *View) judgeRank(c Claim, a *Cell) verdict {
	if m, _ := metric.Lookup(c.Metric); m.Better == metric.Neither {
		return verdict{saw: "called " + c.Word + ", and " + c.Metric + " has no better direction"}
	}
	row := v.rankedCells(c)
	want := map[string]int{"best": 0, "second": 1, "worst": len(row) - 1}[c.Word]
	if len(row) < 2 {
		return verdict{saw: "called " + c.Word + ", and no other profile has the number"}
	}
	if row[want].Median == a.Median {
		return verdict{holds: true}
	}
	return verdict{saw: fmt.Sprintf("called %s with %s, and is number %d of %d: %s has %s", c.Word, medianText(a),
		slices.Index(row, a)+1, len(row), row[want].Profile, medianText(row[want]))}
}
