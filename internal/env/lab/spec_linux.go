package lab

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/condition"
	"github.com/cnibench/cnibench/internal/plan/mesh"
	"github.com/cnibench/cnibench/internal/plan/profilefile"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

const (
	// agentPort is the port of every server, in a pod and on a node. Services use it at their cluster addresses and
	// for their backends.
	agentPort = 5201
	// The node ports of the measured Services.
	localNodePort, remoteNodePort, selfNodePort = 30201, 30202, 30203
)

// The measured Services. Each has one endpoint. LocalService has a pod on the client's node, RemoteService a pod on
// the next node, and SelfService the client itself.
const (
	LocalService  = "svc-local"
	RemoteService = "svc-remote"
	SelfService   = "svc-self"
)

// instanceSpec describes one instance of a profile.
type instanceSpec struct {
	Name    plan.Variant
	Profile profile.Profile
	// Lab has the conditions, defaults filled in.
	Lab plan.Lab
	// Switch and External are on the underlay, like the nodes.
	Switch, External hostSpec
	Nodes            []dataplane.Node
	// Services are in the order of kube-proxy's rules.
	Services  []serviceSpec
	dataplane dataplane.Dataplane
	// file is the profile file, nil for a profile of the catalogue.
	file *profilefile.Profile
	net  addressing
}

// hostSpec describes a host on the underlay.
type hostSpec struct {
	Name string
	Addr netip.Prefix
	MAC  net.HardwareAddr
}

// serviceSpec describes a Service.
type serviceSpec struct {
	Name string
	VIP  netip.Addr
	// Port is the port at the VIP and the load balancer address, TargetPort the port at which the pods listen.
	Port, TargetPort int
	// NodePort is the port at every node, 0 for none.
	NodePort int
	// Balanced is the load balancer address, not valid without one.
	Balanced netip.Addr
	// UDP means that the Service serves UDP in addition to TCP. Affinity means that a client keeps its backend.
	UDP, Affinity bool
	Backends      []PodRef
	// Elsewhere is the number of endpoints, in addition to Backends, that have no pod in the lab. No traffic goes to
	// them.
	Elsewhere int
	// Idle means that no traffic goes to the Service.
	Idle bool
}

// PodRef identifies a pod by its indices in Spec.Nodes and Node.Pods.
type PodRef struct{ Node, Pod int }

// ErrNoIPv6 is the error of an IPv4-only profile in an IPv6 lab.
var ErrNoIPv6 = errors.New("there is no IPv6 form of it")

// ErrNoStrictIPVS is the error of a profile whose pods send by their branches alone, with kube-proxy in ipvs mode.
var ErrNoStrictIPVS = errors.New("beside kube-proxy in ipvs mode pods reach no Service: their routing rules precede that of local addresses, by which IPVS gets packets")

// errUntagged is the error of a profile with VLANs in a lab with delay or loss.
var errUntagged = errors.New("the lab's links with delay or loss carry no VLAN tags")

// ErrNoIPVS is the error of a profile that the lab does not model with kube-proxy in ipvs mode.
var ErrNoIPVS = errors.New("beside kube-proxy in ipvs mode Felix has more chains, which this version does not model")

// NewSpec describes an instance of a variant of the catalogue under the conditions l; zero fields have their
// defaults. The entries of backends must be different. Each of them adds Services with that many backends, and pods
// for them. NewSpec fails if the lab cannot model the variant under these conditions.
func NewSpec(name plan.Variant, l plan.Lab, backends ...backendSet) (instanceSpec, error) {
	d, err := lookUpProfile(name.Profile(), nil)
	if err != nil {
		return instanceSpec{}, err
	}
	return d.newSpec(name, l, backends)
}

