package adapter

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

var (
	plainNumber = pattern.New(`^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?$`)
	commaNumber = pattern.New(`^[+-]?[\d., ']*\d,\d[\d., ']*$`)
)

// OtherLocale is part of Number's error for a number with a decimal comma.
const OtherLocale = "is of another locale"

// Number parses a decimal number with a point. It refuses hex, "inf" and "1_000". Its error contains OtherLocale if the
// number has a decimal comma or thousands separators.
func Number(s string) (float64, error) {
	switch {
	case plainNumber.MatchString(s):
	case s == "":
		return 0, fmt.Errorf("there is no number")
	case commaNumber.MatchString(s):
		return 0, fmt.Errorf("%s "+OtherLocale+": want a decimal point and no thousands separators", Quoted(s))
	case strings.ContainsAny(s[:1], "=@") || strings.ContainsAny(s[:1], "+-") && len(s) > 1 && strings.ContainsAny(s[1:], "+-*/("):
		return 0, fmt.Errorf("%s is a formula: write its value", Quoted(s))
	default:
		return 0, fmt.Errorf("%s is not a number", Quoted(s))
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%s is out of range", Quoted(s))
	}
	return v, nil
}

// Amount parses s like Number, and fails for negative numbers.
func Amount(s string) (float64, error) {
	v, err := Number(s)
	if err == nil && v < 0 {
		return 0, fmt.Errorf("%s is negative", Quoted(s))
	}
	return v, err
}

// Amounts parses texts[i] like Amount and stores it in *to[i]. It ignores further texts. Its error lists all faults.
func Amounts(texts []string, to ...*float64) error {
	var errs []error
	for i, at := range to {
		v, err := Amount(texts[i])
		*at = v
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Count parses a whole number of at least 0.
func Count(s string) (int, error) {
	v, err := strconv.Atoi(s)
	if err != nil || v < 0 || strings.HasPrefix(s, "+") {
		return 0, fmt.Errorf("%s is not a whole number", Quoted(s))
	}
	return v, nil
}

// Suffixed splits a number from the unit or suffix that directly follows it, as in "1.23k" or "45.6us". It fails if the
// number is invalid or negative.
func Suffixed(s string) (float64, string, error) {
	i := strings.LastIndexAny(s, "0123456789.") + 1
	v, err := Amount(s[:i])
	return v, s[i:], err
}

// Quoted returns foreign text in quotes for an error message, shortened to 60 characters.
func Quoted(s string) string {
	const longest = 60
	if r := []rune(s); len(r) > longest {
		s = string(r[:longest]) + "…"
	}
	return strconv.Quote(s)
}

// PlainName matches names without special characters of a shell, a spreadsheet or a page.
var PlainName = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._+~-]{0,99}$`)

// CheckProfile returns an error if the name of a profile is not a PlainName.
func CheckProfile(name string) error {
	if !PlainName.MatchString(name) {
		return fmt.Errorf("profile %s: want up to 100 letters, digits and . _ + ~ -, a letter or digit first", Quoted(name))
	}
	return nil
}

// Whole converts v into an integer. It returns 0 if v is negative or not a whole number.
func Whole(v float64) int {
	n, err := strconv.Atoi(strconv.FormatFloat(v, 'f', -1, 64))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// ThreeDigits rounds a size to three digits, as tools print, so that repetitions agree.
func ThreeDigits(v float64) int { return roundDigits(v, 2) }

// TwoDigits rounds a rate to two digits, as users request rates.
func TwoDigits(v float64) int { return roundDigits(v, 1) }

// roundDigits rounds v to its first digit and the given number of further digits, then to a whole number.
func roundDigits(v, digits float64) int {
	scale := math.Pow(10, math.Floor(math.Log10(max(v, 1)))-digits)
	return int(math.Round(math.Round(v/scale) * scale))
}
