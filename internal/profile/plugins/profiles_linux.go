package plugins

import (
	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/dataplane/expect"
	"github.com/cnibench/cnibench/internal/plan"
)

// Profiles are those of the family in the lab.
var Profiles = []dataplane.Entry{
	{Profile: "bridge", Dataplane: Bridge{}, Expect: expect.Expectation{
		Tracked: true, Served: expect.Paths(expect.Direct, expect.Entering(expect.FirstOfRange, expect.Node), expect.Unmasqueraded),
		Refused: []plan.Path{expect.PodSelf},
		Attach:  &expect.Attachment{Bridge: "cni0", Gateway: expect.FirstAddress, SameTTL: 64, CrossTTL: 62},
		Remote:  &expect.Route{Device: "eth0"},
	}},
	{Profile: "ptp", Dataplane: PTP{}, Expect: expect.Expectation{
		Tracked: true, Served: expect.Paths(expect.Direct, expect.Entering(expect.FirstOfRange, expect.Node), expect.HairpinGateway, expect.Unmasqueraded),
		Attach: &expect.Attachment{Gateway: expect.FirstAddress, SameTTL: 63, CrossTTL: 62},
		Remote: &expect.Route{Device: "eth0"},
	}},
	{Profile: "macvlan", Dataplane: macvlan{}, Expect: expect.Expectation{
		Untouched: true, Served: OnUnderlay, Refused: pastNode,
		Attach: &expect.Attachment{SameTTL: 64, CrossTTL: 64, OwnMAC: true},
	}},
	{Profile: "ipvlan", Dataplane: ipvlan{}, Expect: expect.Expectation{
		Untouched: true, Served: OnUnderlay, Refused: pastNode,
		Attach: &expect.Attachment{SameTTL: 64, CrossTTL: 64},
	}},
}

// OnUnderlay are the paths of pods with addresses of the underlay, past their node: nothing translates for them, and a
// Service is reached through a node only.
var OnUnderlay = expect.Clients{
	expect.HostHostSame: expect.Own, expect.HostHostCross: expect.Own, expect.PodPodSame: expect.Own, expect.PodPodCross: expect.Own,
	expect.PodHostCross: expect.Own, expect.HostPodCross: expect.Own, expect.PodExternal: expect.Own, expect.HostSvcRemote: expect.Own,
	expect.ExtPortRemote: expect.Node,
}

// pastNode are the paths that do not work because pods bypass their node.
var pastNode = []plan.Path{expect.PodHostSame, expect.HostPodSame, expect.PodSvcLocal, expect.PodSvcRemote, expect.PodSelf}
