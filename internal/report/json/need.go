package json

import (
	"math"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// need is the answer for one need: the dataplanes best first, and those that have a function.
type need struct {
	Name     string    `json:"name"`
	Path     plan.Path `json:"path"`
	Workload string    `json:"workload"`
	Metric   string    `json:"metric"`
	// Load is what the cores of a standing are for; "" where there are none, and cores are null.
	Load      string     `json:"load,omitempty"`
	Standings []standing `json:"standings"`
	// Best is empty where the values are lower bounds, so that none is best.
	Best []best `json:"best"`
}

// best is the first profile with a function, "" for the first of all; Profile is "" if none was measured.
type best struct {
	With    string       `json:"with"`
	Profile plan.Variant `json:"profile"`
}

// standing is a profile beside the best of its need; the first has the verdict "".
type standing struct {
	Profile plan.Variant    `json:"profile"`
	Median  float64         `json:"median"`
	Cores   float64         `json:"cores"`
	Verdict compare.Verdict `json:"verdict"`
}

func needOf(n report.Need) need {
	load, ok := n.Cores()
	out := need{Name: n.Name, Path: n.Path, Workload: n.Workload.String(), Metric: n.Metric.Name, Load: load.Text}
	out.Standings = each.Of(n.Choice, func(s compare.Standing) standing {
		x := standing{Profile: s.Cell.Profile, Median: s.Cell.Median, Cores: math.NaN(), Verdict: s.ToBest.Verdict}
		if ok {
			x.Cores = load.Cores(s.Cell.Median)
		}
		return x
	})
	if out.Best = []best{}; n.Bounds {
		return out
	}
	out.Best = append(out.Best, best{"", n.Choice[0].Cell.Profile})
	for _, x := range n.Best {
		b := best{With: x.With.Name}
		if len(x.Choice) > 0 {
			b.Profile = x.Choice[0].Cell.Profile
		}
		out.Best = append(out.Best, b)
	}
	return out
}
