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

// CPUInfo is what /proc/cpuinfo says of the first CPU.
type CPUInfo struct {
	// Model is the name of the CPU, "" where the architecture does not give one.
	Model string
	// Hypervisor is true where the CPU says that it is a virtual one (x86 only).
	Hypervisor bool
}

// ParseCPUInfo parses /proc/cpuinfo.
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
