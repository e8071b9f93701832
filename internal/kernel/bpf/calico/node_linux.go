package calico

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
)

// kind is enum kind of state.h: the side of a device that a program handles.
type kind uint8

const (
	fromWorkload kind = iota
	toWorkload
	fromHost
	toHost
	fromTunnel
	toTunnel
	fromService
)

// Slots of the jump table, as in state.h.
const (
	jumpAccepted = 8
	jumpDenied   = 16
	jumpNodePort = 17
	jumpPolicy   = 32
	jumpSlots    = 4096
)

// Flags of a route, as in state.h.
const (
	routeWorkload = 1 << 0
	routeLocal    = 1 << 1
	routeHost     = 1 << 2
	routeTunneled = 1 << 3
	routeNATOut   = 1 << 4
	routeInPool   = 1 << 5
)

// Node is the dataplane of one node, loaded and attached. Its methods may be called from any goroutine and from any
// namespace.
type Node struct {
	opts   Options
	family *family
	tunnel uint32
	mains  *ebpf.Collection
	entry  *ebpf.CollectionSpec
	cache  *btf.Cache

	mu        sync.Mutex
	links     []io.Closer
	workloads map[string]*workload // by device
	next      uint32               // the first jump slot that was never used
	free      []uint32             // jump slots that are unused again
	services  map[frontend]*service
	nextID    uint32
}

type workload struct {
	links []io.Closer
	// ingress and egress are the jump slots of the policy programs, in the order in which they run.
	ingress, egress []uint32
	ip              netip.Addr
}

// Load loads the node's programs and attaches them to its own devices. Close detaches everything; so does the end of
// the process. attach.VerifierLog returns the verifier's log for an error.
func Load(o Options) (*Node, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("calico dataplane: %w", err)
	}
	n := &Node{
		opts: o, family: familyOf(o.NodeIP), cache: btf.NewCache(), workloads: map[string]*workload{}, next: jumpPolicy,
		services: map[frontend]*service{},
	}
	if err := n.loadAndAttach(); err != nil {
		return nil, errors.Join(fmt.Errorf("calico dataplane: %w", err), n.Close())
	}
	return n, nil
}

func (n *Node) loadAndAttach() error {
	spec, err := n.family.mains()
	if err != nil {
		return err
	}
	n.setCapacities(spec)
	if n.entry, err = n.family.preamble(); err != nil {
		return err
	}
	n.setCapacities(n.entry)
	if n.mains, err = attach.Load("calico main", spec, ebpf.CollectionOptions{Cache: n.cache}); err != nil {
		return err
	}
	if err := n.fillJumpTable(); err != nil {
		return err
	}
	if err := n.SetRoute(Route{Prefix: hostPrefix(n.opts.NodeIP), Kind: LocalHost}); err != nil {
		return err
	}
	if n.opts.Tunnel != "" {
		dev, err := attach.Index(n.opts.NS, n.opts.Tunnel)
		if err != nil {
			return err
		}
		n.tunnel = uint32(dev)
	}
	for _, at := range []struct {
		device string
		kind   kind
	}{
		{n.opts.Tunnel, fromTunnel}, {n.opts.Tunnel, toTunnel}, {n.opts.ServiceDevice, fromService},
		{n.opts.Wire, fromHost}, {n.opts.Wire, toHost},
	} {
		if at.device == "" {
			continue
		}
		if err := n.attachPreamble(&n.links, at.device, at.kind, 0); err != nil {
			return err
		}
	}
	return nil
}

// setCapacities sets the capacities of a specification's tables.
func (n *Node) setCapacities(spec *ebpf.CollectionSpec) {
	flows := uint32(cmp.Or(n.opts.Flows, 65536))
	// connect.bpf.c has no flows, but shares the header that declares them.
	if m := spec.Maps[n.family.tables+"ct"]; m != nil {
		m.MaxEntries = flows + uint32(n.opts.Connections)
	}
	spec.Maps[n.family.tables+"nat_aff"].MaxEntries = flows
	for name, entries := range map[string]int{"nat_fe": n.opts.Frontends, "nat_be": n.opts.Endpoints} {
		m := spec.Maps[n.family.tables+name]
		m.MaxEntries = max(m.MaxEntries, uint32(entries))
	}
}

