package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/env/lab/dataplane"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/kernel/sysctl"
	"github.com/cnibench/cnibench/internal/profile"
)

// switchBridge is the name of the bridge in the switch.
const switchBridge = "br0"

// ageing keeps the switch's knowledge of who is where for a day, in hundredths of a second: an instance that waits for
// its next trial must not flood its first packets.
const ageing = 24 * 3600 * 100

// builder makes one instance. Its steps run in the order of build, each on all namespaces.
type builder struct {
	lab  *Lab
	spec Spec
	inst *Instance
	// at has a handle in the namespace of each host that has one of its own.
	at map[*Host]*link.Handle
}

// build raises one instance. On failure it leaves nothing behind.
func (l *Lab) build(ctx context.Context, spec Spec) (*Instance, error) {
	b := &builder{lab: l, spec: spec, at: map[*Host]*link.Handle{},
		inst: &Instance{Name: spec.Name, Profile: spec.Profile, Spec: spec, lab: l}}
	if m := spec.Profile.Model; m != "" {
		b.inst.StandIn = append(b.inst.StandIn, m)
	}
	defer func() {
		for _, h := range b.at {
			h.Close()
		}
	}()
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"namespaces", b.namespaces},
		{"underlay", b.underlay},
		{"dataplane", b.dataplane},
		{"NIC model", b.nics},
		{"rules", b.rules},
		{"programs", b.programs},
	} {
		began := time.Now()
		err := ctx.Err()
		if err == nil {
			err = step.do(ctx)
		}
		if err != nil {
			b.inst.close()
			return nil, fmt.Errorf("profile %q: %s: %w", spec.Name, step.name, err)
		}
		l.log.Debug("raised", "profile", spec.Name, "step", step.name, "took", time.Since(began))
	}
	return b.inst, nil
}

// namespaces makes the hosts.
func (b *builder) namespaces(context.Context) (err error) {
	i, s := b.inst, b.spec
	if i.Switch, err = b.host(s.Switch, nil); err != nil {
		return err
	}
	if i.External, err = b.host(s.External, b.lab.place.external); err != nil {
		return err
	}
	for k, n := range s.Nodes {
		if err := b.node(n, b.lab.place.nodes[k]); err != nil {
			return err
		}
	}
	for _, svc := range s.Services {
		out := Service{Name: svc.Name, VIP: svc.VIP, Port: svc.Port, TargetPort: svc.TargetPort, NodePort: svc.NodePort, Balanced: svc.Balanced}
		for _, r := range svc.Backends {
			out.Backends = append(out.Backends, i.Nodes[r.Node].Pods[r.Pod])
		}
		i.Services = append(i.Services, out)
	}
	return nil
}

func (b *builder) host(s HostSpec, cpus []int) (*Host, error) {
	h := &Host{Name: s.Name, Addr: s.Addr.Addr(), CPUs: cpus, aside: b.lab.place.asideOf(cpus)}
	return h, b.enter(h)
}

// enter makes the namespace of h, and its loopback and settings like those of any fresh machine.
func (b *builder) enter(h *Host) error {
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
	if err := sysctl.Set(ns, b.spec.fresh()); err != nil {
		return fmt.Errorf("%s: %w", h.Name, err)
	}
	return at.Up(link.Loopback)
}

// sendBuffer is the least, default and largest send buffer of a TCP socket, in bytes.
const sendBuffer = "4096 16384 1048576"

// fresh are the settings of a new namespace.
func (s Spec) fresh() []sysctl.Setting {
	if s.Lab.Family == IPv6 {
		return slices.Concat(fresh6, fresh)
	}
	return slices.Concat(without6, fresh)
}

// without6 switches IPv6 off in a lab of IPv4: router solicitations are noise.
var without6 = []sysctl.Setting{
	{Name: "net/ipv6/conf/all/disable_ipv6", Value: "1", IfPresent: true},
	{Name: "net/ipv6/conf/default/disable_ipv6", Value: "1", IfPresent: true},
}

