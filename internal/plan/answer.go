package plan

import "slices"

// MainPath is the path that an answer speaks of where it is measured.
var MainPath = Path{Pod, Pod, CrossNode}

// Asides are the paths that an answer has lines of their own for, the first that is measured of each.
var Asides = []struct {
	Name  string
	Paths []Path
}{
	{"Services", []Path{{Pod, Service, Remote}, {Pod, Service, Local}}},
	{"From outside", []Path{{External, NodePort, Remote}, {External, NodePort, Local}, {External, LoadBalancer, anywhere}}},
}

// Answers returns which cases the answer of a report speaks of: those of the main path, and the typical workload in front of
// Services and from outside.
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

// Typical returns the workload that stands for all: requests over standing flows, or else over new ones, or else the first.
func Typical(all []Workload) Workload {
	return FirstOf(all, Traits.Standing, Traits.Reconnecting, Traits.Exchanges)
}

// FirstOf returns the first workload of the first form that any workload has, or else the first workload.
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
