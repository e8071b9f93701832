package inspect

import (
	"errors"
	"path/filepath"

	"github.com/cnibench/cnibench/internal/kernel/proc"
	"github.com/cnibench/cnibench/internal/measure/netstate"
)

// limits reads the CPU limit of the group that the process sees as the root of the tree at root: in a container its
// own. It tries cgroup v2 first; in v1 the controller may be mounted together with others.
func (g *gathering) limits(root string) {
	const what = "limit of CPU time"
	for _, dir := range []string{".", "cpu", "cpu,cpuacct"} {
		at := filepath.Join(root, dir)
		limit, found, err := limitIn(at)
		switch {
		case err != nil:
			g.missing(what, err)
			return
		case found:
			t, _ := proc.ParseThrottling([]byte(proc.Text(filepath.Join(at, "cpu.stat"))))
			g.CPU = &netstate.CPU{Limit: limit, Periods: t.Periods, Throttled: t.Throttled}
			return
		}
	}
	g.missing(what, errors.New("no group with a CPU controller under "+root))
}

// limitIn returns the limit of the group at dir, from cpu.max of cgroup v2 or from quota and period of v1.
func limitIn(dir string) (limit *float64, found bool, err error) {
	if text := proc.Text(filepath.Join(dir, "cpu.max")); text != "" {
		limit, err = parseMax(text)
		return limit, true, err
	}
	quota, period := proc.Text(filepath.Join(dir, "cpu.cfs_quota_us")), proc.Text(filepath.Join(dir, "cpu.cfs_period_us"))
	if quota == "" || period == "" {
		return nil, false, nil
	}
	limit, err = share(quota, period)
	return limit, true, err
}
