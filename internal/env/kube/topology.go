package kube

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/condition"
)

// profileHost is the name of the profile without a CNI. Under it, both ends of every path are host-network pods.
const profileHost = "host"

// Names of the pods. Host-network pods are the pod external, and the pods whose names begin with inHost.
const (
	podClient  = "client"
	podPeer    = "peer"
	podServer  = "server"
	hostClient = "host-client"
	hostServer = "host-server"
	external   = "external"
	// backend is the prefix of the pods behind a Service with several backends: backend-NODE-NUMBER.
	backend = "backend"
	// member is the prefix of a job's third pod and of all later ones: member-3, or host-member-3 for a host-network pod.
	// The first two are the client's and the server's pod. In a run over pairs, all pods have such names.
	member = "member-"
)

// inHost is the prefix of the names of host-network pods.
const inHost = "host-"

// Names of the Services.
const (
	// serviceLocal has a backend on the client's node, serviceRemote a backend on the server's node. The backend of
	// serviceSelf is the client's own pod.
	serviceLocal  = "local"
	serviceRemote = "remote"
	serviceSelf   = "self"
	// nodePort is the suffix of the names of Services of type NodePort.
	nodePort = "-nodeport"
	// serviceBalancer is the Service of type LoadBalancer. The balancer decides through which node packets enter.
	serviceBalancer = "balancer"
)

// Ports of the servers. Agents in one pod, such as those of a profile and of its twin, have different slots. A server listens
// on the first port of its slot; a tool that needs two ports also uses the next one.
const (
	firstPort = 5201
	slotSize  = 10
	// podSlots is the number of slots in a pod: the profile and its twin.
	podSlots = 2
	// hostSlots is the number of slots on a node: the profile host and its twin, and the cluster's CNI and its twin on
	// paths that end at a host.
	hostSlots = 4
)

// podPorts returns the first port of each slot in a pod.
func podPorts() []int {
	var ports []int
	for i := range podSlots {
		ports = append(ports, firstPort+i*slotSize)
	}
	return ports
}

// ends has the names of the pods at the ends of a route, and of the Service between them.
type ends struct {
	client string
	// servers has at least one name. If the path leads to the server's node, the first server is there.
	servers []string
	// service is the Service that the client dials. If it is "", the client dials the server itself.
	service string
}

// ends returns the ends of a route in the cluster. For the profile host they are host-network pods. why is the reason if the
// cluster does not serve the route, "" if it does.
func (at placement) ends(o Options, r plan.Route) (e ends, why string) {
	if at.mesh != nil {
		return at.pairEnds(r)
	}
	p, far := r.Path, r.Path.ServerNode() == 1
	local := o.TrafficPolicy == condition.TrafficLocal
	switch {
	case p.To == plan.External:
		return e, "no agent runs outside the cluster"
	case far && at.server == "":
		return e, at.why
	case p.From == plan.External && at.third == "":
		return e, "a client outside the nodes of the Service needs a third node: " + at.why
	case p.To == plan.NodePort && far && local:
		return e, "externalTrafficPolicy Local: the entered node has no endpoint of the Service, and passes nothing to another"
	case r.Members > len(at.members):
		return e, fmt.Sprintf("a job of %d members needs a node each", r.Members)
	case r.Members > 0:
		return jobEnds(r), ""
	case r.Servers > 1 && !p.Shared():
		return e, "only a Service can have several backends"
	case r.Servers > 1 && p.To == plan.NodePort && at.server != "" && local:
		return e, "externalTrafficPolicy Local: the entered node passes nothing to backends on other nodes"
	}
	near, peer, away := podClient, podPeer, podServer
	if isHostProfile(r.Variant) {
		near, peer, away = hostClient, hostClient, hostServer
	}
	e.client = near
	switch p.From {
	case plan.Host:
		e.client = hostClient
	case plan.External:
		e.client = external
	}
	server := peer
	if p.To == plan.Host {
		server, away = hostClient, hostServer
	}
	if far {
		server = away
	}
	switch p.To {
	case plan.Service:
		e.service = serviceOf(p)
	case plan.NodePort:
		e.service = serviceOf(p) + nodePort
	case plan.LoadBalancer:
		e.service = serviceBalancer
	case plan.Self:
		server, e.service = e.client, serviceSelf
	}
	e.servers = []string{server}
	if r.Servers > 1 {
		return at.backendEnds(e, r)
	}
	return e, ""
}

