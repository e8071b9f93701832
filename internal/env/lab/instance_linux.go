package lab

import (
	"net/netip"

	"github.com/cnibench/cnibench/internal/env/lab/dataplane"
	"github.com/cnibench/cnibench/internal/kernel/cgroup"
	"github.com/cnibench/cnibench/internal/kernel/impair"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
)

// Instance is one profile that stands, or that could not be raised.
type Instance struct {
	// Name is the variant that it is an instance of.
	Name    plan.Variant
	Profile profile.Profile
	// Err says why it does not stand; then everything below is empty. Where the kernel has no device of some kind it
	// names the build option and is errors.ErrUnsupported.
	Err error
	// StandIn lists what the lab only imitates, and by what, in words: first the profile's Model.
	StandIn          []string
	Switch, External *Host
	Nodes            []*Node
	// Services are in the order in which kube-proxy has them.
	Services []Service
	// Spec is what it was made from.
	Spec Spec

	// lab is where it stands.
	lab *Lab
	// owned are the namespaces to close, lines the wires with faults between the hosts and the switch.
	owned []*netns.NS
	lines []*impair.Line
}

// Host is a network namespace in which processes can be started.
type Host struct {
	// Name is unique in the instance: "node-1", "node-1/pod-2", "switch", "external".
	Name string
	NS   *netns.NS
	// Addr is the host's address: a pod's own, a node's on the underlay.
	Addr netip.Addr
	// CPUs are for its load threads.
	CPUs []int

	// aside is where its processes begin; nil is anywhere.
	aside []int
	// group is nil without cgroup v2.
	group *cgroup.Group
}

// CgroupPath is the directory of the cgroup of the host's node, "" where it has none: the switch and the client outside,
// and everybody without cgroup v2.
func (h *Host) CgroupPath() string {
	if h.group == nil {
		return ""
	}
	return h.group.Path()
}

// Node is a host with pods.
type Node struct {
	Host
	// PodCIDR is not valid when pods have addresses of the underlay or of the node.
	PodCIDR netip.Prefix
	// Blocks are the parts of PodCIDR that Calico uses.
	Blocks []netip.Prefix
	// TunnelAddr is that of the VXLAN device, not valid without one.
	TunnelAddr netip.Addr
	Pods       []*Pod
	// Cgroup holds the node's and its pods' processes; nil without cgroup v2.
	Cgroup *cgroup.Group

	// programs are empty where no BPF programs move packets.
	programs dataplane.Programs
}

// Drops returns what the BPF programs of the node dropped since they were loaded, one line for each reason; nothing when
// there are no programs.
func (n *Node) Drops() ([]string, error) {
	if n.programs.Drops == nil {
		return nil, nil
	}
	drops, err := n.programs.Drops()
	var lines []string
	for _, d := range drops {
		lines = append(lines, d.String())
	}
	return lines, err
}

// Pod is a host on a node.
type Pod struct {
	Host
	Node *Node
	// HostDevice is the node's end of the pod's veth, "" when the node has none.
	HostDevice string
	// MAC is that of the pod's eth0, "" for a host-network pod.
	MAC string
	// HostNetwork pods share NS and address with their node.
	HostNetwork bool
}

// Service is a Service that the nodes of an instance know.
type Service struct {
	Name string
	VIP  netip.Addr
	// Port is at the VIP, TargetPort in the pods, NodePort at every node or 0.
	Port, TargetPort, NodePort int
	// Balanced is the address that a load balancer gave it, if one did.
	Balanced netip.Addr
	Backends []*Pod
}

// Service returns the Service called name, nil if there is none.
func (i *Instance) Service(name string) *Service {
	for k := range i.Services {
		if i.Services[k].Name == name {
			return &i.Services[k]
		}
	}
	return nil
}

// Host returns the host called name, nil if there is none.
func (i *Instance) Host(name string) *Host {
	for _, h := range i.Hosts() {
		if h.Name == name {
			return h
		}
	}
	return nil
}

// Hosts returns all hosts: the switch, the client outside, then each node followed by its pods.
func (i *Instance) Hosts() []*Host {
	if i.Switch == nil {
		return nil
	}
	all := []*Host{i.Switch, i.External}
	for _, n := range i.Nodes {
		all = append(all, &n.Host)
		for _, p := range n.Pods {
			all = append(all, &p.Host)
		}
	}
	return all
}
