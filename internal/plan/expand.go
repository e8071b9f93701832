package plan

import (
	"math/rand/v2"
	"slices"

	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Measured returns the variants that are measured, each once: first the baseline, then its twin, then the others in the
// order of the plan.
func (p Plan) Measured() []Variant {
	var names []Variant
	if !p.Baseline.IsZero() {
		names = append(names, p.Baseline)
		if p.Twin {
			names = append(names, p.Baseline.Twin())
		}
	}
	return each.Once(append(names, p.Variants()...))
}

// ZeroPath is the path on which the profile raw is measured. Results of other profiles on any path are compared with
// it, because the two empty namespaces of raw have no pods and no Services.
var ZeroPath = Path{Host, Host, CrossNode}

// Cases returns every case of the plan: by path, then by workload, then by profile. Cases from zeroCases come last.
func (p Plan) Cases() []Case {
	return append(slices.Concat(p.caseGroups()...), p.zeroCases()...)
}

// caseGroups returns the cases of each path and workload, without the cases from zeroCases.
func (p Plan) caseGroups() [][]Case {
	var groups [][]Case
	profiles := p.Measured()
	for _, path := range p.Paths {
		for _, w := range p.Workloads {
			if w.Barred(path) != "" {
				continue
			}
			served := each.Where(profiles, func(v Variant) bool { return !isRaw(v) || path.From == Host && path.To == Host })
			groups = append(groups, each.Of(served, func(v Variant) Case { return Case{Profile: v, Path: path, Workload: w} }))
		}
	}
	return groups
}

// zeroCases returns the cases of the baseline raw on ZeroPath, for each workload that caseGroups does not measure
// there. Results on other paths are compared with them. It returns nil if raw is not the baseline.
func (p Plan) zeroCases() []Case {
	if !isRaw(p.Baseline) {
		return nil
	}
	among := slices.Contains(p.Paths, ZeroPath)
	var cases []Case
	for _, w := range p.Workloads {
		if among && w.Barred(ZeroPath) == "" || w.kindEntry().apart || w.Traits().Names.Elsewhere() {
			continue
		}
		for _, name := range each.Where(p.Measured(), isRaw) {
			cases = append(cases, Case{Profile: name, Path: ZeroPath, Workload: w})
		}
	}
	return cases
}

func isRaw(v Variant) bool { return v.Profile() == profile.Raw }

// Order returns the cases of one repetition, counted from 1, in the order of measurement. Cases that are compared are
// consecutive: groups of one path and workload are shuffled, and so are the profiles within each group. So drift of the
// machine affects every profile equally. The order depends only on the seed and the repetition. A sequential plan has
// one profile after the other, each with its paths and workloads in the order of the plan.
func (p Plan) Order(repetition int) []Case {
	if p.Sequential {
		at := map[Variant]int{}
		for i, v := range p.Measured() {
			at[v] = i
		}
		cases := p.Cases()
		slices.SortStableFunc(cases, func(c, d Case) int { return at[c.Profile] - at[d.Profile] })
		return cases
	}
	r := rand.New(rand.NewPCG(p.Seed, uint64(repetition)))
	groups := p.caseGroups()
	r.Shuffle(len(groups), func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
	// A case that all groups of a workload are compared with is measured in a random one of them: always using the
	// first would give drift within a repetition a direction.
	for _, z := range p.zeroCases() {
		var like []int
		for i, g := range groups {
			if len(g) > 0 && g[0].Workload == z.Workload {
				like = append(like, i)
			}
		}
		if len(like) == 0 {
			groups, like = append(groups, nil), []int{len(groups)}
		}
		i := like[r.IntN(len(like))]
		groups[i] = append(groups[i], z)
	}
	var order []Case
	for _, g := range groups {
		r.Shuffle(len(g), func(i, j int) { g[i], g[j] = g[j], g[i] })
		order = append(order, g...)
	}
	return order
}

// Differ returns the keys of the settings in which p and q differ, in the order of Settings. If lists of pairs differ,
// it adds "pairs of" and the name of their file.
func (p Plan) Differ(q Plan) (keys []string) {
	for _, s := range Settings() {
		if s.Text(p) != s.Text(q) {
			keys = append(keys, s.Key)
		}
	}
	if p.Pairs.Which == q.Pairs.Which && !slices.Equal(p.Pairs.Listed, q.Pairs.Listed) {
		keys = append(keys, "pairs of "+p.Pairs.Which)
	}
	return keys
}

// Backends returns the numbers of backends above 1 of the workloads that do not roll them, sorted and without
// duplicates.
func (p Plan) Backends() []int { return p.backendCounts(false) }

// Rolled returns the numbers of backends above 1 of the workloads that roll them, sorted and without duplicates.
func (p Plan) Rolled() []int { return p.backendCounts(true) }

// backendCounts returns the numbers of backends above 1, sorted and without duplicates. rolled selects the workloads
// that roll their backends, otherwise those that do not.
func (p Plan) backendCounts(rolled bool) []int {
	var numbers []int
	for _, w := range p.Workloads {
		if t := w.Traits(); t.Backends > 1 && t.Roll == rolled {
			numbers = append(numbers, t.Backends)
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}
