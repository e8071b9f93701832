package report

import (
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// places are where a datagram can be lost, in the words of a report.
var places = []struct{ name, words string }{
	{"socket_buffer", "in the receiving socket's buffer"}, {"backlog", "in the CPU's receive backlog"},
	{"qdisc", "in a queueing discipline"}, {"device", "at a network device"}, {"path", "elsewhere on the path"},
}

// losses says of each case that lost datagrams where: medians over its trials, as shares of what was offered. What a
// throughput search lost is what it lost at the lowest rate that failed.
func (b *builder) losses() []Item {
	var items []Item
	for c := range b.cases() {
		if text := b.lossOf(c); text != "" {
			items = append(items, Item{Name: number.Clean(c.Profile), Text: c.Path.String() + " " + number.Clean(c.Workload.String()) + ": " + text})
		}
	}
	return items
}

// lossOf says where a case lost datagrams, "" if it lost none.
func (b *builder) lossOf(of plan.Case) string {
	cell := func(name string) (compare.Cell, bool) {
		c, ok := b.analysis.Cell(compare.Key{Case: of, Metric: name})
		return c, ok && c.N > 0
	}
	var parts []string
	for _, p := range places {
		if c, ok := cell(metric.Loss + "." + p.name); ok && c.Median > 0 {
			parts = append(parts, number.Percent(c.Median)+" "+p.words)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	at := ""
	if c, ok := cell(metric.FirstFailing); ok {
		scale := number.Common(c.Unit, c.Median)
		at = "above the throughput, at " + scale.Format(c.Median) + " " + scale.Unit + ", "
	}
	return at + strings.Join(parts, ", ")
}
