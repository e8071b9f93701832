package sample

import "slices"

// Merge returns the joint observation of several servers of one trial: sums of counts, and the mean of their windows.
// Values of the machine count once: CPUs that several report, ksoftirqd on them, the memory of the node. It returns a
// single observation unchanged, and nil for none. It leaves out distributions, TCP and Datagrams, which belong to
// single flows, and rows, whose windows differ. home is the machine whose CPUs keep their numbers, that of the client.
// Those of each other machine get numbers from a further multiple of MachineCPUs on.
func Merge(all []*Observation, home string) *Observation {
	if len(all) == 0 {
		return nil
	}
	if len(all) == 1 {
		return all[0]
	}
	sum := &Observation{Side: all[0].Side, Machine: all[0].Machine, Placed: Placed{BeganNs: all[0].BeganNs}}
	machines := []string{home}
	for _, o := range all {
		sum.ElapsedNs += o.ElapsedNs / int64(len(all))
		sum.Operations += o.Operations
		sum.BytesSent += o.BytesSent
		sum.BytesReceived += o.BytesReceived
		sum.CPU.ThreadsNs += o.CPU.ThreadsNs
		sum.CPU.ProcessNs += o.CPU.ProcessNs
		sum.CPU.WaitedNs += o.CPU.WaitedNs
		addCounts(&sum.Errors, o.Errors)
		sum.Threads = append(sum.Threads, o.Threads...)
		sum.Rolls = append(sum.Rolls, o.Rolls...)
		if o.Host != nil {
			if sum.Host == nil {
				sum.Host = &HostDelta{}
			}
			if !slices.Contains(machines, o.Machine) && home != "" && o.Machine != "" {
				machines = append(machines, o.Machine)
			}
			sum.Host.merge(o.Host.shiftedBy(MachineCPUs * max(0, slices.Index(machines, o.Machine))))
		}
	}
	return sum
}

// MachineCPUs is more than the number of CPUs of a machine.
const MachineCPUs = 1 << 16

// shiftedBy returns h with by added to the numbers of its CPUs.
func (h *HostDelta) shiftedBy(by int) *HostDelta {
	if by == 0 {
		return h
	}
	moved := *h
	moved.CPUs, moved.IdleNs, moved.Tasks = map[int]map[string]int64{}, map[int]int64{}, slices.Clone(h.Tasks)
	for n, modes := range h.CPUs {
		moved.CPUs[n+by] = modes
	}
	for n, ns := range h.IdleNs {
		moved.IdleNs[n+by] = ns
	}
	for i := range moved.Tasks {
		if moved.Tasks[i].CPU >= 0 {
			moved.Tasks[i].CPU += by
		}
	}
	return &moved
}

// InWindow returns the slices of a window, without those of its warm-up.
func InWindow(all []Interval) []Interval {
	return slices.DeleteFunc(slices.Clone(all), func(i Interval) bool { return i.Warmup })
}

// merge adds the counters o of another process, which may be on the same machine and the same CPUs.
func (h *HostDelta) merge(o *HostDelta) {
	// ksoftirqd's time is a sum over all CPUs of a side, so it is new if the CPUs are.
	fresh := true
	for n := range o.CPUs {
		_, had := h.CPUs[n]
		fresh = fresh && !had
	}
	for n, modes := range o.CPUs {
		if _, had := h.CPUs[n]; !had {
			if h.CPUs == nil {
				h.CPUs = map[int]map[string]int64{}
			}
			h.CPUs[n] = modes
		}
	}
	if fresh && o.KsoftirqdNs != nil {
		ns := *o.KsoftirqdNs
		if h.KsoftirqdNs != nil {
			ns += *h.KsoftirqdNs
		}
		h.KsoftirqdNs = &ns
	}
	if fresh {
		h.SpanNs = max(h.SpanNs, o.SpanNs)
		addCounts(&h.IdleNs, o.IdleNs)
	}
	// Tasks belong to the machine: another process may have reported them as well.
	for _, t := range o.Tasks {
		if !slices.ContainsFunc(h.Tasks, func(x Task) bool { return x.Command == t.Command && x.CPU == t.CPU }) {
			h.Tasks = append(h.Tasks, t)
		}
	}
	h.SoftnetDropped = max(h.SoftnetDropped, o.SoftnetDropped)
	h.SoftnetSqueezed = max(h.SoftnetSqueezed, o.SoftnetSqueezed)
	addCounts(&h.SNMP, o.SNMP)
	addCounts(&h.Devices, o.Devices)
	h.MemoryBytes += o.MemoryBytes
	h.ThrottledNs += o.ThrottledNs
	h.HotStops = max(h.HotStops, o.HotStops)
	h.NodeMemoryUsedBytes = max(h.NodeMemoryUsedBytes, o.NodeMemoryUsedBytes)
}

func addCounts[K comparable, N int64 | uint64 | float64](into *map[K]N, counts map[K]N) {
	for name, n := range counts {
		if *into == nil {
			*into = map[K]N{}
		}
		(*into)[name] += n
	}
}
