package dataplane

import (
	"fmt"

	"github.com/cnibench/cnibench/internal/kernel/link"
)

// VXLANOverhead returns the overhead of VXLAN in bytes: IP 20 or 40, UDP 8, VXLAN 8, Ethernet 14.
func VXLANOverhead(n *Node) int {
	if n.IPv6() {
		return 70
	}
	return 50
}

// PrepareVXLAN makes the node's VXLAN device with its address.
func PrepareVXLAN(n Node, at *link.Handle) error {
	t := n.Tunnel
	return Run(
		func() error {
			return at.AddVXLAN(link.VXLAN{
				Name: t.Device, MAC: t.MAC, MTU: t.MTU, VNI: t.VNI, Port: t.Port, Parent: NIC, Local: n.Addr.Addr(),
			})
		},
		func() error { return at.AddAddress(t.Device, Single(t.Addr)) },
	)
}

// JoinVXLAN adds the VXLAN device of to to that of from.
func JoinVXLAN(from Node, at *link.Handle, to Node) error {
	err := Run(
		func() error { return at.AddNeighbour(from.Tunnel.Device, to.Tunnel.Addr, to.Tunnel.MAC) },
		func() error { return at.AddForwarding(from.Tunnel.Device, to.Tunnel.MAC, to.Addr.Addr()) },
	)
	if err != nil {
		return fmt.Errorf("join %s to %s: %w", from.Name, to.Name, err)
	}
	return nil
}
