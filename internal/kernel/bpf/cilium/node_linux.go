package cilium

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
)

// Node is the dataplane of one node, loaded and attached. Its methods may be called from any goroutine and from any
// namespace.
type Node struct {
	opts   Options
	fam    *family
	config hostNodeConfig
	host   *ebpf.Collection
	// wireguard has the programs of the WireGuard device, nil without one.
	wireguard *ebpf.Collection
	lxc       *ebpf.CollectionSpec
	cache     *btf.Cache
	links     []io.Closer

	mu        sync.Mutex
	endpoints map[uint16]*pod
	services  services
}

// perObject has the names of the tables that collections do not share.
var perObject = []string{"cilium_calls", "cilium_scratch", "cilium_policy"}

// hostCalls and lxcCalls have the slots of the tail calls, as the C files number them.
var (
	hostCalls = map[uint32]string{
		1: "handle_netdev", 2: "handle_overlay", 3: "handle_host", 4: "nat_egress", 5: "dsr", 6: "nat_ingress", 7: "nat_fwd",
		8: "snat_fwd",
	}
	lxcCalls = map[uint32]string{1: "handle_ip", 2: "handle_neighbour", 3: "handle_ip_cont", 4: "reverse", 5: "arrive", 6: "admit"}
)

// Load loads the node's programs for the family of NodeIP, and attaches them to the node's devices. Close detaches
// them; so does the end of the process. attach.VerifierLog returns the verifier's log for an error.
func Load(o Options) (*Node, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("cilium dataplane: %w", err)
	}
	o.Sizes = o.Sizes.withDefaults()
	n := newNode(o)
	if err := n.loadAndAttach(); err != nil {
		return nil, errors.Join(fmt.Errorf("cilium dataplane: %w", err), n.Close())
	}
	return n, nil
}

func newNode(o Options) *Node {
	return &Node{
		opts: o, fam: familyOf(o.NodeIP), cache: btf.NewCache(), endpoints: map[uint16]*pod{},
		services: services{known: map[frontend]*service{}, backends: map[backend]*backendRef{}},
	}
}

func (n *Node) loadAndAttach() error {
	if err := n.fillConfig(); err != nil {
		return err
	}
	spec, err := n.fam.host()
	if err != nil {
		return err
	}
	if n.lxc, err = n.fam.lxc(); err != nil {
		return err
	}
	n.setCapacities(spec)
	n.setCapacities(n.lxc)
	if err := spec.Variables["node"].Set(n.config); err != nil {
		return err
	}
	n.removeUnusedEncryption(spec)
	if n.host, err = attach.Load("cilium host", spec, ebpf.CollectionOptions{Cache: n.cache}); err != nil {
		return err
	}
	if err := fillCallTable(n.host, hostCalls); err != nil {
		return err
	}
	if err := n.loadEncryption(); err != nil {
		return err
	}
	if err := n.SetNodeAddress(n.opts.NodeIP, Host); err != nil {
		return err
	}
	if err := n.SetNodeAddress(n.opts.Gateway, Host); err != nil {
		return err
	}
	return n.attachDevices()
}

// firstPort is the lowest port for source translation; lower ports belong to the node's own sockets.
const firstPort = 32768

// fillConfig sets n.config, the constants of the node's programs. It fails if a device is missing.
func (n *Node) fillConfig() error {
	o := n.opts
	c := hostNodeConfig{
		NodeIp: addressWords(o.NodeIP), Gateway: addressWords(o.Gateway), HostRouting: flagByte(!o.Legacy), Tunnel: flagByte(o.Overlay != ""),
		Masquerade: flagByte(o.Masquerade.IsValid()), PacketLb: flagByte(o.PacketLB), Nodeport: flagByte(o.NodePort != NodePortOff),
		Dsr: flagByte(o.NodePort == NodePortDSR), Maglev: flagByte(o.Maglev),
		NatMin: firstPort, NatMax: uint16(firstPort + o.Sizes.Ports - 1),
	}
	if o.Masquerade.IsValid() {
		c.NativeCidr = addressWords(o.Masquerade.Masked().Addr())
		c.NativeMask = n.fam.maskWords(o.Masquerade.Bits())
	}
	if o.Overlay != "" {
		dev, err := attach.Interface(o.NS, o.Overlay)
		if err != nil {
			return err
		}
		c.Overlay = uint32(dev.Index)
	}
	n.config = c
	return n.configureEncryption()
}

// setCapacities sets the capacities of a specification's tables. A shared table must have the same capacity in each
// specification.
func (n *Node) setCapacities(spec *ebpf.CollectionSpec) {
	s := n.opts.Sizes
	for name, entries := range map[string]int{
		"cilium_ct%d": s.FlowsTCP, "cilium_ct_any%d": s.FlowsAny, "cilium_snat%d": s.SNAT,
		"cilium_lb%d_affinity": s.FlowsAny, "cilium_lb%d_reverse_sk": s.FlowsAny,
	} {
		spec.Maps[n.fam.tableName(name)].MaxEntries = uint32(entries)
	}
	for _, name := range []string{"cilium_lb%d_services", "cilium_lb%d_backends", "cilium_lb%d_reverse_nat"} {
		m := spec.Maps[n.fam.tableName(name)]
		m.MaxEntries = max(m.MaxEntries, uint32(s.LB))
	}
	spec.Maps["cilium_policystats"].MaxEntries = uint32(s.Stats)
}

