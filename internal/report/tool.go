package report

import (
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// besideHeading is the heading of the list that compares external tools with cnibench's own engine.
const besideHeading = "Tools beside our engine (about programs, not a verdict on a network)"

// mostBeside is the largest number of cases in the list that compares external tools with cnibench's own engine.
const mostBeside = 40

// besideMetrics are the metrics by which external tools are compared with cnibench's own engine, in order.
var besideMetrics = []string{
	metric.ServiceDemand, metric.Goodput, metric.TransactionRate, metric.RequestRate, metric.PacketRate,
	metric.RTT + ".p50", metric.RTT + ".p99", metric.ResponseTime + ".p50", metric.ResponseTime + ".p99",
}

// toolItems compares each case that an external tool measured with the same case by our engine. It lists up to mostBeside
// cases and counts the others.
func (b *builder) toolItems() []Item {
	var items []Item
	for c := range b.allCases() {
		if c.Workload.Tool == "" || c.Profile.IsTwin() {
			continue
		}
		if item, ok := b.toolItem(c); ok {
			items = append(items, item)
		}
	}
	if more := len(items) - mostBeside; more > 0 {
		items = append(items[:mostBeside], Item{Text: fmt.Sprintf("%d more in the tables.", more)})
	}
	return items
}

// toolItem compares a case of a tool with the same case of our engine. It returns false if they have no metric in
// common.
func (b *builder) toolItem(theirs plan.Case) (Item, bool) {
	own := theirs
	own.Workload.Tool = ""
	var parts []string
	for _, name := range besideMetrics {
		ours, ok1 := b.analysis.Cell(compare.Key{Case: own, Metric: name})
		other, ok2 := b.analysis.Cell(compare.Key{Case: theirs, Metric: name})
		if !ok1 || !ok2 || ours.N == 0 || other.N == 0 {
			continue
		}
		scale := number.Common(ours.Unit, ours.Median, other.Median)
		m, _ := metric.Lookup(name)
		part := fmt.Sprintf("%s %s, by %s %s %s", m.Title, scale.Format(ours.Median), theirs.Workload.Tool, scale.Format(other.Median), scale.Unit)
		if ours.Median > 0 {
			part += " (" + number.Ratio(other.Median/ours.Median) + ")"
		}
		parts = append(parts, part)
	}
	return Item{Name: number.Clean(own.Key()), Text: strings.Join(parts, "; ")}, len(parts) > 0
}

// ownWorkloads returns the workloads of our engine. It omits those of external tools, so that no need is answered twice. If
// there are only workloads of tools, it returns all of them.
func ownWorkloads(all []plan.Workload) []plan.Workload {
	own := each.Where(all, func(w plan.Workload) bool { return w.Tool == "" })
	if len(own) == 0 {
		return all
	}
	return own
}
