package explain

import (
	"cmp"
	"slices"
)

// Other are the tasks of a name that are not the path's and ran on its CPUs.
type Other struct {
	Command string `json:"command"`
	Samples uint64 `json:"samples"`
	// Time is what they took for a unit of the path's work, Share their share of the busy time of the CPUs.
	Time  float64 `json:"time"`
	Share float64 `json:"share"`
}

// others turns the foreign samples of trials into time, as many for a unit of work as the path's own.
func (s *Side) others(trials []trial) []Other {
	counts := map[string]uint64{}
	all := uint64(s.Samples)
	for _, t := range trials {
		for command, n := range t.stacks.Others {
			counts[command] += n
			all += n
		}
	}
	var list []Other
	for command, n := range counts {
		if s.Samples > 0 {
			list = append(list, Other{command, n, float64(n) / float64(s.Samples) * s.Demand.Value, float64(n) / float64(all)})
		}
	}
	slices.SortFunc(list, func(x, y Other) int {
		return cmp.Or(cmp.Compare(y.Share, x.Share), cmp.Compare(x.Command, y.Command))
	})
	return list
}

// Idle is how many samples were of idle CPUs. A file that does not name other tasks has those among them.
func (s Side) Idle() uint64 {
	idle := s.Foreign
	for _, o := range s.Others {
		idle -= min(idle, o.Samples)
	}
	return idle
}

// OtherTime is what tasks that are not the path's took on its CPUs for a unit of its work.
func (s Side) OtherTime() (sum float64) {
	for _, o := range s.Others {
		sum += o.Time
	}
	return sum
}
