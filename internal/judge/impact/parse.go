package impact

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Kind is a kind of work that a job does over the network.
type Kind string

// The kinds of work. Transfer is bytes in bulk over the fewest flows that were measured, Sync over the most.
// Requests are exchanges on existing connections, Connections are exchanges with a connection each.
const (
	Transfer    Kind = "transfer"
	Sync        Kind = "sync"
	Requests    Kind = "requests"
	Connections Kind = "connections"
)

// allKinds are all kinds, in the order in which help lists them.
var allKinds = []Kind{Transfer, Sync, Requests, Connections}

// networkShare is the key of the share that applies to every work without its own share.
const networkShare = "network-share"

// most is the largest amount of work, in bytes or exchanges.
const most = 1e18

// Work is a part of a job.
type Work struct {
	Kind Kind
	// Amount is in bytes for Transfer and Sync, else a number of exchanges; 1 to 1e18.
	Amount float64
	// Share is the share of the whole job's time that this work takes on the baseline, in (0,1]; 0 if unknown.
	Share float64
	// Text is the amount as the user wrote it.
	Text string
}

// isBulk reports whether the amount is bytes.
func (k Kind) isBulk() bool { return k == Transfer || k == Sync }

// Parse parses the description of a job, "transfer=100GB/share=30%,requests=1M,network-share=20%". The error has every
// fault with its part.
func Parse(s string) ([]Work, error) {
	var works []Work
	var errs []error
	seen := map[string]bool{}
	rest := 0.0 // the share of all work without one of its own
	for part := range strings.SplitSeq(s, ",") {
		key, value, ok := strings.Cut(part, "=")
		var err error
		switch {
		case part == "":
			err = errors.New("nothing is written before or after a comma")
		case !ok:
			err = fmt.Errorf("%q has no value: want one of %s, %s, then = and a value", part, kindList(), networkShare)
		case seen[key]:
			err = fmt.Errorf("%s is given twice", key)
		case key == networkShare:
			if rest, err = parsePercent(value); err != nil {
				err = fmt.Errorf("%s: %w", key, err)
			}
		case !slices.Contains(allKinds, Kind(key)):
			err = fmt.Errorf("unknown work %q: there are %s and %s", key, kindList(), networkShare)
		default:
			var w Work
			w, err = parseWork(Kind(key), value)
			works = append(works, w)
		}
		seen[key] = true
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(works) == 0 {
		return nil, fmt.Errorf("no work is named: say one of %s", kindList())
	}
	for i := range works {
		works[i].Share = cmp.Or(works[i].Share, rest)
	}
	return works, nil
}

func kindList() string {
	return strings.Join(each.Of(allKinds, func(k Kind) string { return string(k) }), ", ")
}

// parseWork parses an amount and its optional share, such as "100GB/share=30%".
func parseWork(k Kind, s string) (Work, error) {
	text, option, ok := strings.Cut(s, "/")
	w := Work{Kind: k, Text: text}
	var errs [2]error
	w.Amount, errs[0] = k.parseAmount(text)
	if share, named := strings.CutPrefix(option, "share="); named {
		w.Share, errs[1] = parsePercent(share)
	} else if ok {
		errs[1] = fmt.Errorf("unknown option %q: want share=PERCENT", option)
	}
	if err := errors.Join(errs[:]...); err != nil {
		return w, fmt.Errorf("%s: %w", k, err)
	}
	return w, nil
}

// parsePercent parses "30%" as 0.3.
func parsePercent(s string) (float64, error) {
	digits, ok := strings.CutSuffix(s, "%")
	v, err := parseNumber(digits)
	switch {
	case !ok || err != nil:
		return 0, fmt.Errorf("%q is not a share: want a percentage such as 30%%", s)
	case !(v > 0 && v <= 100):
		return 0, fmt.Errorf("%q is not a share: it must be more than 0%% and at most 100%%", s)
	}
	return v / 100, nil
}

// parseNumber parses a plain decimal number: no sign, no exponent, no inf.
func parseNumber(s string) (float64, error) {
	if s == "" || strings.Trim(s, "0123456789.") != "" {
		return 0, fmt.Errorf("%q is not a number", s)
	}
	return strconv.ParseFloat(s, 64)
}

// parseAmount parses "100GB" or "2.5GiB" as bytes, or "5000", "20k", "1.5M" or "2G" as a count.
func (k Kind) parseAmount(s string) (float64, error) {
	end := strings.LastIndexAny(s, "0123456789.") + 1
	unit, base, want := s[end:], "1", "is not a count: want a number such as 5000, 20k, 1.5M or 2G"
	known := strings.Contains("kMG", unit)
	if k.isBulk() {
		base, want = "B", "is not a size: want a number and B, kB to TB or KiB to TiB, such as 100GB"
		known = strings.HasSuffix(unit, "B")
	}
	v, err := parseNumber(s[:end])
	v, wrong := number.Convert(v, cmp.Or(unit, "1"), base)
	switch {
	case err == nil && k.isBulk() && unit == "KB":
		return 0, wrong // it says why
	case err != nil || wrong != nil || !known:
		return 0, fmt.Errorf("%q %s", s, want)
	case !k.isBulk() && v != math.Trunc(v):
		return 0, fmt.Errorf("%q is not a whole number", s)
	case !(v >= 1 && v <= most):
		return 0, fmt.Errorf("%q must be at least 1 and at most %.0g", s, float64(most))
	}
	return v, nil
}
