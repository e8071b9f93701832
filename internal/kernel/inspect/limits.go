package inspect

import (
	"fmt"
	"strconv"
	"strings"
)

// parseCPUMax parses cpu.max of cgroup v2, for example "200000 100000" or "max 100000". It returns the limit in CPUs,
// nil without a limit.
func parseCPUMax(text string) (*float64, error) {
	f := strings.Fields(text)
	if len(f) == 2 && f[0] == "max" {
		return nil, nil
	}
	if len(f) != 2 {
		return nil, fmt.Errorf("cpu.max: %q is not a quota and a period", text)
	}
	return parseQuota(f[0], f[1])
}

// parseQuota returns quota divided by period, in CPUs, and nil for a negative quota, which means no limit. It fails if quota
// is not a number, or if period is not a positive one.
func parseQuota(quota, period string) (*float64, error) {
	q, err := strconv.ParseInt(quota, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("quota of CPU time: %w", err)
	}
	p, err := strconv.ParseInt(period, 10, 64)
	if err != nil || p <= 0 {
		return nil, fmt.Errorf("period of CPU time: %q is not a positive number", period)
	}
	if q < 0 {
		return nil, nil
	}
	limit := float64(q) / float64(p)
	return &limit, nil
}
