package proc

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
)

// ParseStatm returns the resident memory in bytes from /proc/<pid>/statm, which counts pages of pageSize bytes.
func ParseStatm(b []byte, pageSize int) (uint64, error) {
	f := bytes.Fields(b)
	if len(f) < 2 {
		return 0, fmt.Errorf("statm: %q has %d columns", b, len(f))
	}
	pages, err := strconv.ParseUint(string(f[1]), 10, 64)
	if err != nil || pageSize <= 0 || pages > math.MaxUint64/uint64(pageSize) {
		return 0, fmt.Errorf("statm: %q pages of %d bytes", f[1], pageSize)
	}
	return pages * uint64(pageSize), nil
}

// ParseMeminfo returns the memory in use from /proc/meminfo: MemTotal less MemAvailable, in bytes.
func ParseMeminfo(b []byte) (uint64, error) {
	kib := map[string]uint64{}
	for line := range bytes.Lines(b) {
		name, rest, ok := bytes.Cut(line, []byte(":"))
		f := bytes.Fields(rest)
		if !ok || len(f) == 0 {
			continue
		}
		if v, err := strconv.ParseUint(string(f[0]), 10, 54); err == nil {
			kib[string(name)] = v
		}
	}
	total, haveTotal := kib["MemTotal"]
	available, haveAvailable := kib["MemAvailable"]
	if !haveTotal || !haveAvailable || available > total {
		return 0, fmt.Errorf("/proc/meminfo: MemTotal %d kB, MemAvailable %d kB", total, available)
	}
	return (total - available) << 10, nil
}
