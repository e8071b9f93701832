package calico

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
)

// kind is enum kind of state.h.
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

// Slots of the jump table, as state.h has them.
const (
	jumpAccepted = 8
	jumpDenied   = 16
	jumpNodePort = 17
	jumpPolicy   = 32
	jumpSlots    = 4096
)

// Flags of a route, as state.h has them.
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
	tunnel uint32
	mains  *ebpf.Collection
	entry  *ebpf.CollectionSpec
	cache  *btf.Cache

	mu        sync.Mutex
	links     []io.Closer
	workloads map[string]*workload // by device
	free      []uint32             // jump slots that were given back
	next      uint32               // the first that was never given out
	services  map[frontend]*service
	nextID    uint32
}

type workload struct {
	Workload
	links   []io.Closer
	ingress uint32 // jump slots of the policy programs
	egress  uint32
}

// Load loads the node's programs and puts them on its own devices. Close takes everything off; so does the end of the
// process. An *attach.RefusedError carries the verifier's log.
func Load(o Options) (*Node, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("calico dataplane: %w", err)
	}
	n := &Node{
		opts: o, cache: btf.NewCache(), workloads: map[string]*workload{}, next: jumpPolicy,
		services: map[frontend]*service{},
	}
	if err := n.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("calico dataplane: %w", err), n.Close())
	}
	return n, nil
}

func (n *Node) load() error {
	spec, err := loadMains()
	if err != nil {
		return err
	}
	n.size(spec)
	if n.entry, err = loadPreamble(); err != nil {
		return err
	}
	n.size(n.entry)
	if n.mains, err = attach.Load("calico main", spec, ebpf.CollectionOptions{Cache: n.cache}); err != nil {
		return err
	}
	if err := n.fillJumps(); err != nil {
		return err
	}
	if err := n.SetRoute(Route{Prefix: netip.PrefixFrom(n.opts.NodeIP, 32), Kind: LocalHost}); err != nil {
		return err
	}
	if n.opts.Tunnel != "" {
		dev, err := n.device(n.opts.Tunnel)
		if err != nil {
			return err
		}
		n.tunnel = uint32(dev.Index)
		if err := n.enter(&n.links, n.opts.Tunnel, fromTunnel, 0); err != nil {
			return err
		}
		if err := n.enter(&n.links, n.opts.Tunnel, toTunnel, 0); err != nil {
			return err
		}
	}
	if n.opts.ServiceDevice != "" {
		if err := n.enter(&n.links, n.opts.ServiceDevice, fromService, 0); err != nil {
			return err
		}
	}
	if err := n.enter(&n.links, n.opts.Wire, fromHost, 0); err != nil {
		return err
	}
	return n.enter(&n.links, n.opts.Wire, toHost, 0)
}

func (n *Node) size(spec *ebpf.CollectionSpec) {
	flows := n.opts.Flows
	if flows == 0 {
		flows = 65536
	}
	// connect.bpf.c has no flows, but shares the header that declares them.
	if m := spec.Maps["cali_v4_ct"]; m != nil {
		m.MaxEntries = uint32(flows)
	}
	spec.Maps["cali_v4_nat_aff"].MaxEntries = uint32(flows)
}

func (n *Node) fillJumps() error {
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

// enter puts a preamble with the constants of one device and side in front of the programs of its kind.
func (n *Node) enter(links *[]io.Closer, device string, k kind, policy uint32) error {
	spec := n.entry.Copy()
	c := preambleIfaceConfig{HostIp: be32(n.opts.NodeIP), Tunnel: n.tunnel, Policy: policy, Kind: uint8(k)}
	if n.opts.DSR {
		c.Dsr = 1
	}
	if err := spec.Variables["iface"].Set(c); err != nil {
		return err
	}
	coll, err := attach.Load("calico preamble", spec, n.share(spec))
	if err != nil {
		return err
	}
	defer coll.Close()
	side := attach.Ingress
	if k == toWorkload || k == toHost || k == toTunnel {
		side = attach.Egress
	}
	l, err := attach.Device(n.opts.NS, device, side, coll.Programs["preamble"])
	if err != nil {
		return err
	}
	*links = append(*links, l)
	return nil
}

// share are the options that make a collection use the node's tables.
func (n *Node) share(spec *ebpf.CollectionSpec) ebpf.CollectionOptions {
	common := map[string]*ebpf.Map{}
	for name, m := range n.mains.Maps {
		if spec.Maps[name] != nil && name[0] != '.' {
			common[name] = m
		}
	}
	return ebpf.CollectionOptions{MapReplacements: common, Cache: n.cache}
}

// AddWorkload puts a pod's programs on its device and announces its address. All is allowed until SetPolicy.
func (n *Node) AddWorkload(w Workload) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !w.IP.Is4() {
		return fmt.Errorf("calico dataplane: workload %s: not an IPv4 address", w.IP)
	}
	if n.workloads[w.Device] != nil {
		return fmt.Errorf("calico dataplane: workload %s: device %s has one already", w.IP, w.Device)
	}
	if err := n.addWorkload(w); err != nil {
		return errors.Join(fmt.Errorf("calico dataplane: workload %s: %w", w.IP, err), n.removeWorkload(w.Device))
	}
	return nil
}

