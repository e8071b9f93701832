package selftest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/dataplane/policy"
	"github.com/cnibench/cnibench/internal/dataplane/service"
	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/measure/netstate"
	"github.com/cnibench/cnibench/internal/plan/condition"
)

// linkLocalGateway is the IPv4 gateway of every pod of Calico and of the AWS VPC CNI. calicoGateway6 is the IPv6 gateway of
// every pod of Calico.
var (
	linkLocalGateway = netip.MustParseAddr("169.254.1.1")
	calicoGateway6   = netip.MustParseAddr("fe80::ecee:eeff:feee:eeee")
)

// pinned is appended to the text of a permanent neighbour entry.
const pinned = ", permanent"

// calicoMAC is the MAC address of the gateway of Calico's pods.
const calicoMAC = "ee:ee:ee:ee:ee:ee"

// noMAC is the MAC address in the neighbour entry of a device without MAC addresses.
const noMAC = "00:00:00:00:00:00"

// comparePlaces compares want with the text that look returns for each place. Finding.got is want if all texts equal it,
// otherwise the texts that differ, with the names of their places.
func comparePlaces[T any](want string, places []T, name func(T) string, look func(T) (string, error)) finding {
	var texts, differ []string
	for _, p := range places {
		text, err := look(p)
		if err != nil {
			return failedFinding(want, fmt.Errorf("%s: %w", name(p), err))
		}
		texts = append(texts, text)
		if text != want {
			differ = append(differ, fmt.Sprintf("%s on %s", text, name(p)))
		}
	}
	if len(differ) > 0 {
		return finding{want: want, got: joinDistinct(differ, "")}
	}
	return finding{want: want, got: joinDistinct(texts, "nothing to look at")}
}

func nodeName(n *lab.Node) string { return n.Name }
func podName(p *lab.Pod) string   { return p.Name }

func nodeSysctlProbe(path, want string) inspection {
	return func(_ context.Context, s *scene) finding {
		return comparePlaces(want, s.inst.Nodes, nodeName, func(n *lab.Node) (string, error) { return netns.GetSysctl(n.NS, path) })
	}
}

func probeSwitchFiltering(_ context.Context, s *scene) finding {
	got, err := netns.GetSysctl(s.inst.Switch.NS, s.want.sysctlName("net/bridge/bridge-nf-call-iptables", "net/bridge/bridge-nf-call-ip6tables"))
	if errors.Is(err, fs.ErrNotExist) {
		return finding{want: "0", got: "0"} // without the module no packets are filtered
	}
	if err != nil {
		return failedFinding("0", err)
	}
	return finding{want: "0", got: got}
}

func probePodMTU(_ context.Context, s *scene) finding {
	want := strconv.Itoa(s.podMTU())
	if t := s.want.tunnel; t != nil && t.routed {
		want = strconv.Itoa(s.inst.Spec.Lab.MTU)
	}
	look := func(ns *netns.NS) (string, error) {
		d, err := link.DeviceIn(ns, nic)
		return strconv.Itoa(d.MTU), err
	}
	if s.want.Attach == nil && !s.want.Unsaid {
		return comparePlaces(want, s.inst.Nodes, nodeName, func(n *lab.Node) (string, error) { return look(n.NS) })
	}
	return comparePlaces(want, s.allPods(), podName, func(p *lab.Pod) (string, error) { return look(p.NS) })
}

// probeDeviceFeatures checks the segmentation and aggregation features of every device but the loopbacks and dummies. If
// they must be off, a device that cannot switch them off, such as a macvlan, must limit super-packets to one
// segment.
func probeDeviceFeatures(_ context.Context, s *scene) finding {
	var on []string
	total := 0
	for _, host := range s.inst.Hosts() {
		err := eachDevice(host.NS, func(h *link.Handle, d link.Device) error {
			if d.Name == link.Loopback || d.Kind == "dummy" {
				return nil // a dummy sends no packets
			}
			features, err := h.Segmentation(d.Name)
			total++
			if want, said := s.receiveFeatures(host, d); said && err == nil {
				if got := strings.Join(features, ","); got != want && !(want == "" && areSendFeatures(features)) {
					on = append(on, fmt.Sprintf("%s of %s (%s instead of %s)", d.Name, host.Name, got, want))
				}
				return nil
			}
			if len(features) > 0 && (d.Kind == "veth" || d.GSOMaxSegs != 1) {
				on = append(on, d.Name+" of "+host.Name)
			}
			return err
		})
		if err != nil {
			return failedFinding("off", fmt.Errorf("%s: %w", host.Name, err))
		}
	}
	if s.mustSegment() {
		got := "off"
		if len(on) > 0 {
			got = "on at " + joinDistinct(on, "")
		}
		return finding{want: "off", got: got}
	}
	return finding{want: "on", got: fmt.Sprintf("on at %d of %d devices", len(on), total), within: len(on) > 0}
}

