package json

import (
	"math"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
)

// growthCurve is a metric of one profile over a swept condition. Path and Workload are "" for what the state of an
// instance costs.
type growthCurve struct {
	Profile   plan.Variant `json:"profile"`
	Condition string       `json:"condition"`
	Path      string       `json:"path"`
	Workload  string       `json:"workload"`
	Metric    string       `json:"metric"`
	Unit      string       `json:"unit"`
	// Kind is constant, linear, logarithmic, rising or undecided.
	Kind string `json:"kind"`
	// Slope is for each unit of the condition, or with Per "doubling" for each doubling of it.
	Slope float64 `json:"slope"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	Per   string  `json:"per"`
	// Change is from the first point to the last, by the fitted law; Misfit the largest distance of a point from it, as a
	// share of the point.
	Change     float64       `json:"change"`
	ChangeLow  float64       `json:"change_low"`
	ChangeHigh float64       `json:"change_high"`
	Misfit     float64       `json:"misfit"`
	Text       string        `json:"text"`
	Points     []growthPoint `json:"points"`
}

type growthPoint struct {
	At    float64 `json:"at"`
	N     int     `json:"n"`
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// crossing says how the curves of two profiles lie to each other.
type crossing struct {
	First     plan.Variant `json:"first"`
	Second    plan.Variant `json:"second"`
	Condition string       `json:"condition"`
	Path      string       `json:"path"`
	Workload  string       `json:"workload"`
	Metric    string       `json:"metric"`
	// Relation is that of the first to the second: under, over or crosses. At, between Low and High, is null unless they
	// cross; Falls says that the first is the lower beyond.
	Relation string  `json:"relation"`
	At       float64 `json:"at"`
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
	Falls    bool    `json:"falls"`
	Text     string  `json:"text"`
}

// placeOf returns the path and the workload of curves, "" for those of states.
func placeOf(g report.Growth) (path, workload string) {
	if g.OfState() {
		return "", ""
	}
	return g.Path.String(), g.Workload.String()
}

func growthCurves(all []report.Growth) []growthCurve {
	var out []growthCurve
	for _, g := range all {
		path, workload := placeOf(g)
		for i, l := range g.Lines {
			c := growthCurve{
				Profile: l.Profile, Condition: g.Condition, Path: path, Workload: workload, Metric: g.Metric.Name, Unit: g.Unit,
				Kind: string(l.Shape), Slope: l.Slope, Low: l.Low, High: l.High, Per: "one", Change: l.Change, ChangeLow: l.ChangeLow,
				ChangeHigh: l.ChangeHigh, Misfit: l.Misfit, Text: g.Sentences[i],
			}
			if l.Doubling {
				c.Per = "doubling"
			}
			for _, p := range l.Points {
				c.Points = append(c.Points, growthPoint{p.X, p.N, p.Median, p.Low, p.High})
			}
			out = append(out, c)
		}
	}
	return out
}

func crossings(all []report.Growth) []crossing {
	var out []crossing
	for _, g := range all {
		path, workload := placeOf(g)
		for i, c := range g.Crossings {
			x := crossing{
				First: c.First, Second: c.Second, Condition: g.Condition, Path: path, Workload: workload, Metric: g.Metric.Name,
				Relation: string(c.Relation), At: c.X, Low: c.Low, High: c.High, Falls: c.Falls, Text: g.Sentences[len(g.Lines)+i],
			}
			if c.Relation != stat.Crosses {
				x.At, x.Low, x.High = math.NaN(), math.NaN(), math.NaN()
			}
			out = append(out, x)
		}
	}
	return out
}
