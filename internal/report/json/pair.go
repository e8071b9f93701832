package json

import (
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
	Median     Number `json:"median"`
	Low        Number `json:"low"`
	High       Number `json:"high"`
	Confidence Number `json:"confidence"`
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
	Ratio         Number       `json:"ratio"`
	Low           Number       `json:"low"`
	High          Number       `json:"high"`
	Confidence    Number       `json:"confidence"`
	P             Number       `json:"p"`
	Adjusted      Number       `json:"p_adjusted"`
	Family        int          `json:"family"`
	Test          string       `json:"test"`
	Floor         Number       `json:"floor"`
	FloorMeasured bool         `json:"floor_measured"`
	// Drift is what other profiles differ by too, 0 if the two results' conditions differ.
	Drift   Number `json:"drift"`
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
	Low      Number `json:"low"`
	High     Number `json:"high"`
	P        Number `json:"p"`
	Adjusted Number `json:"p_adjusted"`
	Need     int    `json:"need"`
	Why      string `json:"why"`
}

type held struct {
	Budget   string     `json:"budget"`
	Metric   string     `json:"metric"`
	Relative bool       `json:"relative"`
	Limit    Number     `json:"limit"`
	State    string     `json:"state"`
	Cells    []heldCell `json:"cells"`
}

// pair is what two results show side by side, schema "cnibench.compare/v1".
type pair struct {
	Schema string `json:"schema"`
	// State is the outcome that the exit code stands for.
	State       compare.State `json:"state"`
	A           side          `json:"a"`
	B           side          `json:"b"`
	Differences []difference  `json:"differences"`
	Budgets     []held        `json:"budgets"`
	Cells       []pairCell    `json:"cells"`
	OnlyA       []caseKey     `json:"only_a"`
	OnlyB       []caseKey     `json:"only_b"`
}

func renderPair(w io.Writer, p report.PairResult) error {
	return write(w, pair{
		Schema: PairSchema, State: p.State, A: sideOf(p.A), B: sideOf(p.B),
		Differences: each(p.Differences, differenceOf), Budgets: each(p.Held, heldOf), Cells: each(p.Matches, matchOf),
		OnlyA: each(p.OnlyA, keyOf), OnlyB: each(p.OnlyB, keyOf),
	})
}

func sideOf(s compare.Side) side {
	return side{Name: s.Name, Created: s.Header.Created, Facts: recorded(s.Header.Facts)}
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
	return summary{s.N, Number(s.Median), Number(s.Low), Number(s.High), Number(s.Confidence)}
}

func matchOf(m compare.Match) pairCell {
	return pairCell{
		Profile: m.Profile, ProfileA: m.Baseline, Path: m.Path, Workload: m.Workload.String(), Metric: m.Metric, Unit: m.A.Unit,
		A: summaryOf(m.A.Summary), B: summaryOf(m.B.Summary), FailedA: m.A.Failed, FailedB: m.B.Failed,
		Ratio: Number(m.Ratio), Low: Number(m.Low), High: Number(m.High), Confidence: Number(m.Confidence),
		P: Number(m.P), Adjusted: Number(m.Adjusted), Family: m.Family, Test: string(m.Test),
		Floor: Number(m.Floor), FloorMeasured: m.FloorMeasured, Drift: Number(m.Drift), Verdict: string(m.Verdict), Need: m.Need,
	}
}

func keyOf(k compare.Key) caseKey {
	return caseKey{k.Profile, k.Path, k.Workload.String(), k.Metric}
}

func heldOf(h report.Held) held {
	return held{Budget: h.Text, Metric: h.Metric, Relative: h.Relative, Limit: Number(h.Limit), State: string(h.State()), Cells: each(h.Holdings, heldCellOf)}
}

func heldCellOf(x compare.Holding) heldCell {
	return heldCell{
		Profile: x.Profile, ProfileA: x.Baseline, Path: x.Path, Workload: x.Workload.String(), State: string(x.State),
		Low: Number(x.Low), High: Number(x.High), P: Number(x.P), Adjusted: Number(x.Adjusted), Need: x.More, Why: x.Why,
	}
}

type historyRun struct {
	Name    string       `json:"name"`
	Created time.Time    `json:"created"`
	Changed []difference `json:"changed"`
}

type shift struct {
	// Run is the index of the first run of the new level, from 0.
	Run        int    `json:"run"`
	Ratio      Number `json:"ratio"`
	Low        Number `json:"low"`
	High       Number `json:"high"`
	Confidence Number `json:"confidence"`
	P          Number `json:"p"`
	Adjusted   Number `json:"p_adjusted"`
	Verdict    string `json:"verdict"`
}

type track struct {
	Profile  plan.Variant `json:"profile"`
	Path     plan.Path    `json:"path"`
	Workload string       `json:"workload"`
	Metric   string       `json:"metric"`
	Unit     string       `json:"unit"`
	Floor    Number       `json:"floor"`
	Wander   Number       `json:"wander"`
	Points   []summary    `json:"points"`
	Changes  []shift      `json:"changes"`
}

// history is schema "cnibench.history/v1".
type history struct {
	Schema string       `json:"schema"`
	Runs   []historyRun `json:"runs"`
	Cells  []track      `json:"cells"`
}

func renderHistory(w io.Writer, h *compare.History) error {
	return write(w, history{Schema: HistorySchema, Runs: each(h.Runs, historyRunOf), Cells: each(h.Tracks, trackOf)})
}

func historyRunOf(r compare.HistoryRun) historyRun {
	return historyRun{Name: r.Name, Created: r.Created, Changed: each(r.Changed, differenceOf)}
}

func trackOf(t compare.Track) track {
	return track{
		Profile: t.Profile, Path: t.Path, Workload: t.Workload.String(), Metric: t.Metric, Unit: t.Unit,
		Floor: Number(t.Floor), Wander: Number(t.Wander), Points: each(t.Points, summaryOf), Changes: each(t.Changes, shiftOf),
	}
}

func shiftOf(c compare.Shift) shift {
	return shift{c.Run, Number(c.Ratio), Number(c.Low), Number(c.High), Number(c.Confidence), Number(c.Share), Number(c.Adjusted), string(c.Verdict)}
}
