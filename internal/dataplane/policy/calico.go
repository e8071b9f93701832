package policy

import (
	"fmt"
	"net/netip"

	"github.com/cnibench/cnibench/internal/dataplane/ruleset"
	"github.com/cnibench/cnibench/internal/kernel/nft"
)

// CalicoConfig is the configuration of Felix, Calico's agent, on one node.
type CalicoConfig struct {
	// IPv6 means that all addresses are IPv6. IPIP is then not supported.
	IPv6 bool
	// Devices are the host sides of the veths of this node's pods: "cali" and up to 11 more characters.
	Devices []string
	encapsulations
	// NodeAddrs are the addresses of this node, Peers the addresses of the other nodes on the underlay.
	NodeAddrs, Peers []netip.Addr
	// Pools are the ranges of Calico's IPAM; empty without it (canal). Packets from a pool to other addresses are
	// masqueraded.
	Pools []netip.Prefix
	// Policies is the number of network policies that select every pod, each in both directions. The last allows all
	// traffic but TCP to DeniedPort. The others match nothing, so a new connection walks them all.
	// PoliciesUnselected is the number of policies that are in the tables but select no pod.
	Policies, PoliciesUnselected int
	// Churned adds the policy that churn creates and deletes. It selects every pod and denies TCP to ChurnedPort.
	Churned bool
	// NFTables makes Felix program nftables instead of iptables and IP sets.
	NFTables bool
	// Flowtable means that a flowtable forwards established connections between pods past the rules in nftables.
	Flowtable bool
	// BPF means that BPF programs forward and police packets. Felix then writes only the rules that these programs need.
	BPF bool
}

// encapsulations says which tunnels carry packets to other nodes.
type encapsulations struct {
	// VXLAN means that Calico encapsulates in VXLAN. Outer packets are then untracked and accepted from Peers only. Packets
	// that the node itself sends into the tunnel have the address of the tunnel device.
	VXLAN bool
	// IPIP means that Calico encapsulates in IP in IP. Outer packets are then tracked and accepted from Peers only.
	IPIP bool
	// WireGuard means that Calico encrypts, before any encapsulation. Its outer packets are tracked and accepted from all.
	WireGuard bool
}

// Felix takes its mark bits from the mask 0xffff0000, lowest first.
const (
	markAccept   = 0x10000
	markPass     = 0x20000
	markScratch0 = 0x80000
	markVerdict  = markAccept | markPass
	// markAll has all mark bits of Felix: the bits above, drop (0x40000) and scratch1 (0x100000).
	markAll = 0x1f0000
	// markOurs has all mark bits of Felix except accept, which carries the verdict of table raw to table filter.
	markOurs = markAll &^ markAccept
)

const (
	vxlanPort     = 4789
	wireGuardPort = 51820
)

// family returns the name of the version of IP for comments of rules.
func (c CalicoConfig) family() string {
	if c.IPv6 {
		return "IPv6"
	}
	return "IPv4"
}

// namespace is the Kubernetes namespace of the pods.
const namespace = "default"

// tunnels returns the names of the devices that encapsulate or encrypt.
func (c CalicoConfig) tunnels() (names []string) {
	switch {
	case c.IPIP:
		names = append(names, "tunl0")
	case c.VXLAN && c.IPv6:
		names = append(names, "vxlan-v6.calico")
	case c.VXLAN:
		names = append(names, "vxlan.calico")
	}
	if c.WireGuard {
		names = append(names, "wireguard.cali")
	}
	return names
}

// addCalico adds Calico's rules to node and returns the sets that they use, as ipset restore input. Call it after every
// other generator.
func addCalico(node *ruleset.Ruleset, c CalicoConfig) (sets string) {
	f := felix{c: c, iptables: node}
	if c.BPF {
		f.besideBPF()
		return ""
	}
	f.write()
	return f.ipsets()
}