// fresh6 is fresh for IPv6, without the waiting and the noise of a device that looks for its place: nobody is asked
// whether an address is taken, and nobody for a router.
var fresh6 = []sysctl.Setting{
	{Name: "net/ipv6/conf/all/disable_ipv6", Value: "0"},
	{Name: "net/ipv6/conf/default/disable_ipv6", Value: "0"},
	{Name: "net/ipv6/conf/all/accept_dad", Value: "0"},
	{Name: "net/ipv6/conf/default/accept_dad", Value: "0"},
	{Name: "net/ipv6/conf/default/accept_ra", Value: "0"},
	{Name: "net/ipv6/conf/default/autoconf", Value: "0"},
	{Name: "net/ipv6/conf/default/router_solicitations", Value: "0"},
	{Name: "net/ipv6/conf/all/forwarding", Value: "0"},
}

// fresh is what a new namespace gets from the kernel on a machine where nobody has changed anything. IPv4 settings are
// otherwise taken over from the host, and what the host forwards or filters is no fact about a dataplane.
var fresh = []sysctl.Setting{
	{Name: "net/ipv4/ip_forward", Value: "0"},
	{Name: "net/ipv4/tcp_rmem", Value: "4096 131072 6291456"},
	// Not the default of 4 MiB: what one flow may have under way must fit into the receive backlog of a CPU (1000 packets,
	// and no namespace's to change), or the lab drops what no network would.
	{Name: "net/ipv4/tcp_wmem", Value: sendBuffer},
	{Name: "net/ipv4/conf/all/rp_filter", Value: "0"},
	{Name: "net/ipv4/conf/default/rp_filter", Value: "0"},
	{Name: "net/ipv4/conf/all/arp_ignore", Value: "0"},
	{Name: "net/ipv4/conf/default/arp_ignore", Value: "0"},
	{Name: "net/ipv4/conf/all/arp_announce", Value: "0"},
	{Name: "net/ipv4/conf/default/arp_announce", Value: "0"},
	{Name: "net/ipv4/conf/all/route_localnet", Value: "0"},
	{Name: "net/ipv4/conf/default/route_localnet", Value: "0"},
	{Name: "net/ipv4/conf/all/proxy_arp", Value: "0"},
	{Name: "net/ipv4/conf/default/proxy_arp", Value: "0"},
}

func (b *builder) node(s dataplane.Node, cpus []int) error {
	n := &Node{
		Host:    Host{Name: s.Name, Addr: s.Addr.Addr(), CPUs: cpus, aside: b.lab.place.asideOf(cpus)},
		PodCIDR: s.PodCIDR, Blocks: s.Blocks, TunnelAddr: s.Tunnel.Addr,
	}
	b.inst.Nodes = append(b.inst.Nodes, n)
	group, err := b.lab.group(string(b.spec.Name) + "/" + s.Name)
	if err != nil {
		return err
	}
	n.Cgroup, n.group = group, group
	if err := b.enter(&n.Host); err != nil {
		return err
	}
	for _, p := range s.Pods {
		pod := &Pod{Host: n.Host, Node: n, HostDevice: p.HostDevice, MAC: p.MAC.String(), HostNetwork: p.HostNetwork}
		pod.Name, pod.Addr = p.Name, p.Addr.Addr()
		n.Pods = append(n.Pods, pod)
		if p.HostNetwork {
			continue
		}
		if err := b.enter(&pod.Host); err != nil {
			return err
		}
	}
	return nil
}

