// Package json writes a report for programs: the stable interface of cnibench, schema "cnibench.report/v1".
//
// The object has the keys schema, run, facts, profiles, noise_floor, cells and comparisons, in this order, and load_curves
// where workloads were loaded to shares of their capacity; cells and
// comparisons are ordered by metric, workload, path, profile, each on a line of its own. Values are in the base units
// of package metric, times in seconds where the key says so. What could not be computed is null, never 0, NaN or a
// missing key. Paths and workloads are the words of the command line. Keys may be added within this schema; none is
// removed or changes its meaning.
package json

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
)

// Schema names this version of the format.
const Schema = "cnibench.report/v1"

// number is a float64 that is null where it is not finite.
type number float64

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

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

type warning struct {
	ID      string `json:"id"`
	Message string `json:"message"`
	// Trials is how many trials raised it; 0 for a doubt about the cell as a whole.
	Trials int `json:"trials"`
}

type cell struct {
	Profile    plan.Variant `json:"profile"`
	Path       plan.Path    `json:"path"`
	Workload   string       `json:"workload"`
	Metric     string       `json:"metric"`
	Unit       string       `json:"unit"`
	N          int          `json:"n"`
	Median     number       `json:"median"`
	Low        number       `json:"low"`
	High       number       `json:"high"`
	Confidence number       `json:"confidence"`
	Samples    []number     `json:"samples"`
	Warnings   []warning    `json:"warnings"`
	Failed     int          `json:"failed"`
}

type comparison struct {
	Profile  plan.Variant `json:"profile"`
	Baseline plan.Variant `json:"baseline"`
	Path     plan.Path    `json:"path"`
	Workload string       `json:"workload"`
	Metric   string       `json:"metric"`
	Ratio    number       `json:"ratio"`
	Low      number       `json:"low"`
	High     number       `json:"high"`
	P        number       `json:"p"`
	Verdict  string       `json:"verdict"`
	// BaselinePath is Path but where another path of the baseline stood in.
	BaselinePath plan.Path `json:"baseline_path"`
	Confidence   number    `json:"confidence"`
	N            int       `json:"n"`
	Test         string    `json:"test"`
	Floor        number    `json:"floor"`
	// Need is about how many more repetitions would decide an inconclusive verdict.
	Need int `json:"need"`
	// Adjusted is P corrected for the family of the comparison, of Family members.
	Adjusted number `json:"p_adjusted"`
	Family   int    `json:"family"`
}

type twin struct {
	Path  plan.Path `json:"path"`
	Ratio number    `json:"ratio"`
	Low   number    `json:"low"`
	High  number    `json:"high"`
	P     number    `json:"p"`
	N     int       `json:"n"`
}

type floor struct {
	Workload string `json:"workload"`
	Metric   string `json:"metric"`
	Floor    number `json:"floor"`
	Measured bool   `json:"measured"`
	Twins    []twin `json:"twins"`
}

// Render writes d: its data, if it has any, or else its analysis.
func Render(w io.Writer, d report.Document) error {
	switch v := d.Data.(type) {
	case nil:
		return renderReport(w, d)
	case report.PairResult:
		return renderPair(w, v)
	case *compare.History:
		return renderHistory(w, v)
	default:
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(v)
	}
}

// renderReport writes the analysis of one result, schema "cnibench.report/v1".
func renderReport(w io.Writer, d report.Document) error {
	a := d.Analysis
	if a == nil {
		a = &compare.Analysis{}
	}
	var b bytes.Buffer
	o := object{w: &b}
	o.key("schema", Schema)
	o.key("run", runOf(d.Run, a.Baseline))
	if d.Facts == nil {
		d.Facts = facts.Facts{}
	}
	o.key("facts", d.Facts)
	list(&o, "profiles", d.Profiles, func(p result.Profile) any { return p })
	list(&o, "noise_floor", a.Floors, func(f compare.Floor) any { return floorOf(f) })
	list(&o, "cells", a.Cells, func(c compare.Cell) any { return cellOf(c) })
	list(&o, "comparisons", a.Comparisons, func(c compare.Comparison) any { return comparisonOf(c) })
	if curves := loadCurves(d.Loads); curves != nil {
		list(&o, "load_curves", curves, func(c loadCurve) any { return c })
	}
	return o.writeTo(w)
}

