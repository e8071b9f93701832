// Command fidelity writes one table of the results of several `cnibench fidelity`, one for each real cluster: how far the CPU
// times of its dataplane are from the lab's, by themselves and over the bare node of their place.
//
//	go run ./internal/tool/fidelity bin/fidelity-*.jsonl
package main

import (
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/cnibench/cnibench/internal/judge/fidelity"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

func main() {
	if err := write(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "fidelity:", err)
		os.Exit(1)
	}
}

// write writes the table of results.
func write(w io.Writer, files []string) error {
	var pages []*fidelity.Page
	for _, f := range files {
		c, err := result.Load(f)
		if err != nil {
			return err
		}
		p, err := fidelity.Assess(c.Header, c.Records)
		if err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
		pages = append(pages, p)
	}
	fmt.Fprint(w, table(pages))
	return nil
}

// distance is how far a cluster's value is from the lab's, as a part of the lab's: 0.1 is a cluster that costs 10 % more.
type distance float64

func (d distance) String() string { return fmt.Sprintf("%+.1f %%", 100*float64(d)) }

// middle and farthest are those of a list.
func middle(list []distance) distance {
	list = slices.Sorted(slices.Values(list))
	n := len(list)
	return (list[(n-1)/2] + list[n/2]) / 2
}

func farthest(list []distance) distance {
	return slices.MaxFunc(list, func(a, b distance) int { return int(1e6 * (abs(a) - abs(b))) })
}

func abs(d distance) distance { return max(d, -d) }

// of returns the distances of rows: by themselves, and over the bare node.
func of(rows []fidelity.Row) (own, over []distance) {
	for _, r := range rows {
		own = append(own, distance(r.Cluster/r.Lab-1))
		over = append(over, distance(r.Quotient.Ratio-1))
	}
	return own, over
}

// table writes a line for each dataplane, then one for each of its paths and workloads.
func table(pages []*fidelity.Page) string {
	all := "| Dataplane | rows | CPU time: median | largest | over the bare node: median | largest | bare node: median | largest |\n|---|---|---|---|---|---|---|---|\n"
	each := "\n<details><summary>The rows</summary>\n\n| Dataplane | Path | Workload | Lab | Cluster | CPU time | over the bare node | |\n|---|---|---|---|---|---|---|---|\n"
	for _, p := range pages {
		for _, s := range p.Summaries() {
			mine := func(r fidelity.Row) bool { return r.Context == s.Context && r.Profile == s.Profile }
			rows := slices.DeleteFunc(slices.Clone(p.Demand), func(r fidelity.Row) bool { return !mine(r) })
			bare := slices.DeleteFunc(slices.Clone(p.Demand), func(r fidelity.Row) bool { return r.Context != s.Context || !r.Bare() })
			own, over := of(rows)
			nodes, _ := of(bare)
			all += fmt.Sprintf("| %s | %d | %v | %v | %v | %v | %v | %v |\n", s.Profile, len(rows),
				middle(own), farthest(own), middle(over), farthest(over), middle(nodes), farthest(nodes))
			for i, r := range rows {
				each += fmt.Sprintf("| %s | %s | %s | %s %s | %s | %v | %v | %s |\n", r.Profile, r.Path, r.Workload, number.Number(r.Lab),
					metric.UnitFor(r.Metric, r.Workload.Traits().Work), number.Number(r.Cluster), own[i], over[i], r.Verdict)
			}
		}
	}
	return all + each + "\n</details>\n"
}
