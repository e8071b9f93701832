package calico

import (
	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/dataplane/expect"
)

// Profiles are those of the family in the lab.
var Profiles = []dataplane.Entry{
	withEncryption(dataplane.Entry{Profile: "calico-vxlan", Expect: overVXLAN}, calico{vxlan: true}),
	withEncryption(dataplane.Entry{Profile: "calico-underlay", Expect: expect.Expectation{
		Tracked: true, Served: expect.Paths(expect.Direct, expect.Entering(expect.Node, expect.Node), expect.HairpinNode, expect.Masqueraded),
		Attach:    &Attach,
		Blackhole: expect.ProtocolBird,
		Remote:    &expect.Route{Device: "eth0", Protocol: expect.ProtocolBird},
	}}, calico{}),
	withEncryption(dataplane.Entry{Profile: "calico-nftables", Expect: overVXLAN}, calico{vxlan: true, nft: true}),
	{Profile: "calico-ipip", Dataplane: calicoIPIP{}, Expect: expect.Expectation{
		Tracked: true, Served: expect.Paths(expect.Direct, expect.Entering(expect.Node, expect.TunnelEnd), expect.HairpinNode, expect.Masqueraded),
		Attach:    &Attach,
		Blackhole: expect.ProtocolBird,
		Remote:    &expect.Route{OnLink: true, Protocol: expect.ProtocolBird},
	}},
	{Profile: "calico-ebpf", Dataplane: calicoBPF{calico: calico{vxlan: true}}, Expect: expect.Expectation{
		Served: ebpfPaths, Datagrams: ebpfDatagrams, Attach: &ebpfAttach,
		Blackhole: expect.ProtocolFelix,
		Remote:    &expect.Route{OnLink: true, Protocol: expect.ProtocolFelix},
		Programs: &expect.Programs{
			VIP: "udp beside the client", Doorstep: expect.FirstPackets, Option: "none", Mute: true,
			Entered: "there external plain, node-1 vxlan udp 4789 vni 13242816; back node-1 plain, node-2 vxlan udp 4789 vni 13242816",
		},
	}},
	{Profile: "calico-ebpf-underlay", Dataplane: calicoBPF{calico: calico{vxlan: true}, sameSubnet: true}, Expect: expect.Expectation{
		Served: ebpfDirectPaths, Datagrams: ebpfDatagrams, Attach: &ebpfRouted,
		Blackhole: expect.ProtocolFelix,
		Remote:    &expect.Route{Device: "eth0", OnLink: true, Protocol: expect.ProtocolFelix},
		Programs: &expect.Programs{
			VIP: "udp beside the client", Doorstep: expect.FirstPackets, Option: "none", Mute: true,
			Entered: "there external plain, node-1 vxlan udp 4789 vni 13242816; back node-1 plain, node-2 vxlan udp 4789 vni 13242816",
		},
	}},
	{Profile: "calico-ebpf-dsr", Dataplane: calicoBPF{calico: calico{vxlan: true}, dsr: true}, Expect: expect.Expectation{
		Served: ebpfPaths, Datagrams: ebpfDatagrams, Attach: &ebpfAttach,
		Blackhole: expect.ProtocolFelix,
		Remote:    &expect.Route{OnLink: true, Protocol: expect.ProtocolFelix},
		Programs: &expect.Programs{
			VIP: "udp beside the client", Doorstep: expect.FirstPackets, Option: "none", Mute: true,
			Entered: "there external plain, node-1 vxlan udp 4789 vni 13242816; back node-2 plain",
		},
	}},
}

// overVXLAN is the same for iptables and nftables: only the place of the chains differs.
var overVXLAN = expect.Expectation{
	Tracked: true, Served: expect.Paths(expect.Direct, expect.Entering(expect.Node, expect.TunnelEnd), expect.HairpinNode, expect.Masqueraded),
	Attach:    &Attach,
	Blackhole: expect.ProtocolFelix,
	Remote:    &expect.Route{OnLink: true, Protocol: expect.ProtocolFelix},
}

// Attach is how Calico connects pods.
var Attach = expect.Attachment{Gateway: expect.LinkLocal, SameTTL: 63, CrossTTL: 62, ProxyARP: true}

// ebpfAttach: the programs of the receiving node alone forward a packet for a tunnel.
var ebpfAttach = expect.Attachment{Gateway: expect.LinkLocal, SameTTL: 63, CrossTTL: 63, ProxyARP: true}

// ebpfRouted: without a tunnel both nodes forward it.
var ebpfRouted = expect.Attachment{Gateway: expect.LinkLocal, SameTTL: 63, CrossTTL: 62, ProxyARP: true}

// A node sends its own datagrams to a Service from the node's address, its connections from the address towards the chosen
// pod.
var (
	ebpfPaths = expect.Paths(expect.Direct, expect.Entering(expect.Node, expect.TunnelEnd), expect.Masqueraded, expect.Clients{
		expect.ExtPortLocal: expect.Own, expect.ExtPortRemote: expect.Own, expect.PodSelf: expect.Own,
	})
	ebpfDirectPaths = expect.Paths(expect.Direct, expect.Entering(expect.Node, expect.Node), expect.Masqueraded, expect.Clients{
		expect.ExtPortLocal: expect.Own, expect.ExtPortRemote: expect.Own, expect.PodSelf: expect.Own,
	})
	ebpfDatagrams = expect.Clients{expect.HostSvcRemote: expect.Node, expect.PodSelf: expect.Node}
)
