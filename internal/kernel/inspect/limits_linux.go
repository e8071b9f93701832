package inspect

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/cnibench/cnibench/internal/kernel/proc"
	"github.com/cnibench/cnibench/internal/measure/netstate"
)

// limits reads the bound of CPU time of the group that the process sees as the root of the tree at root: in a container
// its own. cgroup v2 first; of v1 the controller is mounted beside others.
func (g *gathering) limits(root string) {
	const what = "limit of CPU time"
	if text, err := os.ReadFile(filepath.Join(root, "cpu.max")); err == nil {
		limit, err := parseMax(string(text))
		if err != nil {
			g.missing(what, err)
			return
		}
		g.CPU = limited(limit, filepath.Join(root, "cpu.stat"))
		return
	}
	for _, dir := range []string{"cpu", "cpu,cpuacct"} {
		quota, period := read(filepath.Join(root, dir, "cpu.cfs_quota_us")), read(filepath.Join(root, dir, "cpu.cfs_period_us"))
		if quota == "" || period == "" {
			continue
		}
		limit, err := share(quota, period)
		if err != nil {
			g.missing(what, err)
			return
		}
		g.CPU = limited(limit, filepath.Join(root, dir, "cpu.stat"))
		return
	}
	g.missing(what, errors.New("no group with a CPU controller under "+root))
}

// limited is a limit with the account of it in a file.
func limited(limit *float64, account string) *netstate.CPU {
	t, _ := proc.ParseThrottling([]byte(read(account)))
	return &netstate.CPU{Limit: limit, Periods: t.Periods, Throttled: t.Throttled}
}
