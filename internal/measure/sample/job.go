package sample

import "github.com/cnibench/cnibench/internal/vocab/each"

// Job has the steps of a job within the window, by the first member's clock.
type Job struct {
	// Step is the distribution of the times of steps, each until the last member has finished. Exchange is the
	// distribution of the longest exchange of any member in each step, without compute.
	Step     *Histogram `json:"step,omitempty"`
	Exchange *Histogram `json:"exchange,omitempty"`
	// Hops has the distributions of the times that requests took at their member, by the member's depth from 1
	// (microservice).
	Hops []*Histogram `json:"hops,omitempty"`
	// ChoiceNs is the sum of the exchange times of those members that waited for several others.
	ChoiceNs int64 `json:"choice_ns,omitempty"`
	// Members are all members in order.
	Members []Member `json:"members"`
	// Elsewhere are the counters of the other machines, one each.
	Elsewhere []*HostDelta `json:"elsewhere,omitempty"`
	// Loss describes the member that was lost, and the steps before; nil if no member was lost. The other fields then
	// count the steps after the loss, of a smaller group.
	Loss *Loss `json:"loss,omitempty"`
}

// Loss describes the loss of a member after which the others continued. Times are by the first member's clock.
type Loss struct {
	// Name is the name of the member's endpoint.
	Name string `json:"name"`
	// Step is the number of the step that failed; the first step of the warm-up is 1. AfterNs is the time of the
	// failure since the start of the window; 0 in the warm-up.
	Step    uint64 `json:"step"`
	AfterNs int64  `json:"after_ns"`
	// RegroupNs is how long it took until the window of the smaller group began, its warm-up included, by the controller's
	// clock.
	RegroupNs int64 `json:"regroup_ns"`
	// Before and Exchange are the distributions of step and exchange times, as in Job, for the steps that were complete
	// in the window before the loss. Members is the number of members before the loss.
	Before   *Histogram `json:"before"`
	Exchange *Histogram `json:"exchange"`
	Members  int        `json:"members"`
}

// Member is the work of one member of a job within the window.
type Member struct {
	// Name is the name of its endpoint.
	Name string `json:"name"`
	// ExchangeNs is the sum of the times of its exchanges, by the clock of this member.
	ExchangeNs int64 `json:"exchange_ns"`
	// LateNs is how long others waited for its data alone, after all other data had arrived; Waits is how often.
	LateNs int64  `json:"late_ns,omitempty"`
	Waits  uint64 `json:"waits,omitempty"`
	// BytesSent and BytesReceived count payload, CPUNs the CPU time of its load thread.
	BytesSent     uint64 `json:"bytes_sent"`
	BytesReceived uint64 `json:"bytes_received"`
	CPUNs         int64  `json:"cpu_ns"`
}

// Gather returns the observation of a whole job from the observations of its members in order: the first has the steps.
// Counters of one machine are merged as by Merge; other machines' are kept separate, since their CPUs have the same
// numbers. It returns nil without a first member.
func Gather(members []*Observation) *Observation {
	if len(members) == 0 || members[0] == nil || members[0].Job == nil {
		return nil
	}
	var machines []string
	on := map[string][]*Observation{}
	for _, o := range members {
		if _, known := on[o.Machine]; !known {
			machines = append(machines, o.Machine)
		}
		on[o.Machine] = append(on[o.Machine], o)
	}
	first := members[0]
	whole := *Merge(members, first.Machine)
	whole.Side, whole.Machine, whole.ElapsedNs, whole.Operations = first.Side, first.Machine, first.ElapsedNs, first.Operations
	whole.TCP = nil
	account := *first.Job
	account.Members = append([]Member{}, account.Members...)
	for i, o := range members {
		m := &account.Members[i]
		m.BytesSent, m.BytesReceived, m.CPUNs = o.BytesSent, o.BytesReceived, o.CPU.ThreadsNs
	}
	hosts := each.Of(machines, func(machine string) *HostDelta { return Merge(on[machine], machine).Host })
	whole.Host, account.Elsewhere = hosts[0], hosts[1:]
	whole.Job = &account
	return &whole
}