// receiveFeatures returns the receive features that must be on at device d of a host. They are "" unless d is a NIC
// or the tunnel device. The second result is false if the host does not merge frames.
func (s *scene) receiveFeatures(host *lab.Host, d link.Device) (string, bool) {
	node := slices.ContainsFunc(s.inst.Nodes, func(n *lab.Node) bool { return n.NS == host.NS })
	switched := s.want.isSwitched() && slices.ContainsFunc(s.allPods(), func(p *lab.Pod) bool { return &p.Host == host })
	if !s.want.merges || !node && !switched {
		return "", false
	}
	// The stand-in for a tunnel is a veth.
	if !slices.Contains(s.inst.NICs(host), d.Name) && (s.want.tunnel == nil || d.Name != s.want.tunnel.device || d.Kind == "veth") {
		return "", true
	}
	if s.inst.Spec.Lab.GRO == condition.GROUDP {
		return "rx-gro,rx-udp-gro-forwarding", true
	}
	return "rx-gro", true
}

// areSendFeatures reports whether all features are for sending, by their names.
func areSendFeatures(features []string) bool {
	return !slices.ContainsFunc(features, func(f string) bool { return !strings.HasPrefix(f, "tx-") })
}

// probeSuperPackets checks the largest super-packet that each device but the loopbacks and dummies may send.
func probeSuperPackets(_ context.Context, s *scene) finding {
	return comparePlaces(strconv.Itoa(lab.BigTCP), s.inst.Hosts(), func(h *lab.Host) string { return h.Name }, func(h *lab.Host) (string, error) {
		var sizes []string
		err := eachDevice(h.NS, func(_ *link.Handle, d link.Device) error {
			if d.Name != link.Loopback && d.Kind != "dummy" {
				sizes = append(sizes, strconv.Itoa(d.SuperPacket))
			}
			return nil
		})
		return joinDistinct(sizes, "no device"), err
	})
}

// probeReceiveSteering checks to which CPUs each device steers its receive work. If the host is steered, these must be
// its own CPUs, otherwise none. It omits the dummy device of kube-proxy, which receives nothing.
func probeReceiveSteering(_ context.Context, s *scene) finding {
	var wrong []string
	want := "none"
	for _, host := range s.inst.Distinct() {
		mask := "0"
		if host.Steered {
			mask, want = link.CPUMask(host.CPUs), "its own"
		}
		masks, err := link.At(host.NS, (*link.Handle).Steering)
		if err != nil {
			return failedFinding(want, fmt.Errorf("%s: %w", host.Name, err))
		}
		for dev, got := range masks {
			if got != mask && dev != service.IPVSDevice {
				wrong = append(wrong, fmt.Sprintf("mask %s at %s of %s", got, dev, host.Name))
			}
		}
	}
	if len(wrong) > 0 {
		return finding{want: want, got: joinDistinct(wrong, "")}
	}
	return finding{want: want, got: want}
}

func probePodGateway(_ context.Context, s *scene) finding {
	want := "via the gateway"
	return comparePlaces(want, s.allPods(), podName, func(p *lab.Pod) (string, error) {
		list, err := routesIn(p.NS)
		if err != nil {
			return "", err
		}
		for _, r := range list {
			if r.To.Bits() != 0 {
				continue
			}
			if r.Via == s.want.gatewayOf(p.Node) {
				return want, nil
			}
			return "via " + r.Via.String(), nil
		}
		return "no default route", nil
	})
}

// gatewayOf returns the address of the gateway of a node's pods.
func (x expectation) gatewayOf(n *lab.Node) netip.Addr {
	switch {
	case x.Attach.Gateway == dataplane.LinkLocal && n.Addr.Is6():
		return calicoGateway6
	case x.Attach.Gateway == dataplane.LinkLocal, x.Attach.Gateway == dataplane.Pinned, x.Attach.Gateway == dataplane.Answered:
		return linkLocalGateway
	case x.Attach.Gateway == dataplane.RangeAddress:
		return n.PodCIDR.Masked().Addr()
	}
	return firstAddr(n.PodCIDR)
}

