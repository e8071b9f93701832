package sriov

import (
	"github.com/cnibench/cnibench/internal/env/lab/dataplane"
	"github.com/cnibench/cnibench/internal/env/lab/expect"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile/plugins"
)

// Profiles are those of the family in the lab.
var Profiles = []dataplane.Entry{
	{Profile: "sriov", Dataplane: sriov{}, Expect: expect.Expectation{
		Untouched: true, Served: expect.Paths(plugins.OnUnderlay, ownNode), Refused: []plan.Path{expect.PodSvcLocal, expect.PodSvcRemote, expect.PodSelf},
		Attach: &expect.Attachment{SameTTL: 64, CrossTTL: 64, OwnMAC: true, Switched: true},
	}},
}

// ownNode are the paths between a pod and its own node, which need more than a device on the node's NIC.
var ownNode = expect.Clients{
	expect.PodHostSame: expect.Own, expect.HostPodSame: expect.Own, expect.HostSvcLocal: expect.Own, expect.ExtPortLocal: expect.Node,
}
