package plan

import (
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Role is the kind of one end of a path.
type Role string

const (
	// Host is the node's own network stack (on Kubernetes: a host-network pod).
	Host Role = "host"
	// Pod is a pod with its own address.
	Pod Role = "pod"
	// Service is a ClusterIP Service in front of one pod.
	Service Role = "service"
	// NodePort is a NodePort Service, reached at the address of the first node.
	NodePort Role = "nodeport"
	// LoadBalancer is a Service of type LoadBalancer, reached at the address that a load balancer gave it.
	LoadBalancer Role = "loadbalancer"
	// External is a host outside the cluster.
	External Role = "external"
	// Self is the client's own pod, reached through its Service (hairpin).
	Self Role = "self"
)

// Locality is the place of the server relative to the client.
type Locality string

const (
	// SameNode and CrossNode place the two ends of a direct path.
	SameNode  Locality = "same-node"
	CrossNode Locality = "cross-node"
	// Local and Remote are the place of the endpoint behind a Service, relative to the client, or to the node that
	// outside traffic enters.
	Local  Locality = "local"
	Remote Locality = "remote"
	// anywhere is the locality of paths that exist in one form only.
	anywhere Locality = ""
)

// Path is a pair of ends of the traffic, from the client to the server. The zero value is not a path.
type Path struct {
	From, To Role
	Locality Locality
}

// Paths has every path, in the order of a report.
var Paths = []Path{
	{Host, Host, CrossNode},
	{Host, Host, SameNode},
	{Pod, Host, SameNode},
	{Pod, Host, CrossNode},
	{Host, Pod, SameNode},
	{Host, Pod, CrossNode},
	{Pod, Pod, SameNode},
	{Pod, Pod, CrossNode},
	{Host, Service, Local},
	{Host, Service, Remote},
	{Pod, Service, Local},
	{Pod, Service, Remote},
	{External, NodePort, Local},
	{External, NodePort, Remote},
	{External, LoadBalancer, anywhere},
	{Pod, External, anywhere},
	{Pod, Self, anywhere},
}

// NinePaths are the nine test cases of the article that examples/nine-paths.yaml repeats, in its order.
var NinePaths = []Path{
	{Host, Host, CrossNode},
	{Pod, Host, SameNode},
	{Pod, Host, CrossNode},
	{Pod, Pod, SameNode},
	{Pod, Pod, CrossNode},
	{Host, Service, Local},
	{Host, Service, Remote},
	{Pod, Service, Local},
	{Pod, Service, Remote},
}

// String returns the name of the path in files, in reports and on the command line, for example
// "pod-to-pod/cross-node".
func (p Path) String() string {
	s := string(p.From) + "-to-" + string(p.To)
	if p.Locality != anywhere {
		s += "/" + string(p.Locality)
	}
	return s
}

// ByService reports whether the client connects to the address of a Service. Such an address translates only TCP and
// UDP ports.
func (p Path) ByService() bool { return p.Shared() || p.To == Self }

// Neighbours reports whether client and server are pods of the same node, connected directly or through a ClusterIP
// Service.
func (p Path) Neighbours() bool {
	return p.From == Pod && (p.To == Pod || p.To == Service) && p.ServerNode() == 0
}

// ServerNode returns the index of the server's node. 0 is the node of the client, or the node that outside traffic
// enters, and 1 is another node.
func (p Path) ServerNode() int {
	if p.Locality == CrossNode || p.Locality == Remote || p.To == LoadBalancer {
		return 1
	}
	return 0
}

// Crosses reports whether packets of the path leave their node.
func (p Path) Crosses() bool { return p.ServerNode() == 1 || p.From == External || p.To == External }

// Shared reports whether the client connects to an address that may have several backends.
func (p Path) Shared() bool { return p.To == Service || p.To == NodePort || p.To == LoadBalancer }

// ParsePath parses the name of a path. It fails for an unknown name, with similar names in the error.
func ParsePath(s string) (Path, error) {
	if p, ok := each.First(Paths, func(p Path) bool { return p.String() == s }); ok {
		return p, nil
	}
	if names := each.Where(Texts(Paths), func(name string) bool { return strings.HasPrefix(name, s+"/") }); len(names) > 0 {
		return Path{}, fmt.Errorf("path %q has several forms: %s", s, strings.Join(names, ", "))
	}
	return Path{}, fmt.Errorf("unknown path %q%s", s, advice.DidYouMean(s, Texts(Paths)))
}

// MarshalText encodes a path as one word in JSON and YAML.
func (p Path) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText decodes what MarshalText encodes. It fails as ParsePath does.
func (p *Path) UnmarshalText(b []byte) (err error) {
	*p, err = ParsePath(string(b))
	return err
}
