package cilium

import (
	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/dataplane/expect"
)

// Profiles are those of the family in the lab.
var Profiles = []dataplane.Entry{
	withEncryption(dataplane.Entry{Profile: "cilium-vxlan", Expect: expect.Expectation{
		Identity: identity, RouteMTU: true,
		// A node has no way to a pod of another but the tunnel, so what leaves it for a node bears the node's address.
		Served: expect.Paths(bySockets(expect.FirstOfRange, expect.FirstOfRange, expect.FirstOfRange), expect.Masqueraded),
		Attach: &expect.Attachment{Gateway: expect.FirstAddress, SameTTL: 63, CrossTTL: 63},
		Remote: &expect.Route{Device: "cilium_host"},
		Programs: &expect.Programs{
			VIP: "nowhere", Doorstep: expect.NoPackets, Option: "none",
			Entered: "there external plain, node-1 vxlan udp 8472 vni 2; back node-1 plain, node-2 vxlan udp 8472 vni BACKEND",
		},
	}}, ciliumPlane{overlay: true}),
	withEncryption(dataplane.Entry{Profile: "cilium-native", Expect: expect.Expectation{
		Untouched: true, Served: bySockets(expect.FirstOfRange, expect.Node, expect.Node), Attach: &attach,
		Remote: &expect.Route{Device: "eth0"},
		Programs: &expect.Programs{
			VIP: "nowhere", Doorstep: expect.NoPackets, Option: "none",
			Entered: "there external plain, node-1 plain; back node-1 plain, node-2 plain",
		},
	}}, ciliumPlane{}),
	{Profile: "cilium-native-legacy", Dataplane: ciliumPlane{legacy: true}, Expect: expect.Expectation{
		TrackedBetween: true, Served: bySockets(expect.FirstOfRange, expect.Node, expect.Node),
		// Two stacks forward, and the delivery to the pod counts as a hop too.
		Attach: &expect.Attachment{Gateway: expect.FirstAddress, SameTTL: 63, CrossTTL: 61},
		Remote: &expect.Route{Device: "eth0"},
		Programs: &expect.Programs{
			VIP: "nowhere", Doorstep: expect.AllPackets, Forwards: true, Option: "none",
			Entered: "there external plain, node-1 plain; back node-1 plain, node-2 plain",
		},
	}},
	{Profile: "cilium-native-dsr", Dataplane: ciliumPlane{dsr: true}, Expect: expect.Expectation{
		Untouched: true, Served: bySockets(expect.FirstOfRange, expect.Node, expect.Own), Attach: &attach,
		Remote: &expect.Route{Device: "eth0"},
		Programs: &expect.Programs{
			VIP: "nowhere", Doorstep: expect.NoPackets, Option: "tcp syn, udp", Maglev: true,
			Entered: "there external plain, node-1 plain; back node-2 plain",
		},
	}},
	{Profile: "cilium-netkit", Dataplane: ciliumPlane{netkit: true}, Expect: expect.Expectation{
		Untouched: true, Served: bySockets(expect.FirstOfRange, expect.Node, expect.Node), Attach: &attach,
		Remote: &expect.Route{Device: "eth0"},
		Programs: &expect.Programs{
			// A packet that a pod of the node sends does not enter by a device, so redirect_peer cannot take it.
			VIP: "nowhere", Doorstep: expect.NoPackets, DoorstepSame: expect.AllPackets, Option: "none",
			Entered: "there external plain, node-1 plain; back node-1 plain, node-2 plain",
		},
	}},
}

// bySockets are Cilium's paths: a socket knows the Service before the first packet, so a pod that calls itself never
// leaves. near is the node towards its own pods, far towards the others'; entry is the client outside as a backend elsewhere
// sees it.
func bySockets(near, far, entry expect.Client) expect.Clients {
	return expect.Paths(expect.Direct, expect.Entering(near, far), expect.Unmasqueraded, expect.Clients{
		expect.ExtPortLocal: expect.Own, expect.ExtPortRemote: entry, expect.PodExternal: expect.Node, expect.PodSelf: expect.Own,
	})
}

// attach: the pods' gateway is the address of cilium_host, which the program of the pod's device answers for.
var attach = expect.Attachment{Gateway: expect.FirstAddress, SameTTL: 63, CrossTTL: 62}
