package compare

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// ParseBudget reads a budget:
//
//	[key=pattern ...] [workload.]metric >|< limit
//
// Filters come first (ParseFilter). The metric may have the kind of its workload before it, and a percentile may stand
// for the times of that workload: rr.p99 is rtt.p99 of rr, http.p99 is response_time.p99 of http. A limit with a sign
// is a change, in percent of A: "> +5%", "< -3%". A limit without a sign is a value of B, in the metric's unit or one
// that converts to it: "< 900Mbit/s", "> 35us", "> 0.1%". It fails for an unknown metric, for one that is not judged,
// and for a limit that an improvement would break.
func ParseBudget(s string) (Budget, error) {
	b := Budget{Text: s}
	if err := b.parse(); err != nil {
		return Budget{}, fmt.Errorf("%q: %w", number.Clean(s), err)
	}
	return b, nil
}

func (b *Budget) parse() (err error) {
	at := strings.IndexAny(b.Text, "<>")
	if at < 0 {
		return errors.New("want > or <, and a limit")
	}
	sign := b.Text[at : at+1]
	words, limit := strings.Fields(b.Text[:at]), strings.Fields(b.Text[at+1:])
	if len(words) == 0 {
		return fmt.Errorf("want a metric before %q", sign)
	}
	last := len(words) - 1
	if b.Filter, err = parseFilter(words[:last]); err != nil {
		return fmt.Errorf("before the metric: %w", err)
	}
	if err := b.setMetric(words[last]); err != nil {
		return err
	}
	b.Above = sign == ">"
	switch {
	case directionOf(b.Metric) == metric.Higher && b.Above || directionOf(b.Metric) == metric.Lower && !b.Above: // rather a slip than a wish
		return fmt.Errorf("%s is better when it is %s: an improvement would break this limit", b.Metric,
			map[bool]string{true: "higher", false: "lower"}[b.Above])
	case len(limit) == 0:
		return errors.New("want a limit, for example +5%")
	case strings.HasPrefix(limit[0], "="):
		return fmt.Errorf("want %q alone: a measured value is never exactly at its limit", sign)
	case len(limit) > 2:
		return fmt.Errorf("want one limit, not %q", number.Clean(strings.Join(limit, " ")))
	}
	text := strings.Join(limit, "") // "900 Mbit/s"
	end := strings.LastIndexAny(limit[0], "0123456789.") + 1
	return b.setLimit(text[:end], text[end:])
}

// setMetric parses [workload.]metric. It fails for an unknown metric and for one that is not judged.
func (b *Budget) setMetric(s string) error {
	name, kind := s, plan.Kind("")
	if _, known := metric.Lookup(name); !known || metric.ByOneDial(name) { // ttfr.p50 is the metric that ttfr measures now
		if head, tail, ok := strings.Cut(s, "."); ok && slices.Contains(plan.Kinds(), plan.Kind(head)) {
			name, kind = tail, plan.Kind(head)
		}
	}
	if slices.Contains(metric.Statistics, name) {
		name = cmp.Or(kind.Default().Traits().Times(), metric.RTT) + "." + name
	}
	m, known := metric.Lookup(name)
	if !known {
		return fmt.Errorf("unknown metric %q: cnibench list metrics names those that there are%s", number.Clean(s), advice.DidYouMean(name, metric.Names()))
	}
	if m.Better == metric.Neither {
		return fmt.Errorf("%s describes and is not judged, so it has no budget", name)
	}
	if kind != "" {
		if b.Filter.Workload != "" {
			return fmt.Errorf("the workload is given twice, as %s and by workload=", kind)
		}
		b.Filter.Workload = string(kind)
	}
	b.Metric = name
	return nil
}

// tinyUnits are base units so small that a limit must state its unit. The value is an example of a limit for the error.
var tinyUnits = map[string]string{"ns": "5us", "bit/s": "900Mbit/s", "B": "20MB"}

// setLimit sets the limit from the text of its number and its unit (in). A number with a sign is a change relative to
// A, any other a value.
func (b *Budget) setLimit(text, in string) error {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Errorf("%q is not a limit: want a change such as +5%%, or a value such as 900Mbit/s", number.Clean(text+in))
	}
	if text[0] == '+' || text[0] == '-' {
		return b.setChange(v, in)
	}
	m, _ := metric.Lookup(b.Metric)
	if in == "%" && m.Unit != "ratio" {
		return fmt.Errorf("a change needs its sign: %+g%% or %+g%%", v, -v)
	}
	if like, tiny := tinyUnits[m.Unit]; tiny && in == "" && v != 0 {
		return fmt.Errorf("%g has no unit, and %s has one: write such as %s", v, b.Metric, like)
	}
	b.Limit = v
	if in != "" {
		b.Limit, err = number.Convert(v, normalizeUnit(in, m.Unit), m.Unit)
	}
	return err
}

// normalizeUnit converts the unit of a limit into the form of package number: /s becomes 1/s. base is the metric's unit.
// The unit of work depends on the workload and is ignored: 9us/transaction is 9us.
func normalizeUnit(in, base string) string {
	if !strings.Contains(base, "/") {
		in, _, _ = strings.Cut(in, "/")
	}
	if strings.HasPrefix(in, "/") {
		in = "1" + in
	}
	return in
}

// setChange sets a limit relative to A. It fails if the unit is not %, or if equal results would already break the
// limit.
func (b *Budget) setChange(percent float64, in string) error {
	switch {
	case in != "%":
		return fmt.Errorf("a limit with a sign is a change in percent: want for example %+g%%", percent)
	case percent <= -100:
		return fmt.Errorf("%g%% leaves nothing", percent)
	case b.Above && percent < 0, !b.Above && percent > 0:
		return fmt.Errorf("a limit of %+g%% on this side is broken by no change at all", percent)
	}
	b.Relative, b.Limit = true, 1+percent/100
	return nil
}
