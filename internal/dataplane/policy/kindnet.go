package policy

import (
	"net/netip"

	"github.com/cnibench/cnibench/internal/kernel/nft"
)

// KindnetConfig is the input for the rules of kindnet, or of kindnetd, the network of kind.
type KindnetConfig struct {
	// Pods are the pod ranges of all nodes, or the range of the cluster. Packets to them keep the pod's address.
	Pods []netip.Prefix
	// Devices are the devices of the node that are up, without the loopback.
	Devices []string
	// Threshold is the number of packets after which a flowtable forwards a connection between Devices; 0 means no flowtable.
	Threshold int
	// Kindnetd means that kind's daemon masquerades, by iptables.
	Kindnetd bool
}

const (
	// KindnetLabel is the conntrack label of connections that the policy agent has already accepted.
	KindnetLabel = 100

	tableKindnetMasq     = "kindnet-ipmasq"
	tableKindnetPolicy   = "kindnet-network-policies"
	tableKindnetFastpath = "kindnet-fastpath"
)

// kindnetMasqTable returns the table by which kindnet masquerades.
func kindnetMasqTable(c KindnetConfig) *nft.Table {
	t := nft.NewTable(nft.Inet, tableKindnetMasq)
	four, six := t.Set("noMasqV4", nft.Addr), t.Set("noMasqV6", nft.Addr6)
	four.Interval, six.Interval = true, true
	for _, p := range c.Pods {
		if p.Addr().Is4() {
			four.Insert(p)
		} else {
			six.Insert(p)
		}
	}
	t.Base("postrouting", nft.Hook{Type: "nat", Hook: "postrouting", Priority: nft.SNATPriority - 10}).
		Add(nft.State(nft.Established|nft.Related), nft.Accept).
		Add(nft.DestLocal, nft.Accept).
		Add(nft.In("noMasqV4", nft.DestAddr), nft.Accept).
		Add(nft.In("noMasqV6", nft.DestAddr6), nft.Accept).
		Add(nft.MasqueradeAny, nft.Count)
	return t
}

// kindnetFastpathTable returns the table by which kindnet forwards long connections past the rules of the node.
func kindnetFastpathTable(c KindnetConfig) *nft.Table {
	const flowtable, devices = "kindnet-flowtables", "kindnet-set-devices"
	t := nft.NewTable(nft.Inet, tableKindnetFastpath)
	t.Flowtable(nft.Flowtable{Name: flowtable, Priority: 5, Devices: c.Devices})
	for _, d := range c.Devices {
		t.Set(devices, nft.Device).Insert(d)
	}
	t.Base("kindnet-fastpath-chain", nft.Hook{Type: "filter", Hook: "forward", Priority: nft.ManglePriority}).
		Add(nft.NotIn(devices, nft.InDevice), nft.Return).
		Add(nft.NotIn(devices, nft.OutDevice), nft.Return).
		Add(nft.State(nft.Established), nft.MorePackets(uint8(c.Threshold)), nft.Offload(flowtable), nft.Count)
	return t
}

// kindnetPolicyTable returns the table of the policy agent of both daemons while no policy selects a pod: the sets of
// selected pods are empty. Where the agent's rules queue packets for a decision in user space, these rules only count
// them.
func kindnetPolicyTable() *nft.Table {
	const four, six = "podips-v4", "podips-v6"
	t := nft.NewTable(nft.Inet, tableKindnetPolicy)
	t.Set(four, nft.Addr)
	t.Set(six, nft.Addr6)
	udp, dns := nft.Is(nft.L4Proto, nft.L4("udp")), nft.Is(nft.DestPort, uint16(53))
	queued := func(c *nft.Chain) {
		c.Add(nft.In(four, nft.SourceAddr), nft.Count).Add(nft.In(four, nft.DestAddr), nft.Count).
			Add(nft.In(six, nft.SourceAddr6), nft.Count).Add(nft.In(six, nft.DestAddr6), nft.Count)
	}
	out := t.Base("postrouting", nft.Hook{Type: "filter", Hook: "postrouting", Priority: nft.SNATPriority - 5}).Add(udp, dns, nft.Accept)
	for kind := uint8(133); kind <= 137; kind++ { // neighbour discovery
		out.Add(nft.VersionIPv6, nft.Is(nft.L4Proto, nft.L4("ipv6-icmp")), nft.Is(nft.ICMPv6Type, kind), nft.Accept)
	}
	out.Add(nft.OfRoot, nft.Count, nft.Accept).
		Add(nft.Labelled(KindnetLabel), nft.State(nft.Established|nft.Related), nft.Count, nft.Accept)
	queued(out)
	out.Add(nft.SetLabel(KindnetLabel))
	t.Base("input", nft.Hook{Type: "filter", Hook: "input", Priority: nft.SNATPriority + 1}).
		Add(nft.Is(nft.InDevice, "lo"), nft.Accept).
		Add(nft.In(four, nft.SourceAddr), nft.State(nft.New), nft.Count).
		Add(nft.In(six, nft.SourceAddr6), nft.State(nft.New), nft.Count)
	in := t.Base("prerouting", nft.Hook{Type: "filter", Hook: "prerouting", Priority: nft.DNATPriority + 5}).
		Add(nft.Not(nft.L4Proto, nft.L4("udp")), nft.Accept).
		Add(udp, nft.Not(nft.DestPort, uint16(53)), nft.Accept)
	queued(in)
	return t
}
