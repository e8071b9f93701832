package report

import (
	"fmt"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// standInCell returns the cell of the baseline p for a need whose path p lacks: the cell on the path that was measured
// instead. It returns nil if p is not the baseline, if p has the need's path, or if the cell has no value.
func (b *builder) standInCell(n Need, p plan.Variant) *compare.Cell {
	if p != b.analysis.Baseline {
		return nil
	}
	for i := range b.analysis.Comparisons {
		x := &b.analysis.Comparisons[i]
		if x.Path == n.Path && x.Workload == n.Workload && x.Metric == n.Metric.Name && x.Baseline == p && x.BaselinePath != (plan.Path{}) {
			if c, ok := b.analysis.Cell(compare.Key{Case: plan.Case{Profile: p, Path: x.BaselinePath, Workload: n.Workload}, Metric: n.Metric.Name}); ok && c.N > 0 {
				return &c
			}
		}
	}
	return nil
}

// cheaperThanHostReason explains why the best dataplane of a need takes less CPU time than the bare host: its packets bypass
// kube-proxy. It returns "" if no need has such a dataplane.
func (b *builder) cheaperThanHostReason(needs []Need) string {
	for _, n := range needs {
		first := n.Choice[0].Cell.Profile
		if n.Bounds || n.Metric.Name != metric.ServiceDemand || !isDataplane(first) || b.bareVerdict(n, plan.VariantOf(profile.Host)) != compare.Worse {
			continue
		}
		p, ok := profile.Lookup(first.Profile())
		switch {
		case !ok || p.Services == "kube-proxy":
		case p.Services == "none":
			return fmt.Sprintf("%s needs less than the host: its packets bypass the node's kube-proxy rules, which the host's pass.", number.Clean(first.String()))
		default:
			return fmt.Sprintf("%s needs less than the host: it replaces kube-proxy, whose rules the host's packets pass.", number.Clean(first.String()))
		}
	}
	return ""
}

// bareVerdict returns the verdict on a bare network compared with the best dataplane of a need. It returns None if the bare
// network has no rank, and if it is better, because only dataplanes can be best.
func (b *builder) bareVerdict(n Need, bare plan.Variant) compare.Verdict {
	two := b.rankProfiles(n.Path, n.Workload, n.Metric.Name, func(p plan.Variant) bool { return p == bare || p == n.Choice[0].Cell.Profile })
	switch {
	case len(two) < 2:
		return compare.None
	case two[0].Cell.Profile == bare && two[1].ToBest.Verdict == compare.Worse:
		return compare.None
	}
	return two[1].ToBest.Verdict
}
