package lab

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/cnibench/cnibench/internal/lab/dataplane"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
)

// The addresses of every instance. Instances do not know of each other, so all use the same.
var (
	underlay    = netip.MustParsePrefix("172.18.0.0/16")
	switchAddr  = netip.MustParseAddr("172.18.0.1")
	outsideAddr = netip.MustParseAddr("172.18.0.250")
	clusterCIDR = netip.MustParsePrefix("10.244.0.0/16")
	localVIP    = netip.MustParseAddr("10.96.100.1")
	remoteVIP   = netip.MustParseAddr("10.96.100.2")
	selfVIP     = netip.MustParseAddr("10.96.100.3")
	firstFiller = netip.MustParseAddr("10.97.0.1")
)

const (
	// firstNode is added to a node's number to make the last byte of its address.
	firstNode = 10
	// Port is where every server listens: in a pod, on a node, behind a Service and at its cluster address.
	Port = 5201
	// The node ports of the measured Services.
	localNodePort, remoteNodePort, selfNodePort = 30201, 30202, 30203
)

// The Services that paths lead to: the endpoint of one is on the client's node, that of the second on the next node, and
// that of the third is the client itself.
const (
	LocalService  = "svc-local"
	RemoteService = "svc-remote"
	SelfService   = "svc-self"
)

// Spec describes one instance of a profile, before anything exists.
type Spec struct {
	// Name is that of the instance: the profile's, with plan.TwinSuffix for a twin.
	Name    string
	Profile profile.Profile
	// Lab has the conditions, defaults filled in.
	Lab plan.Lab
	// Switch and External are on the underlay, like the nodes.
	Switch, External HostSpec
	Nodes            []dataplane.Node
	// Services are in the order in which kube-proxy has them.
	Services  []ServiceSpec
	dataplane dataplane.Dataplane
}

// HostSpec describes a host that is no node.
type HostSpec struct {
	Name string
	Addr netip.Prefix
	MAC  net.HardwareAddr
}

// ServiceSpec describes a Service.
type ServiceSpec struct {
	Name string
	VIP  netip.Addr
	// Port is at the VIP, TargetPort in the pods, NodePort at every node or 0.
	Port, TargetPort, NodePort int
	// UDP says that it serves UDP besides TCP.
	UDP bool
	// Backends are pods as indices of node and pod.
	Backends []PodRef
}

// PodRef names a pod by its place in Spec.Nodes and Node.Pods.
type PodRef struct{ Node, Pod int }

// NewSpec describes an instance of the profile called name, which may have plan.TwinSuffix. The same arguments give the
// same description. Zero fields of l have their defaults.
func NewSpec(name string, l plan.Lab) (Spec, error) {
	p, ok := profile.Lookup(strings.TrimSuffix(name, plan.TwinSuffix))
	if !ok {
		return Spec{}, fmt.Errorf("profile %q: there is no such profile; cnibench list has them all", name)
	}
	d, ok := dataplane.Lookup(p.Name)
	if !ok {
		return Spec{}, fmt.Errorf("profile %q: this version cannot raise it in the lab; it can raise %s", name, strings.Join(profile.InLab(), ", "))
	}
	l, err := complete(l)
	if err != nil {
		return Spec{}, fmt.Errorf("profile %q: %w", name, err)
	}
	s := Spec{
		Name: name, Profile: p, Lab: l, dataplane: d,
		Switch:   onUnderlay("switch", switchAddr),
		External: onUnderlay("external", outsideAddr),
	}
	for i := range l.Nodes {
		s.Nodes = append(s.Nodes, newNode(d, l, i+1))
	}
	if p.Name != profile.Raw {
		s.Services = services(s)
	}
	return s, nil
}