// probeGatewayMAC checks the client's neighbour entry for its gateway. If a device of the node has the gateway's address, the
// entry must have the MAC address of that device.
func probeGatewayMAC(_ context.Context, s *scene) finding {
	pod := s.podAt(0, 0)
	want, gateway := calicoMAC, s.want.gatewayOf(pod.Node)
	if s.want.Attach.Gateway != dataplane.LinkLocal {
		holder := s.want.Attach.Bridge
		if holder == "" {
			holder = pod.HostDevice
		}
		if s.want.plugged {
			holder = deviceWithAddr(pod.Node.NS, gateway, holder)
		}
		d, err := link.DeviceIn(pod.Node.NS, holder)
		if err != nil {
			return failedFinding("that of "+holder, err)
		}
		switch want = d.MAC.String(); {
		case s.want.netkit:
			want = noMAC
		case s.want.plugged && holder == s.want.Attach.Bridge && !hasAddr(d, gateway):
			// No device has the address: the gateway is a logical router, whose MAC address is made of its address.
			want = dataplane.PodMAC(gateway).String()
		}
	}
	entries, err := link.At(pod.NS, func(h *link.Handle) ([]link.Neighbour, error) { return h.Neighbours(nic) })
	if err != nil {
		return failedFinding(want, err)
	}
	for _, e := range entries {
		if e.Addr == gateway {
			got := e.MAC.String()
			if s.want.Attach.Gateway == dataplane.Pinned {
				want += pinned
				if e.Permanent {
					got += pinned
				}
			}
			return finding{want: want, got: got}
		}
	}
	return finding{want: want, got: "no entry"}
}

func hasAddr(d link.Device, addr netip.Addr) bool {
	return slices.ContainsFunc(d.Addresses, func(p netip.Prefix) bool { return p.Addr() == addr })
}

// deviceWithAddr returns the name of the first device of a namespace that has addr. It returns usual if no device has
// addr. It also returns usual if the name begins with "veth", because the node's end of each pod's veth may have
// addr.
func deviceWithAddr(ns *netns.NS, addr netip.Addr, usual string) string {
	name := ""
	err := eachDevice(ns, func(_ *link.Handle, d link.Device) error {
		if name == "" && hasAddr(d, addr) {
			name = d.Name
		}
		return nil
	})
	// The node's end of each pod's device may have the same address, and the pod's own is meant then.
	if err != nil || name == "" || strings.HasPrefix(name, "veth") {
		return usual
	}
	return name
}

func probeProxyARP(_ context.Context, s *scene) finding {
	return comparePlaces("1", s.allPods(), podName, func(p *lab.Pod) (string, error) {
		return netns.GetSysctl(p.Node.NS, s.want.sysctlName("net/ipv4/conf/"+p.HostDevice+"/proxy_arp", "net/ipv6/conf/"+p.HostDevice+"/proxy_ndp"))
	})
}

func probeHostMAC(_ context.Context, s *scene) finding {
	return comparePlaces(s.want.Attach.HostMAC, s.allPods(), podName, func(p *lab.Pod) (string, error) {
		d, err := link.DeviceIn(p.Node.NS, p.HostDevice)
		return d.MAC.String(), err
	})
}

// probeNetkitPairs checks both ends of each pod's netkit pair.
func probeNetkitPairs(_ context.Context, s *scene) finding {
	const want = "netkit without MAC, netkit without MAC"
	return comparePlaces(want, s.allPods(), podName, func(p *lab.Pod) (string, error) {
		inPod, err := link.DeviceIn(p.NS, nic)
		if err != nil {
			return "", err
		}
		onNode, err := link.DeviceIn(p.Node.NS, p.HostDevice)
		describe := func(d link.Device) string {
			if slices.Max(append(d.MAC, 0)) == 0 {
				return d.Kind + " without MAC"
			}
			return d.Kind + " with MAC"
		}
		return describe(inPod) + ", " + describe(onNode), err
	})
}

