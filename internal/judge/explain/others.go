package explain

import (
	"cmp"
	"slices"
)

// Other sums the tasks of one name that ran on the path's CPUs and do not belong to the path.
type Other struct {
	Command string `json:"command"`
	Samples uint64 `json:"samples"`
	// Time is their time per unit of the path's work, Share their share of the CPUs' busy time.
	Time  float64 `json:"time"`
	Share float64 `json:"share"`
}

// otherTasks returns the tasks outside the path, those with the largest share first. It converts their samples into
// time per unit of work, like the path's own samples.
func (s *Side) otherTasks(trials []trial) []Other {
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

// Idle returns the number of samples of idle CPUs. If the file does not name other tasks, their samples are included.
func (s Side) Idle() uint64 {
	idle := s.Foreign
	for _, o := range s.Others {
		idle -= min(idle, o.Samples)
	}
	return idle
}

// OtherTime returns the time per unit of the path's work that tasks outside the path took on its CPUs.
func (s Side) OtherTime() (sum float64) {
	for _, o := range s.Others {
		sum += o.Time
	}
	return sum
}
