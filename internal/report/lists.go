package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// appendixSections returns the sections after the tables.
func (b *builder) appendixSections(r Run) []Section {
	return sectionsWithItems(
		Section{Heading: besideHeading, Items: b.toolItems()},
		Section{Heading: "Where datagrams were lost", Items: b.lossItems()},
		Section{Heading: "Profiles left out", Items: b.skippedItems()},
		Section{Heading: "Paths not served", Items: b.notServedItems()},
		Section{Heading: "Imitated by the lab", Items: b.imitatedItems()},
		Section{Heading: "Run", Items: b.runItems(r)},
		Section{Heading: "Conditions", Items: each.Of(b.header.Facts.Names(), func(n string) Item { return Item{Name: number.Clean(n), Text: number.Clean(b.header.Facts[n])} })},
	)
}

// sectionsWithItems returns the sections that have items.
func sectionsWithItems(all ...Section) []Section {
	return slices.DeleteFunc(all, func(s Section) bool { return len(s.Items) == 0 })
}

func (b *builder) skippedItems() []Item {
	skipped := each.Where(b.header.Profiles, func(p result.Profile) bool { return p.Skipped != "" })
	return each.Of(skipped, func(p result.Profile) Item {
		return Item{Name: number.Clean(p.Name.String()), Text: number.Clean(p.Skipped)}
	})
}

// notServedItems returns an item for each profile and reason. It lists the paths that the profile does not serve for that
// reason.
func (b *builder) notServedItems() []Item {
	var items []Item
	for _, p := range b.header.Profiles {
		if p.Name.IsTwin() || p.Skipped != "" {
			continue
		}
		without := slices.DeleteFunc(b.routeNames(), func(name string) bool { return p.NotServed[name] == "" })
		for _, names := range Grouped(without, func(name string) string { return p.NotServed[name] }) {
			items = append(items, Item{Name: number.Clean(p.Name.String()), Text: strings.Join(names, ", ") + ": " + number.Clean(p.NotServed[names[0]])})
		}
	}
	return items
}

// routeNames returns the names of the result's paths. Each path is followed by the routes that workloads take on it.
func (b *builder) routeNames() []string {
	var names []string
	for _, path := range b.analysis.Paths {
		names = append(names, path.String())
		for _, w := range b.analysis.Workloads {
			names = append(names, plan.Case{Path: path, Workload: w}.Route().String())
		}
	}
	return each.Once(names)
}

func (b *builder) imitatedItems() []Item {
	var items []Item
	for _, p := range b.header.Profiles {
		if len(p.StandIn) > 0 && !p.Name.IsTwin() {
			items = append(items, Item{Name: number.Clean(p.Name.String()), Text: number.Clean(strings.Join(p.StandIn, "; "))})
		}
	}
	return items
}

var reasons = map[string]string{
	result.Complete:    "the plan is complete",
	result.Precise:     "ended when all was decided, or known to the wanted precision",
	result.Exhausted:   "ended at the most repetitions; some comparison is undecided, and an interval wider than wanted",
	result.Away:        "pairs of nodes are missing: a node was away",
	result.OverBudget:  "ended when its time was up",
	result.Interrupted: "interrupted",
	result.Killed:      "killed",
	unfinished:         "unfinished: killed, or still running",
}

// trialsText describes how many trials there were, how many failed, and why the run ended.
func trialsText(r Run) string {
	return fmt.Sprintf("%d, of which %d failed; %s", r.Trials, r.Failed, number.Clean(cmp.Or(reasons[r.Reason], r.Reason)))
}

func (b *builder) runItems(r Run) []Item {
	items := []Item{{Name: "trials", Text: trialsText(r)}}
	if r.Wall > 0 {
		items = append(items, Item{Name: "time", Text: fmt.Sprintf("%s, of which %s (%s) in measurement windows", number.Duration(r.Wall), number.Duration(r.Windows), number.Percent(r.Share()))})
	}
	if len(b.analysis.Unknown) > 0 {
		items = append(items, Item{Name: "left out", Text: number.Clean("metrics unknown to this version: " + strings.Join(b.analysis.Unknown, ", "))})
	}
	items = append(items, Item{Name: "seed", Text: fmt.Sprint(r.Plan.Seed)})
	if r.Command != "" {
		items = append(items, Item{Name: "repeat", Text: number.Clean(r.Command), Code: true})
	}
	return items
}

// unfinished is the Reason of a run whose file has no end record.
const unfinished = "unfinished"

// repeatCommand returns the command line that repeats a plan. It omits settings that equal the default, except those with
// Always. It returns "" for a plan without profiles, paths or workloads.
func repeatCommand(p plan.Plan) string {
	if len(p.Profiles) == 0 || len(p.Paths) == 0 || len(p.Workloads) == 0 {
		return ""
	}
	beside := p.Beside()
	if p.OnCluster() && !beside {
		p, _ = p.WithoutLab() // files of older versions have settings that do not apply to clusters
	}
	p.Lab = p.Lab.Filled()
	usual := plan.Default()
	line, switches := "cnibench run", ""
	if beside {
		line = "cnibench fidelity"
	}
	for _, x := range plan.Settings() {
		said := x.Always || x.Text(p) != x.Text(usual) || x.Key == "warmup" && p.OnCluster()
		switch {
		case x.Flag == "" || !said || beside && slices.Contains([]string{"environment", "profiles", "baseline"}, x.Key):
		case x.Switch:
			switches += " --" + x.Flag
		default:
			line += " --" + x.Flag + " " + advice.Quote(x.Text(p))
		}
	}
	if !p.Twin {
		line += " --no-twin"
	}
	return line + switches
}

// places lists where a datagram can be lost. name ends the name of the metric; words is the text in a report.
var places = []struct{ name, words string }{
	{"socket_buffer", "in the receiving socket's buffer"}, {"backlog", "in the CPU's receive backlog"},
	{"qdisc", "in a queueing discipline"}, {"device", "at a network device"}, {"path", "elsewhere on the path"},
}

// lossItems returns an item for each case that lost datagrams. It has the places of the loss, each with the median share of
// the offered datagrams. For a throughput search it has the loss at the lowest rate that failed.
func (b *builder) lossItems() []Item {
	var items []Item
	for c := range b.allCases() {
		if text := b.lossText(c); text != "" {
			items = append(items, Item{Name: number.Clean(c.Profile.String()), Text: c.Path.String() + " " + number.Clean(c.Workload.String()) + ": " + text})
		}
	}
	return items
}

// lossText describes the places where a case lost datagrams; "" if it lost none.
func (b *builder) lossText(of plan.Case) string {
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
		at = "above the throughput, at " + number.WithUnit(c.Unit, c.Median) + ", "
	}
	return at + strings.Join(parts, ", ")
}