// fillJumpTable puts the node's programs into their slots of the jump table.
func (n *Node) fillJumpTable() error {
	jump := n.mains.Maps["cali_jump"]
	slots := map[uint32]string{jumpDenied: "denied", jumpNodePort: "nodeport"}
	for k, name := range []string{"from_workload", "to_workload", "from_host", "to_host", "from_tunnel", "to_tunnel", "from_service"} {
		slots[uint32(k)] = name
		slots[uint32(jumpAccepted+k)] = name + "_accepted"
	}
	for slot, name := range slots {
		if err := jump.Put(slot, n.mains.Programs[name]); err != nil {
			return fmt.Errorf("jump to %s: %w", name, err)
		}
	}
	return nil
}

// attachPreamble attaches a preamble to the side k of a device, and appends the link to links. The preamble has the
// constants of this side, and calls the programs of kind k. policy is the slot of the policy program, 0 for none.
func (n *Node) attachPreamble(links *[]io.Closer, device string, k kind, policy uint32) error {
	spec := n.entry.Copy()
	c := ifaceConfig{host: n.opts.NodeIP, tunnel: n.tunnel, policy: policy, kind: k, dsr: n.opts.DSR}
	if err := spec.Variables["iface"].Set(c.encode()); err != nil {
		return err
	}
	coll, err := attach.Load("calico preamble", spec, n.loadOptions(spec))
	if err != nil {
		return err
	}
	defer coll.Close()
	hook := attach.Ingress
	if k == toWorkload || k == toHost || k == toTunnel {
		hook = attach.Egress
	}
	l, err := attach.Device(n.opts.NS, device, hook, coll.Programs["preamble"])
	if err != nil {
		return err
	}
	*links = append(*links, l)
	return nil
}

// loadOptions returns load options for spec. With them, its collection uses the node's tables instead of its own.
func (n *Node) loadOptions(spec *ebpf.CollectionSpec) ebpf.CollectionOptions {
	return attach.Shared(n.mains.Maps, spec, n.cache)
}

// AddWorkload attaches a pod's programs to its device, and adds a route to its address. All traffic is allowed until
// SetPolicy.
func (n *Node) AddWorkload(w Workload) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.family.has(w.IP) {
		return fmt.Errorf("calico dataplane: workload %s: not an %s address, as the node's is", w.IP, n.family.name)
	}
	if n.workloads[w.Device] != nil {
		return fmt.Errorf("calico dataplane: workload %s: device %s has one already", w.IP, w.Device)
	}
	if err := n.addWorkload(w); err != nil {
		return errors.Join(fmt.Errorf("calico dataplane: workload %s: %w", w.IP, err), n.detachWorkload(w.Device))
	}
	return nil
}

func (n *Node) addWorkload(w Workload) error {
	dev, err := attach.Index(n.opts.NS, w.Device)
	if err != nil {
		return err
	}
	added := &workload{ip: w.IP}
	n.workloads[w.Device] = added
	for _, slots := range []*[]uint32{&added.ingress, &added.egress} {
		first, err := n.takeSlot()
		if err != nil {
			return err
		}
		*slots = []uint32{first}
	}
	if err := n.setPolicy(added, Policy{}); err != nil {
		return err
	}
	flags := uint32(routeWorkload | routeLocal | routeInPool)
	if w.NATOutgoing {
		flags |= routeNATOut
	}
	r := n.family.routeValue(flags, netip.Addr{}, uint32(dev))
	if err := n.table("routes").Put(routeKey(hostPrefix(w.IP)), r); err != nil {
		return err
	}
	if err := n.attachPreamble(&added.links, w.Device, fromWorkload, added.egress[0]); err != nil {
		return err
	}
	return n.attachPreamble(&added.links, w.Device, toWorkload, added.ingress[0])
}

// RemoveWorkload detaches the programs of a pod from its device, and removes the route to its address.
func (n *Node) RemoveWorkload(device string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	w := n.workloads[device]
	if w == nil {
		return fmt.Errorf("calico dataplane: no workload on device %s to remove", device)
	}
	err := errors.Join(n.detachWorkload(device), attach.Absent(n.table("routes").Delete(routeKey(hostPrefix(w.ip)))))
	slots := slices.Concat(w.ingress, w.egress)
	for _, slot := range slots {
		err = errors.Join(err, attach.Absent(n.mains.Maps["cali_jump"].Delete(slot)))
	}
	n.free = append(n.free, slots...)
	if err != nil {
		return fmt.Errorf("calico dataplane: remove workload on %s: %w", device, err)
	}
	return nil
}

