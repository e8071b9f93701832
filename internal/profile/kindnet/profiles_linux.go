package kindnet

import (
	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/dataplane/expect"
	"github.com/cnibench/cnibench/internal/dataplane/policy"
)

// Profiles are those of the family in the lab.
var Profiles = []dataplane.Entry{
	{Profile: "kindnet", Dataplane: kindnet{}, Expect: expected(expect.RangeAddress, expect.OfRange)},
	{Profile: "kindnetd", Dataplane: kindnetd{}, Expect: expected(expect.FirstAddress, expect.FirstOfRange)},
}

// expected is what an observer finds of pods with this gateway, towards which the node is the client near.
func expected(gateway expect.Gateway, near expect.Client) expect.Expectation {
	return expect.Expectation{
		Tracked: true,
		Served:  expect.Paths(expect.Direct, expect.Entering(near, expect.Node), expect.Masqueraded, expect.Clients{expect.PodSelf: near}),
		Attach:  &expect.Attachment{Gateway: gateway, SameTTL: 63, CrossTTL: 62},
		Remote:  &expect.Route{Device: dataplane.NIC},
		Signs:   expect.Signs{Label: policy.KindnetLabel},
	}
}
