package report

import (
	"slices"

	"github.com/cnibench/cnibench/internal/compare"
	"github.com/cnibench/cnibench/internal/metric"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
)

// Need is the standing of the profiles under one workload on the path and in the metric that the answer speaks of.
type Need struct {
	Workload plan.Workload
	Path     plan.Path
	Metric   metric.Metric
	// Standings are best first; there is at least one.
	Standings []compare.Standing
	// Pick is the index of the first that is a dataplane: raw and host are what lies under one, and nobody's choice. It
	// is 0 where there are no others.
	Pick int
	// Near names the other dataplanes that are not told apart from the pick.
	Near []string
}

// needs has the standings that the answer is made of, one per workload.
func (b *builder) needs(cut []compare.Table, metrics []metric.Metric) []Need {
	path, ok := b.mainPath(cut)
	if !ok {
		return nil
	}
	among := *b.analysis // the same, but for who is asked for
	among.Profiles = slices.DeleteFunc(slices.Clone(among.Profiles), func(p string) bool { return !dataplane(p) })
	var out []Need
	for _, w := range b.analysis.Workloads {
		for _, m := range metrics {
			ranks := b.analysis.Rank(path, w, m.Name)
			if len(ranks) == 0 {
				continue
			}
			pick := slices.IndexFunc(ranks, func(s compare.Standing) bool { return dataplane(s.Cell.Profile) })
			n := Need{Workload: w, Path: path, Metric: m, Standings: ranks, Pick: max(0, pick)}
			if pick >= 0 {
				rest := among.Rank(path, w, m.Name)
				n.Near = untold(rest[1:], func(s compare.Standing) compare.Verdict { return s.ToBest.Verdict }, compare.Worse)
			}
			out = append(out, n)
			break
		}
	}
	return out
}

func dataplane(name string) bool { return name != profile.Raw && name != profile.Host }
