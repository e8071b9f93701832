package plan

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/plan/position"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// wordValues returns the values of a setting that must be one of the words.
func wordValues[T ~string](words ...T) values[T] {
	texts := Texts(words)
	return values[T]{
		words: texts,
		parse: func(text string) (T, error) {
			text, err := parseWord(text, texts...)
			return T(text), err
		},
		format: func(v T) string { return string(v) },
		schema: position.Enum(words...),
		wrong: func(v T) string {
			if _, err := parseWord(string(v), texts...); err != nil {
				return err.Error()
			}
			return ""
		},
	}
}

// rangeCheck returns a text for the range from low to high, and a function that checks a value. The function returns
// what is wrong with the value, or "" if it is in the range.
func rangeCheck[T cmp.Ordered](low, high T, format func(T) string) (rang string, wrong func(T) string) {
	rang = format(low) + " to " + format(high)
	return rang, func(v T) string {
		if v >= low && v <= high { // so that NaN is wrong
			return ""
		}
		return format(v) + " is out of range: want " + rang
	}
}

// wholeNumberValues returns the values of a setting that is a whole number from low to high.
func wholeNumberValues(low, high int) values[int] {
	v := values[int]{parse: parseWhole, format: strconv.Itoa, number: true}
	v.rang, v.wrong = rangeCheck(low, high, v.format)
	v.schema = position.Whole(low, high)
	return v
}

// podMTUValues returns the values of the setting lab.podMTU; 0 means the profile's own MTU.
func podMTUValues() values[int] {
	v := wholeNumberValues(0, 9000)
	v.rang = "0, or 1280 to 9000"
	v.wrong = func(n int) string {
		if n == 0 || n >= 1280 && n <= 9000 {
			return ""
		}
		return fmt.Sprintf("%d is out of range: want 1280 to 9000, or 0", n)
	}
	return v
}

// parseWhole parses a whole number, optionally with the suffix K or M for thousands or millions: 30000 or 30K.
func parseWhole(text string) (int, error) {
	digits, factor := text, 1
	for suffix, times := range map[string]int{"K": 1000, "k": 1000, "M": 1_000_000} {
		if before, ok := strings.CutSuffix(text, suffix); ok {
			digits, factor = before, times
		}
	}
	v, err := strconv.Atoi(digits)
	if err != nil || v > math.MaxInt/factor || v < math.MinInt/factor {
		return 0, fmt.Errorf("%q is not a whole number", text)
	}
	return v * factor, nil
}

// families are the values of the setting lab.family: the versions of IP.
var families = values[int]{
	words: []string{"4", "6"}, parse: parseWhole, format: strconv.Itoa, schema: position.Enum(4, 6),
	wrong: func(v int) string {
		if v == 4 || v == 6 {
			return ""
		}
		return fmt.Sprintf("%d is not 4 or 6", v)
	},
}

// durationValues returns the values of a setting that is a duration from low to high.
func durationValues(low, high time.Duration) values[time.Duration] {
	v := values[time.Duration]{parse: position.ParseDuration, format: time.Duration.String, schema: position.Duration}
	v.rang, v.wrong = rangeCheck(low, high, v.format)
	return v
}

// withZero returns v with 0 as an additional allowed value. meaning says in messages what 0 means.
func withZero[T cmp.Ordered](v values[T], meaning string) values[T] {
	v.rang += ", or 0" + meaning
	inner := v.wrong
	v.wrong = func(x T) string {
		fault := inner(x)
		if x == *new(T) || fault == "" {
			return ""
		}
		return fault + ", or 0" + meaning
	}
	return v
}

// lineRateValues returns the values of the setting lab.lineRate: the rate of a shaped NIC from 100 kbit/s, or 0 for unshaped.
func lineRateValues() values[float64] {
	v := values[float64]{parse: parseBitRate, format: formatRate, schema: position.Rate}
	_, v.wrong = rangeCheck(1e5, MaxRate, formatRate)
	v.rang = "100K to 1T bit/s"
	return withZero(v, " for unshaped")
}

// textValues returns the values of a setting that is any text. wrong returns what is wrong with a text; it is not
// called for "". A nil wrong allows every text.
func textValues(wrong func(string) string) values[string] {
	return values[string]{
		parse: parseText, format: func(s string) string { return s }, schema: position.Text,
		wrong: func(s string) string {
			if s == "" || wrong == nil {
				return ""
			}
			return wrong(s)
		},
	}
}

// listValues returns the values of a setting that is a list, separated by commas on the command line. item is the
// schema of an item. read reads the list of a plan file; with nil, each item is read with parse.
func listValues[T any](parse func(string) (T, error), item map[string]any, read func(d *decoder, at *[]T) position.Read) values[[]T] {
	if read == nil {
		read = func(d *decoder, at *[]T) position.Read { return position.Values(d.Decoder, at, parse) }
	}
	return values[[]T]{
		parse:  func(s string) ([]T, error) { return parseList(s, parse) },
		format: func(v []T) string { return strings.Join(Texts(v), ",") },
		schema: position.ListOf(item), read: read,
	}
}

// texts are the values of a setting that is a list of any texts.
var texts = listValues(parseText, position.Text, nil)

func parseText(s string) (string, error) { return s, nil }

