package calico

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/dataplane/policy"
	"github.com/cnibench/cnibench/internal/kernel/bpf/ipip"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// calicoIPIP is Calico with its iptables dataplane over IP in IP:
//
//	pod eth0 ── cali1a2b3c4d5e6 ─ node's stack with Calico's chains ─ tunl0 ─ IP protocol 4 ─ eth0 ── switch ── ...
//
// tunl0 is a device of the kernel, and the address of the other node is the next hop of its route. If the kernel lacks
// such devices, a veth pair replaces tunl0. Then a program at tunl0 encapsulates packets, and a program at eth0
// decapsulates them. The packets on the wire are the same, but outer packets do not pass the node's own rules.
type calicoIPIP struct{ calico }

const (
	// ipipOverhead is the size of the outer IPv4 header in bytes.
	ipipOverhead = 20
	tunl0        = "tunl0"
	// tunl0Peer is the far end of the pair that replaces tunl0.
	tunl0Peer = "tunl0-peer"
	// ipipStandIn describes the replacement in reports.
	ipipStandIn = "IPIP by BPF instead of ipip.ko: outer packets pass neither the node's rules nor its conntrack"
)

func (calicoIPIP) Arrange(n *dataplane.Node, number, pods int) {
	n.PodCIDR = dataplane.Subnet(n.Cluster, number)
	n.Tunnel = dataplane.Tunnel{Device: tunl0, Addr: dataplane.Nth(n.PodCIDR, 0), MTU: n.MTU - ipipOverhead}
	arrangeBlocks(n, pods, n.Tunnel.MTU)
}

func (calicoIPIP) Prepare(n dataplane.Node) []link.Thing {
	things := []link.Thing{
		link.Step(func(at *link.Handle) error { return prepareTunl0(n, at) }),
		link.Address{Dev: tunl0, Addr: dataplane.Single(n.Tunnel.Addr)},
	}
	return append(things, blackholeRoutes(n, link.ProtocolBird)...)
}

// prepareTunl0 creates the kernel's device, or the pair that replaces it.
func prepareTunl0(n dataplane.Node, at *link.Handle) error {
	err := at.Add(link.IPIP{Name: tunl0, MTU: n.Tunnel.MTU, Local: n.Addr.Addr()})
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return at.Add(
		link.Veth{Name: tunl0, Peer: tunl0Peer, MTU: n.Tunnel.MTU, NoARP: true},
		link.Settings{{Name: "net/ipv4/conf/" + tunl0 + "/rp_filter", Value: "0"}},
	)
}

func (calicoIPIP) JoinNodes(_, to dataplane.Node) []link.Thing {
	routes := each.Of(to.Blocks, func(b netip.Prefix) link.Thing {
		return link.Route{To: b, Via: to.Addr.Addr(), Dev: tunl0, OnLink: true, Protocol: link.ProtocolBird}
	})
	return routes
}

func (c calicoIPIP) Rules(n dataplane.Node, others []dataplane.Node) policy.Node {
	rules := c.calico.Rules(n, others)
	rules.Calico.IPIP = true
	return rules
}

// Program loads the programs that encapsulate if a veth pair replaces the kernel's tunl0; otherwise it does nothing.
func (calicoIPIP) Program(p dataplane.Programming) (dataplane.Programs, error) {
	standIn, err := isTunl0Replaced(p)
	if err != nil || !standIn {
		return dataplane.Programs{}, err
	}
	tunnel, err := ipip.Load(ipip.Options{NS: p.NS, NodeIP: p.Node.Addr.Addr(), Wire: dataplane.NIC, Tunnel: tunl0})
	if err != nil {
		return dataplane.Programs{}, err
	}
	for _, o := range p.Others {
		for _, b := range o.Blocks {
			if err := tunnel.SetPeer(b, o.Addr.Addr()); err != nil {
				return dataplane.Programs{}, errors.Join(err, tunnel.Close())
			}
		}
	}
	return dataplane.Programs{Closer: tunnel, Counters: tunnel.Counters, StandIn: ipipStandIn}, nil
}

// isTunl0Replaced reports whether a veth pair replaces the kernel's tunl0. It fails if the device does not exist.
func isTunl0Replaced(p dataplane.Programming) (bool, error) {
	devices, err := link.At(p.NS, (*link.Handle).Devices)
	if err != nil {
		return false, err
	}
	for _, d := range devices {
		if d.Name == tunl0 {
			return d.Kind == "veth", nil
		}
	}
	return false, fmt.Errorf("%s is not there", tunl0)
}
