package kindnet

import (
	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/dataplane/policy"
)

// Profiles has the entries of the family's profiles in the lab.
var Profiles = []dataplane.Entry{
	{Profile: "kindnet", Dataplane: kindnet{}, Expect: podExpectation(dataplane.RangeAddress, dataplane.OfRange)},
	{Profile: "kindnetd", Dataplane: kindnetd{}, Expect: podExpectation(dataplane.FirstAddress, dataplane.FirstOfRange)},
}

// podExpectation returns the expectation for pods with this kind of gateway. near is the address by which pods see
// their own node.
func podExpectation(gateway dataplane.Gateway, near dataplane.Client) dataplane.Expectation {
	return dataplane.Expectation{
		Tracked: true,
		Served:  dataplane.Paths(dataplane.Direct, dataplane.Entering(near, dataplane.NodeAddress), dataplane.Masqueraded, dataplane.Clients{dataplane.PodSelf: near}),
		Attach:  &dataplane.Attachment{Gateway: gateway, SameTTL: 63, CrossTTL: 62},
		Remote:  &dataplane.Route{Device: dataplane.NIC},
		Signs:   dataplane.Signs{Label: policy.KindnetLabel},
	}
}
