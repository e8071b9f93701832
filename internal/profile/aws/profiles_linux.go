package aws

import (
	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/dataplane/policy"
	"github.com/cnibench/cnibench/internal/plan"
)

// Profiles has the entries of the family's profiles in the lab.
var Profiles = []dataplane.Entry{
	{Profile: "aws-vpc", Dataplane: vpc{}, Expect: podExpectation(dataplane.Signs{PodRules: true, Marks: marks})},
	{Profile: "aws-vpc-eni2", Dataplane: second{}, Expect: podExpectation(dataplane.Signs{PodRules: true, PodTable: secondTable, Marks: marks, Leave: leave})},
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

// marks has the mark of connections by path: connections that leave the VPC, or entered by the first interface, have the
// mark. Others, also those to Services, do not.
var marks = map[plan.Path]uint32{
	dataplane.PodPodSame: 0, dataplane.PodPodCross: 0, dataplane.PodSvcLocal: 0, dataplane.PodSvcRemote: 0,
	dataplane.PodExternal: policy.AWSMark, dataplane.ExtPortLocal: policy.AWSMark, dataplane.ExtPortRemote: policy.AWSMark,
}

// leave has the device, by path, through which the client's node (or the node that the client entered) sends packets of pods
// at the second interface. A pod reaches Services by its own interface. Packets with the mark leave by the first interface.
var leave = map[plan.Path]string{
	dataplane.PodPodCross: secondDevice, dataplane.PodHostCross: secondDevice, dataplane.PodSvcRemote: secondDevice,
	dataplane.PodExternal: dataplane.NIC, dataplane.ExtPortLocal: dataplane.NIC, dataplane.ExtPortRemote: dataplane.NIC,
}