func (n *Node) attachDevices() error {
	o := n.opts
	list := []attach.Place{
		{Device: o.Wire, Hook: attach.Ingress, Program: n.programVariant("from_netdev")},
		{Device: o.Wire, Hook: attach.Egress, Program: n.programVariant("to_netdev")},
		{Device: o.Pair[0], Hook: attach.Egress, Program: "from_host"},
		{Device: o.Pair[0], Hook: attach.Ingress, Program: n.programVariant("to_host")},
		{Device: o.Pair[1], Hook: attach.Ingress, Program: n.programVariant("to_host")},
	}
	if o.Overlay != "" {
		list = append(list,
			attach.Place{Device: o.Overlay, Hook: attach.Ingress, Program: "from_overlay"},
			attach.Place{Device: o.Overlay, Hook: attach.Egress, Program: "to_overlay"})
	}
	links, err := attach.Devices(o.NS, n.host, list...)
	n.links = append(n.links, links...)
	if err != nil || n.wireguard == nil {
		return err
	}
	list = []attach.Place{{Device: o.Encryption.WireGuard, Hook: attach.Ingress, Program: "from_wireguard"}}
	if o.Overlay == "" {
		list = append(list, attach.Place{Device: o.Encryption.WireGuard, Hook: attach.Egress, Program: "to_wireguard"})
	}
	links, err = attach.Devices(o.NS, n.wireguard, list...)
	n.links = append(n.links, links...)
	return err
}

// AttachCgroup attaches the programs that translate services in socket calls, for the processes in the cgroup (v2) at
// path and below it. The programs also handle the next calls of existing sockets.
func (n *Node) AttachCgroup(path string) error {
	spec, err := n.fam.sock()
	if err != nil {
		return err
	}
	n.setCapacities(spec)
	if err := spec.Variables["node"].Set(n.config); err != nil {
		return err
	}
	coll, err := attach.Load("cilium socket", spec, n.loadOptions(spec))
	if err != nil {
		return err
	}
	defer coll.Close()
	for at, name := range n.fam.hooks {
		c, err := attach.Cgroup(path, at, coll.Programs[name])
		if err != nil {
			return fmt.Errorf("cilium dataplane: %w", err)
		}
		n.mu.Lock()
		n.links = append(n.links, c)
		n.mu.Unlock()
	}
	return nil
}

// SetIPCache sets the identity of a prefix. If tunnel is valid, packets for the prefix are encapsulated to that node,
// which may be of the other family. The longest prefix wins. AddEndpoint does this for the pods of this node.
func (n *Node) SetIPCache(prefix netip.Prefix, id Identity, tunnel netip.Addr) error {
	if !n.fam.has(prefix.Addr()) {
		return fmt.Errorf("cilium dataplane: announce %s: not an %s prefix, as the node's address is", prefix, n.fam)
	}
	e := hostIpcacheEntry{Identity: uint32(id)}
	if id != Host && id != RemoteNode && id != World {
		e.Key = n.encryptionKey()
	}
	if tunnel.IsValid() {
		const hasTunnel, tunnelV6 = 1 << 1, 1 << 2 // HAS_TUNNEL, TUNNEL_V6
		e.Tunnel, e.Flags = addressWords(tunnel.Unmap()), hasTunnel
		if isV6(tunnel) {
			e.Flags |= tunnelV6
		}
	}
	if err := n.host.Maps["cilium_ipcache"].Put(n.fam.ipcacheKey(prefix), e); err != nil {
		return fmt.Errorf("cilium dataplane: announce %s: %w", prefix, err)
	}
	return nil
}

// DeleteIPCache removes the entry of a prefix, if there is one.
func (n *Node) DeleteIPCache(prefix netip.Prefix) error {
	if err := attach.Absent(n.host.Maps["cilium_ipcache"].Delete(n.fam.ipcacheKey(prefix))); err != nil {
		return fmt.Errorf("cilium dataplane: withdraw %s: %w", prefix, err)
	}
	return nil
}

// SetNodeAddress adds an address of this node: packets for it go to the stack. id is its identity. Load has added
// NodeIP and Gateway.
func (n *Node) SetNodeAddress(a netip.Addr, id Identity) error {
	if !n.fam.has(a) {
		return fmt.Errorf("cilium dataplane: node address %s: not %s, as NodeIP is", a, n.fam)
	}
	const own = 1 // ENDPOINT_HOST
	if err := n.host.Maps["cilium_lxc"].Put(n.fam.endpointKey(a), hostEndpointInfo{Flags: own}); err != nil {
		return fmt.Errorf("cilium dataplane: node address %s: %w", a, err)
	}
	return n.SetIPCache(n.fam.hostPrefix(a), id, netip.Addr{})
}

// Close detaches every program and frees the tables.
func (n *Node) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	err := attach.CloseAll(n.links)
	n.links = nil
	for id, p := range n.endpoints {
		err = errors.Join(err, p.close())
		delete(n.endpoints, id)
	}
	if n.wireguard != nil {
		n.wireguard.Close()
	}
	if n.host != nil {
		n.host.Close()
	}
	return err
}

// loadOptions returns load options for spec. With them, its collection uses the node's tables instead of its own,
// except those in perObject.
func (n *Node) loadOptions(spec *ebpf.CollectionSpec) ebpf.CollectionOptions {
	return attach.Shared(n.host.Maps, spec, n.cache, perObject...)
}

// fillCallTable puts the programs of a collection into their slots of its table of tail calls.
func fillCallTable(coll *ebpf.Collection, slots map[uint32]string) error {
	for slot, name := range slots {
		if err := coll.Maps["cilium_calls"].Put(slot, coll.Programs[name]); err != nil {
			return fmt.Errorf("tail call %s: %w", name, err)
		}
	}
	return nil
}
