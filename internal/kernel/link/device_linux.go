package link

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// Veth is a pair of devices.
type Veth struct {
	// Name is the end in the handle's own namespace, Peer the other end.
	Name, Peer string
	// MAC and PeerMAC are chosen by the kernel when nil.
	MAC, PeerMAC net.HardwareAddr
	// PeerIn is where the other end goes; nil is the same namespace.
	PeerIn *Handle
	// MTU is of both ends, in bytes.
	MTU int
	// NoARP makes both ends take every address for their neighbour's, without asking.
	NoARP bool
}

// AddVeth makes a pair; both ends are up.
func (h *Handle) AddVeth(v Veth) error {
	far := v.PeerIn
	dev := netlink.NewVeth(attrs(v.Name, v.MTU, v.MAC))
	dev.PeerName, dev.PeerHardwareAddr = v.Peer, v.PeerMAC
	if far == nil {
		far = h
	} else {
		dev.PeerNamespace = netlink.NsFd(far.ns.FD())
	}
	if err := h.add(dev); err != nil {
		return err
	}
	if v.NoARP {
		if err := errors.Join(h.noARP(v.Name), far.noARP(v.Peer)); err != nil {
			return err
		}
	}
	return far.Up(v.Peer)
}

func (h *Handle) noARP(dev string) error {
	l, err := h.stub(dev)
	if err != nil {
		return err
	}
	if err := h.nl.LinkSetARPOff(l); err != nil {
		return fmt.Errorf("switch ARP of %s off: %w", dev, err)
	}
	return nil
}

// Bridge is a software switch.
type Bridge struct {
	Name string
	MAC  net.HardwareAddr
	MTU  int
	// Ageing is how long it remembers a MAC address, in hundredths of a second; 0 is the kernel's 300 s.
	Ageing uint32
	// MulticastSnooping is on by the kernel's default; false turns it off.
	MulticastSnooping bool
}

// AddBridge makes a bridge without spanning tree.
func (h *Handle) AddBridge(b Bridge) error {
	dev := &netlink.Bridge{LinkAttrs: attrs(b.Name, b.MTU, b.MAC), MulticastSnooping: &b.MulticastSnooping}
	if b.Ageing != 0 {
		dev.AgeingTime = &b.Ageing
	}
	return h.add(dev)
}

// AddPort puts a device into a bridge. hairpin lets a frame leave by the port that it came in by.
func (h *Handle) AddPort(bridge, port string, hairpin bool) error {
	master, err := h.indexOf(bridge)
	if err != nil {
		return err
	}
	l, err := h.stub(port)
	if err != nil {
		return err
	}
	if err := h.nl.LinkSetMasterByIndex(l, master); err != nil {
		return fmt.Errorf("put %s into bridge %s: %w", port, bridge, err)
	}
	if !hairpin {
		return nil
	}
	if err := h.nl.LinkSetHairpin(l, true); err != nil {
		return fmt.Errorf("set hairpin on port %s: %w", port, err)
	}
	return nil
}

// VXLAN is a tunnel device whose forwarding entries are all given, none learned.
type VXLAN struct {
	Name string
	MAC  net.HardwareAddr
	MTU  int
	// VNI is 24 bits, Port the UDP destination port.
	VNI, Port int
	// Parent is the device under it, Local the outer source address.
	Parent string
	Local  netip.Addr
}

// ExternalVXLAN is a tunnel device that takes VNI and outer addresses from each packet's metadata, which BPF programs
// set.
type ExternalVXLAN struct {
	Name string
	MAC  net.HardwareAddr
	MTU  int
	// Port is the UDP destination port.
	Port int
}

// AddExternalVXLAN makes such a device. A namespace can have one for each port.
func (h *Handle) AddExternalVXLAN(v ExternalVXLAN) error {
	return h.add(&netlink.Vxlan{LinkAttrs: attrs(v.Name, v.MTU, v.MAC), FlowBased: true, Port: v.Port})
}

// IPIP is a tunnel device that finds the outer destination as the next hop of each packet's route.
type IPIP struct {
	// Local is the outer source address.
	Local netip.Addr
	Name  string
	MTU   int
}

// ipipAside is the name that AddIPIP gives to the kernel's own device.
const ipipAside = "ipip-kernel"

