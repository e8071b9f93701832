package flannel

import (
	"github.com/cnibench/cnibench/internal/dataplane"
)

// Profiles has the entries of the family's profiles in the lab.
var Profiles = []dataplane.Entry{
	{Profile: "flannel-vxlan", Dataplane: VXLAN{}, Expect: dataplane.Expectation{
		Tracked: true, TunnelTracked: true, Served: dataplane.Paths(dataplane.Direct, dataplane.Entering(dataplane.FirstOfRange, dataplane.TunnelEnd), dataplane.HairpinGateway, dataplane.Masqueraded),
		Attach: &dataplane.Attachment{Bridge: "cni0", Gateway: dataplane.FirstAddress, SameTTL: 64, CrossTTL: 62},
		Remote: &dataplane.Route{OnLink: true},
	}},
	{Profile: "flannel-host-gw", Dataplane: hostGW{}, Expect: dataplane.Expectation{
		Tracked: true, Served: dataplane.Paths(dataplane.Direct, dataplane.Entering(dataplane.FirstOfRange, dataplane.NodeAddress), dataplane.HairpinGateway, dataplane.Masqueraded),
		Attach: &dataplane.Attachment{Bridge: "cni0", Gateway: dataplane.FirstAddress, SameTTL: 64, CrossTTL: 62},
		Remote: &dataplane.Route{Device: "eth0"},
	}},
	{Profile: "flannel-wireguard", Dataplane: wireguard{}, Expect: dataplane.Expectation{
		Tracked: true, TunnelTracked: true, Served: dataplane.Paths(dataplane.Direct, dataplane.Entering(dataplane.FirstOfRange, dataplane.TunnelEnd), dataplane.HairpinGateway, dataplane.Masqueraded),
		Attach: &dataplane.Attachment{Bridge: "cni0", Gateway: dataplane.FirstAddress, SameTTL: 64, CrossTTL: 62},
		Remote: &dataplane.Route{Shared: true},
	}},
}
