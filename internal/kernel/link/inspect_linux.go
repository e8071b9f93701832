package link

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/measure/netstate"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Device is the kernel's state of one device. It omits the IPv6 addresses that every device assigns itself, fe80::/10.
type Device struct {
	netstate.Device
	MAC net.HardwareAddr
	// Index is the kernel's number of the device, unique in its namespace. Peer is the index of the other end of a pair,
	// or of the parent device. That device may be in another namespace.
	Index, Peer int
	// Learning means that a VXLAN device learns forwarding entries.
	Learning bool
	// GSOMaxSegs is the maximum number of segments of a super-packet.
	GSOMaxSegs int
	// SuperPacket is the maximum length of a super-packet in bytes: the smaller of the limits for IPv4 and IPv6.
	SuperPacket int
}

// Devices returns all devices of the namespace, in the order of the kernel's list.
func (h *Handle) Devices() ([]Device, error) {
	links, names, err := h.links()
	if err != nil {
		return nil, err
	}
	devices := make([]Device, 0, len(links))
	for _, l := range links {
		a := l.Attrs()
		d := Device{MAC: a.HardwareAddr, Index: a.Index, Peer: a.ParentIndex, GSOMaxSegs: int(a.GSOMaxSegs)}
		d.SuperPacket = int(min(a.GSOMaxSize, a.GSOIPv4MaxSize))
		d.Name, d.Kind, d.MTU, d.Master = a.Name, l.Type(), a.MTU, names[a.MasterIndex]
		d.Up = a.Flags&net.FlagUp != 0
		switch v := l.(type) {
		case *netlink.Vxlan:
			d.VNI, d.Port, d.Learning, d.External = v.VxlanId, v.Port, v.Learning, v.FlowBased
		case *netlink.Geneve:
			d.VNI, d.Port, d.External = int(v.ID), int(v.Dport), v.FlowBased
		}
		addrs, err := h.nl.AddrList(l, unix.AF_UNSPEC)
		if err != nil {
			return nil, fmt.Errorf("list addresses of %s: %w", a.Name, err)
		}
		for _, addr := range addrs {
			if p := prefixOf(addr.IPNet); !p.Addr().Is6() || !p.Addr().IsLinkLocalUnicast() {
				d.Addresses = append(d.Addresses, p)
			}
		}
		devices = append(devices, d)
	}
	return devices, nil
}

// DeviceIn returns the named device of a namespace. It fails if there is none.
func DeviceIn(ns *netns.NS, name string) (Device, error) {
	list, err := At(ns, (*Handle).Devices)
	if d, ok := each.First(list, func(d Device) bool { return d.Name == name }); ok {
		return d, err
	}
	return Device{}, errors.Join(err, fmt.Errorf("no device %s", name))
}

// Routes returns the routes of the main table, IPv4 first, without those that the kernel added for an address. A
// route with a next hop is always included: Cilium marks its own routes as the kernel's.
func (h *Handle) Routes() ([]Route, error) {
	_, names, err := h.links()
	if err != nil {
		return nil, err
	}
	var routes []Route
	for _, of := range []struct {
		family int
		any    netip.Addr
	}{{unix.AF_INET, netip.IPv4Unspecified()}, {unix.AF_INET6, netip.IPv6Unspecified()}} {
		entries, err := h.nl.RouteList(nil, of.family)
		if err != nil {
			return nil, fmt.Errorf("list routes: %w", err)
		}
		for _, e := range entries {
			if e.Protocol != unix.RTPROT_KERNEL || e.Gw != nil {
				routes = append(routes, routeOf(e, names[e.LinkIndex], netip.PrefixFrom(of.any, 0)))
			}
		}
	}
	return routes, nil
}

// routeOf converts a routing entry of the kernel. dev is the name of the entry's device. An entry without a destination
// is a default route and gets the destination everywhere.
func routeOf(e netlink.Route, dev string, everywhere netip.Prefix) Route {
	r := Route{To: everywhere, Dev: dev, MTU: e.MTU, Protocol: int(e.Protocol)}
	if e.Dst != nil {
		r.To = prefixOf(e.Dst)
	}
	r.Via, r.Source = addrOf(e.Gw), addrOf(e.Src)
	r.OnLink = e.Flags&int(netlink.FLAG_ONLINK) != 0
	r.LinkScope, r.HostScope = e.Scope == netlink.SCOPE_LINK, e.Scope == netlink.SCOPE_HOST
	if r.Blackhole = e.Type == unix.RTN_BLACKHOLE; r.Blackhole {
		r.Dev = ""
	}
	return r
}

// Neighbour is an entry of a device's neighbour table or of its forwarding table. Addr is the neighbour's address, or
// the outer address in the forwarding table.
type Neighbour struct {
	Addr      netip.Addr
	MAC       net.HardwareAddr
	Permanent bool
}

// Neighbours returns the entries of a device's ARP table, then those of its IPv6 neighbour table.
func (h *Handle) Neighbours(dev string) ([]Neighbour, error) {
	v4, err := h.familyNeighbours(dev, unix.AF_INET)
	if err != nil {
		return nil, err
	}
	v6, err := h.familyNeighbours(dev, unix.AF_INET6)
	return append(v4, v6...), err
}

// Forwarding returns the forwarding entries of a VXLAN device that have an outer address.
func (h *Handle) Forwarding(dev string) ([]Neighbour, error) {
	return h.familyNeighbours(dev, unix.AF_BRIDGE)
}

func (h *Handle) familyNeighbours(dev string, family int) ([]Neighbour, error) {
	i, err := h.indexOf(dev)
	if err != nil {
		return nil, err
	}
	entries, err := h.nl.NeighList(i, family)
	if err != nil {
		return nil, fmt.Errorf("list neighbours of %s: %w", dev, err)
	}
	var out []Neighbour
	for _, e := range entries {
		if e.IP == nil {
			continue
		}
		out = append(out, Neighbour{Addr: addrOf(e.IP), MAC: e.HardwareAddr, Permanent: e.State&netlink.NUD_PERMANENT != 0})
	}
	return out, nil
}

func addrOf(b net.IP) netip.Addr {
	a, _ := netip.AddrFromSlice(b)
	return a.Unmap()
}

func prefixOf(n *net.IPNet) netip.Prefix {
	bits, _ := n.Mask.Size()
	return netip.PrefixFrom(addrOf(n.IP), bits)
}

// Drops returns the drop counters of all devices of the namespace and of their queueing disciplines, including zeros.
// The caller sets Host. Only root disciplines, clsact and ingress are read: the counter of a root includes its
// classes and children.
func (h *Handle) Drops() ([]sample.Drop, error) {
	links, names, err := h.links()
	if err != nil {
		return nil, err
	}
	var drops []sample.Drop
	for _, l := range links {
		a := l.Attrs()
		if s := a.Statistics; s != nil {
			drops = append(drops,
				sample.Drop{Device: a.Name, Kind: sample.DropTX, Packets: s.TxDropped},
				sample.Drop{Device: a.Name, Kind: sample.DropRX, Packets: s.RxDropped})
		}
	}
	// All devices' in one call.
	qdiscs, err := h.nl.QdiscList(nil)
	if err != nil {
		return nil, fmt.Errorf("list queueing disciplines: %w", err)
	}
	for _, q := range qdiscs {
		a := q.Attrs()
		top := a.Parent == netlink.HANDLE_ROOT || a.Parent == netlink.HANDLE_INGRESS
		if a.Statistics == nil || a.Statistics.Queue == nil || !top || names[a.LinkIndex] == "" {
			continue
		}
		drops = append(drops, sample.Drop{
			Device: names[a.LinkIndex], Kind: sample.DropQdisc, What: q.Type(), Packets: uint64(a.Statistics.Queue.Drops),
		})
	}
	return drops, nil
}
