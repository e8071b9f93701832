package plan

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
)

// Measured returns the profiles that are measured: the baseline first, its twin next to it, then the others in the
// order of the plan.
func (p Plan) Measured() []string {
	var names []string
	if p.Baseline != "" {
		names = append(names, p.Baseline)
		if p.Twin {
			names = append(names, p.Baseline+TwinSuffix)
		}
	}
	for _, n := range p.Profiles {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

// Cases returns every case of the plan: paths, within them workloads, within them profiles.
func (p Plan) Cases() []Case {
	profiles := p.Measured()
	cases := make([]Case, 0, len(p.Paths)*len(p.Workloads)*len(profiles))
	for _, path := range p.Paths {
		for _, w := range p.Workloads {
			for _, name := range profiles {
				cases = append(cases, Case{Profile: name, Path: path, Workload: w})
			}
		}
	}
	return cases
}

// Order returns the cases of one repetition, counted from 1, in the order in which they are measured. What is compared
// stands together: the groups of one path and workload are shuffled, and the profiles are shuffled within each group,
// so that drift of the machine meets all of them alike. The seed and the repetition decide the order and nothing else.
func (p Plan) Order(repetition int) []Case {
	r := rand.New(rand.NewPCG(p.Seed, uint64(repetition)))
	cases := p.Cases()
	size := len(p.Measured())
	groups := slices.Collect(slices.Chunk(cases, max(size, 1)))
	r.Shuffle(len(groups), func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
	order := make([]Case, 0, len(cases))
	for _, g := range groups {
		r.Shuffle(len(g), func(i, j int) { g[i], g[j] = g[j], g[i] })
		order = append(order, g...)
	}
	return order
}

// Differ returns the names of the fields in which two plans differ, as their JSON form calls them, in order.
func Differ(p, q Plan) []string {
	a, b := reflect.ValueOf(p), reflect.ValueOf(q)
	var names []string
	for i := range a.NumField() {
		if !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			name, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	return names
}
