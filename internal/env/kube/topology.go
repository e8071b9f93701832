package kube

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnibench/cnibench/internal/plan"
)

// profileHost is the bare node of the cluster: host-network pods at both ends of every path.
const profileHost = "host"

// Names of the pods. Those of the host namespace are in the network of their node.
const (
	podClient  = "client"
	podPeer    = "peer"
	podServer  = "server"
	hostClient = "host-client"
	hostServer = "host-server"
	external   = "external"
	// backend begins the names of pods behind a Service of several: backend-NODE-NUMBER.
	backend = "backend"
)

// Names of the Services: the endpoint on the client's node, on the server's node, and the client's own pod.
const (
	serviceLocal  = "local"
	serviceRemote = "remote"
	serviceSelf   = "self"
	nodePort      = "-nodeport"
	// serviceBalancer is that of type LoadBalancer: where it is entered is the balancer's business.
	serviceBalancer = "balancer"
)

// A server listens on the port of its slot, and a tool that needs two on the next; so agents that share a pod, one for a
// profile and one for its twin, do not meet on a port.
const (
	firstPort = 5201
	slotSize  = 10
	podSlots  = 2
	// hostSlots: the profile host, its twin, and the same for paths of the cluster's CNI that end at a host.
	hostSlots = 4
)

// podPorts are the first ports of the slots in a pod.
func podPorts() []int {
	var ports []int
	for i := range podSlots {
		ports = append(ports, firstPort+i*slotSize)
	}
	return ports
}

// ends are the two ends of a path: pods by name, and the Service between them.
type ends struct {
	client, server string
	// service is what the client dials, "" for the server itself.
	service string
}

// ends returns the ends of a path in the cluster; bare takes the host-network pods for the profile "host". why says why
// the path cannot be served, "" if it can.
func (at placement) ends(o Options, p plan.Path, bare bool) (e ends, why string) {
	far := toServer(p)
	switch {
	case p.To == plan.External:
		return e, "no agent runs outside the cluster"
	case far && at.server == "":
		return e, at.why
	case p.From == plan.External && at.third == "":
		return e, "a client outside the nodes of the Service needs a third node: " + at.why
	case p.To == plan.NodePort && far && o.TrafficPolicy == string(corev1.ServiceExternalTrafficPolicyLocal):
		return e, "externalTrafficPolicy Local: the node that is called has no endpoint of the Service, and passes nothing on to another"
	}
	near, peer, away := podClient, podPeer, podServer
	if bare {
		near, peer, away = hostClient, hostClient, hostServer
	}
	e.client, e.server = near, peer
	switch p.From {
	case plan.Host:
		e.client = hostClient
	case plan.External:
		e.client = external
	}
	if p.To == plan.Host {
		e.server, away = hostClient, hostServer
	}
	if far {
		e.server = away
	}
	switch p.To {
	case plan.Service:
		e.service = serviceOf(far)
	case plan.NodePort:
		e.service = serviceOf(far) + nodePort
	case plan.LoadBalancer:
		e.service = serviceBalancer
	case plan.Self:
		e.server, e.service = e.client, serviceSelf
	}
	return e, ""
}

// toServer says that a path leads to the server's node, and not to the client's.
func toServer(p plan.Path) bool {
	return p.Locality == plan.CrossNode || p.Locality == plan.Remote || p.To == plan.LoadBalancer
}

func serviceOf(far bool) string {
	if far {
		return serviceRemote
	}
	return serviceLocal
}

