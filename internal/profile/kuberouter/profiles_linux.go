package kuberouter

import (
	"github.com/cnibench/cnibench/internal/dataplane"
)

// Profiles has the entries of the family's profiles in the lab.
var Profiles = []dataplane.Entry{
	{Profile: "kube-router", Dataplane: kubeRouter{}, Expect: dataplane.Expectation{
		Tracked: true,
		Served: dataplane.Paths(dataplane.Direct, dataplane.Entering(dataplane.FirstOfRange, dataplane.NodeAddress), dataplane.HairpinGateway,
			dataplane.Clients{dataplane.PodHostCross: dataplane.OwnAddress, dataplane.PodExternal: dataplane.NodeAddress}),
		Attach: &dataplane.Attachment{Bridge: bridge, Gateway: dataplane.FirstAddress, SameTTL: 64, CrossTTL: 62},
		Remote: &dataplane.Route{Device: dataplane.NIC, Protocol: dataplane.ProtocolZebra},
		Signs:  dataplane.Signs{Firewall: true},
	}},
}
