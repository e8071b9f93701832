package aws

import (
	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/dataplane/expect"
	"github.com/cnibench/cnibench/internal/dataplane/policy"
	"github.com/cnibench/cnibench/internal/plan"
)

// Profiles are those of the family in the lab.
var Profiles = []dataplane.Entry{
	{Profile: "aws-vpc", Dataplane: vpc{}, Expect: expect.Expectation{
		Tracked: true,
		Served: expect.Paths(expect.Direct, expect.Entering(expect.Node, expect.Node), expect.HairpinNode,
			expect.Clients{expect.PodHostCross: expect.Own, expect.PodExternal: expect.Node}),
		Attach: &expect.Attachment{Gateway: expect.Pinned, SameTTL: 63, CrossTTL: 62},
		// What leaves the VPC, and what entered by the first interface, has the mark. Nothing else has it, Services neither.
		Signs: expect.Signs{PodRules: true, Marks: map[plan.Path]uint32{
			expect.PodPodSame: 0, expect.PodPodCross: 0, expect.PodSvcLocal: 0, expect.PodSvcRemote: 0,
			expect.PodExternal: policy.AWSMark, expect.ExtPortLocal: policy.AWSMark, expect.ExtPortRemote: policy.AWSMark,
		}},
	}},
}