// write writes all of Calico's chains, except the base chains in nftables.
func (f *felix) write() {
	f.raw()
	f.mangle()
	f.nat()
	f.forward()
	f.input()
	f.output()
	f.dispatch("cali-from-wl-dispatch", egress)
	f.dispatch("cali-to-wl-dispatch", ingress)
	for _, device := range f.c.Devices {
		f.endpoint(device, egress)
		f.endpoint(device, ingress)
	}
	f.profiles()
	f.policies()
	if f.c.Churned {
		f.churnedPolicy()
	}
}

// hostEndpointAccepted is the comment of the rule after a jump to a chain for host endpoints. Such chains are usually empty,
// but the jumps cost time.
const hostEndpointAccepted = "Host endpoint policy accepted packet."

func (f *felix) raw() {
	pre := f.at(ruleset.Raw, "cali-PREROUTING").to(clearMark(markAll))
	if f.c.VXLAN {
		pre.to(untrack, vxlanPacket)
	}
	pre.to(setMark(markScratch0), fromWorkload).
		jump("cali-rpf-skip", isSet(markScratch0)).
		to(drop, isSet(markScratch0), both("-m rpfilter --validmark --invert", nft.NoReversePath)).
		jump("cali-from-host-endpoint", isClear(markScratch0)).
		to(accept, isSet(markAccept))
	out := f.at(ruleset.Raw, "cali-OUTPUT").to(clearMark(markAll)).jump("cali-to-host-endpoint")
	if f.c.VXLAN {
		out.to(untrack, vxlanPacket)
	}
	out.to(accept, isSet(markAccept))
	f.hook(ruleset.Raw, "PREROUTING")
	f.hook(ruleset.Raw, "OUTPUT")
}

func (f *felix) mangle() {
	f.at(ruleset.Mangle, "cali-PREROUTING").
		to(accept, established).
		to(accept, isSet(markAccept)).
		jump("cali-from-host-endpoint").
		note(hostEndpointAccepted).to(accept, isSet(markAccept))
	f.at(ruleset.Mangle, "cali-POSTROUTING").
		note("set dscp for traffic leaving cluster.").
		jump("cali-egress-dscp", f.in(setDSCP, source), f.notIn(setAllPools, destination), f.notIn(setThisHost, destination)).
		to(ret, isSet(markAccept)).
		to(clearMark(markAll)).
		jump("cali-to-host-endpoint", both("-m conntrack --ctstate DNAT", nft.Translated)).
		note(hostEndpointAccepted).to(ret, isSet(markAccept))
	f.hook(ruleset.Mangle, "PREROUTING")
	f.hook(ruleset.Mangle, "POSTROUTING")
}

func (f *felix) nat() {
	f.at(ruleset.NAT, "cali-PREROUTING").jump("cali-fip-dnat")
	f.at(ruleset.NAT, "cali-OUTPUT").jump("cali-fip-dnat")
	post := f.at(ruleset.NAT, "cali-POSTROUTING").jump("cali-fip-snat").jump("cali-nat-outgoing")
	for _, tunnel := range f.c.tunnels() {
		// A process of the node that called a Service chose its address before DNAT sent the packet into the tunnel.
		post.to(masquerade, both("-o "+tunnel, nft.Is(nft.OutDevice, tunnel)),
			both("-m addrtype ! --src-type LOCAL --limit-iface-out", nft.SourceNotLocalTo), sourceLocal)
	}
	if len(f.c.Pools) > 0 {
		f.at(ruleset.NAT, "cali-nat-outgoing").to(masquerade, f.in(setMasqPools, source), f.notIn(setAllPools, destination))
	}
	f.hook(ruleset.NAT, "PREROUTING")
	f.hook(ruleset.NAT, "OUTPUT")
	// Not at the top: KUBE-POSTROUTING must clear its mark before a packet is masqueraded here and leaves through a
	// tunnel. The outer packet would inherit the mark.
	f.at(ruleset.NAT, "POSTROUTING").jump("cali-POSTROUTING")
}

