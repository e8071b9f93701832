package external

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

var (
	plainNumber = regexp.MustCompile(`^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?$`)
	commaNumber = regexp.MustCompile(`^[+-]?[\d., ']*\d,\d[\d., ']*$`)
)

// parseNumber reads a decimal number with a point. It refuses what strconv would take beyond that (hex, "inf", "1_000"),
// and by name what other locales write.
func parseNumber(s string) (float64, error) {
	switch {
	case plainNumber.MatchString(s):
	case s == "":
		return 0, fmt.Errorf("there is no number")
	case commaNumber.MatchString(s):
		return 0, fmt.Errorf("%s is written for another locale: want a decimal point and no separators between thousands", quoted(s))
	case strings.ContainsAny(s[:1], "=@") || strings.ContainsAny(s[:1], "+-") && len(s) > 1 && strings.ContainsAny(s[1:], "+-*/("):
		return 0, fmt.Errorf("%s is a formula, and nothing is computed here: write its value", quoted(s))
	default:
		return 0, fmt.Errorf("%s is not a number", quoted(s))
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%s is out of range", quoted(s))
	}
	return v, nil
}

// amount reads a number that cannot be negative.
func amount(s string) (float64, error) {
	v, err := parseNumber(s)
	if err == nil && v < 0 {
		return 0, fmt.Errorf("%s is negative", quoted(s))
	}
	return v, err
}

// count reads a whole number from 0.
func count(s string) (int, error) {
	v, err := strconv.Atoi(s)
	if err != nil || v < 0 || strings.HasPrefix(s, "+") {
		return 0, fmt.Errorf("%s is not a count", quoted(s))
	}
	return v, nil
}

// suffixed reads a number with a unit or suffix right behind it: "1.23k", "45.6us". It returns the two apart.
func suffixed(s string) (float64, string, error) {
	i := strings.LastIndexAny(s, "0123456789.") + 1
	v, err := amount(s[:i])
	return v, s[i:], err
}

// quoted shows a stranger's text within an error, cut to a length that can be read.
func quoted(s string) string {
	const longest = 60
	if r := []rune(s); len(r) > longest {
		s = string(r[:longest]) + "…"
	}
	return strconv.Quote(s)
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+~-]{0,99}$`)

// CheckProfile says what is wrong with the name of a profile that is not of our catalogue. The letters allowed are those
// that mean nothing to a shell, a spreadsheet or a page.
func CheckProfile(name string) error {
	if !plainName.MatchString(name) {
		return fmt.Errorf("profile %s: want up to 100 letters, digits and . _ + ~ -, a letter or digit first", quoted(name))
	}
	return nil
}
