package bare

import (
	"github.com/cnibench/cnibench/internal/env/lab/dataplane"
	"github.com/cnibench/cnibench/internal/env/lab/expect"
)

// Profiles are those of the family in the lab.
var Profiles = []dataplane.Entry{
	{Profile: "raw", Dataplane: raw{}, Expect: expect.Expectation{Served: expect.Clients{expect.HostHostSame: expect.Own, expect.HostHostCross: expect.Own}}},
	{Profile: "host", Dataplane: host{}, Expect: expect.Expectation{
		Tracked: true,
		// The pods are the node, so everybody is seen as who he is. What is translated to the node itself goes to INPUT,
		// and only POSTROUTING masquerades.
		Served: expect.Clients{
			expect.HostHostSame: expect.Own, expect.HostHostCross: expect.Own, expect.PodHostSame: expect.Own, expect.PodHostCross: expect.Own, expect.HostPodSame: expect.Own, expect.HostPodCross: expect.Own,
			expect.PodPodSame: expect.Own, expect.PodPodCross: expect.Own, expect.PodExternal: expect.Own,
			expect.HostSvcLocal: expect.Own, expect.HostSvcRemote: expect.Own, expect.PodSvcLocal: expect.Own, expect.PodSvcRemote: expect.Own,
			expect.ExtPortLocal: expect.Own, expect.ExtPortRemote: expect.Node, expect.PodSelf: expect.Own,
		},
	}},
}
