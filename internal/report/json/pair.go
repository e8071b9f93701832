package json

import (
	"bytes"
	"io"
	"time"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
)

// Schemas of the other two documents.
const (
	PairSchema    = "cnibench.compare/v1"
	HistorySchema = "cnibench.history/v1"
)

type side struct {
	Name    string      `json:"name"`
	Created time.Time   `json:"created"`
	Facts   facts.Facts `json:"facts"`
}

type difference struct {
	Name string `json:"name"`
	// A and B are null where nothing is recorded.
	A *string `json:"a"`
	B *string `json:"b"`
}

type summary struct {
	N          int    `json:"n"`
	Median     number `json:"median"`
	Low        number `json:"low"`
	High       number `json:"high"`
	Confidence number `json:"confidence"`
}

type pairCell struct {
	Profile plan.Variant `json:"profile"`
	// ProfileA is the profile of A that it was compared with.
	ProfileA      plan.Variant `json:"profile_a"`
	Path          plan.Path    `json:"path"`
	Workload      string       `json:"workload"`
	Metric        string       `json:"metric"`
	Unit          string       `json:"unit"`
	A             summary      `json:"a"`
	B             summary      `json:"b"`
	FailedA       int          `json:"failed_a"`
	FailedB       int          `json:"failed_b"`
	Ratio         number       `json:"ratio"`
	Low           number       `json:"low"`
	High          number       `json:"high"`
	Confidence    number       `json:"confidence"`
	P             number       `json:"p"`
	Adjusted      number       `json:"p_adjusted"`
	Family        int          `json:"family"`
	Test          string       `json:"test"`
	Floor         number       `json:"floor"`
	FloorMeasured bool         `json:"floor_measured"`
	// Drift is what other profiles differ by too, 0 if the two results' conditions differ.
	Drift   number `json:"drift"`
	Verdict string `json:"verdict"`
	Need    int    `json:"need"`
}

type caseKey struct {
	Profile  plan.Variant `json:"profile"`
	Path     plan.Path    `json:"path"`
	Workload string       `json:"workload"`
	// Metric is "" for a whole case.
	Metric string `json:"metric"`
}

type heldCell struct {
	Profile  plan.Variant `json:"profile"`
	ProfileA plan.Variant `json:"profile_a"`
	Path     plan.Path    `json:"path"`
	Workload string       `json:"workload"`
	State    string       `json:"state"`
	// Low and High are one-sided bounds: of the ratio, or of the value if the budget is not relative.
	Low      number `json:"low"`
	High     number `json:"high"`
	P        number `json:"p"`
	Adjusted number `json:"p_adjusted"`
	Need     int    `json:"need"`
	Why      string `json:"why"`
}

type held struct {
	Budget   string     `json:"budget"`
	Metric   string     `json:"metric"`
	Relative bool       `json:"relative"`
	Limit    number     `json:"limit"`
	State    string     `json:"state"`
	Cells    []heldCell `json:"cells"`
}

// renderPair writes what two results show side by side, schema "cnibench.compare/v1": the keys schema, state, a, b,
// differences, budgets, cells, only_a and only_b. state is the outcome that the exit code stands for.
func renderPair(w io.Writer, p report.PairResult) error {
	var b bytes.Buffer
	o := object{w: &b}
	o.key("schema", PairSchema)
	o.key("state", p.State)
	o.key("a", sideOf(p.A))
	o.key("b", sideOf(p.B))
	list(&o, "differences", p.Differences, func(d compare.Difference) any { return differenceOf(d) })
	list(&o, "budgets", p.Held, func(h report.Held) any { return heldOf(h) })
	list(&o, "cells", p.Matches, func(m compare.Match) any { return matchOf(m) })
	list(&o, "only_a", p.OnlyA, func(k compare.Key) any { return keyOf(k) })
	list(&o, "only_b", p.OnlyB, func(k compare.Key) any { return keyOf(k) })
	return o.writeTo(w)
}

// writeTo ends the object and writes it out, if nothing went wrong.
func (o *object) writeTo(w io.Writer) error {
	o.end()
	if o.err != nil {
		return o.err
	}
	_, err := w.Write(o.w.Bytes())
	return err
}

func sideOf(s compare.Side) side {
	out := side{Name: s.Name, Created: s.Header.Created, Facts: s.Header.Facts}
	if out.Facts == nil {
		out.Facts = facts.Facts{}
	}
	return out
}

