package lab

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/kernel/bpf/vpc"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// underlayEnd describes a device of a node on the underlay. port is the name of its end in the switch, mac its own
// MAC address.
type underlayEnd struct {
	port string
	mac  net.HardwareAddr
}

// underlayEnds returns the underlay ends of a node, its NIC first.
func underlayEnds(n dataplane.Node) []underlayEnd {
	ends := []underlayEnd{{n.Name, n.MAC}}
	for _, d := range n.Interfaces {
		ends = append(ends, underlayEnd{switchPortName(n, d), d.MAC})
	}
	return ends
}

// switchPortName returns the name of an interface's end in the switch.
func switchPortName(n dataplane.Node, d dataplane.Interface) string { return n.Name + "-" + d.Name }

// plugInterfaces connects the nodes' other devices to the switch.
func (b *builder) plugInterfaces() error {
	for k, n := range b.spec.Nodes {
		for _, d := range n.Interfaces {
			if err := b.plugInterface(b.inst.Nodes[k], n, d); err != nil {
				return fmt.Errorf("%s: %s: %w", n.Name, d.Name, err)
			}
		}
	}
	return nil
}

// plugInterface connects a node's additional device to the switch. The device can reach only the switch as its next hop. A
// router at the port of the switch delivers the packets to nodes and pods.
func (b *builder) plugInterface(to *Node, n dataplane.Node, d dataplane.Interface) error {
	at, sw := b.at[&to.Host], b.at[b.inst.Switch]
	end := switchPortName(n, d)
	if err := at.Add(link.Veth{Name: d.Name, MAC: d.MAC, Peer: end, PeerIn: sw, MTU: n.MTU}); err != nil {
		return err
	}
	port, err := b.insertLink(end, n.Name)
	if err != nil {
		return err
	}
	// Packets between two branches of one trunk leave through the port by which they came.
	trunk := len(d.Branches) > 0
	if err := sw.Add(link.Port{Bridge: switchBridge, Dev: port, Hairpin: trunk}, link.ForwardingEntry{Dev: port, MAC: d.MAC}); err != nil {
		return err
	}
	for _, br := range d.Branches {
		if err := sw.Add(link.ForwardingEntry{Dev: port, MAC: br.MAC}); err != nil {
			return err
		}
	}
	// A client outside gets packets with the addresses of branches, and answers to them.
	if err := b.at[b.inst.External].Add(each.Of(d.Branches, func(br dataplane.Branch) link.Thing {
		return link.StaticNeighbour{Dev: dataplane.NIC, Addr: br.Addr, MAC: br.MAC}
	})...); err != nil {
		return err
	}
	err = at.Add(link.Address{Dev: d.Name, Addr: d.Addr, NoRoute: true},
		link.StaticNeighbour{Dev: d.Name, Addr: b.spec.net.switchAddr, MAC: b.spec.Switch.MAC})
	if err != nil {
		return err
	}
	router, err := vpc.Open(stationsOf(b.spec), trunk)
	if err != nil {
		return err
	}
	to.attached = append(to.attached, router)
	return router.Attach(b.inst.Switch.NS, port)
}

// stationsOf maps IP addresses to the stations to which the underlay delivers their packets. It has each node,
// and each pod on an additional interface. It has the external client only if pods send to it through such interfaces.
func stationsOf(spec instanceSpec) map[netip.Addr]vpc.Station {
	all := map[netip.Addr]vpc.Station{}
	for _, n := range spec.Nodes {
		all[n.Addr.Addr()] = vpc.Station{MAC: n.MAC}
		for _, d := range n.Interfaces {
			all[d.Addr.Addr()] = vpc.Station{MAC: d.MAC}
			if d.Strict {
				all[spec.External.Addr.Addr()] = vpc.Station{MAC: spec.External.MAC}
			}
			for a := d.Pods.Masked().Addr(); d.Pods.Contains(a); a = a.Next() {
				all[a] = vpc.Station{MAC: d.MAC}
			}
			for _, br := range d.Branches {
				all[br.Addr] = vpc.Station{MAC: br.MAC, VLAN: br.VLAN}
			}
		}
	}
	return all
}
