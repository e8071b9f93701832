package calico

import (
	"github.com/cnibench/cnibench/internal/dataplane"
)

// Profiles has the entries of the family's profiles in the lab.
var Profiles = []dataplane.Entry{
	encryptableEntry(dataplane.Entry{Profile: "calico-vxlan", Expect: overVXLAN}, calico{vxlan: true}),
	encryptableEntry(dataplane.Entry{Profile: "calico-underlay", Expect: dataplane.Expectation{
		Tracked: true, Served: dataplane.Paths(dataplane.Direct, dataplane.Entering(dataplane.NodeAddress, dataplane.NodeAddress), dataplane.HairpinNode, dataplane.Masqueraded),
		Attach:    &Attach,
		Blackhole: dataplane.ProtocolBird,
		Remote:    &dataplane.Route{Device: "eth0", Protocol: dataplane.ProtocolBird},
	}}, calico{}),
	encryptableEntry(dataplane.Entry{Profile: "calico-nftables", Expect: overVXLAN}, calico{vxlan: true, nft: true}),
	{Profile: "calico-ipip", Dataplane: calicoIPIP{}, Expect: dataplane.Expectation{
		Tracked: true, Served: dataplane.Paths(dataplane.Direct, dataplane.Entering(dataplane.NodeAddress, dataplane.TunnelEnd), dataplane.HairpinNode, dataplane.Masqueraded),
		Attach:    &Attach,
		Blackhole: dataplane.ProtocolBird,
		Remote:    &dataplane.Route{OnLink: true, Protocol: dataplane.ProtocolBird},
	}},
	{Profile: "calico-ebpf", Dataplane: calicoBPF{calico: calico{vxlan: true}}, Expect: dataplane.Expectation{
		Served: ebpfPaths, Datagrams: ebpfDatagrams, Attach: &ebpfAttach,
		Blackhole: dataplane.ProtocolFelix,
		Remote:    &dataplane.Route{OnLink: true, Protocol: dataplane.ProtocolFelix},
		Programs: &dataplane.ExpectedPrograms{
			VIP: "udp beside the client", Doorstep: dataplane.FirstPackets, Option: "none", Mute: true,
			Entered: "there external plain, node-1 vxlan udp 4789 vni 13242816; back node-1 plain, node-2 vxlan udp 4789 vni 13242816",
		},
	}},
	{Profile: "calico-ebpf-underlay", Dataplane: calicoBPF{calico: calico{vxlan: true}, sameSubnet: true}, Expect: dataplane.Expectation{
		Served: ebpfDirectPaths, Datagrams: ebpfDatagrams, Attach: &ebpfRouted,
		Blackhole: dataplane.ProtocolFelix,
		Remote:    &dataplane.Route{Device: "eth0", OnLink: true, Protocol: dataplane.ProtocolFelix},
		Programs: &dataplane.ExpectedPrograms{
			VIP: "udp beside the client", Doorstep: dataplane.FirstPackets, Option: "none", Mute: true,
			Entered: "there external plain, node-1 vxlan udp 4789 vni 13242816; back node-1 plain, node-2 vxlan udp 4789 vni 13242816",
		},
	}},
	{Profile: "calico-ebpf-dsr", Dataplane: calicoBPF{calico: calico{vxlan: true}, dsr: true}, Expect: dataplane.Expectation{
		Served: ebpfPaths, Datagrams: ebpfDatagrams, Attach: &ebpfAttach,
		Blackhole: dataplane.ProtocolFelix,
		Remote:    &dataplane.Route{OnLink: true, Protocol: dataplane.ProtocolFelix},
		Programs: &dataplane.ExpectedPrograms{
			VIP: "udp beside the client", Doorstep: dataplane.FirstPackets, Option: "none", Mute: true,
			Entered: "there external plain, node-1 vxlan udp 4789 vni 13242816; back node-2 plain",
		},
	}},
}

// overVXLAN is the expectation of Calico over VXLAN. It is the same for iptables and nftables, which differ only in the
// place of the chains.
var overVXLAN = dataplane.Expectation{
	Tracked: true, Served: dataplane.Paths(dataplane.Direct, dataplane.Entering(dataplane.NodeAddress, dataplane.TunnelEnd), dataplane.HairpinNode, dataplane.Masqueraded),
	Attach:    &Attach,
	Blackhole: dataplane.ProtocolFelix,
	Remote:    &dataplane.Route{OnLink: true, Protocol: dataplane.ProtocolFelix},
}

// Attach describes how Calico connects pods to their node.
var Attach = dataplane.Attachment{Gateway: dataplane.LinkLocal, SameTTL: 63, CrossTTL: 62, ProxyARP: true}

// ebpfAttach is the attachment in the eBPF dataplane with a tunnel: only the receiving node decrements the TTL.
var ebpfAttach = dataplane.Attachment{Gateway: dataplane.LinkLocal, SameTTL: 63, CrossTTL: 63, ProxyARP: true}

// ebpfRouted is the attachment in the eBPF dataplane without a tunnel: both nodes decrement the TTL.
var ebpfRouted = dataplane.Attachment{Gateway: dataplane.LinkLocal, SameTTL: 63, CrossTTL: 62, ProxyARP: true}

// The paths of the eBPF dataplane. A node sends its own datagrams to a Service from the node's address, but its connections
// from the address of the device towards the chosen pod.
var (
	ebpfPaths = dataplane.Paths(dataplane.Direct, dataplane.Entering(dataplane.NodeAddress, dataplane.TunnelEnd), dataplane.Masqueraded, dataplane.Clients{
		dataplane.ExtPortLocal: dataplane.OwnAddress, dataplane.ExtPortRemote: dataplane.OwnAddress, dataplane.PodSelf: dataplane.OwnAddress,
	})
	ebpfDirectPaths = dataplane.Paths(dataplane.Direct, dataplane.Entering(dataplane.NodeAddress, dataplane.NodeAddress), dataplane.Masqueraded, dataplane.Clients{
		dataplane.ExtPortLocal: dataplane.OwnAddress, dataplane.ExtPortRemote: dataplane.OwnAddress, dataplane.PodSelf: dataplane.OwnAddress,
	})
	ebpfDatagrams = dataplane.Clients{dataplane.HostSvcRemote: dataplane.NodeAddress, dataplane.PodSelf: dataplane.NodeAddress}
)
