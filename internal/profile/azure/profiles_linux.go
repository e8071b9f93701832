package azure

import (
	"github.com/cnibench/cnibench/internal/dataplane"
)

// Profiles has the entries of the family's profiles in the lab.
var Profiles = []dataplane.Entry{
	{Profile: "azure", Dataplane: transparent{}, Expect: dataplane.Expectation{
		Tracked: true,
		Served:  dataplane.Paths(dataplane.Direct, dataplane.Entering(dataplane.NodeAddress, dataplane.NodeAddress), dataplane.HairpinNode, dataplane.Masqueraded),
		Attach:  &dataplane.Attachment{Gateway: dataplane.Answered, HostMAC: hostMAC.String(), ProxyARP: true, SameTTL: 63, CrossTTL: 62},
		Remote:  &dataplane.Route{Device: dataplane.NIC},
	}},
}
