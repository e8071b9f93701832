package lab

import (
	"fmt"
	"io"
	"net/netip"
	"slices"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/env/lab/own"
	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
	"github.com/cnibench/cnibench/internal/kernel/cgroup"
	"github.com/cnibench/cnibench/internal/kernel/ipt"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Instance is one raised profile of the lab, or the reason why it could not be raised.
type Instance struct {
	Name    plan.Variant
	Profile profile.Profile
	// Err is why the instance was not raised; then only Name, Profile and Spec may be set. If the kernel lacks a
	// device, it is errors.ErrUnsupported and names the build option.
	Err error
	// StandIn describes what the lab imitates, and how; the profile's Model is first.
	StandIn          []string
	Switch, External *Host
	Nodes            []*Node
	// Services are in the order of kube-proxy's rules.
	Services []Service
	Spec     instanceSpec
	// Raised is the cost of creating the instance's state, in ns or bytes, by metric name; nil without Options.Account.
	Raised map[string]float64

	lab *Lab
	// nic is the NIC model in force.
	nic plan.NIC
	// changing changes one object of the instance; nil if no object changes.
	changing *changes
	// owned are the namespaces to close. lines are the impaired links between the hosts and the switch.
	owned []*netns.NS
	lines []impairment
}

// Host is a network namespace in which processes can be started.
type Host struct {
	// Name is unique in the instance: "node-1", "node-1/pod-2", "switch", "external".
	Name string
	NS   *netns.NS
	// Addr is the host's address: a pod's own, a node's on the underlay.
	Addr netip.Addr
	// CPUs are the CPUs of its load threads.
	CPUs []int
	// Steered means that receive packet steering (RPS) moves the receive work of its devices to the CPUs in CPUs.
	Steered bool

	// aside has the CPUs on which its processes start; nil means any.
	aside []int
	// cut is what the NIC model "wire" changed in its namespace.
	cut link.Cut
	// group holds the processes of the node and its pods; nil without cgroup v2.
	group *cgroup.Group
}

// CgroupPath returns the cgroup directory of the host's node. It is "" for the switch and the external client, and
// without cgroup v2.
func (h *Host) CgroupPath() string {
	if h.group == nil {
		return ""
	}
	return h.group.Path()
}

// Node is a host with pods.
type Node struct {
	Host
	// PodCIDR is the range of the node's pod addresses. It is not valid if pods have addresses of the underlay or of
	// the node.
	PodCIDR netip.Prefix
	// TunnelAddr is the address of the tunnel device, not valid without a tunnel.
	TunnelAddr netip.Addr
	Pods       []*Pod

	// programs is empty for a dataplane without BPF programs.
	programs dataplane.Programs
	// own runs the programs of a profile file, nil without them.
	own *own.Node
	// attached has what must be closed with the node. This can be BPF programs of a profile file, routers of the
	// node's other interfaces, and processes of WireGuard in user space.
	attached []io.Closer
	// before has the iptables rules that the programs of own added before the lab loaded kube-proxy's.
	before string
}

// Drops returns the packets that the node's BPF programs dropped since they were loaded, one line for each reason.
func (n *Node) Drops() ([]string, error) {
	drops, err := n.programs.Drops()
	return each.Of(drops, func(d attach.Counter) string { return fmt.Sprintf("%s: %d packets", d.Reason(), d.Packets) }), err
}

// LastSeen returns when the programs of a pod's device last saw a packet of a TCP connection, in ns of the monotonic clock.
// It returns 0 if they do not know the connection, and without such programs. from is the end that connected.
func (p *Pod) LastSeen(from, to netip.AddrPort) (int64, error) {
	seen := p.Node.programs.LastSeen
	if seen == nil {
		return 0, nil
	}
	return seen(from, to, p.Addr)
}

// Pod is a host on a node.
type Pod struct {
	Host
	Node *Node
	// HostDevice is the node's end of the pod's veth or netkit pair, "" without one.
	HostDevice string
	// MAC is the address of the pod's eth0, "" for a host-network pod.
	MAC string
	// HostNetwork means that the pod shares NS and address with its node.
	HostNetwork bool
}

// Service is a Service of an instance with its backends as pods.
type Service struct {
	serviceSpec
	Backends []*Pod
}

// Iptables returns the iptables programs that write the rules of the nodes. It fails if there are none.
func (i *Instance) Iptables() (*ipt.Tool, error) { return i.lab.tools.iptables() }

// podsOf returns the pods that refs identify.
func (i *Instance) podsOf(refs []PodRef) []*Pod {
	return each.Of(refs, func(r PodRef) *Pod { return i.Nodes[r.Node].Pods[r.Pod] })
}

// Service returns the Service called name, or nil.
func (i *Instance) Service(name string) *Service {
	at := slices.IndexFunc(i.Services, func(svc Service) bool { return svc.Name == name })
	if at < 0 {
		return nil
	}
	return &i.Services[at]
}

// Host returns the host called name, or nil.
func (i *Instance) Host(name string) *Host {
	for _, h := range i.Hosts() {
		if h.Name == name {
			return h
		}
	}
	return nil
}

// Distinct returns the hosts with a namespace of their own, in the order of Hosts. It omits host-network pods,
// which share the namespace of their node.
func (i *Instance) Distinct() []*Host { return distinctHosts(i.Hosts()) }

func distinctHosts(hosts []*Host) (once []*Host) {
	seen := map[*netns.NS]bool{}
	for _, h := range hosts {
		if h != nil && !seen[h.NS] {
			seen[h.NS] = true
			once = append(once, h)
		}
	}
	return once
}

// Hosts returns all hosts: the switch, the external client, then each node followed by its pods.
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

// CPUs returns the CPUs of the load threads of hosts, each once, in order.
func CPUs(hosts []*Host) []int {
	var cpus []int
	for _, h := range hosts {
		cpus = append(cpus, h.CPUs...)
	}
	slices.Sort(cpus)
	return slices.Compact(cpus)
}