// jobEnds returns the ends of a job's route: the job's first pod is the client, its other pods are the servers.
func jobEnds(r plan.Route) ends {
	host, e := "", ends{client: podClient, servers: []string{podServer}}
	if isHostProfile(r.Variant) || r.Path.From == plan.Host {
		host, e = inHost, ends{client: hostClient, servers: []string{hostServer}}
	}
	for i := 3; i <= r.Members; i++ {
		e.servers = append(e.servers, host+member+strconv.Itoa(i))
	}
	return e
}

func serviceOf(p plan.Path) string {
	if p.ServerNode() == 1 {
		return serviceRemote
	}
	return serviceLocal
}

// backendEnds returns the ends of a route with several backends. e has the ends of the same route with one backend. The text
// is the reason if the route is not served, "" if it is.
func (at placement) backendEnds(e ends, r plan.Route) (ends, string) {
	nodes := 2
	if at.server == "" {
		nodes = 1
	}
	if isHostProfile(r.Variant) && r.Servers > nodes {
		return e, fmt.Sprintf("its backends share the addresses of %d nodes, and %d backends need one each", nodes, r.Servers)
	}
	e.servers = nil
	for i := range r.Servers {
		node := r.ServerNode(i, nodes)
		name := fmt.Sprintf("%s-%d-%d", backend, node+1, i/nodes+1)
		if isHostProfile(r.Variant) {
			name = []string{hostClient, hostServer}[node]
		}
		e.servers = append(e.servers, name)
	}
	e.service = fmt.Sprintf("%s-%d", e.service, r.Servers)
	if r.Rolled {
		e.service += rolled
	}
	return e, ""
}

// layout has the pods and Services that a run creates in the cluster. It depends only on the plan and the nodes.
type layout struct {
	pods     []*podSpec
	services []serviceSpec
}

// podSpec describes a pod to create.
type podSpec struct {
	Name, Node string
	// Behind are the Services that select the pod.
	Behind []string
}

// Host reports whether the pod is a host-network pod, which is in the run's namespace for such pods.
func (p podSpec) Host() bool { return isHostPod(p.Name) }

func isHostPod(name string) bool {
	return strings.HasPrefix(name, inHost) || name == external
}

// serviceSpec describes a Service to create.
type serviceSpec struct {
	Name string
	// Host means that host-network pods are its backends.
	Host bool
}

// NodePort reports whether the Service is of type NodePort.
func (s serviceSpec) NodePort() bool { return strings.Contains(s.Name, nodePort) }

// Balancer reports whether the Service is of type LoadBalancer.
func (s serviceSpec) Balancer() bool { return strings.HasPrefix(s.Name, serviceBalancer) }

// nodeOf returns the name of the node on which a pod is to run.
func (at placement) nodeOf(pod string) string {
	_, number, ofJob := strings.Cut(pod, member)
	if n, err := strconv.Atoi(number); ofJob && err == nil {
		return at.members[n-1]
	}
	switch {
	case pod == external:
		return at.third
	case pod == podServer, pod == hostServer, strings.HasPrefix(pod, backend+"-2-"):
		return at.server
	}
	return at.client
}

// newLayout returns the layout of a run: the pods and Services that the served paths of the plan need, and no others.
func newLayout(o Options, at placement) layout {
	var l layout
	variants := []plan.Variant{{}} // any variant with the cluster's CNI
	if o.Host {
		variants = append(variants, plan.VariantOf(profileHost))
	}
	for _, r := range at.ringRoutes(o.routes(variants)) {
		e, why := at.ends(o, r)
		if why != "" {
			continue
		}
		l.ensurePod(at, e.client)
		for _, name := range e.servers {
			l.addBackend(e.service, l.ensurePod(at, name))
		}
	}
	return l
}