// labelValues returns the values of a setting that maps names to values. On the command line they are name=value,
// separated by commas.
func labelValues(parse func(string) (map[string]string, error)) values[map[string]string] {
	return values[map[string]string]{
		parse: parse, schema: position.Labels,
		format: func(v map[string]string) string {
			parts := each.Of(slices.Sorted(maps.Keys(v)), func(name string) string { return name + "=" + v[name] })
			return strings.Join(parts, ",")
		},
		read: func(d *decoder, at *map[string]string) position.Read { return d.Labels(at) },
	}
}

// trueOrFalse are the values of a setting that is true or false.
var trueOrFalse = values[bool]{parse: parseBool, format: strconv.FormatBool, words: []string{"true", "false"}, schema: map[string]any{"type": "boolean"}}

// anySpan are the values of a setting that is a duration. Its bounds depend on the rest of the plan, so anySpan has none.
var anySpan = values[time.Duration]{parse: position.ParseDuration, format: time.Duration.String, schema: position.Duration}

// quantities are the values of a setting that is a quantity of Kubernetes, above 0.
var quantities = textValues(func(s string) string {
	switch {
	case !quantity.MatchString(s):
		return fmt.Sprintf("%q is not a quantity such as 500m, 2 or 64Mi", s)
	case quantityValue(s) == 0:
		return fmt.Sprintf("%q is out of range: want above 0", s)
	}
	return ""
})

// precisions are the values of a setting that is a share below 1, such as 0.05 or 5%. In a plan, 0 means that it is not
// set.
var precisions = values[float64]{
	parse:  func(s string) (float64, error) { return parseShare(s, "share", 0, 1) },
	format: func(v float64) string { return fmt.Sprint(v) }, rang: "more than 0, less than 1; 5% is 0.05", schema: position.Share,
	wrong: func(v float64) string {
		if v >= 0 && v < 1 {
			return ""
		}
		return fmt.Sprintf("%v is out of range: want more than 0 and less than 1, for example 0.05 for 5 %%", v)
	},
}

// shareValues returns the values of a setting that is a share from low to high. what is the name of the share in
// errors. rang describes the range.
func shareValues(what string, low, high float64, rang string, schema map[string]any) values[float64] {
	v := values[float64]{rang: rang, schema: schema, format: FormatShare}
	v.parse = func(s string) (float64, error) { return parseShare(s, what, low, high) }
	_, v.wrong = rangeCheck(low, high, FormatShare)
	return v
}

// parseShare parses a share, "5%" or "0.05", and rounds it to a millionth. It fails outside the range from low to high.
// what is the name of the share in errors.
func parseShare(s, what string, low, high float64) (float64, error) {
	digits, percent := strings.CutSuffix(s, "%")
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil || strings.ContainsAny(digits, "xXpP_") {
		return 0, fmt.Errorf("%q is not a %s such as 5%% or 0.05", s, what)
	}
	if percent {
		v /= 100
	}
	if !(v >= low && v <= high) {
		return 0, fmt.Errorf("%s is out of range: want %s to %s", s, FormatShare(low), FormatShare(high))
	}
	return math.Round(v*shareGrain) / shareGrain, nil
}

// shareGrain is the number of steps between the shares 0 and 1. Shares are rounded to a step, so that a share and its
// text convert into each other exactly.
const shareGrain = 1e6

// FormatShare formats a share as in plan files and on the command line: "5%".
func FormatShare(v float64) string {
	return strconv.FormatFloat(math.Round(v*shareGrain)/(shareGrain/100), 'f', -1, 64) + "%"
}

// seeds are the values of the setting seed.
var seeds = values[uint64]{
	parse: func(s string) (uint64, error) {
		v, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%q is not a whole number from 0 to 2^64-1", s)
		}
		return v, nil
	},
	format: func(v uint64) string { return strconv.FormatUint(v, 10) }, rang: "0 to 2^64-1", schema: map[string]any{"type": "integer", "minimum": 0},
}

// sizeValues returns the values of an option that is a number of bytes from 1 to high.
func sizeValues(high int) values[int] {
	return values[int]{format: strconv.Itoa, rang: fmt.Sprintf("1 to %d bytes", high), schema: position.Size(high),
		parse: func(s string) (int, error) {
			v, err := parseSize(s)
			if err == nil && (v < 1 || v > high) {
				err = fmt.Errorf("%s is out of range: want 1 to %d bytes", s, high)
			}
			return v, err
		},
	}
}

// Values of options. rates are in bit/s, requestRates in requests per second to a thousandth. loads are shares of the
// capacity, losses shares of packets.
var (
	rates        = values[float64]{rang: "0 to 1T bit/s", parse: parseBitRate, format: formatRate, schema: position.Rate}
	requestRates = values[float64]{rang: "0 to 100M requests per second", format: formatRate, schema: position.Rate,
		parse: func(s string) (float64, error) { return parseRate(s, 1e3) }}
	loads  = shareValues("load", minLoad, maxLoad, "0.1% to 200%, or a range such as 10%..90%", position.Load)
	losses = shareValues("loss", 0, maxLoss, "0 to 50%", position.Share)
)

// algorithms are the values of the option congestion: names of congestion controls, of at most 15 characters
// (TCP_CA_NAME_MAX). The kernel decides which exist.
var algorithms = values[string]{rang: "such as cubic, reno, bbr", schema: position.Text, format: func(s string) string { return s },
	parse: func(s string) (string, error) {
		if s == "" || len(s) > 15 || strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
			return "", fmt.Errorf("%q is not a congestion control: want a name such as cubic, reno or bbr", s)
		}
		return s, nil
	}}

func parseBool(s string) (bool, error) {
	switch s {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("%q is not true or false", s)
}