// complete fills in defaults and refuses what is out of range.
func complete(l plan.Lab) (plan.Lab, error) {
	d := plan.Default().Lab
	for _, f := range []struct {
		name           string
		value          *int
		def, low, high int
	}{
		{"nodes", &l.Nodes, d.Nodes, 2, plan.MaxNodes},
		{"pods per node", &l.PodsPerNode, d.PodsPerNode, 2, plan.MaxPodsPerNode},
		{"MTU", &l.MTU, d.MTU, 1280, 9000},
		{"services", &l.Services, d.Services, 0, plan.MaxServices},
	} {
		if *f.value == 0 {
			*f.value = f.def
		}
		if *f.value < f.low || *f.value > f.high {
			return l, fmt.Errorf("%d %s: want %d to %d", *f.value, f.name, f.low, f.high)
		}
	}
	for _, f := range []struct {
		name  string
		value *string
		words []string
	}{
		{"NIC model", &l.NIC, []string{d.NIC, "ideal"}},
		{"CPU placement", &l.CPU, []string{d.CPU, "one", "split"}},
		{"iptables flavour", &l.Iptables, []string{d.Iptables, "nft", "legacy"}},
		{"service proxy", &l.ServiceProxy, []string{d.ServiceProxy, serviceProxyNFT}},
	} {
		if *f.value == "" {
			*f.value = f.words[0]
		}
		if !strings.Contains(" "+strings.Join(f.words, " ")+" ", " "+*f.value+" ") {
			return l, fmt.Errorf("%s %q: want one of %s", f.name, *f.value, strings.Join(f.words, ", "))
		}
	}
	return l, nil
}

func onUnderlay(name string, a netip.Addr) HostSpec {
	return HostSpec{Name: name, Addr: netip.PrefixFrom(a, underlay.Bits()), MAC: dataplane.MACOf(0x02, 0x00, a)}
}

func newNode(d dataplane.Dataplane, l plan.Lab, number int) dataplane.Node {
	b := underlay.Addr().As4()
	b[3] = byte(firstNode + number)
	h := onUnderlay(fmt.Sprintf("node-%d", number), netip.AddrFrom4(b))
	n := dataplane.Node{Name: h.Name, Addr: h.Addr, MAC: h.MAC, MTU: l.MTU, Cluster: clusterCIDR}
	d.Arrange(&n, number, l.PodsPerNode)
	return n
}

// services returns the Services of an instance. The measured ones stand in the middle of the others, since a new
// connection pays for the Services before its own: so it pays for half of them, which is the mean.
func services(s Spec) []ServiceSpec {
	measured := []ServiceSpec{
		{Name: LocalService, VIP: localVIP, NodePort: localNodePort, UDP: true, Backends: []PodRef{{0, 1}}},
		{Name: RemoteService, VIP: remoteVIP, NodePort: remoteNodePort, UDP: true, Backends: []PodRef{{1, 0}}},
		{Name: SelfService, VIP: selfVIP, NodePort: selfNodePort, UDP: true, Backends: []PodRef{{0, 0}}},
	}
	var all []ServiceSpec
	vip := firstFiller
	for i := range s.Lab.Services {
		if i == s.Lab.Services/2 {
			all = append(all, measured...)
		}
		all = append(all, ServiceSpec{Name: fmt.Sprintf("svc-%d", i+1), VIP: vip, Backends: fillers(s.Lab, i)})
		vip = vip.Next()
	}
	if s.Lab.Services == 0 {
		all = measured
	}
	for i := range all {
		all[i].Port, all[i].TargetPort = Port, Port
	}
	return all
}

// fillers picks the two endpoints of Service number i, on two nodes.
func fillers(l plan.Lab, i int) []PodRef {
	return []PodRef{{i % l.Nodes, i % l.PodsPerNode}, {(i + 1) % l.Nodes, i % l.PodsPerNode}}
}

// Hosts returns the names of all hosts, the switch first.
func (s Spec) Hosts() []string {
	names := []string{s.Switch.Name, s.External.Name}
	for _, n := range s.Nodes {
		names = append(names, n.Name)
		for _, p := range n.Pods {
			names = append(names, p.Name)
		}
	}
	return names
}