func bridgePortsProbe(bridge string) inspection {
	return func(_ context.Context, s *scene) finding {
		return comparePlaces(bridge, s.allPods(), podName, func(p *lab.Pod) (string, error) {
			d, err := link.DeviceIn(p.Node.NS, p.HostDevice)
			if d.Master == "" {
				d.Master = "none"
			}
			return d.Master, err
		})
	}
}

func tunnelDeviceProbe(t *tunnel) inspection {
	return func(_ context.Context, s *scene) finding {
		describe := func(d link.Device) string {
			switch {
			case d.Kind == "geneve":
				return fmt.Sprintf("geneve %s external %v port %d", d.Name, d.External, d.Port)
			case d.Kind != "vxlan":
				return fmt.Sprintf("%s %s mtu %d", d.Kind, d.Name, d.MTU)
			case d.External:
				return fmt.Sprintf("%s %s mtu %d external port %d", d.Kind, d.Name, d.MTU, d.Port)
			}
			return fmt.Sprintf("%s %s mtu %d vni %d port %d learning %v", d.Kind, d.Name, d.MTU, d.VNI, d.Port, d.Learning)
		}
		model := link.Device{Device: netstate.Device{
			Kind: "vxlan", Name: t.device, MTU: s.inst.Spec.TunnelMTU(), VNI: t.vni, Port: t.port, External: t.external,
		}}
		if t.routed && !t.sealed {
			model.MTU = s.inst.Spec.Lab.MTU
		}
		switch {
		case t.kind == "geneve":
			model.Kind, model.External = t.kind, true
		case t.kind == "ipip":
			model.Kind = s.ipipKind()
		case t.sealed:
			model.Kind, model.MTU = wireGuardKind(s), model.MTU+t.inside
		}
		want := describe(model)
		return comparePlaces(want, s.inst.Nodes, nodeName, func(n *lab.Node) (string, error) {
			d, err := link.DeviceIn(n.NS, t.device)
			return describe(d), err
		})
	}
}

// tunnelForwardingProbe returns a probe that requires one permanent forwarding entry for each other node. It requires
// none if the outer address comes with each packet.
func tunnelForwardingProbe(t *tunnel) inspection {
	return tunnelEntriesProbe(t, !t.external, (*link.Handle).Forwarding, func(n *lab.Node) netip.Addr { return n.Addr })
}

// tunnelNeighboursProbe returns a probe that requires one permanent neighbour entry for each other node. It requires
// none if routes set the outer address.
func tunnelNeighboursProbe(t *tunnel) inspection {
	return tunnelEntriesProbe(t, !t.routed, (*link.Handle).Neighbours, func(n *lab.Node) netip.Addr { return n.TunnelAddr })
}

func tunnelEntriesProbe(t *tunnel, some bool, list func(*link.Handle, string) ([]link.Neighbour, error), key func(*lab.Node) netip.Addr) inspection {
	want := "none"
	if some {
		want = "a permanent one for each other node"
	}
	return func(_ context.Context, s *scene) finding {
		return comparePlaces(want, s.inst.Nodes, nodeName, func(n *lab.Node) (string, error) {
			macs := map[netip.Addr]string{}
			for _, other := range s.inst.Nodes {
				if some && other != n {
					d, err := link.DeviceIn(other.NS, t.device)
					if err != nil {
						return "", err
					}
					macs[key(other)] = d.MAC.String()
				}
			}
			entries, err := link.At(n.NS, func(h *link.Handle) ([]link.Neighbour, error) { return list(h, t.device) })
			if err != nil {
				return "", err
			}
			var wrong []string
			for _, e := range entries {
				if isNoise(e.Addr) {
					continue
				}
				if mac, ok := macs[e.Addr]; !ok || mac != e.MAC.String() || !e.Permanent {
					wrong = append(wrong, fmt.Sprintf("%s at %s permanent %v", e.Addr, e.MAC, e.Permanent))
				}
				delete(macs, e.Addr)
			}
			for missing := range macs {
				wrong = append(wrong, "none for "+missing.String())
			}
			return joinDistinct(wrong, want), nil
		})
	}
}

// isNoise reports whether IPv6 hosts send to a without being asked: a is multicast or IPv6 link-local.
func isNoise(a netip.Addr) bool { return a.IsMulticast() || a.Is6() && a.IsLinkLocalUnicast() }

