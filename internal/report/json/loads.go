package json

import (
	"math"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
)

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
