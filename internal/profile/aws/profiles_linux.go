package aws

import (
	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/dataplane/policy"
	"github.com/cnibench/cnibench/internal/plan"
)

// Profiles has the entries of the family's profiles in the lab.
var Profiles = []dataplane.Entry{
	{Profile: "aws-vpc", Dataplane: vpc{}, Expect: podExpectation(dataplane.Signs{PodRules: true, Agent: true, Marks: marks})},
	{Profile: "aws-vpc-eni2", Dataplane: second{}, Expect: podExpectation(dataplane.Signs{PodRules: true, Agent: true, PodTable: secondTable, Marks: marks, Leave: leave})},
	{Profile: "aws-vpc-branch", Dataplane: branch{strict: true}, Expect: strictExpectation()},
	{Profile: "aws-vpc-branch-standard", Dataplane: branch{}, Expect: podExpectation(dataplane.Signs{
		PodRules: true, Agent: true, PodTable: secondTable, Branches: true, Marks: marks, Leave: leaveBy(firstBranch),
	})},
}

// podExpectation returns the expectation for pods at the first or the second interface, with the given signs.
func podExpectation(signs dataplane.Signs) dataplane.Expectation {
	return dataplane.Expectation{
		Tracked: true,
		Served: dataplane.Paths(dataplane.Direct, dataplane.Entering(dataplane.NodeAddress, dataplane.NodeAddress), dataplane.HairpinNode,
			dataplane.Clients{dataplane.PodHostCross: dataplane.OwnAddress, dataplane.PodExternal: dataplane.NodeAddress}),
		Attach: &dataplane.Attachment{Gateway: dataplane.Pinned, SameTTL: 63, CrossTTL: 62},
		Signs:  signs,
	}
}

// marks maps a path to the mark of its connections. Connections have policy.AWSMark if they leave the VPC or entered by
// the first interface. All others have none, including those to Services.
var marks = map[plan.Path]uint32{
	dataplane.PodPodSame: 0, dataplane.PodPodCross: 0, dataplane.PodSvcLocal: 0, dataplane.PodSvcRemote: 0,
	dataplane.PodExternal: policy.AWSMark, dataplane.ExtPortLocal: policy.AWSMark, dataplane.ExtPortRemote: policy.AWSMark,
}

var leave = leaveBy(secondDevice)

// leaveBy maps a path to the device by which a node sends packets of pods with another interface than the first. That
// node is the client's, or the node that the client entered. A pod reaches Services by its own interface, device. Packets
// with the mark leave by the first interface.
func leaveBy(device string) map[plan.Path]string {
	return map[plan.Path]string{
		dataplane.PodPodCross: device, dataplane.PodHostCross: device, dataplane.PodSvcRemote: device,
		dataplane.PodExternal: dataplane.NIC, dataplane.ExtPortLocal: dataplane.NIC, dataplane.ExtPortRemote: dataplane.NIC,
	}
}
