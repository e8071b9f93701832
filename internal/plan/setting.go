package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// Setting is one thing that a plan says. Everything about it is said here: plan files, flags, variants, completion,
// validation, the command that repeats a run, the JSON Schema and the reference page follow from it.
type Setting struct {
	// Key is its name in a plan file, such as "lab.serviceProxy"; Flag its name on the command line and in a variant.
	Key, Flag string
	// Help says in one line what it is. The flag's value is called by the word in backquotes.
	Help string
	// Words are the values that it can have, "" within Range otherwise.
	Words []string
	// Range says in words which values are allowed, "" where Words says it.
	Range string
	// Where says in which environments it has a meaning.
	Where Where
	// PerVariant says that the variants of one run may differ in it.
	PerVariant bool

	set   func(p *Plan, text string) error
	text  func(p Plan) string
	check func(p Plan) string
}

// Where says in which environments a setting has a meaning.
type Where string

// Everywhere, InLab and OnClusters are the places of settings.
const (
	Everywhere Where = "lab and clusters"
	InLab      Where = "lab"
	OnClusters Where = "clusters"
)

// Set reads text into p. The error says what is wrong with the text.
func (s Setting) Set(p *Plan, text string) error { return s.set(p, text) }

// Text returns the value in p as Set reads it.
func (s Setting) Text(p Plan) string { return s.text(p) }

// Check returns what is wrong with the value in p, or "".
func (s Setting) Check(p Plan) string { return s.check(p) }

// Settings returns the settings in the order of the documents.
func Settings() []Setting { return settings }

// SettingOf returns the setting of a flag.
func SettingOf(flag string) (Setting, bool) {
	i := slices.IndexFunc(settings, func(s Setting) bool { return s.Flag == flag && flag != "" })
	if i < 0 {
		return Setting{}, false
	}
	return settings[i], true
}

// values are those that a setting can have.
type values[T any] struct {
	parse  func(text string) (T, error)
	format func(v T) string
	// wrong says what is wrong with a value, "" for nothing; nil allows all that can be read.
	wrong func(v T) string
	words []string
	rang  string
}

// setting returns s with values at a place of the plan.
func setting[T any](s Setting, v values[T], at func(p *Plan) *T) Setting {
	s.Words, s.Range = v.words, v.rang
	s.set = func(p *Plan, text string) (err error) {
		read, err := v.parse(text)
		if err == nil {
			*at(p) = read
		}
		return err
	}
	s.text = func(p Plan) string { return v.format(*at(&p)) }
	s.check = func(p Plan) string {
		if v.wrong == nil {
			return ""
		}
		return v.wrong(*at(&p))
	}
	return s
}

// oneOf are a few words.
func oneOf[T ~string](words ...T) values[T] {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	return values[T]{
		words:  texts,
		parse:  func(text string) (T, error) { return T(text), nil },
		format: func(v T) string { return string(v) },
		wrong: func(v T) string {
			if slices.Contains(words, v) {
				return ""
			}
			return fmt.Sprintf("%q is not one of %s%s", string(v), strings.Join(texts, ", "), advice.DidYouMean(string(v), texts))
		},
	}
}

// between returns what is wrong with a value that has to be within bounds.
func between[T cmp.Ordered](low, high T, format func(T) string) (rang string, wrong func(T) string) {
	rang = format(low) + " to " + format(high)
	return rang, func(v T) string {
		if v >= low && v <= high { // so that NaN is wrong
			return ""
		}
		return format(v) + " is out of range: want " + rang
	}
}

// whole are whole numbers within bounds.
func whole(low, high int) values[int] {
	v := values[int]{parse: parseWhole, format: strconv.Itoa}
	v.rang, v.wrong = between(low, high, v.format)
	return v
}

func parseWhole(text string) (int, error) {
	v, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a whole number", text)
	}
	return v, nil
}

// families are the versions of IP.
var families = values[int]{
	words: []string{"4", "6"}, parse: parseWhole, format: strconv.Itoa,
	wrong: func(v int) string {
		if v == 4 || v == 6 {
			return ""
		}
		return fmt.Sprintf("%d is not 4 or 6", v)
	},
}

// spans are durations within bounds.
func spans(low, high time.Duration) values[time.Duration] {
	v := values[time.Duration]{parse: parseDuration, format: time.Duration.String}
	v.rang, v.wrong = between(low, high, v.format)
	return v
}

// lossShares are shares of packets that are lost.
func lossShares() values[float64] {
	v := values[float64]{parse: ParseLoss, format: FormatLoss}
	v.rang, v.wrong = between(0, MaxLoss, FormatLoss)
	return v
}

// lineRates are the rates of a shaped NIC.
var lineRates = values[float64]{
	parse: ParseRate, format: formatRate, rang: "100K to 1T bit/s, or 0 for unshaped",
	wrong: func(v float64) string {
		if v == 0 || v >= minLineRate && v <= MaxRate {
			return ""
		}
		return formatRate(v) + " is out of range: want 100K to 1T bit/s, or 0 for unshaped"
	},
}

// minLineRate is the least that a NIC is shaped to, in bit/s.
const minLineRate = 1e5
