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

// ipVersion returns the name of the version of IP for comments of rules.
func (c CalicoConfig) ipVersion() string {
	if c.IPv6 {
		return "IPv6"
	}
	return "IPv4"
}

// namespace is the Kubernetes namespace of the pods.
const namespace = "default"

// tunnelDevices returns the names of the devices that encapsulate or encrypt.
func (c CalicoConfig) tunnelDevices() (names []string) {
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
		f.writeBPFRules()
		return ""
	}
	f.writeChains()
	return f.ipsetRestoreInput()
}

// writeChains writes all of Calico's chains, except the base chains in nftables.
func (f *felix) writeChains() {
	f.writeRaw()
	f.writeMangle()
	f.writeNAT()
	f.writeForward()
	f.writeInput()
	f.writeOutput()
	f.writeDispatch("cali-from-wl-dispatch", egress)
	f.writeDispatch("cali-to-wl-dispatch", ingress)
	for _, device := range f.c.Devices {
		f.writeEndpoint(device, egress)
		f.writeEndpoint(device, ingress)
	}
	f.writeProfiles()
	f.writePolicies()
	if f.c.Churned {
		f.writeChurnedPolicy()
	}
}

// hostEndpointAccepted is the comment of the rule after a jump to a chain for host endpoints. Such chains are usually empty,
// but the jumps cost time.
const hostEndpointAccepted = "Host endpoint policy accepted packet."

func (f *felix) writeRaw() {
	pre := f.chainIn(ruleset.Raw, "cali-PREROUTING").addRule(clearMarkClause(markAll))
	if f.c.VXLAN {
		pre.addRule(untrack, vxlanPacket)
	}
	pre.addRule(setMarkClause(markScratch0), fromWorkload).
		addJump("cali-rpf-skip", markSetClause(markScratch0)).
		addRule(drop, markSetClause(markScratch0), newClause("-m rpfilter --validmark --invert", nft.NoReversePath)).
		addJump("cali-from-host-endpoint", markClearClause(markScratch0)).
		addRule(accept, markSetClause(markAccept))
	out := f.chainIn(ruleset.Raw, "cali-OUTPUT").addRule(clearMarkClause(markAll)).addJump("cali-to-host-endpoint")
	if f.c.VXLAN {
		out.addRule(untrack, vxlanPacket)
	}
	out.addRule(accept, markSetClause(markAccept))
	f.hookChain(ruleset.Raw, "PREROUTING")
	f.hookChain(ruleset.Raw, "OUTPUT")
}

func (f *felix) writeMangle() {
	f.chainIn(ruleset.Mangle, "cali-PREROUTING").
		addRule(accept, established).
		addRule(accept, markSetClause(markAccept)).
		addJump("cali-from-host-endpoint").
		setComment(hostEndpointAccepted).addRule(accept, markSetClause(markAccept))
	f.chainIn(ruleset.Mangle, "cali-POSTROUTING").
		setComment("set dscp for traffic leaving cluster.").
		addJump("cali-egress-dscp", f.memberClause(setDSCP, source), f.nonMemberClause(setAllPools, destination), f.nonMemberClause(setThisHost, destination)).
		addRule(ret, markSetClause(markAccept)).
		addRule(clearMarkClause(markAll)).
		addJump("cali-to-host-endpoint", newClause("-m conntrack --ctstate DNAT", nft.Translated)).
		setComment(hostEndpointAccepted).addRule(ret, markSetClause(markAccept))
	f.hookChain(ruleset.Mangle, "PREROUTING")
	f.hookChain(ruleset.Mangle, "POSTROUTING")
}

func (f *felix) writeNAT() {
	f.chainIn(ruleset.NAT, "cali-PREROUTING").addJump("cali-fip-dnat")
	f.chainIn(ruleset.NAT, "cali-OUTPUT").addJump("cali-fip-dnat")
	post := f.chainIn(ruleset.NAT, "cali-POSTROUTING").addJump("cali-fip-snat").addJump("cali-nat-outgoing")
	for _, tunnel := range f.c.tunnelDevices() {
		// A process of the node that called a Service chose its address before DNAT sent the packet into the tunnel.
		post.addRule(masquerade, newClause("-o "+tunnel, nft.Is(nft.OutDevice, tunnel)),
			newClause("-m addrtype ! --src-type LOCAL --limit-iface-out", nft.SourceNotLocalTo), sourceLocal)
	}
	if len(f.c.Pools) > 0 {
		f.chainIn(ruleset.NAT, "cali-nat-outgoing").addRule(masquerade, f.memberClause(setMasqPools, source), f.nonMemberClause(setAllPools, destination))
	}
	f.hookChain(ruleset.NAT, "PREROUTING")
	f.hookChain(ruleset.NAT, "OUTPUT")
	// Not at the top: KUBE-POSTROUTING must clear its mark before a packet is masqueraded here and leaves through a
	// tunnel. The outer packet would inherit the mark.
	f.chainIn(ruleset.NAT, "POSTROUTING").addJump("cali-POSTROUTING")
}

