package inspect

import (
	"errors"
	"path/filepath"

	"github.com/cnibench/cnibench/internal/kernel/proc"
	"github.com/cnibench/cnibench/internal/measure/netstate"
)

// readLimits reads the CPU limit of the cgroup at root, and how often it was throttled. In a container, root is the
// container's own cgroup. It tries cgroup v2 first; in v1, the CPU controller may be mounted together with others.
func (g *gathering) readLimits(root string) {
	const what = "limit of CPU time"
	for _, dir := range []string{".", "cpu", "cpu,cpuacct"} {
		at := filepath.Join(root, dir)
		limit, found, err := groupCPULimit(at)
		switch {
		case err != nil:
			g.addUnproven(what, err)
			return
		case found:
			t, _ := proc.ParseThrottling([]byte(proc.Text(filepath.Join(at, "cpu.stat"))))
			g.CPU = &netstate.CPU{Limit: limit, Periods: t.Periods, Throttled: t.Throttled}
			return
		}
	}
	g.addUnproven(what, errors.New("no group with a CPU controller under "+root))
}

// groupCPULimit returns the CPU limit of the cgroup at dir, in CPUs; nil means no limit. It reads cpu.max of v2, or the quota
// and the period of v1. found is false if dir has none of these files.
func groupCPULimit(dir string) (limit *float64, found bool, err error) {
	if text := proc.Text(filepath.Join(dir, "cpu.max")); text != "" {
		limit, err = parseCPUMax(text)
		return limit, true, err
	}
	quota, period := proc.Text(filepath.Join(dir, "cpu.cfs_quota_us")), proc.Text(filepath.Join(dir, "cpu.cfs_period_us"))
	if quota == "" || period == "" {
		return nil, false, nil
	}
	limit, err = parseQuota(quota, period)
	return limit, true, err
}
