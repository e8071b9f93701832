package proc

import (
	"bytes"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/measure/sample"
)

// modes are the columns of a CPU line, in order.
var modes = []string{
	sample.User, sample.Nice, sample.System, sample.Idle, sample.IOWait, sample.IRQ, sample.SoftIRQ, sample.Steal, sample.Guest, sample.GuestNice,
}

// ParseStat returns the CPU lines of /proc/stat by CPU number: time since boot. hz is USER_HZ, ticks per second. The
// resolution is a tick (10 ms nearly everywhere), and most kernels charge a whole tick to the task that runs at that
// moment.
func ParseStat(b []byte, hz int64) (map[int]sample.Time, error) {
	if hz <= 0 {
		return nil, fmt.Errorf("/proc/stat: %d ticks per second", hz)
	}
	cpus := map[int]sample.Time{}
	for line := range bytes.Lines(b) {
		f := bytes.Fields(line)
		if len(f) == 0 || !bytes.HasPrefix(f[0], []byte("cpu")) || len(f[0]) == len("cpu") {
			continue
		}
		n, err := strconv.Atoi(string(f[0][len("cpu"):]))
		if err != nil || n < 0 || len(f) < 5 {
			return nil, fmt.Errorf("/proc/stat: no CPU line: %q", line)
		}
		m := sample.Time{}
		for i, s := range f[1:min(len(f), len(modes)+1)] {
			ticks, err := strconv.ParseInt(string(s), 10, 64)
			if err != nil || ticks < 0 {
				return nil, fmt.Errorf("/proc/stat: %s of cpu%d is %q", modes[i], n, s)
			}
			// Whole seconds first: ticks x 1e9 would overflow after three years of a 100 Hz clock.
			m[modes[i]] = ticks/hz*1e9 + ticks%hz*1e9/hz
		}
		cpus[n] = m
	}
	if len(cpus) == 0 {
		return nil, fmt.Errorf("/proc/stat: no line for any CPU")
	}
	return cpus, nil
}

// Scheduled has the time in ns that a thread or process ran on a CPU, and the time that it waited in a run queue.
type Scheduled struct{ Ran, Waited int64 }

// ParseSchedstat parses the schedstat of a thread or process.
func ParseSchedstat(b []byte) (s Scheduled, err error) {
	f := bytes.Fields(b) // time on a CPU, time in a run queue, how often it got a CPU
	if len(f) != 3 {
		return s, fmt.Errorf("schedstat: %q has %d columns, want 3", b, len(f))
	}
	for i, into := range []*int64{&s.Ran, &s.Waited} {
		if *into, err = strconv.ParseInt(string(f[i]), 10, 64); err != nil {
			return s, fmt.Errorf("schedstat: column %d: %w", i+1, err)
		}
	}
	return s, nil
}

// KsoftirqdCPU returns the CPU of a ksoftirqd process; comm is the content of /proc/<pid>/comm. It returns false if it
// is not ksoftirqd.
func KsoftirqdCPU(comm []byte) (int, bool) {
	s, ok := bytes.CutPrefix(bytes.TrimSpace(comm), []byte("ksoftirqd/"))
	if !ok {
		return 0, false
	}
	cpu, err := strconv.ParseUint(string(s), 10, 31)
	return int(cpu), err == nil
}

// groupRoot is where control groups are mounted.
const groupRoot = "/sys/fs/cgroup"

// throttleFiles returns the files that may count the throttling of a process, given its /proc/<pid>/cgroup. First come
// the files of its own groups, then those at the root of each hierarchy. In a container, that root is the container's
// own group.
func throttleFiles(groups []byte) []string {
	var own, roots []string
	for line := range strings.Lines(string(groups)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3) // 4:cpu,cpuacct:/a, or 0::/a
		if len(f) != 3 {
			continue
		}
		for _, controller := range strings.Split(f[1], ",") {
			if f[0] == "0" && f[1] == "" || controller == "cpu" {
				root := path.Join(groupRoot, f[1])
				own = append(own, path.Join(root, f[2], "cpu.stat"))
				roots = append(roots, path.Join(root, "cpu.stat"))
			}
		}
	}
	return append(own, roots...)
}

// Throttling is the effect of a CPU limit on a control group.
type Throttling struct {
	// Periods is the number of periods of the limit, Throttled the number of those in which the limit stopped the group.
	Periods, Throttled int64
	// StoppedNs is how long threads of the group were stopped, summed over CPUs.
	StoppedNs int64
}

// ParseThrottling parses cpu.stat of cgroup v1 or v2. It returns false if b has no line about throttled time. A group
// without a limit may have that line or not.
func ParseThrottling(b []byte) (t Throttling, ok bool) {
	for line := range bytes.Lines(b) {
		name, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		n, err := strconv.ParseInt(string(value), 10, 64)
		if err != nil || n < 0 {
			continue
		}
		switch string(name) {
		case "nr_periods":
			t.Periods = n
		case "nr_throttled":
			t.Throttled = n
		case "throttled_usec":
			t.StoppedNs, ok = n*1000, true
		case "throttled_time":
			t.StoppedNs, ok = n, true
		}
	}
	return t, ok
}