func runOf(r report.Run, baseline plan.Variant) run {
	return run{
		Name: r.Plan.Name, Environment: r.Plan.Environment, Origin: r.Origin, Created: r.Created, Seed: r.Plan.Seed, Baseline: baseline,
		Repetitions: r.Plan.Repetitions, MaxRepetitions: max(r.Plan.Repetitions, r.Plan.MaxRepetitions),
		Reason: r.Reason, Trials: r.Trials, Failed: r.Failed,
		WallSeconds: r.Wall.Seconds(), WindowSeconds: r.Windows.Seconds(), Command: r.Command,
	}
}

func cellOf(c compare.Cell) cell {
	out := cell{
		Profile: c.Profile, Path: c.Path, Workload: c.Workload.String(), Metric: c.Metric, Unit: c.Unit,
		N: c.N, Median: number(c.Median), Low: number(c.Low), High: number(c.High), Confidence: number(c.Confidence),
		Samples: []number{}, Warnings: []warning{}, Failed: c.Failed,
	}
	for _, s := range c.Samples {
		out.Samples = append(out.Samples, number(s.Value))
	}
	for _, w := range c.Warnings {
		out.Warnings = append(out.Warnings, warning(w))
	}
	return out
}

func comparisonOf(c compare.Comparison) comparison {
	out := comparison{
		Profile: c.Profile, Baseline: c.Baseline, Path: c.Path, Workload: c.Workload.String(), Metric: c.Metric,
		Ratio: number(c.Ratio), Low: number(c.Low), High: number(c.High), P: number(c.P), Verdict: string(c.Verdict),
		BaselinePath: c.Path, Confidence: number(c.Confidence), N: c.N, Test: string(c.Test), Floor: number(c.Floor), Need: c.Need,
		Adjusted: number(c.Adjusted), Family: c.Family,
	}
	if c.BaselinePath != (plan.Path{}) {
		out.BaselinePath = c.BaselinePath
	}
	return out
}

func floorOf(f compare.Floor) floor {
	out := floor{Workload: f.Workload.String(), Metric: f.Metric, Floor: number(f.Share), Measured: f.Measured, Twins: []twin{}}
	for _, t := range f.Twins {
		out.Twins = append(out.Twins, twin{t.Path, number(t.Ratio), number(t.Low), number(t.High), number(t.P), t.N})
	}
	return out
}

// object writes the members of one JSON object as they come. The first error stays.
type object struct {
	w     *bytes.Buffer
	began bool
	err   error
}

// line marshals v without a line break and without the escapes that only HTML needs.
func (o *object) line(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil && o.err == nil {
		o.err = fmt.Errorf("report as JSON: %w", err)
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// name begins a member.
func (o *object) name(k string) {
	sep := ",\n  "
	if !o.began {
		sep, o.began = "{\n  ", true
	}
	fmt.Fprintf(o.w, "%s%q: ", sep, k)
}

func (o *object) key(k string, v any) {
	o.name(k)
	o.w.WriteString(o.line(v))
}

func (o *object) end() { o.w.WriteString("\n}\n") }

// list writes a member that is an array, one element a line.
func list[T any](o *object, k string, xs []T, as func(T) any) {
	o.name(k)
	o.w.WriteString("[")
	for i, x := range xs {
		sep := ",\n    "
		if i == 0 {
			sep = "\n    "
		}
		o.w.WriteString(sep + o.line(as(x)))
	}
	if len(xs) > 0 {
		o.w.WriteString("\n  ")
	}
	o.w.WriteString("]")
}
