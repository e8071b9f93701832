package check

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/number"
)

// quantity is a number with the precision of its digits.
type quantity struct {
	value float64
	// step is one unit of the last digit that was written.
	step float64
}

// parseNumber parses a decimal number and sets step by its last digit. It fails for exponents, hexadecimal numbers and
// NaN.
func parseNumber(s string) (quantity, error) {
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || strings.ContainsAny(s, "xXeEpPnN_") || math.IsInf(x, 0) {
		return quantity{}, fmt.Errorf("%q is not a number", s)
	}
	step := 1.0
	if _, decimals, ok := strings.Cut(s, "."); ok {
		step = math.Pow10(-len(decimals))
	}
	return quantity{x, step}, nil
}

// convertUnit converts q from one unit to another. It fails if a unit is unknown or if the units measure different
// things.
func (q quantity) convertUnit(from, to string) (quantity, error) {
	x, err := number.Convert(q.value, from, to)
	if err != nil {
		return quantity{}, err
	}
	step, err := number.Convert(q.step, from, to)
	return quantity{x, step}, err
}

// slip is a common mistake that multiplies a number by a factor.
type slip struct {
	factor float64
	name   string
	// binary marks a mix of powers of 1024 and 1000.
	binary bool
}

var slips = []slip{
	{1024. / 1000, "2^10 taken for 10^3", true},
	{1024. * 1024 / 1e6, "2^20 taken for 10^6", true},
	{1024. * 1024 * 1024 / 1e9, "2^30 taken for 10^9", true},
	{8, "bytes taken for bits", false},
	{8 * 1024. * 1024 / 1e6, "bytes taken for bits, and 2^20 for 10^6", true},
	{10, "the decimal point one place off", false},
	{100, "the decimal point two places off", false},
	{1000, "a prefix (k, M, G) off", false},
	{60, "minutes taken for seconds", false},
}

// findSlip returns the slip whose factor turns a into b or b into a, within the tolerance (a share).
func findSlip(a, b, tolerance float64) (slip, bool) {
	if a <= 0 || b <= 0 {
		return slip{}, false
	}
	r := max(a/b, b/a)
	for _, s := range slips {
		if math.Abs(r/s.factor-1) <= tolerance {
			return s, true
		}
	}
	return slip{}, false
}

// relativeDifference returns the difference between a and b as a share of the larger.
func relativeDifference(a, b float64) float64 {
	if a == b {
		return 0
	}
	return math.Abs(a-b) / max(math.Abs(a), math.Abs(b))
}

// nearlyEqual reports whether a and b are equal within a share.
func nearlyEqual(a, b, share float64) bool { return relativeDifference(a, b) <= share }
