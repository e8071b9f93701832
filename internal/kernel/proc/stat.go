package proc

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/cnibench/cnibench/internal/measure/cpu"
)

// modes are the columns of a CPU line, in order.
var modes = []string{
	cpu.User, cpu.Nice, cpu.System, cpu.Idle, cpu.IOWait, cpu.IRQ, cpu.SoftIRQ, cpu.Steal, cpu.Guest, cpu.GuestNice,
}

// ParseStat returns the CPU lines of /proc/stat by CPU number: time since boot. hz is USER_HZ, ticks per second. The
// resolution is a tick (10 ms nearly everywhere), and most kernels charge a whole tick to the task that runs when the
// tick comes.
func ParseStat(b []byte, hz int64) (map[int]cpu.Time, error) {
	if hz <= 0 {
		return nil, fmt.Errorf("/proc/stat: %d ticks per second", hz)
	}
	cpus := map[int]cpu.Time{}
	for line := range bytes.Lines(b) {
		f := bytes.Fields(line)
		if len(f) == 0 || !bytes.HasPrefix(f[0], []byte("cpu")) || len(f[0]) == len("cpu") {
			continue
		}
		n, err := strconv.Atoi(string(f[0][len("cpu"):]))
		if err != nil || n < 0 || len(f) < 5 {
			return nil, fmt.Errorf("/proc/stat: no CPU line: %q", line)
		}
		m := cpu.Time{}
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
