package plan

import "slices"

// MainPath is the path that an answer is about, if it is measured.
var MainPath = Path{Pod, Pod, CrossNode}

// Asides are groups of paths that an answer mentions beside MainPath. Each group has a line, about its first path that is
// measured.
var Asides = []struct {
	Name  string
	Paths []Path
}{
	{"Services", []Path{{Pod, Service, Remote}, {Pod, Service, Local}}},
	{"From outside", []Path{{External, NodePort, Remote}, {External, NodePort, Local}, {External, LoadBalancer, anywhere}}},
}

// Answers returns a function that reports whether the answer of a report uses a case: any workload on MainPath, and the
// typical workload on the paths of Asides.
func (p Plan) Answers() func(Case) bool {
	typical := Typical(p.Workloads)
	own := map[Path]bool{}
	for _, s := range Asides {
		if i := slices.IndexFunc(s.Paths, func(x Path) bool { return slices.Contains(p.Paths, x) }); i >= 0 {
			own[s.Paths[i]] = true
		}
	}
	return func(k Case) bool { return k.Path == MainPath || own[k.Path] && k.Workload == typical }
}

// Typical returns the workload that represents all others: requests over existing flows, or else over new ones, or else
// the first.
func Typical(all []Workload) Workload {
	return FirstOf(all, Traits.Standing, Traits.Reconnecting, Traits.Exchanges)
}

// FirstOf returns the first workload for which the first of the functions returns true; if there is none, it tries the next
// function. If no function matches, it returns the first workload, or the zero Workload if the list is empty.
func FirstOf(all []Workload, of ...func(Traits) bool) Workload {
	for _, is := range of {
		if i := slices.IndexFunc(all, func(w Workload) bool { return is(w.Traits()) }); i >= 0 {
			return all[i]
		}
	}
	if len(all) == 0 {
		return Workload{}
	}
	return all[0]
}
