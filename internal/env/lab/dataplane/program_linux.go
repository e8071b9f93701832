package dataplane

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/cnibench/cnibench/internal/env/lab/service"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// Programmed is what a dataplane is besides when BPF programs move its packets.
type Programmed interface {
	// Program loads the programs of one node and puts them on its devices, which are all there by then. Different nodes
	// are programmed at the same time.
	Program(p Programming) (Programs, error)
}

// Programming is what the programs of a node are made from.
type Programming struct {
	NS   *netns.NS
	Node Node
	// Others are the rest of the nodes.
	Others []Node
	// Services are those that the node serves, one for each protocol.
	Services []service.Service
	// Cgroup is the directory of the cgroup (v2) that holds the processes of the node and its pods; "" when there is
	// none, and NoCgroup says why.
	Cgroup   string
	NoCgroup error
	// Policies is how many policies select every pod, in both directions: the last allows all but TCP to
	// policy.DeniedPort, the others match nobody. PoliciesUnselected select none.
	Policies, PoliciesUnselected int
}

// Stranger returns whom policy i allows: an address of a range that is kept for documentation or tests,
// and that nobody has.
func (p Programming) Stranger(i int) netip.Addr {
	if p.Node.IPv6() {
		return netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 14: byte(i >> 8), 15: byte(i)})
	}
	return netip.AddrFrom4([4]byte{198, 18 + byte(i>>16), byte(i >> 8), byte(i)})
}

// Dropped is how many packets the programs of a node dropped for one reason.
type Dropped struct {
	Reason  string
	Packets uint64
	// Full says that the packets were dropped because a table had no room for them.
	Full bool
}

// String is one line.
func (d Dropped) String() string { return fmt.Sprintf("%s: %d packets", d.Reason, d.Packets) }

// Programs are those of one node. They last until Close, or until this process ends: nothing is pinned.
type Programs struct {
	io.Closer
	// Drops returns what the programs dropped since they were loaded, each reason once; none when there is no loss.
	Drops func() ([]Dropped, error)
	// Serve gives the node other Services, or others' backends; nil where the programs serve none.
	Serve func([]service.Service) error
	// StandIn says what the programs stand for that the kernel lacks, "" for nothing.
	StandIn string
}

// Sockets returns the cgroup in whose sockets Services are translated, or why that cannot be.
func (p Programming) Sockets() (string, error) {
	if p.Cgroup != "" {
		return p.Cgroup, nil
	}
	err := p.NoCgroup
	if err == nil {
		err = errors.New("the node has none")
	}
	return "", advice.With(fmt.Errorf("the node has no cgroup (v2), in whose sockets Services are translated: %w", err),
		"mount cgroup v2 and run as root: mount -t cgroup2 none /sys/fs/cgroup/unified")
}

// affinityTime is Kubernetes' default for how long a client keeps its backend.
const affinityTime = 3 * time.Hour

// Affinity returns how long a client of a Service keeps its backend, 0 for not at all.
func Affinity(s service.Service) time.Duration {
	if s.SessionAffinity {
		return affinityTime
	}
	return 0
}

// Backends returns the endpoints of a Service, those of this node apart from the others.
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

// Frontends returns where a Service is served: its own address, and for clients outside its node port at every node and the
// addresses of its load balancer.
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