func (f *felix) forward() {
	chain := f.at(ruleset.Filter, "cali-FORWARD")
	if f.c.Flowtable {
		chain.note("Offload established Calico flows.").to(both("", nft.Offload(flowtable)), established,
			f.notIn(setNoOffload, source), f.notIn(setNoOffload, destination))
	}
	chain.to(clearMark(markOurs)).
		jump("cali-from-hep-forward", isClear(markAccept)).
		jump("cali-from-wl-dispatch", fromWorkload).
		jump("cali-to-wl-dispatch", toWorkload).
		jump("cali-to-hep-forward").
		jump("cali-cidr-block")
	f.hook(ruleset.Filter, "FORWARD").
		note("Policy explicitly accepted packet.").to(accept, isSet(markAccept)).
		to(setMark(markAccept))
}

func (f *felix) input() {
	in := f.at(ruleset.Filter, "cali-INPUT")
	destLocal := both("-m addrtype --dst-type LOCAL", nft.DestLocal)
	if f.c.IPIP {
		in.note("Allow IPIP packets from Calico hosts").to(accept, ipipPacket, f.in(setHostsNet, source), destLocal)
		in.note("Drop IPIP packets from non-Calico hosts").to(drop, ipipPacket)
	}
	if f.c.VXLAN {
		in.note("Allow "+f.c.family()+" VXLAN packets from allowed hosts").to(accept, vxlanPacket, f.in(setVXLANNet, source), destLocal)
		in.note("Drop "+f.c.family()+" VXLAN packets from non-allowed hosts").to(drop, vxlanPacket, destLocal)
	}
	if f.c.WireGuard {
		in.note("Allow incoming IPv4 Wireguard packets").to(accept, wireGuardPacket, destLocal)
	}
	in.follow("cali-wl-to-host", fromWorkload).
		to(accept, isSet(markAccept)).
		to(clearMark(markAll)).
		jump("cali-from-host-endpoint").
		note(hostEndpointAccepted).to(accept, isSet(markAccept))
	host := f.at(ruleset.Filter, "cali-wl-to-host")
	if f.c.IPv6 {
		for _, kind := range routerMessages {
			host.to(accept, both(fmt.Sprintf("-p 58 -m icmp6 --icmpv6-type %d", kind), nft.Is(nft.L4Proto, nft.L4("ipv6-icmp")), nft.Is(nft.ICMPv6Type, kind)))
		}
	}
	host.
		jump("cali-from-wl-dispatch").
		note("Configured DefaultEndpointToHostAction").to(accept)
	f.hook(ruleset.Filter, "INPUT")
}

// routerMessages are the ICMPv6 messages that a pod may always send to its node, which is its router: multicast
// listener query, report and done, router solicitation, neighbour solicitation and advertisement.
var routerMessages = []uint8{130, 131, 132, 133, 135, 136}

func (f *felix) output() {
	out := f.at(ruleset.Filter, "cali-OUTPUT").
		to(accept, isSet(markAccept)).
		// Policy never applies to packets from the node to its own pods.
		to(ret, toWorkload)
	if f.c.IPIP {
		out.note("Allow IPIP packets to other Calico hosts").to(accept, ipipPacket, f.in(setHostsNet, destination), sourceLocal)
	}
	if f.c.VXLAN {
		out.note("Allow "+f.c.family()+" VXLAN packets to other allowed hosts").
			to(accept, vxlanPacket, sourceLocal, f.in(setVXLANNet, destination))
	}
	if f.c.WireGuard {
		out.note("Allow outgoing IPv4 Wireguard packets").to(accept, wireGuardPacket, sourceLocal)
	}
	out.to(clearMark(markAll)).
		jump("cali-to-host-endpoint", both("-m conntrack ! --ctstate DNAT", nft.NotJustTranslated)).
		note(hostEndpointAccepted).to(accept, isSet(markAccept))
	f.hook(ruleset.Filter, "OUTPUT")
}
