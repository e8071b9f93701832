package canal

import (
	"github.com/cnibench/cnibench/internal/env/lab/dataplane"
	"github.com/cnibench/cnibench/internal/env/lab/expect"
	"github.com/cnibench/cnibench/internal/profile/calico"
)

// Profiles are those of the family in the lab.
var Profiles = []dataplane.Entry{
	{Profile: "canal", Dataplane: canal{}, Expect: expect.Expectation{
		Tracked: true, TunnelTracked: true, Served: expect.Paths(expect.Direct, expect.Entering(expect.Node, expect.TunnelEnd), expect.HairpinNode, expect.Masqueraded),
		Attach: &calico.Attach,
		Remote: &expect.Route{OnLink: true},
	}},
}
