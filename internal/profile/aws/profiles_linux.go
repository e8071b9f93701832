package aws

import (
	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/dataplane/expect"
	"github.com/cnibench/cnibench/internal/dataplane/policy"
	"github.com/cnibench/cnibench/internal/plan"
)

// Profiles are those of the family in the lab.
var Profiles = []dataplane.Entry{
	{Profile: "aws-vpc", Dataplane: vpc{}, Expect: expected(expect.Signs{PodRules: true, Marks: marks})},
	{Profile: "aws-vpc-eni2", Dataplane: second{}, Expect: expected(expect.Signs{PodRules: true, PodTable: secondTable, Marks: marks, Leave: leave})},
}

// expected is what an observer finds of pods at either interface, with their signs.
func expected(signs expect.Signs) expect.Expectation {
	return expect.Expectation{
		Tracked: true,
		Served: expect.Paths(expect.Direct, expect.Entering(expect.Node, expect.Node), expect.HairpinNode,
			expect.Clients{expect.PodHostCross: expect.Own, expect.PodExternal: expect.Node}),
		Attach: &expect.Attachment{Gateway: expect.Pinned, SameTTL: 63, CrossTTL: 62},
		Signs:  signs,
	}
}

// marks are those of connections: what leaves the VPC, and what entered by the first interface, has the mark. Nothing else has it,
// Services neither.
var marks = map[plan.Path]uint32{
	expect.PodPodSame: 0, expect.PodPodCross: 0, expect.PodSvcLocal: 0, expect.PodSvcRemote: 0,
	expect.PodExternal: policy.AWSMark, expect.ExtPortLocal: policy.AWSMark, expect.ExtPortRemote: policy.AWSMark,
}

// leave are the devices by which the client's node, or the node that the client entered, sends packets of pods at the second
// interface. A pod reaches Services by its own interface. What has the mark leaves by the first one.
var leave = map[plan.Path]string{
	expect.PodPodCross: secondDevice, expect.PodHostCross: secondDevice, expect.PodSvcRemote: secondDevice,
	expect.PodExternal: dataplane.NIC, expect.ExtPortLocal: dataplane.NIC, expect.ExtPortRemote: dataplane.NIC,
}
