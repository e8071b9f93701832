package proc

import (
	"github.com/cnibench/cnibench/internal/measure/sample"
)

// Snapshot has the values of the kernel's counters at one moment. A part that is not visible is nil.
type Snapshot struct {
	// At is the time of the readings, in ns on the machine's monotonic clock.
	At int64
	// IdleNs is how long each CPU has been idle since boot; nil if the kernel only counts idle ticks (sample.Idle in CPUs).
	IdleNs map[int]int64
	// Tasks are the tasks of the machine by id, without this run's agents; nil if the kernel's tasks are not visible.
	Tasks map[int]sample.Task
	// CPUs has the CPU lines of /proc/stat.
	CPUs map[int]sample.Time
	// KsoftirqdNs is the CPU time of ksoftirqd by CPU since boot, in ns.
	KsoftirqdNs map[int]int64
	Softnet     []Softnet
	// SNMP has the counters of snmp and netstat, Devices the device counters, both of one network namespace.
	SNMP, Devices map[string]int64
	// MemoryBytes is the resident memory of this process, NodeMemoryUsedBytes is MemTotal - MemAvailable.
	MemoryBytes, NodeMemoryUsedBytes uint64
	// ThrottledNs is how long a CPU limit has stopped this process's control group, summed over CPUs.
	ThrottledNs int64
	// HotStops is how often the processor slowed down these CPUs because of heat, since boot.
	HotStops int64
}

// Delta returns the changes from before to after, which must be from the same process. It omits counters that only one
// of them has (a device that appeared or disappeared).
func Delta(before, after Snapshot) *sample.HostDelta {
	d := &sample.HostDelta{
		SNMP:                counterChanges(before.SNMP, after.SNMP),
		Devices:             counterChanges(before.Devices, after.Devices),
		MemoryBytes:         after.MemoryBytes,
		NodeMemoryUsedBytes: after.NodeMemoryUsedBytes,
		ThrottledNs:         max(after.ThrottledNs-before.ThrottledNs, 0),
		HotStops:            max(after.HotStops-before.HotStops, 0),
		SpanNs:              after.At - before.At,
		Tasks:               tasksBetween(before, after),
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
			if d.CPUs[n] = counterChanges(b, m); d.CPUs[n] == nil {
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
	// A CPU that went offline or online shifts the lines of old kernels; then there is no result.
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

// counterChanges returns the nonzero differences between after and before. It returns nil if there are none.
func counterChanges(before, after map[string]int64) map[string]int64 {
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
