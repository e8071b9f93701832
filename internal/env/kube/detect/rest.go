package detect

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/env/kube/recipe/residue"
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

// Leftovers lists what CNIs other than cni have left on a node, as far as a look at it shows. Signs that several CNIs have
// in common are left out: one of them may be in force.
func Leftovers(cni string, s netstate.State) []string {
	if cni == "" {
		return nil
	}
	var found []string
	in := residue.Cluster{InForce: []string{cni, residue.KubeProxy, residue.Plugins}, Nodes: []residue.Node{{Looked: true, Sight: s}}}
	for _, l := range residue.Judge(in) {
		if !strings.Contains(l.Owner, " or ") && l.Kind != "file" {
			found = append(found, l.Kind+" "+l.Name+" of "+l.Owner)
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
	nodes := slices.Sorted(maps.Keys(d.flannelBackends()))
	if len(nodes) > 0 && d.CNI != "" && d.CNI != flannel && d.CNI != canal {
		d.doubt("annotations of flannel are on %s, and the CNI is %s", few(nodes), d.CNI)
	}
}
