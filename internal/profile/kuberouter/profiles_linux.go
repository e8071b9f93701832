package kuberouter

import (
	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/dataplane/expect"
)

// Profiles are those of the family in the lab.
var Profiles = []dataplane.Entry{
	{Profile: "kube-router", Dataplane: kubeRouter{}, Expect: expect.Expectation{
		Tracked: true,
		Served: expect.Paths(expect.Direct, expect.Entering(expect.FirstOfRange, expect.Node), expect.HairpinGateway,
			expect.Clients{expect.PodHostCross: expect.Own, expect.PodExternal: expect.Node}),
		Attach: &expect.Attachment{Bridge: bridge, Gateway: expect.FirstAddress, SameTTL: 64, CrossTTL: 62},
		Remote: &expect.Route{Device: dataplane.NIC, Protocol: expect.ProtocolZebra},
		Signs:  expect.Signs{Firewall: true},
	}},
}
