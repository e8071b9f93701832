package detect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/measure/netstate"
)

// mtu takes the pods' MTU from their devices. A different configured MTU is a doubt.
func (d *detective) mtu() {
	by := map[string]string{}
	for _, p := range d.pods() {
		if _, m, ok := p.Way(); ok {
			by[p.Pod] = fmt.Sprint(m)
		}
	}
	groups, distinct := perNode(by)
	switch {
	case len(distinct) > 1:
		d.doubt("the pods' MTU differs: %s", strings.Join(groups, "; "))
	case len(distinct) == 1:
		if d.MTU.Value != "" && d.MTU.Value != distinct[0] {
			d.doubt("MTU %s is configured (%s), pods have %s", d.MTU.Value, d.MTU.Source, distinct[0])
		}
		d.MTU = Claim{distinct[0], "seen in pods"}
	case d.MTU.Value == "":
		d.unproven("the pods' MTU: no pod was inspected, and it is not configured")
	}
}

// marks are devices and chain prefixes that CNIs leave on a node.
var marks = []struct {
	cni             string
	devices, chains []string
}{
	{cilium, []string{"cilium_host", "cilium_vxlan", "cilium_geneve", "cilium_wg0"}, []string{"CILIUM_"}},
	{calico, []string{"vxlan.calico", "wireguard.cali", "bpfin.cali"}, []string{"cali-"}},
	{flannel, []string{"flannel.1", "flannel-wg", "flannel.ipip", "flannel.4096"}, []string{"FLANNEL-"}},
	{"weave", []string{"weave"}, []string{"WEAVE-"}},
	{"antrea", []string{"antrea-gw0"}, []string{"ANTREA-"}},
}

// Leftovers lists devices and chains on a node of CNIs other than cni.
func Leftovers(cni string, s netstate.State) []string {
	var found []string
	for _, m := range marks {
		if m.cni == cni || cni == canal && (m.cni == calico || m.cni == flannel) || cni == "" {
			continue
		}
		for _, name := range m.devices {
			if _, ok := s.Device(name); ok {
				found = append(found, "device "+name+" of "+m.cni)
			}
		}
		if s.Chains == nil {
			continue
		}
		for _, prefix := range m.chains {
			if n := s.Chains.Prefixes[prefix]; n > 0 {
				found = append(found, fmt.Sprintf("%d chains %s of %s", n, prefix, m.cni))
			}
		}
	}
	return found
}

// leftovers doubts a cluster with leftovers of another CNI, because packets pass them too.
func (d *detective) leftovers() {
	for _, h := range d.hosts() {
		if found := Leftovers(d.CNI, h.State); len(found) > 0 {
			d.doubt("%s has leftovers of another CNI: %s", h.Node, strings.Join(found, ", "))
		}
	}
	if d.CNI == "" || d.CNI == flannel || d.CNI == canal {
		return
	}
	var nodes []string
	for _, n := range d.Nodes {
		if n.Annotations[flannelBackend] != "" {
			nodes = append(nodes, n.Name)
		}
	}
	if slices.Sort(nodes); len(nodes) > 0 {
		d.doubt("annotations of flannel are on %s, and the CNI is %s", few(nodes), d.CNI)
	}
}
