package lab

import (
	"testing"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// TestConnect: each engine's table of connections has those that stand, and a variant without any has none of them.
func TestConnect(t *testing.T) {
	needRights(t)
	const want = 3000
	variants := plan.Variants("ptp", "ptp(connections=3K)", "calico-nftables(connections=3K)", "calico-ebpf(connections=3K)", "aws-vpc(connections=3K,policies=1)", "cilium-native(connections=3K)")
	l := upWith(t, Options{Account: true}, plan.Texts(variants)...)
	for _, v := range variants {
		inst := l.Instance(v)
		if inst.Err != nil {
			t.Log(inst.Err)
			continue
		}
		tracked, err := inst.Connect()
		if v == plan.VariantOf("ptp") && tracked == 0 && err == nil {
			continue
		}
		if err != nil || tracked < want || tracked > want+100 || inst.Raised[metric.ProgramTime] == 0 {
			t.Errorf("%s tracks %d connections, %v: %v", v, tracked, err, inst.Raised)
		}
	}
}