// underlay connects the nodes and the client outside to the switch.
func (b *builder) underlay(context.Context) error {
	at := b.at[b.inst.Switch]
	if err := sysctl.Set(b.inst.Switch.NS, switchSettings); err != nil {
		return fmt.Errorf("switch: %w", err)
	}
	err := at.AddBridge(link.Bridge{Name: switchBridge, MAC: b.spec.Switch.MAC, MTU: b.spec.Lab.MTU, Ageing: ageing})
	if err != nil {
		return fmt.Errorf("switch: %w", err)
	}
	if err := at.AddAddress(switchBridge, b.spec.Switch.Addr); err != nil {
		return fmt.Errorf("switch: %w", err)
	}
	if err := b.plug(b.inst.External, b.spec.External); err != nil {
		return fmt.Errorf("external: %w", err)
	}
	for k, n := range b.spec.Nodes {
		err := b.plug(&b.inst.Nodes[k].Host, HostSpec{Name: n.Name, Addr: n.Addr, MAC: n.MAC})
		if err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
	}
	return nil
}

// switchSettings keep netfilter out of the switch: it stands for hardware.
var switchSettings = []sysctl.Setting{
	{Name: "net/bridge/bridge-nf-call-iptables", Value: "0", IfPresent: true},
	{Name: "net/bridge/bridge-nf-call-ip6tables", Value: "0", IfPresent: true},
	{Name: "net/bridge/bridge-nf-call-arptables", Value: "0", IfPresent: true},
}

// plug connects a host to the switch and tells it its neighbours on the underlay.
func (b *builder) plug(h *Host, s HostSpec) error {
	at, sw := b.at[h], b.at[b.inst.Switch]
	err := at.AddVeth(link.Veth{Name: dataplane.NIC, MAC: s.MAC, Peer: s.Name, PeerIn: sw, MTU: b.spec.Lab.MTU})
	if err != nil {
		return err
	}
	port, err := b.wire(s.Name)
	if err != nil {
		return err
	}
	if err := sw.AddPort(switchBridge, port, false); err != nil {
		return err
	}
	// A switch floods what is for a host that it has not heard of. A NIC keeps that to itself; a veth does not, and programs on
	// it would take frames of the next node for their own.
	if err := sw.AddStation(port, s.MAC); err != nil {
		return err
	}
	if err := at.AddAddress(dataplane.NIC, s.Addr); err != nil {
		return err
	}
	// Without a default route elsewhere a Calico node would not answer its pods' ARP.
	if err := at.AddRoute(link.Route{To: b.spec.net.everywhere, Via: b.spec.net.switchAddr, Dev: dataplane.NIC}); err != nil {
		return err
	}
	if err := sw.AddNeighbour(switchBridge, s.Addr.Addr(), s.MAC); err != nil {
		return err
	}
	for _, peer := range b.onUnderlay() {
		if peer.Name == s.Name {
			continue
		}
		if err := at.AddNeighbour(dataplane.NIC, peer.Addr.Addr(), peer.MAC); err != nil {
			return err
		}
	}
	if s.Name != b.spec.External.Name {
		return nil
	}
	for _, svc := range b.spec.Services {
		if !svc.Balanced.IsValid() {
			continue
		}
		if err := at.AddNeighbour(dataplane.NIC, svc.Balanced, b.spec.Nodes[b.spec.announcer()].MAC); err != nil {
			return err
		}
	}
	return nil
}

// onUnderlay lists who has an address on the underlay by itself.
func (b *builder) onUnderlay() []HostSpec {
	all := []HostSpec{b.spec.Switch, b.spec.External}
	for _, n := range b.spec.Nodes {
		all = append(all, HostSpec{Name: n.Name, Addr: n.Addr, MAC: n.MAC})
	}
	return all
}

// dataplane connects the pods.
func (b *builder) dataplane(context.Context) error {
	d := b.spec.dataplane
	attach := d.AttachPod
	if s, ok := d.(dataplane.Switched); ok {
		to := dataplane.Switch{At: b.at[b.inst.Switch], Bridge: switchBridge}
		attach = func(_ dataplane.Node, _ *link.Handle, p dataplane.Pod, in *link.Handle) error {
			return s.PlugPod(to, p, in)
		}
	}
	for k, n := range b.spec.Nodes {
		at := b.at[&b.inst.Nodes[k].Host]
		if err := d.Prepare(n, at); err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
		for j, p := range n.Pods {
			if p.HostNetwork {
				continue
			}
			if err := attach(n, at, p, b.at[&b.inst.Nodes[k].Pods[j].Host]); err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
		}
		for _, o := range b.spec.Nodes {
			if o.Name == n.Name {
				continue
			}
			if err := d.JoinNodes(n, at, o); err != nil {
				return fmt.Errorf("%s: the way to %s: %w", n.Name, o.Name, err)
			}
		}
	}
	return nil
}

