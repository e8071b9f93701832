package link

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Origins of routes, by the kernel's numbers, which the modelled dataplanes set.
const (
	ProtocolBoot   = unix.RTPROT_BOOT
	ProtocolBird   = unix.RTPROT_BIRD
	ProtocolCalico = 80
)

// Address is an address of a device with its prefix length. An IPv6 address is usable at once, without duplicate
// address detection. NoRoute prevents the kernel's route to the prefix.
type Address struct {
	Dev     string
	Addr    netip.Prefix
	NoRoute bool
}

func (a Address) addTo(h *Handle) error {
	flags := 0
	if a.NoRoute {
		flags = unix.IFA_F_NOPREFIXROUTE
	}
	if a.Addr.Addr().Is6() {
		flags |= unix.IFA_F_NODAD
	}
	return h.changeDevice(a.Dev, fmt.Sprintf("give %s the address %v", a.Dev, a.Addr), func(l netlink.Link) error {
		return h.nl.AddrAdd(l, &netlink.Addr{IPNet: ipNet(a.Addr), Flags: flags})
	})
}

// Route is one entry of a routing table. Adding an existing entry is an error.
type Route struct {
	// To is the destination; 0.0.0.0/0 and ::/0 are the default routes.
	To netip.Prefix
	// Via is the next hop; an invalid one means none.
	Via netip.Addr
	// Dev is the device; "" only with Blackhole or Throw.
	Dev string
	// OnLink treats Via as a neighbour even without a route to it. LinkScope means that the destination is a
	// neighbour, HostScope that it is on this host. IPv6 does not store either scope.
	OnLink, LinkScope, HostScope bool
	// Blackhole makes the route drop packets silently.
	Blackhole bool
	// Throw ends the lookup in the table; the routing policy then tries the next table.
	Throw bool
	// Protocol is the origin of the route; 0 is ProtocolBoot.
	Protocol int
	// MTU is in bytes; 0 means the device's MTU.
	MTU int
	// Source is the preferred source address; an invalid one means none.
	Source netip.Addr
	// Table is the number of the table, 0 for the main one.
	Table int
}

func (r Route) addTo(h *Handle) error {
	entry := netlink.Route{Dst: ipNet(r.To), Gw: netIP(r.Via), Src: netIP(r.Source), MTU: r.MTU, Protocol: netlink.RouteProtocol(r.Protocol), Table: r.Table}
	if r.Protocol == 0 {
		entry.Protocol = ProtocolBoot
	}
	if r.OnLink {
		entry.Flags = int(netlink.FLAG_ONLINK)
	}
	switch {
	case r.HostScope:
		entry.Scope = netlink.SCOPE_HOST
	case r.LinkScope:
		entry.Scope = netlink.SCOPE_LINK
	}
	switch {
	case r.Blackhole:
		entry.Type = unix.RTN_BLACKHOLE
	case r.Throw:
		entry.Type = unix.RTN_THROW
	default:
		i, err := h.indexOf(r.Dev)
		if err != nil {
			return err
		}
		entry.LinkIndex = i
	}
	if err := h.nl.RouteAdd(&entry); err != nil {
		return fmt.Errorf("add route to %v (via %v dev %s): %w", r.To, r.Via, r.Dev, err)
	}
	return nil
}

// LocalRoute is a routing entry that delivers packets for To to this host. Table 0 is the main table.
type LocalRoute struct {
	To    netip.Prefix
	Dev   string
	Table int
}

func (r LocalRoute) addTo(h *Handle) error {
	i, err := h.indexOf(r.Dev)
	if err != nil {
		return err
	}
	entry := netlink.Route{Dst: ipNet(r.To), LinkIndex: i, Table: r.Table, Type: unix.RTN_LOCAL, Scope: netlink.SCOPE_HOST}
	if err := h.nl.RouteAdd(&entry); err != nil {
		return fmt.Errorf("add local route to %v: %w", r.To, err)
	}
	return nil
}

// RemoveRoute removes the entry of the main table to a destination through a next hop; a missing entry is an error.
func (h *Handle) RemoveRoute(to netip.Prefix, via netip.Addr) error {
	if err := h.nl.RouteDel(&netlink.Route{Dst: ipNet(to), Gw: netIP(via)}); err != nil {
		return fmt.Errorf("remove route to %v via %v: %w", to, via, err)
	}
	return nil
}

// StaticNeighbour is a permanent entry of a device's ARP table, or of its neighbour table in IPv6.
type StaticNeighbour struct {
	Dev  string
	Addr netip.Addr
	MAC  net.HardwareAddr
}

func (n StaticNeighbour) addTo(h *Handle) error {
	entry := netlink.Neigh{Family: unix.AF_INET, State: netlink.NUD_PERMANENT, IP: netIP(n.Addr), HardwareAddr: n.MAC}
	if n.Addr.Is6() {
		entry.Family = unix.AF_INET6
	}
	return h.setNeighbour(n.Dev, fmt.Sprintf("add neighbour %v to %s", n.Addr, n.Dev), entry)
}

// ForwardingEntry maps a MAC address to an outer address on a VXLAN device. If Outer is invalid, Dev is a port of a
// bridge instead. The bridge then has the MAC address behind that port.
type ForwardingEntry struct {
	Dev   string
	MAC   net.HardwareAddr
	Outer netip.Addr
}

func (f ForwardingEntry) addTo(h *Handle) error {
	n := netlink.Neigh{
		Family: unix.AF_BRIDGE, State: netlink.NUD_PERMANENT, Flags: netlink.NTF_SELF, IP: netIP(f.Outer), HardwareAddr: f.MAC,
	}
	what := fmt.Sprintf("add forwarding entry %v behind %v to %s", f.MAC, f.Outer, f.Dev)
	if !f.Outer.IsValid() {
		n.State, n.Flags = netlink.NUD_NOARP, netlink.NTF_MASTER
		what = fmt.Sprintf("add station %v behind %s", f.MAC, f.Dev)
	}
	return h.setNeighbour(f.Dev, what, n)
}

// setNeighbour adds or replaces an entry of dev. what describes the change in an error.
func (h *Handle) setNeighbour(dev, what string, n netlink.Neigh) error {
	return h.changeDevice(dev, what, func(l netlink.Link) error {
		n.LinkIndex = l.Attrs().Index
		return h.nl.NeighSet(&n)
	})
}