// takeSlot returns an unused slot of the jump table, and marks the slot as used. It fails if no slot is free.
func (n *Node) takeSlot() (uint32, error) {
	if last := len(n.free) - 1; last >= 0 {
		slot := n.free[last]
		n.free = n.free[:last]
		return slot, nil
	}
	if n.next == jumpSlots {
		return 0, fmt.Errorf("the jump table of a node has no room for more than %d policy programs: take fewer pods or policies", jumpSlots-jumpPolicy)
	}
	n.next++
	return n.next - 1, nil
}

// detachWorkload detaches a pod's programs and removes the pod from n.workloads. It does nothing for an unknown device.
func (n *Node) detachWorkload(device string) error {
	w := n.workloads[device]
	if w == nil {
		return nil
	}
	delete(n.workloads, device)
	return attach.CloseAll(w.links)
}

// SetRoute adds or replaces a route. The longest prefix wins.
func (n *Node) SetRoute(r Route) error {
	flags := uint32(0)
	switch r.Kind {
	case RemoteWorkload:
		flags = routeWorkload | routeInPool
	case Tunneled:
		flags = routeWorkload | routeInPool | routeTunneled
		if n.opts.Tunnel == "" {
			return fmt.Errorf("calico dataplane: route %s: the node has no tunnel device", r.Prefix)
		}
	case LocalHost:
		flags = routeHost | routeLocal
	case RemoteHost:
		flags = routeHost
	case Pool:
		flags = routeInPool
	}
	hop := r.Kind <= Tunneled
	if !n.family.has(r.Prefix.Addr()) || hop && !n.family.has(r.NextHop) {
		return fmt.Errorf("calico dataplane: route %s by %s: not %s, as the node is", r.Prefix, r.NextHop, n.family.name)
	}
	if !hop {
		r.NextHop = netip.Addr{}
	}
	if err := n.table("routes").Put(routeKey(r.Prefix), n.family.routeValue(flags, r.NextHop, 0)); err != nil {
		return fmt.Errorf("calico dataplane: route %s: %w", r.Prefix, err)
	}
	return nil
}

// AttachCgroup attaches the program that translates TCP services in connect(), for the processes in the cgroup (v2) at
// path and below it.
func (n *Node) AttachCgroup(path string) error {
	spec, err := n.family.connect()
	if err != nil {
		return err
	}
	n.setCapacities(spec)
	coll, err := attach.Load("calico connect", spec, n.loadOptions(spec))
	if err != nil {
		return err
	}
	defer coll.Close()
	l, err := attach.Cgroup(path, n.family.connectAt, coll.Programs[n.family.connectName])
	if err != nil {
		return fmt.Errorf("calico dataplane: %w", err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.links = append(n.links, l)
	return nil
}

// outcomes has the names of enum count of state.h.
var outcomes = []string{
	"passed in", "passed out", "malformed packet", "denied by policy", "source address is not the sender's",
	"service has no backend", "flow could not be remembered", "no route", "time to live exceeded",
	"packet could not be written", "jump to a program that is not there", "unknown protocol",
	"fragment without its first", "too big for the tunnel",
}

// flowNotCreated is the outcome of a packet whose flow did not fit into the table.
const flowNotCreated = 6

// Counters returns the outcomes that the programs counted since Load, summed over CPUs.
func (n *Node) Counters() ([]attach.Counter, error) {
	list := make([]attach.Counter, len(outcomes))
	for i, name := range outcomes {
		var perCPU []uint64
		if err := n.mains.Maps["cali_counters"].Lookup(uint32(i), &perCPU); err != nil {
			return nil, fmt.Errorf("calico dataplane: counters: %w", err)
		}
		list[i] = attach.Counter{Outcome: name, Drop: i > 1, Full: i == flowNotCreated}
		for _, v := range perCPU {
			list[i].Packets += v
		}
	}
	return list, nil
}

// Close detaches every program and frees the tables.
func (n *Node) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var errs []error
	for device := range n.workloads {
		errs = append(errs, n.detachWorkload(device))
	}
	errs = append(errs, attach.CloseAll(n.links))
	n.links = nil
	if n.mains != nil {
		n.mains.Close()
	}
	return errors.Join(errs...)
}

// table returns the node's table of this name, for its family.
func (n *Node) table(name string) *ebpf.Map { return n.mains.Maps[n.family.tables+name] }

// hostPrefix returns the prefix that has only the address a.
func hostPrefix(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }
