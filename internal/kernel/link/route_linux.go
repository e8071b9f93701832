package link

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Who made a route, as far as the dataplanes that are modelled tell. The numbers are the kernel's.
const (
	ProtocolBoot   = unix.RTPROT_BOOT
	ProtocolBird   = unix.RTPROT_BIRD
	ProtocolCalico = 80
)

// AddAddress gives a device an address with its prefix length. An IPv6 address is in use at once, without duplicate
// address detection.
func (h *Handle) AddAddress(dev string, addr netip.Prefix) error { return h.addAddress(dev, addr, 0) }

// AddAddressNoRoute is AddAddress without the kernel's route to the rest of the prefix.
func (h *Handle) AddAddressNoRoute(dev string, addr netip.Prefix) error {
	return h.addAddress(dev, addr, unix.IFA_F_NOPREFIXROUTE)
}

func (h *Handle) addAddress(dev string, addr netip.Prefix, flags int) error {
	if addr.Addr().Is6() {
		flags |= unix.IFA_F_NODAD
	}
	return h.change(dev, fmt.Sprintf("give %s the address %v", dev, addr), func(l netlink.Link) error {
		return h.nl.AddrAdd(l, &netlink.Addr{IPNet: ipNet(addr), Flags: flags})
	})
}

// Route is one entry of the main table.
type Route struct {
	// To is the destination; 0.0.0.0/0 and ::/0 are the default routes.
	To netip.Prefix
	// Via is the next hop, none when invalid.
	Via netip.Addr
	// Dev is the device; "" only with Blackhole.
	Dev string
	// OnLink takes Via for a neighbour although no route says so. LinkScope says that the destination is a neighbour,
	// HostScope that it is on this host. IPv6 keeps neither scope.
	OnLink, LinkScope, HostScope bool
	// Blackhole drops silently what has no longer match.
	Blackhole bool
	// Protocol says who made it; 0 is ProtocolBoot.
	Protocol int
	// MTU in bytes, 0 for that of the device.
	MTU int
	// Source is the preferred source address, none when invalid.
	Source netip.Addr
}

// AddRoute adds an entry; one that is there already is an error.
func (h *Handle) AddRoute(r Route) error {
	entry := netlink.Route{Dst: ipNet(r.To), Gw: ip(r.Via), Src: ip(r.Source), MTU: r.MTU, Protocol: netlink.RouteProtocol(r.Protocol)}
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
	if r.Blackhole {
		entry.Type = unix.RTN_BLACKHOLE
	} else {
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

// RemoveRoute removes the entry to a destination by way of a next hop; one that is not there is an error.
func (h *Handle) RemoveRoute(to netip.Prefix, via netip.Addr) error {
	if err := h.nl.RouteDel(&netlink.Route{Dst: ipNet(to), Gw: ip(via)}); err != nil {
		return fmt.Errorf("remove route to %v via %v: %w", to, via, err)
	}
	return nil
}

// AddNeighbour adds a permanent entry to the ARP table, or to that of neighbour discovery.
func (h *Handle) AddNeighbour(dev string, addr netip.Addr, mac net.HardwareAddr) error {
	n := netlink.Neigh{Family: unix.AF_INET, State: netlink.NUD_PERMANENT, IP: ip(addr), HardwareAddr: mac}
	if addr.Is6() {
		n.Family = unix.AF_INET6
	}
	return h.setNeighbour(dev, fmt.Sprintf("add neighbour %v to %s", addr, dev), n)
}

// AddForwarding tells a VXLAN device behind which outer address a MAC address is.
func (h *Handle) AddForwarding(dev string, mac net.HardwareAddr, outer netip.Addr) error {
	return h.setNeighbour(dev, fmt.Sprintf("add forwarding entry %v behind %v to %s", mac, outer, dev), netlink.Neigh{
		Family: unix.AF_BRIDGE, State: netlink.NUD_PERMANENT, Flags: netlink.NTF_SELF, IP: ip(outer), HardwareAddr: mac,
	})
}

// AddStation tells the bridge of a port that a MAC address is behind it, before it receives a frame from there.
func (h *Handle) AddStation(port string, mac net.HardwareAddr) error {
	return h.setNeighbour(port, fmt.Sprintf("add station %v behind %s", mac, port), netlink.Neigh{
		Family: unix.AF_BRIDGE, State: netlink.NUD_NOARP, Flags: netlink.NTF_MASTER, HardwareAddr: mac,
	})
}

func (h *Handle) setNeighbour(dev, what string, n netlink.Neigh) error {
	return h.change(dev, what, func(l netlink.Link) error {
		n.LinkIndex = l.Attrs().Index
		return h.nl.NeighSet(&n)
	})
}
