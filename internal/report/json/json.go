// Package json writes a report for programs: the stable interface of cnibench, schema "cnibench.report/v1".
//
// The object has the keys schema, run, facts, profiles, margin, noise_floor, cells and comparisons, in this order, and
// load_curves where workloads were loaded to shares of their capacity. Cells and comparisons are ordered by metric,
// workload, path, profile, each on a line of its own. Values are in the base units of package metric, times in seconds
// where the key says so. What could not be computed is null, never 0, NaN or a missing key. Paths and workloads are the
// words of the command line. Keys may be added within this schema; none is removed or changes its meaning. Cells,
// comparisons and floors are the values of package compare, whose tags are the keys.
package json

import (
	"encoding/json"
	"io"
	"math"
	"time"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/explain"
	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Schema names this version of the format.
const Schema = "cnibench.report/v1"

type run struct {
	Name           string       `json:"name"`
	Environment    string       `json:"environment"`
	Origin         string       `json:"origin"`
	Created        time.Time    `json:"created"`
	Seed           uint64       `json:"seed"`
	Baseline       plan.Variant `json:"baseline"`
	Repetitions    int          `json:"repetitions"`
	MaxRepetitions int          `json:"max_repetitions"`
	Reason         string       `json:"reason"`
	Trials         int          `json:"trials"`
	Failed         int          `json:"failed"`
	WallSeconds    float64      `json:"wall_seconds"`
	WindowSeconds  float64      `json:"window_seconds"`
	Command        string       `json:"command"`
}

type cell struct {
	compare.Cell
	// NIC is the NIC model under which bulk data was sent in the lab.
	NIC plan.NIC `json:"nic,omitempty"`
	// Samples are the values in the order of repetition.
	Samples []float64 `json:"samples"`
	// Undisturbed is what comparisons stand on, absent if that is the typical estimate.
	Undisturbed *undisturbed `json:"undisturbed,omitempty"`
}

type undisturbed struct {
	Value  float64 `json:"value"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	N      int     `json:"n"`
	Slices int     `json:"slices"`
}

func cellsOf(a *compare.Analysis) []cell {
	return each.Of(a.Cells, func(c compare.Cell) cell {
		out := cellOf(c)
		out.NIC = a.NIC(c.Case)
		return out
	})
}

func cellOf(c compare.Cell) cell {
	out := cell{Cell: c}
	if c.Typical != nil {
		out.Undisturbed = &undisturbed{c.Median, c.Low, c.High, c.N, c.Slices}
		out.Estimate = *c.Typical
	}
	out.Samples = out.Values()
	return out
}

type comparison struct {
	compare.Comparison
	// BaselinePath equals Path unless another path of the baseline stood in.
	BaselinePath plan.Path `json:"baseline_path"`
}

// Render writes d: its data, if it has any, or else its analysis.
func Render(w io.Writer, d report.Document) error {
	switch v := d.Data.(type) {
	case nil:
		return write(w, reportOf(d))
	case report.PairResult:
		return write(w, pairOf(v))
	case report.Explained:
		return write(w, v)
	case *compare.History:
		return write(w, history{Schema: HistorySchema, Runs: each.Of(v.Runs, historyRunOf), Cells: each.Of(v.Tracks, trackOf)})
	default:
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(v)
	}
}

// Report is the analysis of one result, schema "cnibench.report/v1".
type Report struct {
	Schema      string           `json:"schema"`
	Run         run              `json:"run"`
	Facts       facts.Facts      `json:"facts"`
	Profiles    []result.Profile `json:"profiles"`
	Margin      float64          `json:"margin"`
	NoiseFloor  []compare.Floor  `json:"noise_floor"`
	Cells       []cell           `json:"cells"`
	Comparisons []comparison     `json:"comparisons"`
	LoadCurves  []loadCurve      `json:"load_curves,omitempty"`
	// Needs are the answers, Abilities what the profiles do beside their speed.
	Needs     []need           `json:"needs,omitempty"`
	Abilities []report.Ability `json:"abilities,omitempty"`
	// Explained is where the CPU time of sampled cases goes.
	Explained []report.ExplainedProfile `json:"explained,omitempty"`
	Growth    []growthCurve             `json:"growth,omitempty"`
	Crossings []crossing                `json:"crossings,omitempty"`
}

func reportOf(d report.Document) Report {
	a := d.Analysis
	if a == nil {
		a = &compare.Analysis{}
	}
	r := d.Run
	return Report{
		Schema: Schema, Facts: recorded(d.Facts), Profiles: d.Profiles, Run: run{
			Name: r.Plan.Name, Environment: r.Plan.Environment, Origin: r.Origin, Created: r.Created, Seed: r.Plan.Seed, Baseline: a.Baseline,
			Repetitions: r.Plan.Repetitions, MaxRepetitions: max(r.Plan.Repetitions, r.Plan.MaxRepetitions),
			Reason: r.Reason, Trials: r.Trials, Failed: r.Failed,
			WallSeconds: r.Wall.Seconds(), WindowSeconds: r.Windows.Seconds(), Command: r.Command,
		},
		Margin: a.Margin, NoiseFloor: a.Floors, Comparisons: each.Of(a.Comparisons, comparisonOf), LoadCurves: loadCurves(d.Loads),
		Cells: cellsOf(a), Needs: each.Of(d.Needs, needOf), Abilities: d.Abilities,
		Explained: explained(d.Sides),
		Growth:    growthCurves(d.Growths), Crossings: crossings(d.Growths),
	}
}

// explained returns nil for a result without sampled trials.
func explained(sides []explain.Side) []report.ExplainedProfile {
	if len(sides) == 0 {
		return nil
	}
	return each.Of(sides, report.ExplainedBy)
}

// recorded returns facts that are never null.
func recorded(f facts.Facts) facts.Facts {
	if f == nil {
		return facts.Facts{}
	}
	return f
}

func comparisonOf(c compare.Comparison) comparison {
	if c.BaselinePath == (plan.Path{}) {
		c.BaselinePath = c.Path
	}
	return comparison{c, c.BaselinePath}
}

// loadCurve is the times of one profile over the load; the samples are in the cells.
type loadCurve struct {
	Profile  plan.Variant `json:"profile"`
	Path     plan.Path    `json:"path"`
	Workload string       `json:"workload"`
	Capacity float64      `json:"capacity"`
	// KneeLow and KneeHigh are loads, null where there is no knee: because the curve could not tell, or, with Flat, because
	// its times stay low up to the highest load.
	KneeLow  float64     `json:"knee_low"`
	KneeHigh float64     `json:"knee_high"`
	Flat     bool        `json:"flat"`
	Points   []loadPoint `json:"points"`
}

type loadPoint struct {
	Load    float64 `json:"load"`
	P50     float64 `json:"p50"`
	P99     float64 `json:"p99"`
	P99Low  float64 `json:"p99_low"`
	P99High float64 `json:"p99_high"`
}

// loadCurves are the curves of a document, one for each profile.
func loadCurves(curves []report.LoadCurve) []loadCurve {
	var out []loadCurve
	for _, c := range curves {
		for _, l := range c.Lines {
			out = append(out, loadCurveOf(c, l))
		}
	}
	return out
}

func loadCurveOf(c report.LoadCurve, l report.LoadLine) loadCurve {
	nan := math.NaN()
	or := func(s stat.Summary, v float64) float64 {
		if s.N == 0 {
			return nan
		}
		return v
	}
	out := loadCurve{
		Profile: l.Profile, Path: c.Path, Workload: c.Workload.String(), Capacity: l.Capacity, KneeLow: nan, KneeHigh: nan, Flat: l.Knee.None,
	}
	if l.Knee.Found && !l.Knee.None {
		out.KneeLow, out.KneeHigh = l.Knee.Low, l.Knee.High
	}
	for _, p := range l.Points {
		out.Points = append(out.Points, loadPoint{
			p.Load, or(p.Half, p.Half.Median), or(p.Tail, p.Tail.Median), or(p.Tail, p.Tail.Low), or(p.Tail, p.Tail.High),
		})
	}
	return out
}