func (f *felix) writeForward() {
	chain := f.chainIn(ruleset.Filter, "cali-FORWARD")
	if f.c.Flowtable {
		chain.setComment("Offload established Calico flows.").addRule(newClause("", nft.Offload(flowtable)), established,
			f.nonMemberClause(setNoOffload, source), f.nonMemberClause(setNoOffload, destination))
	}
	chain.addRule(clearMarkClause(markOurs)).
		addJump("cali-from-hep-forward", markClearClause(markAccept)).
		addJump("cali-from-wl-dispatch", fromWorkload).
		addJump("cali-to-wl-dispatch", toWorkload).
		addJump("cali-to-hep-forward").
		addJump("cali-cidr-block")
	f.hookChain(ruleset.Filter, "FORWARD").
		setComment("Policy explicitly accepted packet.").addRule(accept, markSetClause(markAccept)).
		addRule(setMarkClause(markAccept))
}

func (f *felix) writeInput() {
	in := f.chainIn(ruleset.Filter, "cali-INPUT")
	destLocal := newClause("-m addrtype --dst-type LOCAL", nft.DestLocal)
	if f.c.IPIP {
		in.setComment("Allow IPIP packets from Calico hosts").addRule(accept, ipipPacket, f.memberClause(setHostsNet, source), destLocal)
		in.setComment("Drop IPIP packets from non-Calico hosts").addRule(drop, ipipPacket)
	}
	if f.c.VXLAN {
		in.setComment("Allow "+f.c.ipVersion()+" VXLAN packets from allowed hosts").addRule(accept, vxlanPacket, f.memberClause(setVXLANNet, source), destLocal)
		in.setComment("Drop "+f.c.ipVersion()+" VXLAN packets from non-allowed hosts").addRule(drop, vxlanPacket, destLocal)
	}
	if f.c.WireGuard {
		in.setComment("Allow incoming IPv4 Wireguard packets").addRule(accept, wireGuardPacket, destLocal)
	}
	in.addGoto("cali-wl-to-host", fromWorkload).
		addRule(accept, markSetClause(markAccept)).
		addRule(clearMarkClause(markAll)).
		addJump("cali-from-host-endpoint").
		setComment(hostEndpointAccepted).addRule(accept, markSetClause(markAccept))
	host := f.chainIn(ruleset.Filter, "cali-wl-to-host")
	if f.c.IPv6 {
		for _, kind := range routerMessages {
			host.addRule(accept, newClause(fmt.Sprintf("-p 58 -m icmp6 --icmpv6-type %d", kind), nft.Is(nft.L4Proto, nft.L4("ipv6-icmp")), nft.Is(nft.ICMPv6Type, kind)))
		}
	}
	host.
		addJump("cali-from-wl-dispatch").
		setComment("Configured DefaultEndpointToHostAction").addRule(accept)
	f.hookChain(ruleset.Filter, "INPUT")
}

// routerMessages are the ICMPv6 messages that a pod may always send to its node, which is its router: multicast
// listener query, report and done, router solicitation, neighbour solicitation and advertisement.
var routerMessages = []uint8{130, 131, 132, 133, 135, 136}

func (f *felix) writeOutput() {
	out := f.chainIn(ruleset.Filter, "cali-OUTPUT").
		addRule(accept, markSetClause(markAccept)).
		// Policy never applies to packets from the node to its own pods.
		addRule(ret, toWorkload)
	if f.c.IPIP {
		out.setComment("Allow IPIP packets to other Calico hosts").addRule(accept, ipipPacket, f.memberClause(setHostsNet, destination), sourceLocal)
	}
	if f.c.VXLAN {
		out.setComment("Allow "+f.c.ipVersion()+" VXLAN packets to other allowed hosts").
			addRule(accept, vxlanPacket, sourceLocal, f.memberClause(setVXLANNet, destination))
	}
	if f.c.WireGuard {
		out.setComment("Allow outgoing IPv4 Wireguard packets").addRule(accept, wireGuardPacket, sourceLocal)
	}
	out.addRule(clearMarkClause(markAll)).
		addJump("cali-to-host-endpoint", newClause("-m conntrack ! --ctstate DNAT", nft.NotJustTranslated)).
		setComment(hostEndpointAccepted).addRule(accept, markSetClause(markAccept))
	f.hookChain(ruleset.Filter, "OUTPUT")
}