// routes returns all routes of variants. For each path they are: a route with one server, one for each number in Backends,
// one for each number in Rolled, and one for the largest job if the path can have it.
func (o Options) routes(variants []plan.Variant) []plan.Route {
	var routes []plan.Route
	for _, v := range variants {
		for _, p := range o.Paths {
			routes = append(routes, plan.Single(v, p))
			for _, n := range o.Backends {
				routes = append(routes, plan.Route{Variant: v, Path: p, Servers: n})
			}
			if o.Members > 0 && p.Locality == plan.CrossNode && p.From == p.To {
				routes = append(routes, plan.Route{Variant: v, Path: p, Servers: o.Members - 1, Members: o.Members})
			}
			for _, n := range o.Rolled {
				routes = append(routes, plan.Route{Variant: v, Path: p, Servers: n, Rolled: true})
			}
		}
	}
	return routes
}

// ensurePod returns the pod called name. It adds the pod to the layout if it is missing.
func (l *layout) ensurePod(at placement, name string) *podSpec {
	i := slices.IndexFunc(l.pods, func(p *podSpec) bool { return p.Name == name })
	if i < 0 {
		i = len(l.pods)
		l.pods = append(l.pods, &podSpec{Name: name, Node: at.nodeOf(name)})
	}
	return l.pods[i]
}

// addBackend makes p a backend of the Service called name. It adds the Service to the layout if it is missing. For the name
// "" it does nothing.
func (l *layout) addBackend(name string, p *podSpec) {
	if name == "" {
		return
	}
	if s := (serviceSpec{Name: name, Host: p.Host()}); !slices.Contains(l.services, s) {
		l.services = append(l.services, s)
	}
	if !slices.Contains(p.Behind, name) {
		p.Behind = append(p.Behind, name)
	}
}

// hasHostPod reports whether the layout has a host-network pod.
func (l layout) hasHostPod() bool {
	return slices.ContainsFunc(l.pods, func(p *podSpec) bool { return p.Host() })
}

// Names of the facts about a run's placement in a cluster.
const (
	// FactAgents is how agents are reached: exec, or port-forward with the reason.
	FactAgents = "kube.agents"
	// factClient and FactServer are the client's and the server's node. factThird is the node of a client that is on
	// neither of them.
	factClient = "kube.node.client"
	FactServer = "kube.node.server"
	factThird  = "kube.node.third"
	// factLeftOut are the nodes that a run over pairs does not measure, with the reasons.
	factLeftOut = facts.KubeLeftOut
	// factControl are the control-plane nodes among the run's nodes: the control plane competes for their CPUs.
	factControl = "kube.node.control_plane"
	// factRequests are the pods' requests of CPU and memory, factLimit is their CPU limit.
	factRequests = "kube.pods.requests"
	factLimit    = "kube.pods.cpu_limit"
	// FactBalancer has the addresses of Services of type LoadBalancer. FactBalancerWay says which part of the path to
	// these addresses is measured.
	FactBalancer    = "kube.load_balancer"
	FactBalancerWay = "kube.load_balancer.way"
)

// Facts returns the conditions that this package determines: nodes, requests, how agents are reached.
func (c *Cluster) Facts() facts.Facts {
	f := facts.Facts{FactAgents: "exec"}
	c.mu.Lock()
	if c.forward {
		f[FactAgents] = "port-forward: exec is refused: " + c.refused
	}
	c.mu.Unlock()
	set := func(name, value string) {
		if value != "" {
			f[name] = value
		}
	}
	if c.place.mesh != nil {
		set(factLeftOut, c.place.mesh.leftOut)
	} else {
		set(factClient, c.place.client)
		set(FactServer, c.place.server)
		set(factThird, c.place.third)
	}
	set(factControl, c.place.controlPlanes())
	set(factLimit, c.options.CPULimit)
	set(FactBalancer, c.balancerFact())
	set(FactBalancerWay, c.balancerWayFact())
	if c.options.CPURequest != "" || c.options.MemoryRequest != "" {
		f[factRequests] = fmt.Sprintf("cpu %s, memory %s", cmp.Or(c.options.CPURequest, "none"), cmp.Or(c.options.MemoryRequest, "none"))
	}
	return f
}
