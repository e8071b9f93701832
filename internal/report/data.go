package report

import (
	"cmp"
	"time"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

type runData struct {
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

type cellData struct {
	compare.Cell
	// NIC is the NIC model under which the lab sent bulk data; "" for other data and outside the lab.
	NIC plan.NIC `json:"nic,omitempty"`
	// Samples are the values in the order of the repetitions.
	Samples []float64 `json:"samples"`
	// Undisturbed is the estimate from undisturbed values, if comparisons use these. Cell then has the estimate from whole
	// windows. It is absent if comparisons use whole windows.
	Undisturbed *undisturbedData `json:"undisturbed,omitempty"`
}

type undisturbedData struct {
	Value  float64 `json:"value"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	N      int     `json:"n"`
	Slices int     `json:"slices"`
}

func dataOfCells(a *compare.Analysis) []cellData {
	return each.Of(a.Cells, func(c compare.Cell) cellData {
		out := dataOfCell(c)
		out.NIC = a.NIC(c.Case)
		return out
	})
}

func dataOfCell(c compare.Cell) cellData {
	out := cellData{Cell: c}
	if c.Typical != nil {
		out.Undisturbed = &undisturbedData{c.Median, c.Low, c.High, c.N, c.Slices}
		out.Estimate = *c.Typical
	}
	out.Samples = out.Values()
	return out
}

type comparisonData struct {
	compare.Comparison
	// BaselinePath equals Path unless another path of the baseline replaced it.
	BaselinePath plan.Path `json:"baseline_path"`
}

// ReportSchema names the JSON format of the report of one result.
const ReportSchema = "cnibench.report/v1"

// ReportData is the JSON report of one result, schema ReportSchema. Each of Subjects becomes a further member.
type ReportData struct {
	Schema      string           `json:"schema"`
	Run         runData          `json:"run"`
	Facts       facts.Facts      `json:"facts"`
	Profiles    []result.Profile `json:"profiles"`
	Margin      float64          `json:"margin"`
	NoiseFloor  []compare.Floor  `json:"noise_floor"`
	Cells       []cellData       `json:"cells"`
	Comparisons []comparisonData `json:"comparisons"`
	Subjects    []Subject        `json:"-"`
}

// Subjects returns the members that pages add to the JSON report, with empty values.
func Subjects() []Subject {
	b := newBuilder(result.Header{}, &compare.Analysis{}, &Collector{}, nil)
	var all []Subject
	for _, of := range pages {
		all = append(all, of(b).subjects...)
	}
	return all
}

// Lined is data whose JSON has one line for each element of a list, and null for a number that is not finite.
type Lined interface {
	// Lined returns a struct; each member is a value or a list.
	Lined() any
}

// Lined returns the ReportData of the result.
func (d Document) Lined() any {
	a := cmp.Or(d.Analysis, &compare.Analysis{})
	r := d.Run
	return ReportData{
		Schema: ReportSchema, Facts: nonNilFacts(d.Facts), Profiles: d.Profiles, Run: runData{
			Name: r.Plan.Name, Environment: r.Plan.Environment, Origin: r.Origin, Created: r.Created, Seed: r.Plan.Seed, Baseline: a.Baseline,
			Repetitions: r.Plan.Repetitions, MaxRepetitions: max(r.Plan.Repetitions, r.Plan.MaxRepetitions),
			Reason: r.Reason, Trials: r.Trials, Failed: r.Failed,
			WallSeconds: r.Wall.Seconds(), WindowSeconds: r.Windows.Seconds(), Command: r.Command,
		},
		Margin: a.Margin, NoiseFloor: a.Floors, Comparisons: each.Of(a.Comparisons, dataOfComparison), Cells: dataOfCells(a), Subjects: d.subjects,
	}
}

// nonNilFacts returns f, or an empty map if f is nil, so that JSON has no null.
func nonNilFacts(f facts.Facts) facts.Facts {
	if f == nil {
		return facts.Facts{}
	}
	return f
}

func dataOfComparison(c compare.Comparison) comparisonData {
	if c.BaselinePath == (plan.Path{}) {
		c.BaselinePath = c.Path
	}
	return comparisonData{c, c.BaselinePath}
}
