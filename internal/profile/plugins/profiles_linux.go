package plugins

import (
	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/plan"
)

// Profiles has the entries of the family's profiles in the lab.
var Profiles = []dataplane.Entry{
	{Profile: "bridge", Dataplane: Bridge{}, Expect: dataplane.Expectation{
		Tracked: true, Served: dataplane.Paths(dataplane.Direct, dataplane.Entering(dataplane.FirstOfRange, dataplane.NodeAddress), dataplane.Unmasqueraded),
		Refused: []plan.Path{dataplane.PodSelf},
		Attach:  &dataplane.Attachment{Bridge: "cni0", Gateway: dataplane.FirstAddress, SameTTL: 64, CrossTTL: 62},
		Remote:  &dataplane.Route{Device: "eth0"},
	}},
	{Profile: "ptp", Dataplane: PTP{}, Expect: dataplane.Expectation{
		Tracked: true, Served: dataplane.Paths(dataplane.Direct, dataplane.Entering(dataplane.FirstOfRange, dataplane.NodeAddress), dataplane.HairpinGateway, dataplane.Unmasqueraded),
		Attach: &dataplane.Attachment{Gateway: dataplane.FirstAddress, SameTTL: 63, CrossTTL: 62},
		Remote: &dataplane.Route{Device: "eth0"},
	}},
	{Profile: "macvlan", Dataplane: macvlan{}, Expect: dataplane.Expectation{
		Untouched: true, Served: OnUnderlay, Refused: pastNode,
		Attach: &dataplane.Attachment{SameTTL: 64, CrossTTL: 64, OwnMAC: true},
	}},
	{Profile: "ipvlan", Dataplane: ipvlan{}, Expect: dataplane.Expectation{
		Untouched: true, Served: OnUnderlay, Refused: pastNode,
		Attach: &dataplane.Attachment{SameTTL: 64, CrossTTL: 64},
	}},
}

// OnUnderlay has the paths that work if pods have addresses of the underlay and bypass their node. The server sees the
// client's own address, except behind a node port.
var OnUnderlay = dataplane.Clients{
	dataplane.HostHostSame: dataplane.OwnAddress, dataplane.HostHostCross: dataplane.OwnAddress, dataplane.PodPodSame: dataplane.OwnAddress, dataplane.PodPodCross: dataplane.OwnAddress,
	dataplane.PodHostCross: dataplane.OwnAddress, dataplane.HostPodCross: dataplane.OwnAddress, dataplane.PodExternal: dataplane.OwnAddress, dataplane.HostSvcRemote: dataplane.OwnAddress,
	dataplane.ExtPortRemote: dataplane.NodeAddress,
}

// pastNode has the paths that do not work because pods bypass their node.
var pastNode = []plan.Path{dataplane.PodHostSame, dataplane.HostPodSame, dataplane.PodSvcLocal, dataplane.PodSvcRemote, dataplane.PodSelf}