// newSpec describes an instance of a variant of this profile, which may come from a profile file; see NewSpec.
func (d described) newSpec(name plan.Variant, l plan.Lab, backends []backendSet) (instanceSpec, error) {
	p := d.record
	l = name.Lab(l).Filled()
	err := l.Validate()
	if err == nil {
		l, err = withBackendPods(l, backends)
	}
	if err != nil {
		return instanceSpec{}, fmt.Errorf("profile %q: %w", name, err)
	}
	if e, ok := d.Encrypted[l.Encryption]; ok {
		p, d.Dataplane = p.WithEncryption(string(l.Encryption)), e.Dataplane
	} else if len(d.Encrypted) > 0 && l.Encryption != condition.EncryptionOff {
		return instanceSpec{}, fmt.Errorf("profile %q: the lab does not encrypt %s by %s", name, p.Name, l.Encryption)
	}
	if most := p.Flowtables(); most > 0 && l.Flowtable > most {
		return instanceSpec{}, fmt.Errorf("profile %q: %s puts every established connection into its flowtable: take flowtable=%d", name, p.Name, most)
	}
	if l.Family == IPv6 && p.NoIPv6 != "" {
		return instanceSpec{}, fmt.Errorf("profile %q: %w: %s", name, ErrNoIPv6, p.NoIPv6)
	}
	if l.ServiceProxy == condition.ProxyIPVS && p.Policy == "calico-iptables" {
		return instanceSpec{}, advice.With(fmt.Errorf("profile %q: %w", name, ErrNoIPVS), "leave it out, or take another mode: --service-proxy iptables")
	}
	a := addressingOf(l)
	s := instanceSpec{
		Name: name, Profile: p, Lab: l, dataplane: d.Dataplane, file: d.file, net: a,
		Switch:   a.underlayHost("switch", a.switchAddr),
		External: a.underlayHost("external", a.outside),
	}
	for i := range l.Nodes {
		s.Nodes = append(s.Nodes, s.newNode(i+1))
	}
	if s.ProxyIPVS() && hasInterface(s.Nodes, func(d dataplane.Interface) bool { return d.Strict }) {
		return instanceSpec{}, advice.With(fmt.Errorf("profile %q: %w", name, ErrNoStrictIPVS), "leave it out, or take another mode: --service-proxy iptables")
	}
	impaired := l.Delay > 0 || l.Loss > 0 || slices.ContainsFunc(l.Plants, func(p mesh.Plant) bool { return p.Delay > 0 || p.Loss > 0 })
	if impaired && hasInterface(s.Nodes, func(d dataplane.Interface) bool { return len(d.Branches) > 0 }) {
		return instanceSpec{}, advice.With(fmt.Errorf("profile %q: %w", name, errUntagged), "leave out the profile, or delay and loss")
	}
	if p.Name != profile.Raw {
		s.Services = serviceSpecs(s, backends)
	}
	return s, nil
}

func (s instanceSpec) newNode(number int) dataplane.Node {
	h := s.net.underlayHost(mesh.LabNode(number), s.net.nodeAddr(number))
	n := dataplane.Node{Name: h.Name, Addr: h.Addr, MAC: h.MAC, MTU: s.Lab.MTU, Cluster: s.net.cluster}
	s.dataplane.Arrange(&n, number, s.Lab.PodsPerNode)
	for i := range n.Pods {
		n.Pods[i].MTU = cmp.Or(s.requestedPodMTU(), n.Pods[i].MTU)
	}
	return n
}

// serviceSpecs returns the Services of an instance: idle Services, and among them the measured ones at
// Lab.Position. In iptables mode, a new connection passes the rules of all Services before its own. The middle
// position therefore has the mean cost.
func serviceSpecs(s instanceSpec, backends []backendSet) []serviceSpec {
	measured := []serviceSpec{
		{Name: LocalService, VIP: s.net.local, NodePort: localNodePort, UDP: true, Backends: []PodRef{{0, 1}}},
		{Name: RemoteService, VIP: s.net.remote, NodePort: remoteNodePort, UDP: true, Backends: []PodRef{{1, 0}}},
		{Name: SelfService, VIP: s.net.itself, NodePort: selfNodePort, UDP: true, Backends: []PodRef{{0, 0}}},
	}
	measured = append(measured, s.backendServices(backends)...)
	s.setBalancerAddrs(measured)
	all := make([]serviceSpec, 0, s.Lab.Services+len(measured))
	vip := s.net.firstFiller
	place := map[condition.Position]int{condition.PositionMiddle: s.Lab.Services / 2, condition.PositionLast: s.Lab.Services}[s.Lab.Position]
	for i := range s.Lab.Services {
		pods := []PodRef{{i % s.Lab.Nodes, i % s.Lab.PodsPerNode}, {(i + 1) % s.Lab.Nodes, i % s.Lab.PodsPerNode}}
		svc := serviceSpec{Name: fmt.Sprintf("svc-%d", i+1), VIP: vip, Backends: pods[:min(len(pods), s.Lab.Endpoints)], Idle: true}
		svc.Elsewhere = s.Lab.Endpoints - len(svc.Backends)
		all = append(all, svc)
		vip = vip.Next()
	}
	all = slices.Insert(all, place, measured...)
	for i := range all {
		all[i].Port, all[i].TargetPort = agentPort, agentPort
	}
	return all
}
