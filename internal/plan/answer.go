package plan

import "slices"

// MainPath is the path that an answer is mainly about, if the plan measures it.
var MainPath = Path{Pod, Pod, CrossNode}

// Asides are groups of paths that an answer mentions in addition to MainPath. An answer has one line for each group,
// about the first of its paths that is measured.
var Asides = []struct {
	Name  string
	Paths []Path
}{
	{"Services", []Path{{Pod, Service, Remote}, {Pod, Service, Local}}},
	{"From outside", []Path{{External, NodePort, Remote}, {External, NodePort, Local}, {External, LoadBalancer, anywhere}}},
}

// Answers returns a function that reports whether the answer in a report uses the results of a case. It uses those of
// any workload on MainPath, and those of the typical workload on the paths of Asides.
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

// Typical returns the workload that represents all others: the first with requests over existing flows, or else over
// new ones, or else with responses, or else the first of all.
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
