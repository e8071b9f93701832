package flannel

import (
	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/dataplane/expect"
)

// Profiles are those of the family in the lab.
var Profiles = []dataplane.Entry{
	{Profile: "flannel-vxlan", Dataplane: VXLAN{}, Expect: expect.Expectation{
		Tracked: true, TunnelTracked: true, Served: expect.Paths(expect.Direct, expect.Entering(expect.FirstOfRange, expect.TunnelEnd), expect.HairpinGateway, expect.Masqueraded),
		Attach: &expect.Attachment{Bridge: "cni0", Gateway: expect.FirstAddress, SameTTL: 64, CrossTTL: 62},
		Remote: &expect.Route{OnLink: true},
	}},
	{Profile: "flannel-host-gw", Dataplane: hostGW{}, Expect: expect.Expectation{
		Tracked: true, Served: expect.Paths(expect.Direct, expect.Entering(expect.FirstOfRange, expect.Node), expect.HairpinGateway, expect.Masqueraded),
		Attach: &expect.Attachment{Bridge: "cni0", Gateway: expect.FirstAddress, SameTTL: 64, CrossTTL: 62},
		Remote: &expect.Route{Device: "eth0"},
	}},
	{Profile: "flannel-wireguard", Dataplane: wireguard{}, Expect: expect.Expectation{
		Tracked: true, TunnelTracked: true, Served: expect.Paths(expect.Direct, expect.Entering(expect.FirstOfRange, expect.TunnelEnd), expect.HairpinGateway, expect.Masqueraded),
		Attach: &expect.Attachment{Bridge: "cni0", Gateway: expect.FirstAddress, SameTTL: 64, CrossTTL: 62},
		Remote: &expect.Route{Shared: true},
	}},
}
