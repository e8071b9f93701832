package plan

import (
	"github.com/cnibench/cnibench/internal/plan/condition"
	"github.com/cnibench/cnibench/internal/profile"
)

// The peak memory in bytes that one object takes on each node, in the kernel and in the programs that load the rules.
// It was measured as the peak of a cgroup around `cnibench lab up`, with 30,000 Services, 100 Services of 1,000
// endpoints and 10,000 policies. For policies of calico-nftables it is only the kernel's part
// (docs/how-to/weigh-the-state.md).
const (
	chainService, chainEndpoint = 8 << 10, 4 << 10
	mapService, mapEndpoint     = 3 << 10, 100
	bpfService, bpfEndpoint     = 1200, 100
	bpfMaps                     = 45 << 20
	chainPolicy, setPolicy      = 70 << 10, 41 << 10
	bpfPolicy                   = 4 << 10
	awsMaps                     = 56 << 20
	trackedConnection           = 384
)

// Memory returns an estimate of how many bytes the Services, policies and connections of variants take on all their
// nodes together, at the peak while they are loaded.
func (l Lab) Memory(variants []Variant) (bytes int64) {
	for _, v := range variants {
		bytes += v.Lab(l).variantMemory(v)
	}
	return bytes
}

func (l Lab) variantMemory(v Variant) int64 {
	p, _ := profile.Lookup(v.Profile())
	services, endpoints := l.Services, l.Services*l.Endpoints
	node := l.Connections * trackedConnection
	switch {
	case p.Services == "none", l.ServiceProxy == condition.ProxyIPVS && p.Services != "ebpf": // ipvs has not been measured
	case p.Services == "ebpf":
		node += bpfMaps + services*bpfService + endpoints*bpfEndpoint
	case l.ServiceProxy == condition.ProxyNftables || p.Policy == "calico-nftables":
		node += services*mapService + endpoints*mapEndpoint
	default:
		node += services*chainService + endpoints*chainEndpoint
	}
	switch p.Policy {
	case "calico-iptables":
		node += (l.Policies + l.PoliciesUnselected) * chainPolicy
	case "calico-nftables":
		node += (l.Policies + l.PoliciesUnselected) * setPolicy
	case "ebpf":
		node += l.Policies * bpfPolicy
	case "aws-agent":
		if l.Policies+l.PoliciesUnselected > 0 {
			node += awsMaps + l.Policies*bpfPolicy
		}
	}
	return int64(node) * int64(l.Nodes)
}
