package dataplane

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/dataplane/service"
	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// Programmed is a Dataplane with BPF programs.
type Programmed interface {
	// Program loads the programs of one node and attaches them to its devices, which must exist. It may be called for several
	// nodes at the same time.
	Program(p Programming) (Programs, error)
}

// Programming is the input for the programs of a node.
type Programming struct {
	NS   *netns.NS
	Node Node
	// Others are all other nodes.
	Others []Node
	// Services are the Services that the node serves, one for each protocol.
	Services []service.Service
	// Cgroup is the directory of the cgroup (v2) with the processes of the node and its pods. If it is "", NoCgroup is the
	// reason.
	Cgroup   string
	NoCgroup error
	// Policies is the number of policies that select every pod, in both directions. The last allows all traffic but TCP to
	// policy.DeniedPort; the others match no peer. PoliciesUnselected is the number of policies that select no pod.
	Policies, PoliciesUnselected int
	// Connections is the number of established connections in the node's table, in addition to the measured ones.
	Connections int
}

// Entries returns how many frontends of Services a node serves, and how many endpoints all these frontends have together.
func (p Programming) Entries() (frontends, endpoints int) {
	for _, s := range p.Services {
		_, outside := p.Frontends(s)
		frontends += 1 + len(outside)
		endpoints += (1 + len(outside)) * len(s.Endpoints)
	}
	return frontends, endpoints
}

// Stranger returns the only peer that policy i allows: an unused address of a range for documentation or tests.
func (p Programming) Stranger(i int) netip.Addr {
	if p.Node.IPv6() {
		return netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 14: byte(i >> 8), 15: byte(i)})
	}
	return netip.AddrFrom4([4]byte{198, 18 + byte(i>>16), byte(i >> 8), byte(i)})
}

// Standing returns the ends of idle connection i of a node: a foreign address, which never sends packets, and a port of the
// node's first pod.
func Standing(n Node, i int) (from, to netip.AddrPort) {
	const first, ports = 1024, 1 << 15
	at := Programming{Node: n}.Stranger(i / ports)
	return netip.AddrPortFrom(at, uint16(first+i%ports)), netip.AddrPortFrom(n.Pods[0].Addr.Addr(), 1)
}

// Programs controls the BPF programs of one node. They exist until Close or the end of this process: nothing is pinned.
type Programs struct {
	io.Closer
	// Counters returns the counters of the programs since they were loaded; nil if they count nothing.
	Counters func() ([]attach.Counter, error)
	// Serve adds Services to the node, and replaces a Service with the same address; nil if the programs do not serve
	// Services.
	Serve func([]service.Service) error
	// Withdraw removes Services. It is set together with Serve.
	Withdraw func([]service.Service) error
	// Deny adds the policy that denies TCP to policy.ChurnedPort for every pod, or removes it if in is false; nil if the
	// programs do not enforce policies.
	Deny func(in bool) error
	// Connect adds n idle connections to the connection table and returns how many the table then has; nil without a table.
	Connect func(n int) (int, error)
	// LastSeen returns when the programs last saw a packet of a TCP connection at the device of the pod owner, in ns of the
	// monotonic clock, 0 if their table does not have it. from is the end that connected. It is nil without such a table.
	LastSeen func(from, to netip.AddrPort, owner netip.Addr) (int64, error)
	// Pods adds and removes pods while the programs run; nil if they cannot.
	Pods *PodPrograms
	// StandIn describes which kernel feature the programs replace, "" for none.
	StandIn string
}

// PodPrograms has the functions that add a pod to the programs of a node and remove it. The devices of the pod must exist.
type PodPrograms struct {
	// Add attaches the programs of a pod of the node, Police then applies its policies, and Remove undoes both.
	Add, Police, Remove func(Pod) error
	// Learn adds a pod of another node to the programs' tables, Forget removes it; nil if the programs do not need that.
	Learn, Forget func(other Node, p Pod) error
}

// Drops returns the counters of dropped packets that are not 0.
func (p Programs) Drops() ([]attach.Counter, error) {
	if p.Counters == nil {
		return nil, nil
	}
	list, err := p.Counters()
	return slices.DeleteFunc(list, func(c attach.Counter) bool { return !c.Drop || c.Packets == 0 }), err
}

// Sockets returns the cgroup directory of the node, to which programs that translate Services at sockets are attached.
// It fails if the node has no cgroup.
func (p Programming) Sockets() (string, error) {
	if p.Cgroup != "" {
		return p.Cgroup, nil
	}
	err := p.NoCgroup
	if err == nil {
		err = errors.New("it was not made")
	}
	return "", advice.With(fmt.Errorf("socket programs need a cgroup (v2) of the node: %w", err),
		"mount cgroup v2 and run as root: mount -t cgroup2 none /sys/fs/cgroup/unified")
}

// affinityTime is how long a client keeps its backend by default in Kubernetes.
const affinityTime = 3 * time.Hour

// Affinity returns how long a client of a Service keeps its backend, 0 without session affinity.
func Affinity(s service.Service) time.Duration {
	if s.SessionAffinity {
		return affinityTime
	}
	return 0
}

// Backends returns the endpoints of a Service: local has the endpoints on this node, remote the others.
func Backends(s service.Service) (local, remote []netip.AddrPort) {
	for _, e := range s.Endpoints {
		if e.Local {
			local = append(local, e.Addr)
		} else {
			remote = append(remote, e.Addr)
		}
	}
	return local, remote
}

// Frontends returns the addresses of a Service: its cluster address, and for external clients its node port at every node
// and its load balancer addresses.
func (p Programming) Frontends(s service.Service) (vip netip.AddrPort, outside []netip.AddrPort) {
	if s.NodePort != 0 {
		for _, n := range append([]Node{p.Node}, p.Others...) {
			outside = append(outside, netip.AddrPortFrom(n.Addr.Addr(), s.NodePort))
		}
	}
	for _, a := range s.LoadBalancerIPs {
		outside = append(outside, netip.AddrPortFrom(a, s.Port))
	}
	return netip.AddrPortFrom(s.VIP, s.Port), outside
}

// EachFrontend calls f for every frontend of the Services in list, until f fails, and returns that error.
func (p Programming) EachFrontend(list []service.Service, f func(s service.Service, at netip.AddrPort) error) error {
	for _, s := range list {
		vip, outside := p.Frontends(s)
		for _, at := range append([]netip.AddrPort{vip}, outside...) {
			if err := f(s, at); err != nil {
				return err
			}
		}
	}
	return nil
}
