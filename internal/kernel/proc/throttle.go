package proc

import (
	"bytes"
	"path"
	"strconv"
	"strings"
)

// groupRoot is where control groups are mounted.
const groupRoot = "/sys/fs/cgroup"

// throttleFiles returns where the account of the limit of a process's CPU time may be, by its /proc/<pid>/cgroup, the
// likeliest first: of cgroup v2, of the controller of v1, and at the root of each, which in a container is its own
// group whatever it is called outside.
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

// Throttling is what a limit of CPU time did to a control group: how many of its periods ended, how many of them in a
// stop, and for how long its threads were stopped, summed over CPUs.
type Throttling struct{ Periods, Throttled, StoppedNs int64 }

// ParseThrottling reads cpu.stat, of cgroup v1 or v2. It returns false for a group without such an account; one without
// a limit may have it or not.
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