func blackholeRouteProbe(protocol int) inspection {
	return func(_ context.Context, s *scene) finding {
		want := fmt.Sprintf("blackhole proto %d", protocol)
		return comparePlaces(want, s.inst.Nodes, nodeName, func(n *lab.Node) (string, error) {
			list, err := routesIn(n.NS)
			if err != nil {
				return "", err
			}
			for _, r := range list {
				if r.Blackhole && n.PodCIDR.Overlaps(r.To) {
					return fmt.Sprintf("blackhole proto %d", r.Protocol), nil
				}
			}
			return "none", nil
		})
	}
}

// leadsTo reports whether a route leads to the pods of n. If shared is true, the route must lead to the pods of all
// nodes.
func (s *scene) leadsTo(r link.Route, n *lab.Node, shared bool) bool {
	if shared {
		return r.To == s.inst.Spec.Nodes[0].Cluster
	}
	return n.PodCIDR.Contains(r.To.Addr())
}

func probeRemoteRoute(_ context.Context, s *scene) finding {
	want := s.want.Remote
	describe := func(device string, onLink bool, protocol int) string {
		text := "dev " + device
		if onLink {
			text += " onlink"
		}
		if want.Protocol != 0 {
			text += fmt.Sprintf(" proto %d", protocol)
		}
		return text
	}
	return comparePlaces(describe(s.want.remoteDevice(), want.OnLink, want.Protocol), s.inst.Nodes, nodeName, func(n *lab.Node) (string, error) {
		list, err := routesIn(n.NS)
		if err != nil {
			return "", err
		}
		var found []string
		for _, r := range list {
			for _, other := range s.inst.Nodes {
				if other != n && !r.Blackhole && r.To.Bits() > 0 && s.leadsTo(r, other, want.Shared) {
					found = append(found, describe(r.Dev, r.OnLink, r.Protocol))
				}
			}
		}
		return joinDistinct(found, "none"), nil
	})
}

// probePodRules checks that each node has exactly the expected routing rules. One is for packets to each of its pods,
// and one for marked packets. If pods have their own routing table, there is also one for packets from each pod and
// from each additional interface. In strict mode, two rules by device replace those of each pod, and the rule for local
// addresses follows them.
func probePodRules(_ context.Context, s *scene) finding {
	strict := s.want.Strict
	want := "one for each pod at 512, one for the mark at 1024"
	if strict {
		want = "two for each pod at 10, one for local addresses at 20, one for the mark at 1024"
	} else if s.want.PodTable != 0 {
		want += ", one for each pod at 1536"
	}
	if s.want.PodTable != 0 {
		want += ", one for the interface at 32765"
	}
	return comparePlaces(want, s.inst.Nodes, nodeName, func(n *lab.Node) (string, error) {
		list, err := link.At(n.NS, (*link.Handle).Policy)
		if err != nil {
			return "", err
		}
		missing := map[link.PolicyEntry]bool{{Priority: 1024, Words: fmt.Sprintf("fwmark %#[1]x/%#[1]x lookup main", policy.AWSMark)}: true}
		if strict {
			missing[link.PolicyEntry{Priority: 20, Words: "lookup local"}] = true
		}
		for _, p := range n.Pods {
			table := s.want.PodTable
			b, ok := dataplane.BranchOf(s.inst.InterfacesOf(n), p.Addr)
			if ok {
				table = 100 + b.VLAN
			}
			if strict {
				missing[link.PolicyEntry{Priority: 10, Words: fmt.Sprintf("iif %s lookup %d", b.Name, table)}] = true
				missing[link.PolicyEntry{Priority: 10, Words: fmt.Sprintf("iif %s lookup %d", p.HostDevice, table)}] = true
				continue
			}
			missing[link.PolicyEntry{Priority: 512, Words: fmt.Sprintf("to %s/32 lookup main", p.Addr)}] = true
			if table != 0 {
				missing[link.PolicyEntry{Priority: 1536, Words: fmt.Sprintf("from %s/32 lookup %d", p.Addr, table)}] = true
			}
		}
		for _, d := range s.inst.InterfacesOf(n) {
			missing[link.PolicyEntry{Priority: 32765, Words: fmt.Sprintf("from %s/32 lookup %d", d.Addr.Addr(), s.want.PodTable)}] = true
		}
		others := 0
		for _, r := range list {
			if !missing[r] {
				others++
			}
			delete(missing, r)
		}
		if len(missing) > 0 || others > 0 {
			return fmt.Sprintf("%d missing, %d others", len(missing), others), nil
		}
		return want, nil
	})
}