func differenceOf(d compare.Difference) difference {
	out := difference{Name: d.Name}
	if d.A != "" {
		out.A = &d.A
	}
	if d.B != "" {
		out.B = &d.B
	}
	return out
}

func summaryOf(s stat.Summary) summary {
	return summary{s.N, number(s.Median), number(s.Low), number(s.High), number(s.Confidence)}
}

func matchOf(m compare.Match) pairCell {
	return pairCell{
		Profile: m.Profile, ProfileA: m.Baseline, Path: m.Path, Workload: m.Workload.String(), Metric: m.Metric, Unit: m.A.Unit,
		A: summaryOf(m.A.Summary), B: summaryOf(m.B.Summary), FailedA: m.A.Failed, FailedB: m.B.Failed,
		Ratio: number(m.Ratio), Low: number(m.Low), High: number(m.High), Confidence: number(m.Confidence),
		P: number(m.P), Adjusted: number(m.Adjusted), Family: m.Family, Test: string(m.Test),
		Floor: number(m.Floor), FloorMeasured: m.FloorMeasured, Drift: number(m.Drift), Verdict: string(m.Verdict), Need: m.Need,
	}
}

func keyOf(k compare.Key) caseKey {
	return caseKey{k.Profile, k.Path, k.Workload.String(), k.Metric}
}

func heldOf(h report.Held) held {
	out := held{Budget: h.Text, Metric: h.Metric, Relative: h.Relative, Limit: number(h.Limit), State: string(h.State()), Cells: []heldCell{}}
	for _, x := range h.Holdings {
		out.Cells = append(out.Cells, heldCell{
			Profile: x.Profile, ProfileA: x.Baseline, Path: x.Path, Workload: x.Workload.String(), State: string(x.State),
			Low: number(x.Low), High: number(x.High), P: number(x.P), Adjusted: number(x.Adjusted), Need: x.More, Why: x.Why,
		})
	}
	return out
}

type historyRun struct {
	Name    string       `json:"name"`
	Created time.Time    `json:"created"`
	Changed []difference `json:"changed"`
}

type shift struct {
	// Run is the index of the first run of the new level, from 0.
	Run        int    `json:"run"`
	Ratio      number `json:"ratio"`
	Low        number `json:"low"`
	High       number `json:"high"`
	Confidence number `json:"confidence"`
	P          number `json:"p"`
	Adjusted   number `json:"p_adjusted"`
	Verdict    string `json:"verdict"`
}

type track struct {
	Profile  plan.Variant `json:"profile"`
	Path     plan.Path    `json:"path"`
	Workload string       `json:"workload"`
	Metric   string       `json:"metric"`
	Unit     string       `json:"unit"`
	Floor    number       `json:"floor"`
	Wander   number       `json:"wander"`
	Points   []summary    `json:"points"`
	Changes  []shift      `json:"changes"`
}

// renderHistory writes a history, schema "cnibench.history/v1": the keys schema, runs and cells.
func renderHistory(w io.Writer, h *compare.History) error {
	var b bytes.Buffer
	o := object{w: &b}
	o.key("schema", HistorySchema)
	list(&o, "runs", h.Runs, func(r compare.HistoryRun) any {
		out := historyRun{Name: r.Name, Created: r.Created, Changed: []difference{}}
		for _, d := range r.Changed {
			out.Changed = append(out.Changed, differenceOf(d))
		}
		return out
	})
	list(&o, "cells", h.Tracks, func(t compare.Track) any { return trackOf(t) })
	return o.writeTo(w)
}

func trackOf(t compare.Track) track {
	out := track{
		Profile: t.Profile, Path: t.Path, Workload: t.Workload.String(), Metric: t.Metric, Unit: t.Unit,
		Floor: number(t.Floor), Wander: number(t.Wander), Points: []summary{}, Changes: []shift{},
	}
	for _, p := range t.Points {
		out.Points = append(out.Points, summaryOf(p))
	}
	for _, c := range t.Changes {
		out.Changes = append(out.Changes, shift{c.Run, number(c.Ratio), number(c.Low), number(c.High), number(c.Confidence), number(c.Share), number(c.Adjusted), string(c.Verdict)})
	}
	return out
}
