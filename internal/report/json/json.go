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
	"reflect"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
)

// Schema names this version of the format.
const Schema = "cnibench.report/v1"

// Number is a float64 that is null where it is not finite.
type Number float64

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
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
	Median     Number       `json:"median"`
	Low        Number       `json:"low"`
	High       Number       `json:"high"`
	Confidence Number       `json:"confidence"`
	Samples    []Number     `json:"samples"`
	Warnings   []warning    `json:"warnings"`
	Failed     int          `json:"failed"`
}

type comparison struct {
	Profile  plan.Variant `json:"profile"`
	Baseline plan.Variant `json:"baseline"`
	Path     plan.Path    `json:"path"`
	Workload string       `json:"workload"`
	Metric   string       `json:"metric"`
	Ratio    Number       `json:"ratio"`
	Low      Number       `json:"low"`
	High     Number       `json:"high"`
	P        Number       `json:"p"`
	Verdict  string       `json:"verdict"`
	// BaselinePath is Path but where another path of the baseline stood in.
	BaselinePath plan.Path `json:"baseline_path"`
	Confidence   Number    `json:"confidence"`
	N            int       `json:"n"`
	Test         string    `json:"test"`
	Floor        Number    `json:"floor"`
	// Need is about how many more repetitions would decide an inconclusive verdict.
	Need int `json:"need"`
	// Adjusted is P corrected for the family of the comparison, of Family members.
	Adjusted Number `json:"p_adjusted"`
	Family   int    `json:"family"`
}

type twin struct {
	Path  plan.Path `json:"path"`
	Ratio Number    `json:"ratio"`
	Low   Number    `json:"low"`
	High  Number    `json:"high"`
	P     Number    `json:"p"`
	N     int       `json:"n"`
}

type floor struct {
	Workload string `json:"workload"`
	Metric   string `json:"metric"`
	Floor    Number `json:"floor"`
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

// Report is the analysis of one result, schema "cnibench.report/v1".
type Report struct {
	Schema      string           `json:"schema"`
	Run         run              `json:"run"`
	Facts       facts.Facts      `json:"facts"`
	Profiles    []result.Profile `json:"profiles"`
	NoiseFloor  []floor          `json:"noise_floor"`
	Cells       []cell           `json:"cells"`
	Comparisons []comparison     `json:"comparisons"`
	LoadCurves  []loadCurve      `json:"load_curves,omitempty"`
}

func renderReport(w io.Writer, d report.Document) error {
	a := d.Analysis
	if a == nil {
		a = &compare.Analysis{}
	}
	return write(w, Report{
		Schema: Schema, Run: runOf(d.Run, a.Baseline), Facts: recorded(d.Facts), Profiles: d.Profiles,
		NoiseFloor: each(a.Floors, floorOf), Cells: each(a.Cells, cellOf), Comparisons: each(a.Comparisons, comparisonOf),
		LoadCurves: loadCurves(d.Loads),
	})
}

// recorded returns facts that are never null.
func recorded(f facts.Facts) facts.Facts {
	if f == nil {
		return facts.Facts{}
	}
	return f
}

// each returns what as makes of every element.
func each[T, U any](xs []T, as func(T) U) []U {
	out := make([]U, len(xs))
	for i, x := range xs {
		out[i] = as(x)
	}
	return out
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
		N: c.N, Median: Number(c.Median), Low: Number(c.Low), High: Number(c.High), Confidence: Number(c.Confidence),
		Samples: []Number{}, Warnings: []warning{}, Failed: c.Failed,
	}
	for _, s := range c.Samples {
		out.Samples = append(out.Samples, Number(s.Value))
	}
	for _, w := range c.Warnings {
		out.Warnings = append(out.Warnings, warning(w))
	}
	return out
}

func comparisonOf(c compare.Comparison) comparison {
	out := comparison{
		Profile: c.Profile, Baseline: c.Baseline, Path: c.Path, Workload: c.Workload.String(), Metric: c.Metric,
		Ratio: Number(c.Ratio), Low: Number(c.Low), High: Number(c.High), P: Number(c.P), Verdict: string(c.Verdict),
		BaselinePath: c.Path, Confidence: Number(c.Confidence), N: c.N, Test: string(c.Test), Floor: Number(c.Floor), Need: c.Need,
		Adjusted: Number(c.Adjusted), Family: c.Family,
	}
	if c.BaselinePath != (plan.Path{}) {
		out.BaselinePath = c.BaselinePath
	}
	return out
}

func floorOf(f compare.Floor) floor {
	out := floor{Workload: f.Workload.String(), Metric: f.Metric, Floor: Number(f.Share), Measured: f.Measured, Twins: []twin{}}
	for _, t := range f.Twins {
		out.Twins = append(out.Twins, twin{t.Path, Number(t.Ratio), Number(t.Low), Number(t.High), Number(t.P), t.N})
	}
	return out
}

// write writes a struct as JSON: a member a line, and of a list an element a line. A nil list is empty.
func write(w io.Writer, document any) error {
	var b bytes.Buffer
	separator := "{\n  "
	v := reflect.ValueOf(document)
	for i := range v.NumField() {
		name, omitempty := strings.CutSuffix(v.Type().Field(i).Tag.Get("json"), ",omitempty")
		member := v.Field(i)
		if omitempty && member.IsZero() {
			continue
		}
		fmt.Fprintf(&b, "%s%q: ", separator, name)
		separator = ",\n  "
		if err := writeMember(&b, member); err != nil {
			return fmt.Errorf("report as JSON: %w", err)
		}
	}
	b.WriteString("\n}\n")
	_, err := w.Write(b.Bytes())
	return err
}

func writeMember(b *bytes.Buffer, member reflect.Value) error {
	if member.Kind() != reflect.Slice {
		return writeLine(b, member.Interface())
	}
	b.WriteString("[")
	for i := range member.Len() {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString("\n    ")
		if err := writeLine(b, member.Index(i).Interface()); err != nil {
			return err
		}
	}
	if member.Len() > 0 {
		b.WriteString("\n  ")
	}
	b.WriteString("]")
	return nil
}

// writeLine writes v without a line break and without the escapes that only HTML needs.
func writeLine(b *bytes.Buffer, v any) error {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	b.Truncate(len(bytes.TrimSuffix(b.Bytes(), []byte("\n"))))
	return err
}
