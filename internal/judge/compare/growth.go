package compare

import (
	"slices"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// GrowthFamily describes how one metric grows with the swept condition, on a path under a workload. It has a curve for
// each profile.
type GrowthFamily struct {
	// Path and Workload are zero for the cost of an instance's state.
	Path     plan.Path
	Workload plan.Workload
	Metric   metric.Metric
	// Unit is the base unit of all values.
	Unit string
	// Lines are in report order, without skipped profiles.
	Lines []GrowthLine
	// Crossings has the relation of each two lines, unless it is unclear. First is the earlier line in report order.
	Crossings []Crossing
}

// OfState reports whether f is about the cost of an instance's state.
func (f GrowthFamily) OfState() bool { return f.Workload.Spec == nil }

// GrowthLine is the curve of one profile.
type GrowthLine struct {
	// Profile is the plan's profile, without the swept condition.
	Profile plan.Variant
	stat.Curve
}

// Crossing is the relation between two curves.
type Crossing struct {
	First, Second plan.Variant
	Relation      stat.Relation
	stat.Crossing
}

// Growth returns the families of a run with a sweep, nil for any other run: first the headline metrics of which less is
// better, by metric, workload and path, then the costs of states.
func (a *Analysis) Growth(p plan.Plan, states []result.Raised) []GrowthFamily {
	swept := p.Swept()
	if swept == nil {
		return nil
	}
	var out []GrowthFamily
	for _, m := range metric.All() {
		if !m.Headline || m.Better != metric.Lower {
			continue
		}
		for _, w := range a.Workloads {
			for _, path := range a.Paths {
				f := GrowthFamily{Path: path, Workload: w, Metric: m}
				f.addCurves(a, p, swept, func(v plan.Variant) (stat.Point, bool) {
					c, ok := a.Cell(Key{Case: plan.Case{Profile: v, Path: path, Workload: w}, Metric: m.Name})
					f.Unit = max(f.Unit, c.Unit)
					p := stat.Point{Summary: c.Summary}
					if c.Instances > 1 { // with one instance there are only the trials
						p.Instances = c.Instances
					}
					return p, ok && c.N > 0 && !c.Failing()
				})
				out = append(out, f)
			}
		}
	}
	for _, name := range metric.States {
		m, _ := metric.Lookup(name)
		f := GrowthFamily{Metric: m, Unit: m.Unit}
		f.addCurves(a, p, swept, func(v plan.Variant) (stat.Point, bool) {
			var values []float64
			for _, s := range states {
				if x, ok := s.Metrics[name]; ok && s.Profile == v {
					values = append(values, x)
				}
			}
			return stat.Point{Summary: stat.Summarize(values, a.Confidence)}, len(values) > 0
		})
		out = append(out, f)
	}
	return slices.DeleteFunc(out, func(f GrowthFamily) bool { return len(f.Lines) == 0 })
}

// addCurves adds a curve for each swept profile with at least two points, and the crossings of each two curves. value
// returns the point of a variant; ok is false without a number.
func (f *GrowthFamily) addCurves(a *Analysis, p plan.Plan, swept []plan.Swept, value func(plan.Variant) (stat.Point, bool)) {
	for _, s := range swept {
		var points []stat.Point
		for i, v := range s.Variants {
			if point, ok := value(v); ok {
				point.X = float64(p.Sweep.Points[i])
				points = append(points, point)
			}
		}
		if len(points) > 1 {
			f.Lines = append(f.Lines, GrowthLine{s.Of, stat.Grow(points, a.Confidence, a.Margin)})
		}
	}
	for i, first := range f.Lines {
		for _, second := range f.Lines[i+1:] {
			if how, at := stat.Cross(first.Curve, second.Curve, a.Confidence); how != stat.Unclear {
				f.Crossings = append(f.Crossings, Crossing{first.Profile, second.Profile, how, at})
			}
		}
	}
}
