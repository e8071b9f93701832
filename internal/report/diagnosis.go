package report

import (
	"fmt"

	"github.com/cnibench/cnibench/internal/judge/diagnose"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// diagnosisData is the JSON of a diagnosis.
type diagnosisData struct {
	diagnose.Answer
	// Explained attributes the CPU time of a request, if requested.
	Explained *explanationData `json:"explained,omitempty"`
}

// BuildDiagnosis builds the report of a diagnosis: the answer, what to do next, the attribution of the CPU time, what
// was measured, and what was ruled out. x is nil if nothing was sampled.
func BuildDiagnosis(a diagnose.Answer, x *Explanation) Document {
	data := diagnosisData{Answer: a}
	d := Document{Title: number.Clean(a.Text) + "."}
	d.Lines = append(d.Lines, fmt.Sprintf("confidence: %s (%s)", a.Confidence, a.Sure))
	next := Section{Heading: "Do next", Items: each.Of(a.Next, func(step string) Item { return Item{Text: step + "."} })}
	d.Sections = append(d.Sections, next)
	if x != nil {
		data.Explained = new(explanationOf(*x))
		for _, diff := range x.Differences {
			s := differenceSection(diff)
			s.Heading = "Where the CPU time goes: " + diff.A.Workload.String()
			d.Sections = append(d.Sections, s)
		}
		d.Sections = append(d.Sections, unexplainedSections(*x)...)
	}
	d.Data = data
	measured := Grid{Title: "Measured in turn on the same nodes", Label: "Path", Columns: []string{"What", "Median", "Spread", "Trials"}}
	for _, n := range a.Measured {
		text := number.Percent(n.Median)
		if n.Unit != "1" {
			text = number.WithUnit(n.Unit, n.Median)
		}
		measured.Add(n.Path.String(), n.Name, text, "±"+number.Percent(n.Spread), fmt.Sprint(n.N))
	}
	if len(measured.Cells) > 0 {
		d.Sections = append(d.Sections, Section{Heading: "Measured", Grids: []Grid{measured}})
	}
	for _, part := range []struct {
		heading string
		state   diagnose.State
	}{{"Faults", diagnose.Fault}, {"Not judged", diagnose.Unknown}, {"Ruled out", diagnose.Clear}} {
		grid := Grid{Label: "Rule", Columns: []string{"Measurement"}, Prose: true}
		for _, s := range a.Statements {
			if s.State != part.state {
				continue
			}
			text := number.Clean(s.Saw)
			if s.State == diagnose.Fault {
				text = number.Clean(fmt.Sprintf("%s. %s Why: %s. Do: %s.", placeText(s), s.Saw+".", s.Why, s.Do))
			}
			grid.Add(s.Rule, text)
		}
		if len(grid.Cells) > 0 {
			d.Sections = append(d.Sections, Section{Heading: part.heading, Grids: []Grid{grid}})
		}
	}
	if len(a.Missing) > 0 {
		missing := Section{Heading: "Could not be seen", Items: each.Of(a.Missing, func(m string) Item { return Item{Text: number.Clean(m)} })}
		d.Sections = append(d.Sections, missing)
	}
	return d
}

// placeText describes a fault and its place.
func placeText(s diagnose.Statement) string {
	if s.Where == "" {
		return s.Title
	}
	return s.Title + ": " + s.Where
}
