package policy

import (
	"fmt"
	"net/netip"

	"github.com/cnibench/cnibench/internal/env/lab/ruleset"
)

// CalicoConfig is what Felix, Calico's agent, knows on one node.
type CalicoConfig struct {
	// IPv6 says that all addresses are IPv6. There is no IPIP then.
	IPv6 bool
	// Endpoints are the pods of this node.
	Endpoints []Endpoint
	// VXLAN is true when Calico encapsulates. Then outer packets are untracked and taken from Peers only, and traffic
	// into the tunnel's device bears its address.
	VXLAN bool
	// IPIP is the same with IP in IP, whose outer packets are tracked.
	IPIP bool
	// NodeAddrs are the addresses of this node, Peers those of the other nodes on the underlay.
	NodeAddrs, Peers []netip.Addr
	// Pools are the ranges from which Calico gives pods their addresses; empty when it does not (canal).
	Pools []netip.Prefix
	// NATOutgoing masquerades what pods send out of the pools.
	NATOutgoing bool
	// Policies is the number of network policies that select every pod, each in both directions; the last allows all
	// traffic but TCP to DeniedPort, the others match nothing, so a new connection walks them all. PoliciesUnselected are in the tables
	// and in no pod's path.
	Policies, PoliciesUnselected int
	// NFTables has Felix program nftables instead of iptables and IP sets.
	NFTables bool
}

// Endpoint is a pod of the node.
type Endpoint struct {
	// Device is the host side of the pod's veth: "cali" and up to 11 more characters.
	Device string
	Addr   netip.Addr
}

// Felix takes its mark bits from the mask 0xffff0000, lowest first.
const (
	markAccept   = "0x10000"
	markPass     = "0x20000"
	markScratch0 = "0x80000"
	// markVerdict is accept and pass; markAll adds drop (0x40000), scratch0 and scratch1 (0x100000); markOurs is all
	// but accept, by which the raw table tells the filter table what it has decided.
	markVerdict = "0x30000"
	markAll     = "0x1f0000"
	markOurs    = "0x1e0000"
)

// vxlanPort is the UDP port of Calico's VXLAN.
const vxlanPort = "4789"

// family is for people.
func (c CalicoConfig) family() string {
	if c.IPv6 {
		return "IPv6"
	}
	return "IPv4"
}

// namespace is the Kubernetes namespace of the pods.
const namespace = "default"

// tunnel is the name of the device that encapsulates.
func (c CalicoConfig) tunnel() string {
	switch {
	case c.IPv6:
		return "vxlan-v6.calico"
	case c.IPIP:
		return "tunl0"
	}
	return "vxlan.calico"
}

// AddCalico puts Calico's rules into node and returns the sets that they name, as ipset restore input. Call it after
// every other generator.
func AddCalico(node *ruleset.Ruleset, c CalicoConfig) (sets string) {
	f := felix{
		c:      c,
		raw:    node.Table(ruleset.Raw),
		mangle: node.Table(ruleset.Mangle),
		nat:    node.Table(ruleset.NAT),
		filter: node.Table(ruleset.Filter),
	}
	f.rawChains()
	f.mangleChains()
	f.natChains()
	f.filterForward()
	f.filterInput()
	f.filterOutput()
	f.dispatch("cali-from-wl-dispatch", "-i", "cali-fw-")
	f.dispatch("cali-to-wl-dispatch", "-o", "cali-tw-")
	for _, e := range c.Endpoints {
		f.endpoint(e, egress)
		f.endpoint(e, ingress)
	}
	f.profiles()
	f.policies()
	return f.sets()
}

// felix is one rendering.
type felix struct {
	c                        CalicoConfig
	raw, mangle, nat, filter *ruleset.Table
}

// Chains for host endpoints, floating addresses and the like stand empty when nobody uses them. Jumping to them costs
// all the same, and that is why they are here.

func (f *felix) rawChains() {
	t := f.raw
	pre := at(t, "cali-PREROUTING").to("MARK --set-xmark 0x0/" + markAll)
	if f.c.VXLAN {
		pre.to("NOTRACK", "-p udp -m multiport --dports "+vxlanPort)
	}
	pre.to("MARK --set-xmark "+markScratch0+"/"+markScratch0, "-i cali+")
	pre.jump("cali-rpf-skip", isSet(markScratch0))
	pre.to("DROP", isSet(markScratch0), "-m rpfilter --validmark --invert")
	pre.jump("cali-from-host-endpoint", isClear(markScratch0))
	pre.to("ACCEPT", isSet(markAccept))
	out := at(t, "cali-OUTPUT").to("MARK --set-xmark 0x0/" + markAll).jump("cali-to-host-endpoint")
	if f.c.VXLAN {
		out.to("NOTRACK", "-p udp -m multiport --dports "+vxlanPort)
	}
	out.to("ACCEPT", isSet(markAccept))
	hang(t, "PREROUTING", "OUTPUT")
}

func (f *felix) mangleChains() {
	t := f.mangle
	at(t, "cali-PREROUTING").
		to("ACCEPT", established).
		to("ACCEPT", isSet(markAccept)).
		jump("cali-from-host-endpoint").
		note("Host endpoint policy accepted packet.").to("ACCEPT", isSet(markAccept))
	at(t, "cali-POSTROUTING").
		note("set dscp for traffic leaving cluster.").
		jump("cali-egress-dscp", f.inSet(setDSCP, "src"), f.notInSet(setAllPools, "dst"), f.notInSet(setThisHost, "dst")).
		to("RETURN", isSet(markAccept)).
		to("MARK --set-xmark 0x0/"+markAll).
		jump("cali-to-host-endpoint", "-m conntrack --ctstate DNAT").
		note("Host endpoint policy accepted packet.").to("RETURN", isSet(markAccept))
	hang(t, "PREROUTING", "POSTROUTING")
}

