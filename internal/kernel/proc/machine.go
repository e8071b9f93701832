package proc

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// ParseLoadavg returns the load averages of 1, 5 and 15 minutes from /proc/loadavg.
func ParseLoadavg(b []byte) ([3]float64, error) {
	var load [3]float64
	f := bytes.Fields(b)
	if len(f) < len(load) {
		return load, fmt.Errorf("/proc/loadavg: %q", b)
	}
	for i := range load {
		v, err := strconv.ParseFloat(string(f[i]), 64)
		if err != nil || !(v >= 0) || math.IsInf(v, 0) {
			return load, fmt.Errorf("/proc/loadavg: %q", b)
		}
		load[i] = v
	}
	return load, nil
}

// CPUInfo describes the first CPU in /proc/cpuinfo.
type CPUInfo struct {
	// Model is the name of the CPU, "" if the architecture has none.
	Model string
	// Hypervisor is true if the CPU reports a hypervisor (x86 only).
	Hypervisor bool
}

// ParseCPUInfo parses /proc/cpuinfo. It leaves the fields of unknown facts zero.
func ParseCPUInfo(b []byte) CPUInfo {
	var c CPUInfo
	for line := range bytes.Lines(b) {
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			continue
		}
		value = bytes.TrimSpace(value)
		switch string(bytes.TrimSpace(name)) {
		case "model name", "Model", "cpu model":
			if c.Model == "" {
				c.Model = string(value)
			}
		case "flags":
			c.Hypervisor = c.Hypervisor || slices.ContainsFunc(bytes.Fields(value), func(f []byte) bool { return string(f) == "hypervisor" })
		}
	}
	return c
}

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
	total, available, err := totalAndAvailable(b)
	return total - available, err
}

// ParseAvailable returns MemAvailable from /proc/meminfo, in bytes. It fails if MemTotal or MemAvailable is missing.
func ParseAvailable(b []byte) (uint64, error) {
	_, available, err := totalAndAvailable(b)
	return available, err
}

func totalAndAvailable(b []byte) (total, available uint64, err error) {
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
		return 0, 0, fmt.Errorf("/proc/meminfo: MemTotal %d kB, MemAvailable %d kB", total, available)
	}
	return total << 10, available << 10, nil
}
