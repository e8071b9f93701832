package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/kernel/proc"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/condition"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// switchBridge is the name of the bridge in the switch.
const switchBridge = "br0"

// ageing is how long the switch keeps a forwarding entry, in hundredths of a second: a day. If an entry expired between
// two trials, the switch would flood the first packets of the second trial.
const ageing = 24 * 3600 * 100

// builder makes one instance. Each step covers all namespaces.
type builder struct {
	lab   *Lab
	spec  instanceSpec
	place placement
	inst  *Instance
	// at has a handle for each host with its own namespace.
	at map[*Host]*link.Handle
}

// buildInstance raises one instance. On failure it removes everything that it created.
func (l *Lab) buildInstance(ctx context.Context, spec instanceSpec) (*Instance, error) {
	b := &builder{lab: l, spec: spec, place: divideCPUs(l.options.Lab.CPU, l.cpus, spec.Lab.Nodes), at: map[*Host]*link.Handle{},
		inst: &Instance{Name: spec.Name, Profile: spec.Profile, Spec: spec, lab: l}}
	if m := spec.Profile.Model; m != "" {
		b.inst.StandIn = append(b.inst.StandIn, m)
	}
	defer func() {
		for _, h := range b.at {
			h.Close()
		}
	}()
	if spec.Lab.RPS.Explicit() && b.place.mode == condition.PlacementOne {
		return nil, fmt.Errorf("profile %q: %w", spec.Name, errOneCPU)
	}
	err := b.runSteps(ctx, step{"namespaces", b.makeNamespaces}, step{"underlay", b.makeUnderlay}, step{"dataplane", b.makeDataplane}, step{"NIC model", b.configureDevices})
	if err == nil {
		err = b.programNodes(ctx)
	}
	if err == nil {
		err = b.runSteps(ctx, step{"changes", b.applyChanges})
	}
	if err != nil {
		b.inst.close()
		return nil, fmt.Errorf("profile %q: %w", spec.Name, err)
	}
	return b.inst, nil
}

// step is one of the steps that raise an instance.
type step struct {
	name string
	do   func(context.Context) error
}

