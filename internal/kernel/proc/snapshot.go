package proc

import (
	"github.com/cnibench/cnibench/internal/measure/sample"
)

// Snapshot is what the kernel's counters said at one moment. A part that could not be seen is nil.
type Snapshot struct {
	// At is when the clocks were read, on the machine's monotonic clock.
	At int64
	// IdleNs is for how long each CPU has been idle since boot, nil where only CPUs says so, in ticks.
	IdleNs map[int]int64
	// Tasks are the tasks of the machine by id, without the agents of this run; nil where the kernel's own cannot be seen.
	Tasks map[int]sample.Task
	// CPUs has the CPU lines of /proc/stat.
	CPUs map[int]sample.Time
	// KsoftirqdNs is the CPU time of ksoftirqd by CPU since boot, in ns.
	KsoftirqdNs map[int]int64
	Softnet     []Softnet
	// SNMP has snmp and netstat together, Devices the device counters, both of one network namespace.
	SNMP, Devices map[string]int64
	// MemoryBytes is the resident memory of this process, NodeMemoryUsedBytes MemTotal - MemAvailable.
	MemoryBytes, NodeMemoryUsedBytes uint64
	// ThrottledNs is for how long a limit of CPU time has stopped this process's control group, summed over CPUs.
	ThrottledNs int64
	// HotStops is how often the processor slowed the CPUs down because they were hot.
	HotStops int64
}

// Delta returns what happened from before to after, which were taken by the same process. Counters that are in one of
// them only (a device that came or went) are left out.
func Delta(before, after Snapshot) *sample.HostDelta {
	d := &sample.HostDelta{
		SNMP:                changes(before.SNMP, after.SNMP),
		Devices:             changes(before.Devices, after.Devices),
		MemoryBytes:         after.MemoryBytes,
		NodeMemoryUsedBytes: after.NodeMemoryUsedBytes,
		ThrottledNs:         max(after.ThrottledNs-before.ThrottledNs, 0),
		HotStops:            max(after.HotStops-before.HotStops, 0),
		SpanNs:              after.At - before.At,
		Tasks:               ran(before, after),
	}
	for n, a := range after.IdleNs {
		if b, ok := before.IdleNs[n]; ok {
			if d.IdleNs == nil {
				d.IdleNs = map[int]int64{}
			}
			d.IdleNs[n] = a - b
		}
	}
	for n, m := range after.CPUs {
		if b, ok := before.CPUs[n]; ok {
			if d.CPUs == nil {
				d.CPUs = map[int]map[string]int64{}
			}
			if d.CPUs[n] = changes(b, m); d.CPUs[n] == nil {
				d.CPUs[n] = map[string]int64{}
			}
		}
	}
	for n, a := range after.KsoftirqdNs {
		if b, ok := before.KsoftirqdNs[n]; ok {
			if d.KsoftirqdNs == nil {
				d.KsoftirqdNs = new(int64)
			}
			*d.KsoftirqdNs += a - b
		}
	}
	// A CPU that went offline or came online shifts the lines of old kernels; no claim is better than a wrong one.
	if len(before.Softnet) == len(after.Softnet) {
		for i, a := range after.Softnet {
			b := before.Softnet[i]
			if a.CPU == b.CPU {
				d.SoftnetDropped += uint64(a.Dropped - b.Dropped)
				d.SoftnetSqueezed += uint64(a.Squeezed - b.Squeezed)
			}
		}
	}
	return d
}

// changes returns after less before where it is not zero, nil if it is zero everywhere.
func changes(before, after map[string]int64) map[string]int64 {
	var d map[string]int64
	for name, a := range after {
		if b, ok := before[name]; ok && a != b {
			if d == nil {
				d = map[string]int64{}
			}
			d[name] = a - b
		}
	}
	return d
}