// nics makes all devices behave as the NIC model and the placement say.
func (b *builder) nics(context.Context) error {
	for h, at := range b.at {
		if b.spec.Lab.NIC == "wire" {
			if err := at.SegmentationOff(); err != nil {
				return fmt.Errorf("%s: %w", h.Name, err)
			}
		}
		if b.lab.place.mode == "split" && h != b.inst.Switch {
			if err := at.Steer(h.CPUs); err != nil {
				b.lab.notSteered(err)
			}
		}
	}
	if b.spec.Lab.LineRate == 0 {
		return nil
	}
	for _, h := range b.senders() {
		if err := b.at[h].Shape(dataplane.NIC, b.spec.Lab.LineRate); err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
	}
	return nil
}

// senders are the hosts of nodes and pods that put frames on the wire themselves: a pod that hangs on the switch does
// not send through its node's NIC.
func (b *builder) senders() []*Host {
	_, switched := b.spec.dataplane.(dataplane.Switched)
	var list []*Host
	for _, n := range b.inst.Nodes {
		list = append(list, &n.Host)
		for _, p := range n.Pods {
			if switched {
				list = append(list, &p.Host)
			}
		}
	}
	return list
}

// rules loads what the node's daemons keep in netfilter. A raw node has no daemons.
func (b *builder) rules(ctx context.Context) error {
	if b.spec.Profile.Name == profile.Raw {
		return nil
	}
	for k, n := range b.inst.Nodes {
		if err := b.lab.netfilter(ctx, n.NS, b.spec, k); err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
	}
	return nil
}

// programs loads what moves packets by BPF, on all nodes at once.
func (b *builder) programs(context.Context) error {
	d, ok := b.spec.dataplane.(dataplane.Programmed)
	if !ok {
		return nil
	}
	nodes := b.inst.Nodes
	errs := make([]error, len(nodes))
	var all sync.WaitGroup
	for k, n := range nodes {
		all.Go(func() {
			if n.programs, errs[k] = d.Program(b.inst.programming(k)); errs[k] != nil {
				errs[k] = fmt.Errorf("%s: %w", n.Name, errs[k])
			}
		})
	}
	all.Wait()
	for _, n := range nodes {
		if s := n.programs.StandIn; s != "" && !slices.Contains(b.inst.StandIn, s) {
			b.inst.StandIn = append(b.inst.StandIn, s)
		}
	}
	return errors.Join(errs...)
}

// programming is what the programs of node k are made from.
func (i *Instance) programming(k int) dataplane.Programming {
	n, s := i.Nodes[k], i.Spec
	p := dataplane.Programming{
		NS: n.NS, Node: s.Nodes[k], Others: slices.Concat(s.Nodes[:k], s.Nodes[k+1:]), Services: s.kubeProxy(k),
		NoCgroup: i.lab.groups.failed, Policies: s.Lab.Policies, PoliciesUnselected: s.Lab.PoliciesUnselected,
	}
	if n.Cgroup != nil {
		p.Cgroup = n.Cgroup.Path()
	}
	return p
}

// close takes programs off and drops the namespaces.
func (i *Instance) close() {
	var programs sync.WaitGroup
	for _, n := range i.Nodes {
		if n.programs.Closer != nil {
			programs.Go(func() { _ = n.programs.Close() }) // what it could not take off goes with its device
		}
	}
	programs.Wait()
	i.unwire()
	for _, ns := range i.owned {
		_ = ns.Close() // the descriptor is gone whatever it says
	}
	i.owned = nil
	for _, n := range i.Nodes {
		_ = n.Cgroup.Close()
	}
}