// runSteps performs steps in order until one fails. With Options.Account, each step waits while another instance
// measures the cost of its state.
func (b *builder) runSteps(ctx context.Context, steps ...step) error {
	for _, s := range steps {
		if b.lab.options.Account {
			b.lab.alone.RLock()
		}
		err := ctx.Err()
		if err == nil {
			err = s.do(ctx)
		}
		if b.lab.options.Account {
			b.lab.alone.RUnlock()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// programNodes creates the rules and programs of the instance. With Options.Account it measures their cost while no other
// instance is raised, and sets Instance.Raised.
func (b *builder) programNodes(ctx context.Context) error {
	steps := []step{{"rules", b.loadRules}, {"programs", b.loadPrograms}}
	if !b.lab.options.Account {
		return b.runSteps(ctx, steps...)
	}
	b.lab.alone.Lock()
	defer b.lab.alone.Unlock()
	maps, _ := attach.MapMemory() // without the right to read it the number is missing
	before, began := proc.Spent(), time.Now()
	for _, s := range steps {
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	took, after := time.Since(began), proc.Spent()
	b.inst.Raised = map[string]float64{metric.ProgramTime: float64(took), metric.ProgramCPU: float64(after.CPU - before.CPU)}
	if after.KernelMemory > before.KernelMemory && before.KernelMemory > 0 {
		b.inst.Raised[metric.StateMemory] = float64(after.KernelMemory - before.KernelMemory)
	}
	if now, err := attach.MapMemory(); err == nil {
		for id, bytes := range now {
			if _, old := maps[id]; !old {
				b.inst.Raised[metric.StateMaps] += float64(bytes)
			}
		}
	}
	return nil
}

// makeNamespaces makes the namespaces of all hosts, and fills Instance.Services.
func (b *builder) makeNamespaces(context.Context) (err error) {
	i, s := b.inst, b.spec
	if i.Switch, err = b.makeHost(s.Switch, nil); err != nil {
		return err
	}
	if i.External, err = b.makeHost(s.External, b.place.external); err != nil {
		return err
	}
	for k, n := range s.Nodes {
		if err := b.makeNode(n, b.place.nodes[k]); err != nil {
			return err
		}
	}
	for _, svc := range s.Services {
		i.Services = append(i.Services, Service{serviceSpec: svc, Backends: i.podsOf(svc.Backends)})
	}
	return nil
}

func (b *builder) makeHost(s hostSpec, cpus []int) (*Host, error) {
	h := &Host{Name: s.Name, Addr: s.Addr.Addr(), CPUs: cpus, aside: b.place.processCPUs(cpus)}
	return h, b.makeNamespace(h)
}

// makeNamespace makes the namespace of h, with loopback up and the settings of a new machine.
func (b *builder) makeNamespace(h *Host) error {
	ns, err := netns.New()
	if err != nil {
		return fmt.Errorf("%s: %w", h.Name, err)
	}
	h.NS = ns
	b.inst.owned = append(b.inst.owned, ns)
	at, err := link.Open(ns)
	if err != nil {
		return fmt.Errorf("%s: %w", h.Name, err)
	}
	b.at[h] = at
	if err := netns.SetSysctls(ns, b.spec.namespaceSettings()); err != nil {
		return fmt.Errorf("%s: %w", h.Name, err)
	}
	return at.Up(link.Loopback)
}

// sendBuffer and receiveBuffer are the least, default and largest buffers of a TCP socket, in bytes.
//
// The kernel's own largest send buffer is 4 MiB. The lab's is smaller: the packets of one flow in flight must fit
// into the receive backlog of a CPU. A namespace cannot change that backlog, which holds 1000 packets and drops
// further ones.
//
// The kernel's receive buffer begins at 128 KiB. Whether it grows within a trial's window is random. A flow that
// the buffer limits takes a sixth to a third less CPU time, because acknowledgements trigger the sends.
const (
	sendBuffer    = "4096 16384 1048576"
	receiveBuffer = "4096 6291456 6291456"
)

// namespaceSettings returns the sysctls of a new namespace. They set IPv4, and switch IPv6 on or off as the lab's
// family requires.
func (s instanceSpec) namespaceSettings() []netns.Setting {
	if s.Lab.Family == IPv6 {
		return slices.Concat(fresh6, fresh4)
	}
	return slices.Concat(without6, fresh4)
}

// zeroSettings returns the settings called directory+name, each with the value 0.
func zeroSettings(directory string, names ...string) []netns.Setting {
	return each.Of(names, func(name string) netns.Setting { return netns.Setting{Name: directory + name, Value: "0"} })
}

// without6 switches IPv6 off in an IPv4 lab, because router solicitations are unwanted traffic.
var without6 = []netns.Setting{
	{Name: "net/ipv6/conf/all/disable_ipv6", Value: "1", IfPresent: true},
	{Name: "net/ipv6/conf/default/disable_ipv6", Value: "1", IfPresent: true},
}

// fresh6 switches IPv6 on without duplicate address detection and router solicitations, which would delay devices.
var fresh6 = zeroSettings("net/ipv6/conf/", "all/disable_ipv6", "default/disable_ipv6", "all/accept_dad", "default/accept_dad",
	"default/accept_ra", "default/autoconf", "default/router_solicitations", "all/forwarding")

// fresh4 sets the lab's TCP buffers, and resets other IPv4 settings to the kernel's defaults. A new namespace inherits
// the host's values, for example for forwarding and filters, which must not affect a dataplane.
var fresh4 = slices.Concat([]netns.Setting{
	{Name: "net/ipv4/tcp_rmem", Value: receiveBuffer},
	{Name: "net/ipv4/tcp_wmem", Value: sendBuffer},
}, zeroSettings("net/ipv4/", "ip_forward", "conf/all/rp_filter", "conf/default/rp_filter", "conf/all/arp_ignore", "conf/default/arp_ignore",
	"conf/all/arp_announce", "conf/default/arp_announce", "conf/all/route_localnet", "conf/default/route_localnet",
	"conf/all/proxy_arp", "conf/default/proxy_arp"))

func (b *builder) makeNode(s dataplane.Node, cpus []int) error {
	n := &Node{
		Host:    Host{Name: s.Name, Addr: s.Addr.Addr(), CPUs: cpus, aside: b.place.processCPUs(cpus)},
		PodCIDR: s.PodCIDR, TunnelAddr: s.Tunnel.Addr,
	}
	b.inst.Nodes = append(b.inst.Nodes, n)
	var err error
	if n.group, err = b.lab.makeCgroup(b.spec.Name.String() + "/" + s.Name); err != nil {
		return err
	}
	if err := b.makeNamespace(&n.Host); err != nil {
		return err
	}
	for _, p := range s.Pods {
		pod := &Pod{Host: n.Host, Node: n, HostDevice: p.HostDevice, MAC: p.MAC.String(), HostNetwork: p.HostNetwork}
		pod.Name, pod.Addr = p.Name, p.Addr.Addr()
		n.Pods = append(n.Pods, pod)
		if p.HostNetwork {
			continue
		}
		if err := b.makeNamespace(&pod.Host); err != nil {
			return err
		}
	}
	return nil
}

// makeUnderlay makes the switch, and connects the nodes and the external client to it.
func (b *builder) makeUnderlay(context.Context) error {
	err := b.at[b.inst.Switch].Add(
		switchSettings,
		link.Bridge{Name: switchBridge, MAC: b.spec.Switch.MAC, MTU: b.spec.Lab.MTU, Ageing: ageing},
		link.Address{Dev: switchBridge, Addr: b.spec.Switch.Addr},
	)
	if err != nil {
		return fmt.Errorf("switch: %w", err)
	}
	if err := b.plugHost(b.inst.External, b.spec.External); err != nil {
		return fmt.Errorf("external: %w", err)
	}
	for k, n := range b.spec.Nodes {
		if err := b.plugHost(&b.inst.Nodes[k].Host, hostSpecOf(n)); err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
	}
	return b.plugInterfaces()
}

// switchSettings keep netfilter out of the switch, which represents hardware.
var switchSettings = link.Settings{
	{Name: "net/bridge/bridge-nf-call-iptables", Value: "0", IfPresent: true},
	{Name: "net/bridge/bridge-nf-call-ip6tables", Value: "0", IfPresent: true},
	{Name: "net/bridge/bridge-nf-call-arptables", Value: "0", IfPresent: true},
}

// plugHost connects a host to the switch, and adds its addresses, default route and neighbours on the underlay.
func (b *builder) plugHost(h *Host, s hostSpec) error {
	at, sw := b.at[h], b.at[b.inst.Switch]
	err := at.Add(link.Veth{Name: dataplane.NIC, MAC: s.MAC, Peer: s.Name, PeerIn: sw, MTU: b.spec.Lab.MTU})
	if err != nil {
		return err
	}
	port, err := b.insertLink(s.Name, s.Name)
	if err != nil {
		return err
	}
	err = sw.Add(
		link.Port{Bridge: switchBridge, Dev: port},
		// A switch floods packets for unknown stations. A NIC drops packets for other hosts. A veth does not, and
		// programs on it would accept the next node's frames.
		link.ForwardingEntry{Dev: port, MAC: s.MAC},
		link.StaticNeighbour{Dev: switchBridge, Addr: s.Addr.Addr(), MAC: s.MAC},
	)
	if err != nil {
		return err
	}
	return at.Add(append([]link.Thing{
		link.Address{Dev: dataplane.NIC, Addr: s.Addr},
		// Without a default route a Calico node would not answer its pods' ARP requests.
		link.Route{To: b.spec.net.everywhere, Via: b.spec.net.switchAddr, Dev: dataplane.NIC},
	}, b.staticNeighbours(s)...)...)
}

// staticNeighbours returns a host's static neighbour entries for the other hosts of the underlay. For the external client, it
// also returns entries for the load balancer addresses.
func (b *builder) staticNeighbours(s hostSpec) []link.Thing {
	peers := []hostSpec{b.spec.Switch, b.spec.External}
	peers = append(peers, each.Of(b.spec.Nodes, hostSpecOf)...)
	var list []link.Thing
	for _, peer := range peers {
		if peer.Name != s.Name {
			list = append(list, link.StaticNeighbour{Dev: dataplane.NIC, Addr: peer.Addr.Addr(), MAC: peer.MAC})
		}
	}
	for _, svc := range b.spec.Services {
		if s.Name == b.spec.External.Name && svc.Balanced.IsValid() {
			list = append(list, link.StaticNeighbour{Dev: dataplane.NIC, Addr: svc.Balanced, MAC: b.spec.Nodes[b.spec.announcerIndex()].MAC})
		}
	}
	return list
}

func hostSpecOf(n dataplane.Node) hostSpec { return hostSpec{Name: n.Name, Addr: n.Addr, MAC: n.MAC} }

// makeDataplane prepares the nodes, starts the programs of a profile file, connects the pods, and adds the routes between
// nodes.
func (b *builder) makeDataplane(ctx context.Context) error {
	d := b.spec.dataplane
	for k, n := range b.spec.Nodes {
		at := b.at[&b.inst.Nodes[k].Host]
		if err := at.Add(slices.Concat(b.forwardingSetting(), b.withWireGuardFallback(b.inst.Nodes[k], b.nodeDevices(n)))...); err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
		if err := b.startOwnPrograms(ctx, k); err != nil {
			return err
		}
		for j, p := range n.Pods {
			if p.HostNetwork {
				continue
			}
			if b.spec.Plugged() {
				if err := b.attachByPlugins(ctx, k, j); err != nil {
					return err
				}
				continue
			}
			if err := b.attachPod(at, n, p, b.at[&b.inst.Nodes[k].Pods[j].Host]); err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
		}
		for _, o := range b.spec.Nodes {
			if o.Name == n.Name {
				continue
			}
			if err := at.Add(d.JoinNodes(n, o)...); err != nil {
				return fmt.Errorf("%s: route to %s: %w", n.Name, o.Name, err)
			}
		}
	}
	return b.joinOwnNodes(ctx)
}

// forwardingSetting returns the setting that makes a node forward packets between its devices; none for a raw node.
func (b *builder) forwardingSetting() []link.Thing {
	name := "net/ipv4/ip_forward"
	switch {
	case b.spec.Profile.Name == profile.Raw:
		return nil
	case b.spec.Lab.Family == IPv6:
		name = "net/ipv6/conf/all/forwarding"
	}
	return []link.Thing{link.Settings{{Name: name, Value: "1"}}}
}

// attachPod connects a pod to its node, or to the switch if the dataplane does so. at is a handle of the node's
// namespace, in a handle of the pod's.
func (b *builder) attachPod(at *link.Handle, n dataplane.Node, p dataplane.Pod, in *link.Handle) error {
	if s, ok := b.spec.dataplane.(dataplane.Switched); ok {
		return b.at[b.inst.Switch].Add(s.PlugPod(switchBridge, p, in)...)
	}
	return at.Add(b.spec.dataplane.AttachPod(n, p, in)...)
}

// configureDevices applies the conditions of devices. All devices get the NIC model, BIG TCP and receive steering,
// and NICs get the line rate. It also prepares lossy links.
func (b *builder) configureDevices(context.Context) error {
	b.inst.nic = plan.NICIdeal
	for h, at := range b.at {
		if b.spec.Lab.NIC == plan.NICWire {
			if err := b.inst.applyNICModel(h, at, plan.NICWire); err != nil {
				return fmt.Errorf("%s: %w", h.Name, err)
			}
		}
		if b.spec.Lab.BigTCP == condition.BigTCPOn {
			if err := at.LimitSize(BigTCP); err != nil {
				return fmt.Errorf("%s: %w", h.Name, advice.With(err, "leave out big-tcp, or take Linux 6.3 or newer"))
			}
		}
		if err := b.steerHost(h, at); err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
	}
	b.inst.nic = b.spec.Lab.NIC
	for _, h := range b.inst.wireSenders() {
		rate := b.lineRate(h)
		if rate == 0 {
			continue
		}
		for _, dev := range b.inst.NICs(h) {
			if err := b.at[h].Shape(dev, rate); err != nil {
				return fmt.Errorf("%s: %w", h.Name, err)
			}
		}
	}
	return b.addLossyLinks()
}

// BigTCP is the maximum length of a super-packet with BIG TCP, in bytes.
const BigTCP = 192 << 10

// errOneCPU is the error of a variant that sets rps while all work is on one CPU.
var errOneCPU = advice.With(errors.New("all work is on one CPU, so receive packet steering changes nothing"), "take --cpu split")

// steerHost makes the receive work of a host's devices run on the host's CPUs, if placement and rps ask for it. It
// does not change the switch. If the kernel cannot steer, it fails with rps=on. Otherwise it records the reason for
// Facts and returns nil.
func (b *builder) steerHost(h *Host, at *link.Handle) error {
	if b.place.mode != condition.PlacementSplit || b.spec.Lab.RPS == condition.RPSOff || h == b.inst.Switch {
		return nil
	}
	err := at.Steer(h.CPUs)
	if h.Steered = err == nil; err != nil && b.spec.Lab.RPS != condition.RPSOn {
		b.lab.recordSteeringError(err)
		return nil
	}
	if err != nil {
		return advice.With(err, "leave out rps=on: without it a machine that cannot be steered is measured as it is")
	}
	return nil
}

// loadRules loads the netfilter rules of the daemons of all nodes. A raw node has no daemons.
func (b *builder) loadRules(ctx context.Context) error {
	if b.spec.Profile.Name == profile.Raw {
		return nil
	}
	return each.AtOnce(b.inst.Nodes, func(k int, n *Node) (err error) {
		if n.own != nil {
			n.before, err = b.lab.tools.currentRules(ctx, n.NS)
		}
		if err == nil {
			err = b.lab.loadNetfilter(ctx, n.NS, b.spec, k)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
		return nil
	})
}

// loadPrograms loads the BPF programs of all nodes concurrently, and records the stand-ins among them in
// Instance.StandIn.
func (b *builder) loadPrograms(context.Context) error {
	d, ok := b.spec.dataplane.(dataplane.Programmed)
	if !ok {
		return nil
	}
	err := each.AtOnce(b.inst.Nodes, func(k int, n *Node) (err error) {
		if n.programs, err = d.Program(b.inst.programInput(k)); err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
		return nil
	})
	for _, n := range b.inst.Nodes {
		if s := n.programs.StandIn; s != "" && !slices.Contains(b.inst.StandIn, s) {
			b.inst.StandIn = append(b.inst.StandIn, s)
		}
	}
	return err
}

// programInput returns the input for the BPF programs of node k.
func (i *Instance) programInput(k int) dataplane.Programming {
	n, s := i.Nodes[k], i.Spec
	return dataplane.Programming{
		NS: n.NS, Node: s.Nodes[k], Others: slices.Concat(s.Nodes[:k], s.Nodes[k+1:]), Services: s.proxyServices(k),
		Cgroup: n.CgroupPath(), NoCgroup: i.lab.groups.failed, Policies: s.Lab.Policies, PoliciesUnselected: s.Lab.PoliciesUnselected,
		Connections: s.Lab.Connections,
	}
}

// close ends the programs of a profile file, and removes BPF programs, links, namespaces and cgroups. Errors are
// ignored.
func (i *Instance) close() {
	_ = i.endOwnPrograms() // removeInstance and Lab.Close have reported it
	var programs sync.WaitGroup
	for _, n := range i.Nodes {
		if n.programs.Closer != nil {
			programs.Go(func() { _ = n.programs.Close() }) // programs disappear with their device
		}
	}
	programs.Wait()
	for _, l := range i.lines {
		_ = l.Close() // closes its sockets despite an error
	}
	i.lines = nil
	for _, ns := range i.owned {
		_ = ns.Close() // closes the descriptor despite an error
	}
	i.owned = nil
	for _, n := range i.Nodes {
		_ = n.group.Close()
	}
}
