package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/cnibench/cnibench/internal/judge/fidelity"
	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// FidelitySchema names the JSON format of BuildFidelity.
const FidelitySchema = "cnibench.fidelity/v1"

// BuildFidelity builds the report that compares the lab with real clusters. It has no title, because it is a part of a
// page.
func BuildFidelity(p *fidelity.Page) Document {
	h := p.Header
	s := Section{Notes: append(fidelityNotes(p),
		fmt.Sprintf("Measured on %s: %s of %s, seed %d, lab and clusters interleaved in one run.",
			h.Created.UTC().Format(time.DateOnly), number.Counted(p.Repetitions, "repetition"), number.Duration(h.Plan.Duration), h.Plan.Seed),
		"Ratios are the cluster's value over the lab's, each over that of the bare node (host) of its place in the same repetition, with their 95 % intervals; 1 means that the lab is true. They are not the ratios of the medians beside them. within 5 %: the whole interval is. differs: not so, and significant after correction for all rows of the cluster. The bare nodes themselves are compared with each other without that, and not judged.",
	)}
	if p.Kernel != nil {
		s.Notes = append(s.Notes, fmt.Sprintf("A pod cannot see ksoftirqd, so both sides leave its time out; in the lab it was at most %s.", number.Percent(*p.Kernel)))
	}
	s.Grids = append(s.Grids, fidelitySummaryGrid(p))
	for _, part := range []struct {
		title string
		rows  []fidelity.Row
	}{{"CPU time per unit of work", p.Demand}, {"Rates", p.Rates}} {
		if len(part.rows) > 0 {
			s.Grids = append(s.Grids, fidelityRowsGrid(part.title, part.rows))
		}
	}
	conditions := Grid{Title: "Conditions", Label: "fact", Columns: []string{"value"}, Prose: true}
	for _, name := range h.Facts.Names() {
		const longest = 120 // some facts are whole error messages
		conditions.Add(name, number.Truncate(h.Facts[name], longest))
	}
	s.Grids = append(s.Grids, conditions)
	return Document{Sections: []Section{s}, Data: struct {
		Schema  string      `json:"schema"`
		Created time.Time   `json:"created"`
		Seed    uint64      `json:"seed"`
		Facts   facts.Facts `json:"facts"`
		// Verdicts are the verdicts on whole profiles.
		Verdicts []fidelity.Summary `json:"verdicts"`
		*fidelity.Page
	}{FidelitySchema, h.Created.UTC(), h.Plan.Seed, h.Facts, p.Summaries(), p}}
}

// busy is the largest share of the measured CPUs that other programs may use. Above it, a comparison is doubtful.
const busy = 0.1

// fidelityNotes returns a note for each profile on each cluster that says whether the lab is accurate. A last note warns
// if other programs used too much of the CPUs.
func fidelityNotes(p *fidelity.Page) []string {
	var all []string
	for _, s := range p.Summaries() {
		of := fmt.Sprintf("%s (%s): ", s.Profile, s.Context)
		near := fmt.Sprintf("%d of %d CPU times are within 5 %%", s.Count[fidelity.Near], s.Rows)
		switch s.Verdict {
		case fidelity.Near:
			all = append(all, of+"the lab is true. All "+number.Counted(s.Rows, "CPU time")+" are within 5 %.")
		case fidelity.Differs:
			all = append(all, of+fmt.Sprintf("the lab differs from the cluster in %s; %s.", number.Counted(s.Count[fidelity.Differs], "CPU time"), near))
		default:
			all = append(all, of+near+", none differs, the others are undecided: measure more --repetitions.")
		}
	}
	if share, err := strconv.ParseFloat(p.Header.Facts[facts.IdleBusy], 64); err == nil && share > busy {
		all = append(all, fmt.Sprintf("Other programs used %s of the measured CPUs when the run began: repeat it on a quiet machine.", number.Percent(share)))
	}
	return all
}

// fidelitySummaryGrid returns a table that counts the rows by verdict, with the failed trials as notes.
func fidelitySummaryGrid(p *fidelity.Page) Grid {
	g := Grid{Label: "compared", Columns: []string{"rows", "within 5 %", "differ", "undecided", "median of the distance", "largest"}}
	for _, x := range []struct {
		name string
		rows []fidelity.Row
		bare bool
	}{
		{"CPU time, dataplanes to the bare node", p.Demand, false}, {"CPU time, the bare node itself", p.Demand, true},
		{"rates, dataplanes to the bare node", p.Rates, false}, {"rates, the bare node itself", p.Rates, true},
	} {
		var off []float64
		count := map[fidelity.Verdict]int{}
		for _, r := range x.rows {
			if r.Bare() == x.bare {
				count[r.Verdict]++
				off = append(off, math.Expm1(math.Abs(math.Log(r.Quotient.Ratio))))
			}
		}
		if len(off) == 0 {
			continue
		}
		s := stat.Summarize(off, 0.95)
		cells := each.Of([]fidelity.Verdict{fidelity.Near, fidelity.Differs, fidelity.Undecided}, func(v fidelity.Verdict) string {
			if x.bare { // not judged
				return number.Absent
			}
			return fmt.Sprint(count[v])
		})
		g.Add(x.name, slices.Concat([]string{fmt.Sprint(len(off))}, cells, []string{number.Percent(s.Median), number.Percent(s.Max)})...)
	}
	for _, f := range p.Failed {
		g.Notes = append(g.Notes, number.Clean(fmt.Sprintf("%d of %d trials of %s failed: %s.", f.Failed, f.Tried, f.Case, f.Kind)))
	}
	return g
}

func fidelityRowsGrid(title string, rows []fidelity.Row) Grid {
	g := Grid{Title: title, Label: "profile", Columns: []string{"path", "workload", "lab", "cluster", "cluster to lab", "verdict"}}
	for _, r := range rows {
		m := number.Common(metric.UnitFor(r.Metric, r.Workload.Traits().Work), r.Lab, r.Cluster)
		g.Add(fmt.Sprintf("%s (%s)", r.Profile, r.Context), r.Path.String(), r.Workload.String(), m.Format(r.Lab)+" "+m.Unit, m.Format(r.Cluster),
			fmt.Sprintf("%.3f [%.3f, %.3f]", r.Quotient.Ratio, r.Quotient.Low, r.Quotient.High), cmp.Or(string(r.Verdict), number.Absent))
	}
	return g
}