func (f *felix) natChains() {
	t := f.nat
	at(t, "cali-PREROUTING").jump("cali-fip-dnat")
	at(t, "cali-OUTPUT").jump("cali-fip-dnat")
	post := at(t, "cali-POSTROUTING").jump("cali-fip-snat").jump("cali-nat-outgoing")
	if f.c.VXLAN || f.c.IPIP {
		// A process of the node that called a service has an address chosen before the DNAT sent it into the tunnel.
		post.to("MASQUERADE --random-fully", "-o "+f.c.tunnel(), "-m addrtype ! --src-type LOCAL --limit-iface-out", "-m addrtype --src-type LOCAL")
	}
	if f.c.NATOutgoing {
		at(t, "cali-nat-outgoing").to("MASQUERADE --random-fully", f.inSet(setMasqPools, "src"), f.notInSet(setAllPools, "dst"))
	}
	hang(t, "PREROUTING", "OUTPUT")
	// Appended, not inserted: KUBE-POSTROUTING must have cleared its mark before a packet is masqueraded here and
	// leaves through a tunnel, where the outer packet would inherit the mark.
	at(t, "POSTROUTING").jump("cali-POSTROUTING")
}

func (f *felix) filterForward() {
	t := f.filter
	at(t, "cali-FORWARD").
		to("MARK --set-xmark 0x0/"+markOurs).
		jump("cali-from-hep-forward", isClear(markAccept)).
		jump("cali-from-wl-dispatch", "-i cali+").
		jump("cali-to-wl-dispatch", "-o cali+").
		jump("cali-to-hep-forward").
		jump("cali-cidr-block")
	hang(t, "FORWARD")
	at(t, "FORWARD").
		note("Policy explicitly accepted packet.").to("ACCEPT", isSet(markAccept)).
		to("MARK --set-xmark " + markAccept + "/" + markAccept)
}

func (f *felix) filterInput() {
	t := f.filter
	in := at(t, "cali-INPUT")
	if f.c.IPIP {
		in.note("Allow IPIP packets from Calico hosts").to("ACCEPT", "-p 4", f.inSet(setHostsNet, "src"), "-m addrtype --dst-type LOCAL")
		in.note("Drop IPIP packets from non-Calico hosts").to("DROP", "-p 4")
	}
	if f.c.VXLAN {
		port := "-p udp -m multiport --dports " + vxlanPort
		in.note("Allow "+f.c.family()+" VXLAN packets from allowed hosts").to("ACCEPT", port, f.inSet(setVXLANNet, "src"), "-m addrtype --dst-type LOCAL")
		in.note("Drop "+f.c.family()+" VXLAN packets from non-allowed hosts").to("DROP", port, "-m addrtype --dst-type LOCAL")
	}
	in.follow("cali-wl-to-host", "-i cali+").
		to("ACCEPT", isSet(markAccept)).
		to("MARK --set-xmark 0x0/"+markAll).
		jump("cali-from-host-endpoint").
		note("Host endpoint policy accepted packet.").to("ACCEPT", isSet(markAccept))
	host := at(t, "cali-wl-to-host")
	if f.c.IPv6 {
		for _, kind := range asRouter {
			host.to("ACCEPT", fmt.Sprintf("-p 58 -m icmp6 --icmpv6-type %d", kind))
		}
	}
	host.
		jump("cali-from-wl-dispatch").
		note("Configured DefaultEndpointToHostAction").to("ACCEPT")
	hang(t, "INPUT")
}

// asRouter are the ICMPv6 messages that a pod may send to its node whatever the policy says, as the node is its router:
// multicast listener query, report and done, router solicitation, neighbour solicitation and advertisement.
var asRouter = []uint8{130, 131, 132, 133, 135, 136}

func (f *felix) filterOutput() {
	t := f.filter
	out := at(t, "cali-OUTPUT").
		to("ACCEPT", isSet(markAccept)).
		// What the node sends to its own pods is never policed.
		to("RETURN", "-o cali+")
	if f.c.IPIP {
		out.note("Allow IPIP packets to other Calico hosts").
			to("ACCEPT", "-p 4", f.inSet(setHostsNet, "dst"), "-m addrtype --src-type LOCAL")
	}
	if f.c.VXLAN {
		out.note("Allow "+f.c.family()+" VXLAN packets to other allowed hosts").
			to("ACCEPT", "-p udp -m multiport --dports "+vxlanPort, "-m addrtype --src-type LOCAL", f.inSet(setVXLANNet, "dst"))
	}
	out.to("MARK --set-xmark 0x0/"+markAll).
		jump("cali-to-host-endpoint", "-m conntrack ! --ctstate DNAT").
		note("Host endpoint policy accepted packet.").to("ACCEPT", isSet(markAccept))
	hang(t, "OUTPUT")
}

// hang inserts the jumps into Calico's chains above everything else.
func hang(t *ruleset.Table, chains ...string) {
	for _, name := range chains {
		t.Chain(name).Insert(signed(name, "", "-j cali-"+name))
	}
}
