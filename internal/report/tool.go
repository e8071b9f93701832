package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// besideHeading stands over what tools and our engine measured of the same.
const besideHeading = "Tools beside our engine (about programs, not a verdict on a network)"

// mostBeside bounds that list.
const mostBeside = 40

// besideMetrics are set beside each other, in this order.
var besideMetrics = []string{
	metric.ServiceDemand, metric.Goodput, metric.TransactionRate, metric.RequestRate, metric.PacketRate,
	metric.RTT + ".p50", metric.RTT + ".p99", metric.ResponseTime + ".p50", metric.ResponseTime + ".p99",
}

// beside sets each case that a tool has measured beside the same case by our engine.
func (b *builder) beside() []Item {
	var items []Item
	more := 0
	for _, w := range b.analysis.Workloads {
		own := w
		own.Tool = ""
		if w.Tool == "" || !slices.Contains(b.analysis.Workloads, own) {
			continue
		}
		for _, path := range b.analysis.Paths {
			for _, name := range b.analysis.Profiles {
				item, ok := b.besideOne(compare.Key{Case: plan.Case{Profile: name, Path: path, Workload: own}}, w)
				switch {
				case !ok || name.IsTwin():
				case len(items) == mostBeside:
					more++
				default:
					items = append(items, item)
				}
			}
		}
	}
	if more > 0 {
		items = append(items, Item{Text: fmt.Sprintf("and %d more, which the tables have", more)})
	}
	return items
}

// besideOne sets one case of our engine beside that of a tool; false if they have no number in common.
func (b *builder) besideOne(k compare.Key, by plan.Workload) (Item, bool) {
	var parts []string
	for _, name := range besideMetrics {
		k.Metric = name
		theirs := k
		theirs.Workload = by
		ours, ok1 := b.analysis.Cell(k)
		other, ok2 := b.analysis.Cell(theirs)
		if !ok1 || !ok2 || ours.N == 0 || other.N == 0 {
			continue
		}
		scale := number.Common(ours.Unit, ours.Median, other.Median)
		m, _ := metric.Lookup(name)
		part := fmt.Sprintf("%s %s, by %s %s %s", m.Title, scale.Format(ours.Median), by.Tool, scale.Format(other.Median), scale.Unit)
		if ours.Median > 0 {
			part += " (" + number.Ratio(other.Median/ours.Median) + ")"
		}
		parts = append(parts, part)
	}
	return Item{Name: number.Clean(fmt.Sprintf("%s %s %s", k.Profile, k.Path, k.Workload)), Text: strings.Join(parts, "; ")}, len(parts) > 0
}

// byUs returns the workloads that our engine sends; all, if tools send every one. What a tool measured is shown, but it
// answers no question twice.
func byUs(all []plan.Workload) []plan.Workload {
	var some []plan.Workload
	for _, w := range all {
		if w.Tool == "" {
			some = append(some, w)
		}
	}
	if len(some) == 0 {
		return all
	}
	return some
}