// AddIPIP makes such a device. Where the kernel has none, the error is errors.ErrUnsupported. A device of that name which
// the kernel gave to the namespace at its birth is set aside: it is older than every other, and so the node would take
// the tunnel's address for its own, which on a machine, whose NIC is older, it does not.
func (h *Handle) AddIPIP(t IPIP) error {
	if l, err := h.nl.LinkByName(t.Name); err == nil && l.Type() == "ipip" {
		if err := h.nl.LinkSetName(l, ipipAside); err != nil {
			return fmt.Errorf("set the kernel's own %s aside: %w", t.Name, err)
		}
	}
	return h.add(&netlink.Iptun{LinkAttrs: attrs(t.Name, t.MTU, nil), PMtuDisc: 1, Local: ip(t.Local)})
}

// AddVXLAN makes a tunnel device.
func (h *Handle) AddVXLAN(v VXLAN) error {
	parent, err := h.indexOf(v.Parent)
	if err != nil {
		return err
	}
	return h.add(&netlink.Vxlan{
		LinkAttrs: attrs(v.Name, v.MTU, v.MAC), VxlanId: v.VNI, Port: v.Port, VtepDevIndex: parent, SrcAddr: ip(v.Local),
	})
}

// Macvlan is a device with a MAC address of its own on top of another device, in bridge mode.
type Macvlan struct {
	Name string
	MAC  net.HardwareAddr
	MTU  int
	// Parent is in the handle's namespace; the new device goes to In.
	Parent string
	In     *Handle
}

// AddMacvlan makes a macvlan device in another namespace.
func (h *Handle) AddMacvlan(m Macvlan) error {
	parent, err := h.indexOf(m.Parent)
	if err != nil {
		return err
	}
	dev := &netlink.Macvlan{LinkAttrs: attrs(birthName, m.MTU, m.MAC), Mode: netlink.MACVLAN_MODE_BRIDGE}
	dev.ParentIndex = parent
	return h.addBelow(dev, m.Name, m.In)
}

// birthName is that of a device on top of another until it is where it belongs: not every kernel looks there whether a
// name is taken, older ones look where the parent is.
const birthName = "cnibench-new"

// addBelow makes a device whose parent is in the handle's namespace, in another one.
func (h *Handle) addBelow(dev netlink.Link, name string, in *Handle) error {
	a := dev.Attrs()
	a.Flags, a.Namespace = 0, netlink.NsFd(in.ns.FD())
	if err := h.nl.LinkAdd(dev); err != nil {
		return explain(dev.Type(), name, err)
	}
	born, err := in.nl.LinkByName(birthName)
	if err != nil {
		return fmt.Errorf("find the new %s device: %w", dev.Type(), err)
	}
	if err := in.nl.LinkSetName(born, name); err != nil {
		return fmt.Errorf("name the new %s device %s: %w", dev.Type(), name, err)
	}
	return in.Up(name)
}

// IPvlan is a device in l2 mode that shares the MAC address of the device under it, as the plugin of that name makes it.
type IPvlan struct {
	Name string
	MTU  int
	// Parent is in the handle's namespace; the new device goes to In.
	Parent string
	In     *Handle
}

// AddIPvlan makes an ipvlan device in another namespace.
func (h *Handle) AddIPvlan(v IPvlan) error {
	parent, err := h.indexOf(v.Parent)
	if err != nil {
		return err
	}
	dev := &netlink.IPVlan{LinkAttrs: attrs(birthName, v.MTU, nil), Mode: netlink.IPVLAN_MODE_L2}
	dev.ParentIndex = parent
	return h.addBelow(dev, v.Name, v.In)
}

// AddDummy makes a device that sends nowhere, to hold addresses. It is left down, as kube-proxy leaves its own.
func (h *Handle) AddDummy(name string) error {
	dev := &netlink.Dummy{LinkAttrs: attrs(name, 0, nil)}
	dev.Flags = 0
	return h.add(dev)
}

func attrs(name string, mtu int, mac net.HardwareAddr) netlink.LinkAttrs {
	a := netlink.NewLinkAttrs()
	a.Name, a.MTU, a.HardwareAddr, a.Flags = name, mtu, mac, net.FlagUp
	return a
}

// add makes a device in the handle's own namespace.
func (h *Handle) add(dev netlink.Link) error {
	a := dev.Attrs()
	if err := h.nl.LinkAdd(dev); err != nil {
		return explain(dev.Type(), a.Name, err)
	}
	h.index[a.Name] = a.Index
	return nil
}
