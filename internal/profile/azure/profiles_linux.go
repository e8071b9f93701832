package azure

import (
	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/dataplane/expect"
)

// Profiles are those of the family in the lab.
var Profiles = []dataplane.Entry{
	{Profile: "azure", Dataplane: transparent{}, Expect: expect.Expectation{
		Tracked: true,
		Served:  expect.Paths(expect.Direct, expect.Entering(expect.Node, expect.Node), expect.HairpinNode, expect.Masqueraded),
		Attach:  &expect.Attachment{Gateway: expect.Answered, HostMAC: hostMAC.String(), ProxyARP: true, SameTTL: 63, CrossTTL: 62},
		Remote:  &expect.Route{Device: dataplane.NIC},
	}},
}
