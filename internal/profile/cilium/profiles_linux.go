package cilium

import (
	"github.com/cnibench/cnibench/internal/dataplane"
)

// Profiles has the entries of the family's profiles in the lab.
var Profiles = []dataplane.Entry{
	encryptableEntry(dataplane.Entry{Profile: "cilium-vxlan", Expect: dataplane.Expectation{
		Identity: podIdentity, RouteMTU: true,
		// A node reaches pods of other nodes only by the tunnel, so packets from pods to other nodes have the node's
		// address.
		Served: dataplane.Paths(clientsByPath(dataplane.FirstOfRange, dataplane.FirstOfRange, dataplane.FirstOfRange), dataplane.Masqueraded),
		Attach: &dataplane.Attachment{Gateway: dataplane.FirstAddress, SameTTL: 63, CrossTTL: 63},
		Remote: &dataplane.Route{Device: "cilium_host"},
		Programs: &dataplane.ExpectedPrograms{
			VIP: "nowhere", Doorstep: dataplane.NoPackets, Option: "none",
			Entered: "there external plain, node-1 vxlan udp 8472 vni 2; back node-1 plain, node-2 vxlan udp 8472 vni BACKEND",
		},
	}}, ciliumPlane{overlay: true}),
	encryptableEntry(dataplane.Entry{Profile: "cilium-native", Expect: dataplane.Expectation{
		Untouched: true, Served: clientsByPath(dataplane.FirstOfRange, dataplane.NodeAddress, dataplane.NodeAddress), Attach: &attach,
		Remote: &dataplane.Route{Device: "eth0"},
		Programs: &dataplane.ExpectedPrograms{
			VIP: "nowhere", Doorstep: dataplane.NoPackets, Option: "none",
			Entered: "there external plain, node-1 plain; back node-1 plain, node-2 plain",
		},
	}}, ciliumPlane{}),
	{Profile: "cilium-native-legacy", Dataplane: ciliumPlane{legacy: true}, Expect: dataplane.Expectation{
		TrackedBetween: true, Served: clientsByPath(dataplane.FirstOfRange, dataplane.NodeAddress, dataplane.NodeAddress),
		// Two stacks forward, and the delivery to the pod counts as a hop too.
		Attach: &dataplane.Attachment{Gateway: dataplane.FirstAddress, SameTTL: 63, CrossTTL: 61},
		Remote: &dataplane.Route{Device: "eth0"},
		Programs: &dataplane.ExpectedPrograms{
			VIP: "nowhere", Doorstep: dataplane.AllPackets, Forwards: true, Option: "none",
			Entered: "there external plain, node-1 plain; back node-1 plain, node-2 plain",
		},
	}},
	{Profile: "cilium-native-dsr", Dataplane: ciliumPlane{dsr: true}, Expect: dataplane.Expectation{
		Untouched: true, Served: clientsByPath(dataplane.FirstOfRange, dataplane.NodeAddress, dataplane.OwnAddress), Attach: &attach,
		Remote: &dataplane.Route{Device: "eth0"},
		Programs: &dataplane.ExpectedPrograms{
			VIP: "nowhere", Doorstep: dataplane.NoPackets, Option: "tcp syn, udp", Maglev: true,
			Entered: "there external plain, node-1 plain; back node-2 plain",
		},
	}},
	{Profile: "cilium-netkit", Dataplane: ciliumPlane{netkit: true}, Expect: dataplane.Expectation{
		Untouched: true, Served: clientsByPath(dataplane.FirstOfRange, dataplane.NodeAddress, dataplane.NodeAddress), Attach: &attach,
		Remote: &dataplane.Route{Device: "eth0"},
		Programs: &dataplane.ExpectedPrograms{
			// A packet that a pod of the node sends does not enter by a device, so redirect_peer cannot take it.
			VIP: "nowhere", Doorstep: dataplane.NoPackets, DoorstepSame: dataplane.AllPackets, Option: "none",
			Entered: "there external plain, node-1 plain; back node-1 plain, node-2 plain",
		},
	}},
}

// clientsByPath maps each path of Cilium to the client that the server sees. Sockets translate Services before the first
// packet, so packets of a pod to itself never leave it. near is the address of the node that its own pods see, far the
// address that pods of other nodes see. entry is the address that a backend sees if an external client entered by
// another node.
func clientsByPath(near, far, entry dataplane.Client) dataplane.Clients {
	return dataplane.Paths(dataplane.Direct, dataplane.Entering(near, far), dataplane.Unmasqueraded, dataplane.Clients{
		dataplane.ExtPortLocal: dataplane.OwnAddress, dataplane.ExtPortRemote: entry, dataplane.PodExternal: dataplane.NodeAddress, dataplane.PodSelf: dataplane.OwnAddress,
	})
}

// attach is the attachment with native routing. The pods' gateway is the address of cilium_host, for which the program of
// the pod's device answers ARP requests.
var attach = dataplane.Attachment{Gateway: dataplane.FirstAddress, SameTTL: 63, CrossTTL: 62}
