package dataplane

import "github.com/cnibench/cnibench/internal/kernel/link"

// VXLANOverhead returns the overhead of VXLAN in bytes: IP 20 or 40, UDP 8, VXLAN 8, Ethernet 14.
func VXLANOverhead(n *Node) int {
	if n.IPv6() {
		return 70
	}
	return 50
}

// PrepareVXLAN returns the node's VXLAN device with its address.
func PrepareVXLAN(n Node) []link.Thing {
	t := n.Tunnel
	return []link.Thing{
		link.VXLAN{Name: t.Device, MAC: t.MAC, MTU: t.MTU, VNI: t.VNI, Port: t.Port, Parent: NIC, Local: n.Addr.Addr()},
		link.Address{Dev: t.Device, Addr: Single(t.Addr)},
	}
}

// JoinVXLAN returns the entries of to's VXLAN device at that of from.
func JoinVXLAN(from, to Node) []link.Thing {
	return []link.Thing{
		link.StaticNeighbour{Dev: from.Tunnel.Device, Addr: to.Tunnel.Addr, MAC: to.Tunnel.MAC},
		link.ForwardingEntry{Dev: from.Tunnel.Device, MAC: to.Tunnel.MAC, Outer: to.Addr.Addr()},
	}
}