// several returns the n pods behind a Service of several, in order, and its name; the first is on the server's node if
// the path leads there. why says why there are none.
func (at placement) several(o Options, p plan.Path, n int, bare bool) (pods []string, service, why string) {
	e, why := at.ends(o, p, bare)
	switch {
	case why != "":
		return nil, "", why
	case !p.Shared():
		return nil, "", "several backends stand behind a Service alone"
	case p.To == plan.NodePort && at.server != "" && o.TrafficPolicy == string(corev1.ServiceExternalTrafficPolicyLocal):
		return nil, "", "externalTrafficPolicy Local: the backends on other nodes get nothing from this one"
	}
	nodes := []string{at.client, at.server}
	if at.server == "" {
		nodes = nodes[:1]
	}
	if bare && n > len(nodes) {
		return nil, "", fmt.Sprintf("its backends share the addresses of %d nodes, and %d backends need one each", len(nodes), n)
	}
	first := 0
	if toServer(p) {
		first = 1
	}
	for i := range n {
		node := (first + i) % len(nodes)
		name := fmt.Sprintf("%s-%d-%d", backend, node+1, i/len(nodes)+1)
		if bare {
			name = []string{hostClient, hostServer}[node]
		}
		pods = append(pods, name)
	}
	return pods, fmt.Sprintf("%s-%d", e.service, n), ""
}

// layout is what a run makes in the cluster, computed from the plan and the nodes alone.
type layout struct {
	pods     []*podSpec
	services []serviceSpec
}

// podSpec is one pod to be.
type podSpec struct {
	Name, Node string
	// Behind are the Services that lead to it.
	Behind []string
}

// Host says that it is in the node's network, and in the namespace for such pods.
func (p podSpec) Host() bool { return isHostPod(p.Name) }

func isHostPod(name string) bool {
	return name == hostClient || name == hostServer || name == external
}

// serviceSpec is one Service to be.
type serviceSpec struct {
	Name string
	// Host says that host-network pods stand behind it.
	Host bool
}

// NodePort says that it is entered at a port of the nodes.
func (s serviceSpec) NodePort() bool { return strings.Contains(s.Name, nodePort) }

// Balancer says that it is of type LoadBalancer.
func (s serviceSpec) Balancer() bool { return strings.HasPrefix(s.Name, serviceBalancer) }

// key is what the Service is found by: its name, and whether hosts stand behind it.
func (s serviceSpec) key() string {
	if s.Host {
		return "host/" + s.Name
	}
	return s.Name
}

// nodeOf returns the name of the node that a pod belongs on.
func (at placement) nodeOf(pod string) string {
	switch {
	case pod == external:
		return at.third
	case pod == podServer, pod == hostServer, strings.HasPrefix(pod, backend+"-2-"):
		return at.server
	}
	return at.client
}

// arrange returns the layout of a run: every pod and Service that a path of the plan needs, and nothing else.
func arrange(o Options, at placement) layout {
	var l layout
	bares := []bool{false}
	if o.Host {
		bares = append(bares, true)
	}
	for _, bare := range bares {
		for _, p := range o.Paths {
			e, why := at.ends(o, p, bare)
			if why != "" {
				continue
			}
			l.pod(at, e.client)
			l.behind(e.service, l.pod(at, e.server))
			for i, n := range slices.Concat(o.Backends, o.Rolled) {
				pods, service, why := at.several(o, p, n, bare)
				if why != "" {
					continue
				}
				if i >= len(o.Backends) {
					service += rolled
				}
				for _, name := range pods {
					l.behind(service, l.pod(at, name))
				}
			}
		}
	}
	return l
}

// pod returns the pod called name, made if it was not there.
func (l *layout) pod(at placement, name string) *podSpec {
	i := slices.IndexFunc(l.pods, func(p *podSpec) bool { return p.Name == name })
	if i < 0 {
		i = len(l.pods)
		l.pods = append(l.pods, &podSpec{Name: name, Node: at.nodeOf(name)})
	}
	return l.pods[i]
}

// behind puts p behind the Service called name, made if it was not there; "" is none.
func (l *layout) behind(name string, p *podSpec) {
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

// hosts says whether any pod is in the network of its node.
func (l layout) hosts() bool {
	return slices.ContainsFunc(l.pods, func(p *podSpec) bool { return p.Host() })
}
