package link

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Device is what the kernel says about one device.
type Device struct {
	Name string
	// Kind is "veth", "bridge", "vxlan", "macvlan", "ipvlan" or "device".
	Kind string
	MTU  int
	MAC  net.HardwareAddr
	Up   bool
	// Master is the bridge that it is a port of, "" for none.
	Master string
	// Addresses are IPv4, with prefix length.
	Addresses []netip.Prefix
	// VNI, Port and Learning are of a VXLAN device.
	VNI, Port int
	Learning  bool
	// External says that a VXLAN device takes VNI and addresses from each packet's metadata.
	External bool
	// GSOMaxSegs is how many segments a super-packet may have.
	GSOMaxSegs int
}

// Devices returns all devices of the namespace in the order of their index.
func (h *Handle) Devices() ([]Device, error) {
	links, err := h.nl.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list devices: %w", err)
	}
	names := map[int]string{0: ""}
	for _, l := range links {
		names[l.Attrs().Index] = l.Attrs().Name
	}
	devices := make([]Device, 0, len(links))
	for _, l := range links {
		a := l.Attrs()
		d := Device{Name: a.Name, Kind: l.Type(), MTU: a.MTU, MAC: a.HardwareAddr, Up: a.Flags&net.FlagUp != 0,
			Master: names[a.MasterIndex], GSOMaxSegs: int(a.GSOMaxSegs)}
		if v, ok := l.(*netlink.Vxlan); ok {
			d.VNI, d.Port, d.Learning, d.External = v.VxlanId, v.Port, v.Learning, v.FlowBased
		}
		addrs, err := h.nl.AddrList(l, unix.AF_INET)
		if err != nil {
			return nil, fmt.Errorf("list addresses of %s: %w", a.Name, err)
		}
		for _, addr := range addrs {
			d.Addresses = append(d.Addresses, prefix(addr.IPNet))
		}
		devices = append(devices, d)
	}
	return devices, nil
}

// Routes returns the entries of the main table that somebody added: those that the kernel made for an address are left
// out.
func (h *Handle) Routes() ([]Route, error) {
	links, err := h.nl.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list devices: %w", err)
	}
	names := map[int]string{}
	for _, l := range links {
		names[l.Attrs().Index] = l.Attrs().Name
	}
	entries, err := h.nl.RouteList(nil, unix.AF_INET)
	if err != nil {
		return nil, fmt.Errorf("list routes: %w", err)
	}
	var routes []Route
	for _, e := range entries {
		if e.Protocol == unix.RTPROT_KERNEL {
			continue
		}
		r := Route{To: netip.PrefixFrom(netip.IPv4Unspecified(), 0), Dev: names[e.LinkIndex], MTU: e.MTU, Protocol: int(e.Protocol)}
		if e.Dst != nil {
			r.To = prefix(e.Dst)
		}
		r.Via, r.Source = addr(e.Gw), addr(e.Src)
		r.OnLink = e.Flags&int(netlink.FLAG_ONLINK) != 0
		r.LinkScope = e.Scope == netlink.SCOPE_LINK
		if r.Blackhole = e.Type == unix.RTN_BLACKHOLE; r.Blackhole {
			r.Dev = ""
		}
		routes = append(routes, r)
	}
	return routes, nil
}

// Neighbour is an entry of a device's ARP table (Addr is the neighbour's address) or of its forwarding table (Addr is
// the outer address).
type Neighbour struct {
	Addr      netip.Addr
	MAC       net.HardwareAddr
	Permanent bool
}

// Neighbours returns the ARP table of a device.
func (h *Handle) Neighbours(dev string) ([]Neighbour, error) { return h.neighbours(dev, unix.AF_INET) }

// Forwarding returns the entries of a VXLAN device that name an outer address.
func (h *Handle) Forwarding(dev string) ([]Neighbour, error) {
	return h.neighbours(dev, unix.AF_BRIDGE)
}

func (h *Handle) neighbours(dev string, family int) ([]Neighbour, error) {
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
		out = append(out, Neighbour{Addr: addr(e.IP), MAC: e.HardwareAddr, Permanent: e.State&netlink.NUD_PERMANENT != 0})
	}
	return out, nil
}

func addr(b net.IP) netip.Addr {
	a, _ := netip.AddrFromSlice(b)
	return a.Unmap()
}

func prefix(n *net.IPNet) netip.Prefix {
	bits, _ := n.Mask.Size()
	return netip.PrefixFrom(addr(n.IP), bits)
}
