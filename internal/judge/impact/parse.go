package impact

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Kind is a sort of work that a job has the network do.
type Kind string

// The kinds of work. Transfer is bytes in bulk over as few flows as were measured, Sync bytes over as many; Requests are
// exchanges on standing connections, Connections exchanges with a connection each.
const (
	Transfer    Kind = "transfer"
	Sync        Kind = "sync"
	Requests    Kind = "requests"
	Connections Kind = "connections"
)

// Kinds are all kinds, in the order of help.
var Kinds = []Kind{Transfer, Sync, Requests, Connections}

// networkShare is the key of the share that holds for all work without one of its own.
const networkShare = "network-share"

// most is the largest amount of work, in bytes or exchanges.
const most = 1e18

// Work is a part of a job.
type Work struct {
	Kind Kind
	// Amount is in bytes for Transfer and Sync, else a number of exchanges; 1 to 1e18.
	Amount float64
	// Share is the share of the whole job's time that this work takes on the baseline, in (0,1]; 0 if it is not known.
	Share float64
	// Text is the amount as it was written.
	Text string
}

// bulk says whether the amount is bytes.
func (k Kind) bulk() bool { return k == Transfer || k == Sync }

// Parse reads what the reader's job does, "transfer=100GB/share=30%,requests=1M,network-share=20%". The error names every
// fault with its column, counted in characters from 1.
func Parse(s string) ([]Work, error) {
	p := parser{}
	column := 1
	for part := range strings.SplitSeq(s, ",") {
		p.part(part, column)
		column += utf8.RuneCountInString(part) + 1
	}
	if len(p.errs) == 0 && len(p.works) == 0 {
		p.fault(1, "no work is named: say one of %s", list())
	}
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	for i := range p.works {
		if p.works[i].Share == 0 {
			p.works[i].Share = p.share
		}
	}
	return p.works, nil
}

func list() string {
	var names []string
	for _, k := range Kinds {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

type parser struct {
	works []Work
	share float64
	errs  []error
}

func (p *parser) fault(column int, format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("column %d: %s", column, fmt.Sprintf(format, args...)))
}

// part reads what stands between two commas.
func (p *parser) part(s string, column int) {
	key, value, ok := strings.Cut(s, "=")
	at := column + utf8.RuneCountInString(key) + 1
	switch {
	case s == "":
		p.fault(column, "nothing is written here")
	case !ok:
		p.fault(column, "%q has no value: want one of %s, %s, then = and a value", s, list(), networkShare)
	case key == networkShare && p.share != 0:
		p.fault(column, "%s is given twice", networkShare)
	case key == networkShare:
		p.share = p.percent(value, at)
	case !slices.Contains(Kinds, Kind(key)):
		p.fault(column, "unknown work %q: there are %s and %s", key, list(), networkShare)
	case slices.ContainsFunc(p.works, func(w Work) bool { return w.Kind == Kind(key) }):
		p.fault(column, "%s is given twice", key)
	default:
		p.works = append(p.works, p.work(Kind(key), value, at))
	}
}

// work reads an amount and its share.
func (p *parser) work(k Kind, s string, column int) Work {
	amount, option, ok := strings.Cut(s, "/")
	w := Work{Kind: k, Text: amount}
	var err error
	if k.bulk() {
		w.Amount, err = size(amount)
	} else {
		w.Amount, err = count(amount)
	}
	if err != nil {
		p.fault(column, "%s: %v", k, err)
	}
	if !ok {
		return w
	}
	column += utf8.RuneCountInString(amount) + 1
	value, named := strings.CutPrefix(option, "share=")
	if !named {
		p.fault(column, "%s: unknown option %q: want share=PERCENT", k, option)
		return w
	}
	w.Share = p.percent(value, column+len("share="))
	return w
}

// percent reads "30%"; what is wrong counts as given, so that it is not said to be missing.
func (p *parser) percent(s string, column int) float64 {
	digits, ok := strings.CutSuffix(s, "%")
	v, err := parseNumber(digits)
	switch {
	case !ok || err != nil:
		p.fault(column, "%q is not a share: want a percentage such as 30%%", s)
	case !(v > 0 && v <= 100):
		p.fault(column, "%q is not a share: it must be more than 0%% and at most 100%%", s)
	default:
		return v / 100
	}
	return 1
}

// parseNumber reads a plain decimal number: no sign, no exponent, no inf.
func parseNumber(s string) (float64, error) {
	if s == "" || strings.Trim(s, "0123456789.") != "" {
		return 0, fmt.Errorf("%q is not a number", s)
	}
	return strconv.ParseFloat(s, 64)
}

// size reads "100GB" or "2.5GiB" as bytes.
func size(s string) (float64, error) {
	i := strings.IndexFunc(s, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if i < 0 {
		i = len(s)
	}
	digits, name := s[:i], s[i:]
	v, err := parseNumber(digits)
	bytes, wrong := number.Convert(v, name, "B")
	switch {
	case err == nil && name == "KB":
		return 0, wrong // it says why
	case err != nil || wrong != nil || !strings.HasSuffix(name, "B"):
		return 0, fmt.Errorf("%q is not a size: want a number and B, kB to TB or KiB to TiB, such as 100GB", s)
	}
	return amount(bytes, s)
}

// count reads "5000", "20k", "1.5M" or "2G".
func count(s string) (float64, error) {
	factor := 1.0
	digits := strings.TrimRight(s, "kMG")
	switch s[len(digits):] {
	case "":
	case "k":
		factor = 1e3
	case "M":
		factor = 1e6
	case "G":
		factor = 1e9
	default:
		digits = ""
	}
	v, err := parseNumber(digits)
	if err != nil {
		return 0, fmt.Errorf("%q is not a count: want a number such as 5000, 20k, 1.5M or 2G", s)
	}
	if v *= factor; v != math.Trunc(v) {
		return 0, fmt.Errorf("%q is not a whole number", s)
	}
	return amount(v, s)
}

func amount(v float64, s string) (float64, error) {
	if !(v >= 1 && v <= most) {
		return 0, fmt.Errorf("%q must be at least 1 and at most %.0g", s, float64(most))
	}
	return v, nil
}
