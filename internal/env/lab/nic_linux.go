package lab

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/condition"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// The NIC model is a state of an instance, which a trial may change: both models are measured on the same devices,
// rules and addresses. Under "ideal" super-packets cross everything. Under "wire" each device cuts what it sends:
//
//	TCP ─ super-packet ─ pod's device ─ frames ─ ... ─ frames ─ pod's device ─ TCP
//
// A veth cuts because its features are off. macvlan and ipvlan keep theirs. The kernel cuts packets with more segments
// than such a device may send. On a connection that was established under this limit, TCP never builds longer packets.
// So the limit is set after the trial's connections are established: TCP then has the cost of super-packets and the
// path the cost of frames, as with a veth.

// applyNICModel switches the devices of a host to a NIC model.
func (i *Instance) applyNICModel(h *Host, at *link.Handle, model plan.NIC) (err error) {
	if model == plan.NICWire {
		h.cut, err = at.SegmentationOff(i.keptGRO(h))
		return err
	}
	return at.SegmentationOn(h.cut)
}

// switchNICModel applies a NIC model to all hosts. It does nothing if the model is in force already.
func (i *Instance) switchNICModel(model plan.NIC) error {
	if i.nic == model {
		return nil
	}
	i.nic = "" // in between
	for _, h := range i.Distinct() {
		if err := i.withHandle(h, func(at *link.Handle) error { return i.applyNICModel(h, at, model) }); err != nil {
			return err
		}
	}
	i.nic = model
	return nil
}

// withHandle calls do with a handle of the host's namespace, and adds the host's name to its error.
func (i *Instance) withHandle(h *Host, do func(*link.Handle) error) error {
	if err := link.In(h.NS, do); err != nil {
		return fmt.Errorf("%s/%s: %w", i.Name, h.Name, err)
	}
	return nil
}

// nicModelSteps returns two functions that apply the NIC model of a trial on a route. ready must be called before the trial
// connects, connected when its connections are established.
func (i *Instance) nicModelSteps(r plan.Route, ends ...*Host) (ready, connected func() error) {
	model := cmp.Or(r.NIC, i.Spec.Lab.NIC)
	ready = func() error {
		err := i.switchNICModel(model)
		if err == nil {
			err = i.limitSegments(link.AnySegments, ends)
		}
		return err
	}
	return ready, func() error { return i.limitSegments(1, ends) }
}

// limitSegments sets how many segments a super-packet may have, on those devices of ends whose features cannot be switched
// off. It does nothing unless the model is "wire".
func (i *Instance) limitSegments(segments int, ends []*Host) error {
	if i.nic != plan.NICWire {
		return nil
	}
	for _, h := range distinctHosts(ends) {
		if len(h.cut.Kept) == 0 {
			continue
		}
		err := i.withHandle(h, func(at *link.Handle) error {
			for _, dev := range h.cut.Kept {
				if err := at.LimitSegments(dev, segments); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// keptGRO returns the receive merging (GRO) that a host keeps under "wire". Nodes keep it, and pods with a NIC of
// their own. It returns nil for other hosts and with gro=off.
func (i *Instance) keptGRO(h *Host) *link.Merge {
	if i.Spec.Lab.GRO == condition.GROOff || !slices.Contains(i.wireSenders(), h) {
		return nil
	}
	return &link.Merge{NICs: i.NICs(h), UDP: i.Spec.Lab.GRO == condition.GROUDP}
}

// NICs returns the names of a host's devices on the underlay.
func (i *Instance) NICs(h *Host) []string {
	list := []string{dataplane.NIC}
	for _, n := range i.Nodes {
		if h == &n.Host {
			list = append(list, each.Of(i.InterfacesOf(n), func(d dataplane.Interface) string { return d.Name })...)
		}
	}
	return list
}

// InterfacesOf returns the underlay devices of a node other than its NIC.
func (i *Instance) InterfacesOf(n *Node) []dataplane.Interface {
	return i.Spec.Nodes[slices.Index(i.Nodes, n)].Interfaces
}

// wireSenders returns the nodes, and also the pods if they are connected to the switch instead of their node.
func (i *Instance) wireSenders() []*Host {
	_, switched := i.Spec.dataplane.(dataplane.Switched)
	var list []*Host
	for _, n := range i.Nodes {
		list = append(list, &n.Host)
		for _, p := range n.Pods {
			if switched {
				list = append(list, &p.Host)
			}
		}
	}
	return list
}
