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
	for _, w := range b.analysis.Workloads {
		for _, path := range b.analysis.Paths {
			for _, profile := range b.analysis.Profiles {
				if text := b.lossOf(compare.Key{Case: plan.Case{Profile: profile, Path: path, Workload: w}}); text != "" {
					items = append(items, Item{Name: number.Clean(profile), Text: path.String() + " " + number.Clean(w.String()) + ": " + text})
				}
			}
		}
	}
	return items
}

// lossOf says where a case lost datagrams, "" if it lost none.
func (b *builder) lossOf(k compare.Key) string {
	median := func(name string) (float64, *compare.Cell) {
		k.Metric = name
		c, ok := b.analysis.Cell(k)
		if !ok || c.N == 0 {
			return 0, nil
		}
		return c.Median, &c
	}
	var parts []string
	for _, p := range places {
		if share, _ := median(metric.Loss + "." + p.name); share > 0 {
			parts = append(parts, number.Percent(share)+" "+p.words)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	at := ""
	if rate, c := median(metric.FirstFailing); c != nil {
		scale := number.Common(c.Unit, rate)
		at = "above the throughput, at " + scale.Format(rate) + " " + scale.Unit + ", "
	}
	return at + strings.Join(parts, ", ")
}
