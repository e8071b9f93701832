// Package number formats numbers for people: one scale for a row or a table, three significant digits, and text that
// fits the columns of a terminal.
//
// Values come in base units ("ns/transaction", "bit/s", "1/s", "ratio", "B"; package metric) and remain so everywhere
// else. Common chooses a Scale for values that readers compare; Scale.Format formats each of them, and Scale.Unit goes
// into the heading. Percent, Ratio and Duration format values without a scale; Convert accepts other units. Width, Fit
// and Clean handle text: columns are counted as a terminal shows them, and control characters of an untrusted file are
// removed.
//
// What is not a number is written as Absent, never as 0. Prefixes are decimal: 1 kB is 1000 B.
package number

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Absent is the text for a missing number.
const Absent = "–"

// Scale converts values in a base unit into those in the displayed unit.
type Scale struct {
	// Unit is the displayed unit, for example "Gbit/s" or "µs/transaction".
	Unit string
	// Size is one displayed unit in base units, for example 1e9.
	Size float64
}

// prefix is a multiple of a unit.
type prefix struct {
	name string
	size float64
}

var (
	decimal = []prefix{{"", 1}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}}
	seconds = []prefix{{"ns", 1}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}}
	plain   = []prefix{{"1", 1}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}}
)

// Common returns the scale in which the median of values, without their signs, has one to three digits before the
// point. base is the unit of values. Common ignores values that are 0 or not finite. "ratio" becomes "%"; an unknown
// unit is not scaled.
func Common(base string, values ...float64) Scale {
	if base == "ratio" {
		return Scale{Unit: "%", Size: 0.01}
	}
	head, tail, per := strings.Cut(base, "/")
	if per {
		tail = "/" + tail
	}
	var steps []prefix
	switch head {
	case "ns":
		steps = seconds
	case "bit", "B":
		for _, p := range decimal {
			steps = append(steps, prefix{p.name + head, p.size})
		}
	case "1":
		steps = plain
	default:
		return Scale{Unit: base, Size: 1}
	}
	best, middle := steps[0], medianMagnitude(values)
	for _, p := range steps {
		if middle >= 0.9995*p.size { // what rounds to 1000 belongs to the next prefix
			best = p
		}
	}
	return Scale{Unit: best.name + tail, Size: best.size}
}

// medianMagnitude returns the median of the absolute values that are finite and not 0; 0 if there are none.
func medianMagnitude(values []float64) float64 {
	vs := slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return v == 0 || !Finite(v) })
	for i, v := range vs {
		vs[i] = math.Abs(v)
	}
	if len(vs) == 0 {
		return 0
	}
	slices.Sort(vs)
	return vs[len(vs)/2]
}

// Finite reports whether v is neither NaN nor infinite.
func Finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Format converts v from base units to the displayed unit, and formats it as Number does, without the unit.
func (s Scale) Format(v float64) string { return Number(v / s.Size) }

// WithUnit formats v, which is in the unit base, with the prefix of the unit that fits v: "1.50 ms". The unit "1" is
// omitted.
func WithUnit(base string, v float64) string {
	s := Common(base, v)
	return strings.TrimSuffix(s.Format(v)+" "+s.Unit, " 1")
}

// Within returns a function that formats values with an error of about err; values and err are in base units. The function
// omits digits finer than about a fifth of err. If err is not above 0, Within returns Format.
func (s Scale) Within(err float64) func(float64) string {
	if !(err > 0) {
		return s.Format
	}
	decimals := min(max(0, int(math.Ceil(-math.Log10(err/s.Size/5)))), 6)
	return func(v float64) string {
		switch {
		case v == 0:
			return "0"
		case !Finite(v):
			return Absent
		}
		return strconv.FormatFloat(v/s.Size, 'f', decimals, 64)
	}
}

// Signed formats a change v, in base units, as Format does, but with its sign: "+1.50".
func (s Scale) Signed(v float64) string {
	text := s.Format(math.Abs(v))
	switch {
	case v < 0:
		return "-" + text
	case v > 0:
		return "+" + text
	}
	return text
}

// Number formats v with three significant digits. Between 1e-4 and 1e7 it uses no exponent, and writes all digits before the
// point.
func Number(v float64) string {
	a := math.Abs(v)
	switch {
	case !Finite(v):
		return Absent
	case a == 0:
		return "0"
	case a < 0.99995e-4 || a >= 1e7:
		return strconv.FormatFloat(v, 'e', 2, 64)
	}
	decimals := 2 - int(math.Floor(math.Log10(a)))
	// Rounding may carry into one more digit: 9.996 is 10.0, not 10.00.
	if decimals > 0 && math.Round(a*math.Pow10(decimals)) >= 1000 {
		decimals--
	}
	return strconv.FormatFloat(v, 'f', max(0, decimals), 64)
}

// Percent returns the share v as a rounded percentage: "0.4%", "3%", "120%".
func Percent(v float64) string {
	p := 100 * v
	switch a := math.Abs(p); {
	case math.IsNaN(p) || math.IsInf(p, 0):
		return Absent
	case a == 0:
		return "0%"
	case a < 0.05 && p < 0:
		return ">-0.1%"
	case a < 0.05:
		return "<0.1%"
	case a < 0.95:
		return strconv.FormatFloat(p, 'f', 1, 64) + "%"
	case a >= 1e6: // more digits do not help
		return strconv.FormatFloat(p, 'g', 2, 64) + "%"
	}
	return strconv.FormatFloat(p, 'f', 0, 64) + "%"
}

// Ratio returns v as a factor: "1.52x", "0.0800x", "12.4x".
func Ratio(v float64) string {
	switch a := math.Abs(v); {
	case !Finite(v):
		return Absent
	case a >= 0.0995 && a < 9.995:
		return strconv.FormatFloat(v, 'f', 2, 64) + "x"
	}
	return Number(v) + "x"
}

// Range returns a factor with its interval: "1.52x (1.40x to 1.60x)". An end that would be rounded to 1.00x has a third
// decimal, so that an interval that excludes 1 does not appear to include it.
func Range(v, low, high float64) string {
	end := func(v float64) string {
		if text := Ratio(v); text != "1.00x" || v == 1 {
			return text
		}
		return strconv.FormatFloat(v, 'f', 3, 64) + "x"
	}
	return Ratio(v) + " (" + end(low) + " to " + end(high) + ")"
}

// Duration returns d rounded to at most two units, or to three digits of one unit: "1h5m", "4m12s", "2.5s", "300ms".
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + Duration(-d)
	case d >= time.Hour-500*time.Millisecond: // less would be 60m0s
		d = d.Round(time.Minute)
		return strconv.Itoa(int(d/time.Hour)) + "h" + strconv.Itoa(int(d%time.Hour/time.Minute)) + "m"
	case d >= 59500*time.Millisecond:
		d = d.Round(time.Second)
		return strconv.Itoa(int(d/time.Minute)) + "m" + strconv.Itoa(int(d%time.Minute/time.Second)) + "s"
	}
	s := Common("ns", float64(d))
	text := s.Format(float64(d))
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text + s.Unit
}
