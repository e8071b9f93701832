package report

import (
	"time"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Schemas of the JSON of a comparison and of a history.
const (
	pairSchema    = "cnibench.compare/v1"
	historySchema = "cnibench.history/v1"
)

type sideData struct {
	Name    string      `json:"name"`
	Created time.Time   `json:"created"`
	Facts   facts.Facts `json:"facts"`
}

type differenceData struct {
	Name string `json:"name"`
	// A and B are null if nothing is recorded.
	A *string `json:"a"`
	B *string `json:"b"`
}

// pairCell is the comparison of one cell of B with A as JSON.
type pairCell struct {
	compare.Key
	// ProfileA is the profile of A with which B's profile was compared.
	ProfileA plan.Variant `json:"profile_a"`
	Unit     string       `json:"unit"`
	A        stat.Summary `json:"a"`
	B        stat.Summary `json:"b"`
	FailedA  int          `json:"failed_a"`
	FailedB  int          `json:"failed_b"`
	stat.Effect
	Adjusted float64 `json:"p_adjusted"`
	Family   int     `json:"family"`
	Widened  float64 `json:"widened"`
	Beyond   float64 `json:"p_beyond"`
	// QuotientTo is the baseline that both results measured; "" if there is none. Plain is the ratio of the values.
	// Quotient is their ratio after each was divided by its baseline's value; null without a common baseline.
	QuotientTo plan.Variant `json:"quotient_to"`
	Plain      ratioData    `json:"plain"`
	Quotient   *ratioData   `json:"quotient"`
	// Yardstick is true for a cell of the common baseline itself, which is not judged.
	Yardstick bool `json:"yardstick"`
	// Verdict is better or worse only if Plain and Quotient agree.
	Verdict compare.Verdict `json:"verdict"`
	Need    int             `json:"need"`
}

type ratioData struct {
	Ratio float64 `json:"ratio"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

type heldCell struct {
	compare.Key
	ProfileA plan.Variant  `json:"profile_a"`
	State    compare.State `json:"state"`
	// Low and High are one-sided bounds: of the ratio, or of the value if the budget is not relative.
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
	P        float64 `json:"p"`
	Adjusted float64 `json:"p_adjusted"`
	Need     int     `json:"need"`
	Why      string  `json:"why"`
}

type heldData struct {
	Budget   string        `json:"budget"`
	Metric   string        `json:"metric"`
	Relative bool          `json:"relative"`
	Limit    float64       `json:"limit"`
	State    compare.State `json:"state"`
	Cells    []heldCell    `json:"cells"`
}

// pairData is the comparison of two results, schema "cnibench.compare/v1".
type pairData struct {
	Schema string `json:"schema"`
	// State is the outcome for the exit code.
	State compare.State `json:"state"`
	// Margin is the largest relative difference that does not matter.
	Margin      float64          `json:"margin"`
	A           sideData         `json:"a"`
	B           sideData         `json:"b"`
	Differences []differenceData `json:"differences"`
	Budgets     []heldData       `json:"budgets"`
	Cells       []pairCell       `json:"cells"`
	// OnlyA and OnlyB are the cells that only one result has. The metric "" means all cells of a case.
	OnlyA []compare.Key `json:"only_a"`
	OnlyB []compare.Key `json:"only_b"`
}

func pairOf(p PairResult) pairData {
	return pairData{
		Schema: pairSchema, State: p.State, Margin: p.Margin, A: sideOf(p.A), B: sideOf(p.B),
		Differences: each.Of(p.Differences, differenceOf), Budgets: each.Of(p.Held, heldOf), Cells: each.Of(p.Matches, matchOf),
		OnlyA: p.OnlyA, OnlyB: p.OnlyB,
	}
}

func sideOf(s compare.Side) sideData {
	return sideData{Name: s.Name, Created: s.Header.Created, Facts: nonNilFacts(s.Header.Facts)}
}

func differenceOf(d compare.Difference) differenceData {
	out := differenceData{Name: d.Name}
	if d.A != "" {
		out.A = &d.A
	}
	if d.B != "" {
		out.B = &d.B
	}
	return out
}

func matchOf(m compare.Match) pairCell {
	var quotient *ratioData
	if !m.Common.IsZero() {
		quotient = &ratioData{m.Quotient.Ratio, m.Quotient.Low, m.Quotient.High}
	}
	return pairCell{
		Key: m.Key, ProfileA: m.Baseline, Unit: m.A.Unit, A: m.A.Summary, B: m.B.Summary, FailedA: m.A.Failed, FailedB: m.B.Failed,
		Effect: m.Effect, Adjusted: m.Adjusted, Family: m.Family, Widened: m.Widened, Beyond: m.Beyond,
		QuotientTo: m.Common, Plain: ratioData{m.Plain.Ratio, m.Plain.Low, m.Plain.High}, Quotient: quotient, Yardstick: m.Yardstick,
		Verdict: m.Verdict, Need: m.Need,
	}
}

func heldOf(h Held) heldData {
	return heldData{Budget: h.Text, Metric: h.Metric, Relative: h.Relative, Limit: h.Limit, State: h.State(), Cells: each.Of(h.Holdings, func(x compare.Holding) heldCell {
		return heldCell{Key: x.Key, ProfileA: x.Baseline, State: x.State, Low: x.Low, High: x.High, P: x.P, Adjusted: x.Adjusted, Need: x.More, Why: x.Why}
	})}
}

type historyRunData struct {
	Name    string           `json:"name"`
	Created time.Time        `json:"created"`
	Changed []differenceData `json:"changed"`
}

type shiftData struct {
	compare.Shift
	// P is the p value of the change, by shuffling. In the JSON it replaces the rank test's p value of Shift.
	P float64 `json:"p"`
}

type trackData struct {
	compare.Track
	Changes []shiftData `json:"changes"`
}

// historyData is the JSON of a history, schema "cnibench.history/v1".
type historyData struct {
	Schema string           `json:"schema"`
	Runs   []historyRunData `json:"runs"`
	Cells  []trackData      `json:"cells"`
}

// Lined returns h.
func (h historyData) Lined() any { return h }

func historyRunOf(r compare.HistoryRun) historyRunData {
	return historyRunData{Name: r.Name, Created: r.Created, Changed: each.Of(r.Changed, differenceOf)}
}

func trackOf(t compare.Track) trackData {
	return trackData{t, each.Of(t.Changes, func(c compare.Shift) shiftData { return shiftData{c, c.Share} })}
}
