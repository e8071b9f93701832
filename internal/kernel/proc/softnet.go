package proc

import (
	"bytes"
	"fmt"
	"strconv"
)

// Softnet is a line of /proc/net/softnet_stat: one CPU's receive softirq since boot. The counters are 32 bits wide and
// wrap; subtract them as such.
type Softnet struct {
	// CPU is -1 on kernels before 5.10, which do not number the lines and leave out CPUs that are offline.
	CPU int
	// Dropped counts packets that a full backlog refused, Squeezed how often a poll ended with work left.
	Dropped, Squeezed uint32
}

// cpuColumn is where the line says which CPU it is about.
const cpuColumn = 12

// ParseSoftnet returns the lines of /proc/net/softnet_stat.
func ParseSoftnet(b []byte) ([]Softnet, error) {
	var lines []Softnet
	for line := range bytes.Lines(b) {
		f := bytes.Fields(line)
		if len(f) < 3 {
			return nil, fmt.Errorf("/proc/net/softnet_stat: %q has %d columns", line, len(f))
		}
		s := Softnet{CPU: -1}
		for i, c := range []*uint32{&s.Dropped, &s.Squeezed} {
			v, err := strconv.ParseUint(string(f[i+1]), 16, 32)
			if err != nil {
				return nil, fmt.Errorf("/proc/net/softnet_stat: column %d: %w", i+2, err)
			}
			*c = uint32(v)
		}
		if len(f) > cpuColumn {
			v, err := strconv.ParseUint(string(f[cpuColumn]), 16, 31)
			if err != nil {
				return nil, fmt.Errorf("/proc/net/softnet_stat: CPU number: %w", err)
			}
			s.CPU = int(v)
		}
		lines = append(lines, s)
	}
	return lines, nil
}
