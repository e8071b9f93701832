package report

import (
	"fmt"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Interim is the result of the trials so far, while a run continues.
type Interim struct {
	// Summary has only the table. It is nil if the trials answer no need.
	Summary *Summary
	// Compared counts the values of dataplanes in the table that have a verdict. Decided counts the values
	// among these whose verdict is not inconclusive.
	Decided, Compared int
	// Leads names the best profile of each need with a significant difference: "requests cilium-native".
	Leads []string
}

// Interim returns the result of the trials so far; h is the header of the result. The result is empty for a sweep, and as
// long as the trials answer no need. It fails if the trials cannot be analysed. More records may be added afterwards.
func (c *Collector) Interim(h result.Header) (Interim, error) {
	a, err := c.judged.Analyse(h, compare.Options{})
	if err != nil {
		return Interim{}, err
	}
	metrics, _ := selectMetrics(nil) // no name can be wrong
	b := newBuilder(h, a, c, metrics)
	var out Interim
	d := Document{Answer: Answer{Needs: b.findNeeds()}}
	if len(d.Needs) == 0 || !h.Plan.Sweep.IsZero() {
		return out, nil
	}
	s := b.buildSummary(d, "")
	for _, r := range s.Rows {
		for _, e := range r.Entries {
			if r.Bare {
				continue
			}
			if e.Verdict != compare.None {
				out.Compared++
			}
			if e.Verdict != compare.None && e.Verdict != compare.Inconclusive {
				out.Decided++
			}
		}
	}
	for _, n := range d.Needs {
		if len(n.Choice) > 1 && len(n.Conclusion.Claims) > 0 { // a single dataplane is not ahead of another
			lead := fmt.Sprintf("%s %s", n.shortName(), number.Clean(n.Choice[0].Cell.Profile.String()))
			if label := b.nicLabel(n.Workload); label != "" {
				lead += " (" + label + ")"
			}
			out.Leads = append(out.Leads, lead)
		}
	}
	out.Summary = &Summary{Title: s.Title, Columns: s.Columns, Rows: s.Rows, Reading: Reading{Margin: s.Margin}}
	return out, nil
}