func (n *Node) addWorkload(w Workload) error {
	dev, err := n.device(w.Device)
	if err != nil {
		return err
	}
	added := &workload{Workload: w}
	n.workloads[w.Device] = added
	if added.ingress, err = n.slot(); err != nil {
		return err
	}
	if added.egress, err = n.slot(); err != nil {
		return err
	}
	if err := n.setPolicy(added, Policy{}); err != nil {
		return err
	}
	r := mainsRouteValue{Flags: routeWorkload | routeLocal | routeInPool, Ifindex: uint32(dev.Index)}
	if w.NATOutgoing {
		r.Flags |= routeNATOut
	}
	if err := n.mains.Maps["cali_v4_routes"].Put(routeKey(netip.PrefixFrom(w.IP, 32)), r); err != nil {
		return err
	}
	if err := n.enter(&added.links, w.Device, fromWorkload, added.egress); err != nil {
		return err
	}
	return n.enter(&added.links, w.Device, toWorkload, added.ingress)
}

func (n *Node) slot() (uint32, error) {
	if k := len(n.free); k > 0 {
		s := n.free[k-1]
		n.free = n.free[:k-1]
		return s, nil
	}
	if n.next == jumpSlots {
		return 0, fmt.Errorf("no room for more than %d workloads on a node", (jumpSlots-jumpPolicy)/2)
	}
	n.next++
	return n.next - 1, nil
}

// RemoveWorkload takes a pod's programs off. One that is not there is no error.
func (n *Node) RemoveWorkload(device string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.removeWorkload(device)
}

func (n *Node) removeWorkload(device string) error {
	w := n.workloads[device]
	if w == nil {
		return nil
	}
	delete(n.workloads, device)
	errs := []error{attach.CloseAll(w.links), gone(n.mains.Maps["cali_v4_routes"].Delete(routeKey(netip.PrefixFrom(w.IP, 32))))}
	for _, s := range []uint32{w.ingress, w.egress} {
		if s != 0 {
			errs = append(errs, gone(n.mains.Maps["cali_jump"].Delete(s)))
			n.free = append(n.free, s)
		}
	}
	return errors.Join(errs...)
}

// SetRoute announces what is behind a prefix; the longest decides.
func (n *Node) SetRoute(r Route) error {
	v := mainsRouteValue{}
	switch r.Kind {
	case RemoteWorkload:
		v.Flags = routeWorkload | routeInPool
	case Tunneled:
		v.Flags = routeWorkload | routeInPool | routeTunneled
		if n.opts.Tunnel == "" {
			return fmt.Errorf("calico dataplane: route %s: the node has no tunnel device", r.Prefix)
		}
	case LocalHost:
		v.Flags = routeHost | routeLocal
	case RemoteHost:
		v.Flags = routeHost
	case Pool:
		v.Flags = routeInPool
	}
	if !r.Prefix.Addr().Is4() || (r.Kind <= Tunneled && !r.NextHop.Is4()) {
		return fmt.Errorf("calico dataplane: route %s by %s: not IPv4", r.Prefix, r.NextHop)
	}
	if r.NextHop.Is4() {
		v.NextHop = be32(r.NextHop)
	}
	if err := n.mains.Maps["cali_v4_routes"].Put(routeKey(r.Prefix), v); err != nil {
		return fmt.Errorf("calico dataplane: route %s: %w", r.Prefix, err)
	}
	return nil
}

// AttachCgroup translates TCP services in connect() for the processes in the cgroup (v2) at path and below it.
func (n *Node) AttachCgroup(path string) error {
	spec, err := loadConnect()
	if err != nil {
		return err
	}
	n.size(spec)
	coll, err := attach.Load("calico connect", spec, n.share(spec))
	if err != nil {
		return err
	}
	defer coll.Close()
	l, err := attach.Cgroup(path, ebpf.AttachCGroupInet4Connect, coll.Programs["connect4"])
	if err != nil {
		return fmt.Errorf("calico dataplane: %w", err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.links = append(n.links, l)
	return nil
}

// outcomes are enum count of state.h.
var outcomes = []string{
	"passed in", "passed out", "malformed packet", "denied by policy", "source address is not the sender's",
	"service has no backend", "flow could not be remembered", "no route", "time to live exceeded",
	"packet could not be written", "jump to a program that is not there", "unknown protocol",
	"fragment without its first", "too big for the tunnel",
}

// Counters returns what the programs counted since Load, summed over CPUs.
func (n *Node) Counters() ([]Counter, error) {
	list := make([]Counter, len(outcomes))
	for i, name := range outcomes {
		var perCPU []uint64
		if err := n.mains.Maps["cali_counters"].Lookup(uint32(i), &perCPU); err != nil {
			return nil, fmt.Errorf("calico dataplane: counters: %w", err)
		}
		list[i] = Counter{Outcome: name, Drop: i > 1}
		for _, v := range perCPU {
			list[i].Packets += v
		}
	}
	return list, nil
}

// Close takes every program off and frees the tables.
func (n *Node) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var errs []error
	for device := range n.workloads {
		errs = append(errs, n.removeWorkload(device))
	}
	errs = append(errs, attach.CloseAll(n.links))
	n.links = nil
	if n.mains != nil {
		n.mains.Close()
	}
	return errors.Join(errs...)
}

func (n *Node) device(name string) (*net.Interface, error) {
	var dev *net.Interface
	err := n.opts.NS.Do(func() (err error) {
		dev, err = net.InterfaceByName(name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("device %s: %w", name, err)
	}
	return dev, nil
}

// gone turns "was not there" into success.
func gone(err error) error {
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil
	}
	return err
}

func routeKey(p netip.Prefix) mainsRouteKey {
	return mainsRouteKey{Prefixlen: uint32(p.Bits()), Addr: be32(p.Masked().Addr())}
}

func be32(a netip.Addr) uint32 {
	b := a.As4()
	return binary.NativeEndian.Uint32(b[:])
}

func be16(port uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, port))
}
