package link

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
)

// Veth is a pair of virtual Ethernet devices: each receives what the other sends.
type Veth struct {
	// Name is the end in the handle's own namespace, Peer the other end.
	Name, Peer string
	// MAC and PeerMAC are chosen by the kernel when nil.
	MAC, PeerMAC net.HardwareAddr
	// PeerIn is the namespace of the other end; nil means the same namespace.
	PeerIn *Handle
	// MTU is of both ends, in bytes.
	MTU int
	// NoARP switches ARP off at both ends: every address is assumed to be the neighbour's.
	NoARP bool
}

// addTo creates the pair and waits until both ends are up and deliver packets.
func (v Veth) addTo(h *Handle) error {
	far := v.PeerIn
	dev := netlink.NewVeth(deviceAttrs(v.Name, v.MTU, v.MAC))
	dev.PeerName, dev.PeerHardwareAddr = v.Peer, v.PeerMAC
	if far == nil {
		far = h
	} else {
		dev.PeerNamespace = netlink.NsFd(far.ns.FD())
	}
	if err := h.makeDevice(dev); err != nil {
		return err
	}
	if v.NoARP {
		err := errors.Join(
			h.changeDevice(v.Name, "switch ARP of "+v.Name+" off", h.nl.LinkSetARPOff),
			far.changeDevice(v.Peer, "switch ARP of "+v.Peer+" off", far.nl.LinkSetARPOff))
		if err != nil {
			return err
		}
	}
	return errors.Join(far.Up(v.Peer), h.awaitReady(v.Name), far.awaitReady(v.Peer))
}

// readyTime is the longest wait of awaitReady for a device.
const readyTime = 10 * time.Second

// awaitReady waits, at most readyTime, until the queue of a device that is up is active. Until then the device
// silently drops packets. The kernel activates the queue in a worker thread; since Linux 6.8, requesting the device's
// state does that work.
func (h *Handle) awaitReady(dev string) error {
	i, err := h.indexOf(dev)
	if err != nil {
		return err
	}
	retry := time.NewTicker(time.Millisecond)
	defer retry.Stop()
	for began := time.Now(); ; <-retry.C {
		l, err := h.nl.LinkByIndex(i)
		switch {
		case err != nil:
			return fmt.Errorf("find device %s: %w", dev, err)
		case l.Attrs().OperState == netlink.OperUp:
			return nil
		case time.Since(began) > readyTime:
			return fmt.Errorf("device %s is %s after %s", dev, l.Attrs().OperState, readyTime)
		}
	}
}

// Bridge is a software switch without spanning tree.
type Bridge struct {
	Name string
	MAC  net.HardwareAddr
	MTU  int
	// Ageing is how long the bridge remembers a MAC address, in hundredths of a second; 0 is the kernel's 300 s.
	Ageing uint32
	// MulticastSnooping is on by default in the kernel; false turns it off.
	MulticastSnooping bool
}

func (b Bridge) addTo(h *Handle) error {
	dev := &netlink.Bridge{LinkAttrs: deviceAttrs(b.Name, b.MTU, b.MAC), MulticastSnooping: &b.MulticastSnooping}
	if b.Ageing != 0 {
		dev.AgeingTime = &b.Ageing
	}
	return h.makeDevice(dev)
}

// Port puts a device into a bridge. Hairpin allows a frame to leave through the port on which it arrived.
type Port struct {
	Bridge, Dev string
	Hairpin     bool
}

func (p Port) addTo(h *Handle) error {
	master, err := h.indexOf(p.Bridge)
	if err != nil {
		return err
	}
	join := func(l netlink.Link) error { return h.nl.LinkSetMasterByIndex(l, master) }
	if err := h.changeDevice(p.Dev, "put "+p.Dev+" into bridge "+p.Bridge, join); err != nil || !p.Hairpin {
		return err
	}
	hairpinOn := func(l netlink.Link) error { return h.nl.LinkSetHairpin(l, true) }
	return h.changeDevice(p.Dev, "set hairpin on port "+p.Dev, hairpinOn)
}

// VXLAN is a tunnel device that learns no forwarding entries; add them as ForwardingEntry.
type VXLAN struct {
	Name string
	MAC  net.HardwareAddr
	MTU  int
	// VNI is the tunnel's number of 24 bits, Port the UDP destination port.
	VNI, Port int
	// Parent is the device that carries the tunnel, Local the outer source address. Without a parent, the device
	// takes VNI and outer addresses from each packet's metadata, which BPF programs set; a namespace can have one
	// such device for each port.
	Parent string
	Local  netip.Addr
}

func (v VXLAN) addTo(h *Handle) error {
	dev := &netlink.Vxlan{LinkAttrs: deviceAttrs(v.Name, v.MTU, v.MAC), Port: v.Port, FlowBased: v.Parent == ""}
	if v.Parent != "" {
		parent, err := h.indexOf(v.Parent)
		if err != nil {
			return err
		}
		dev.VxlanId, dev.VtepDevIndex, dev.SrcAddr = v.VNI, parent, netIP(v.Local)
	}
	return h.makeDevice(dev)
}

// IPIP is a tunnel device that uses the next hop of each packet's route as the outer destination. Adding it fails
// with errors.ErrUnsupported if the kernel has no ipip.
type IPIP struct {
	// Local is the outer source address.
	Local netip.Addr
	Name  string
	MTU   int
}

// ipipAside is the new name of the ipip device that the kernel creates itself.
const ipipAside = "ipip-kernel"

// addTo creates the device. The kernel adds an ipip device of its own to each new namespace. If that device has the
// same name, addTo renames it. addTo does not use it: it is older than the NIC, so the node would send from its
// address.
func (t IPIP) addTo(h *Handle) error {
	if l, err := h.nl.LinkByName(t.Name); err == nil && l.Type() == "ipip" {
		if err := h.nl.LinkSetName(l, ipipAside); err != nil {
			return fmt.Errorf("rename the kernel's own %s: %w", t.Name, err)
		}
	}
	return h.makeDevice(&netlink.Iptun{LinkAttrs: deviceAttrs(t.Name, t.MTU, nil), PMtuDisc: 1, Local: netIP(t.Local)})
}

// Child is a device on top of a parent device, as the CNI plugins macvlan and ipvlan create it. A macvlan device has
// its own MAC address and bridge mode. An ipvlan device has the MAC address of the parent and l2 mode.
type Child struct {
	Name   string
	IPvlan bool
	// MAC is for macvlan; if nil, the kernel chooses it.
	MAC net.HardwareAddr
	MTU int
	// Parent is in the handle's namespace. In is the namespace of the new device; nil means the same one.
	Parent string
	In     *Handle
}

// temporaryName is the name of a child until it is in its namespace. Older kernels require that the final name is free
// in the parent's namespace.
const temporaryName = "cnibench-new"

func (c Child) addTo(h *Handle) error {
	if c.In == nil {
		c.In = h
	}
	parent, err := h.indexOf(c.Parent)
	if err != nil {
		return err
	}
	var dev netlink.Link = &netlink.Macvlan{LinkAttrs: deviceAttrs(temporaryName, c.MTU, c.MAC), Mode: netlink.MACVLAN_MODE_BRIDGE}
	if c.IPvlan {
		dev = &netlink.IPVlan{LinkAttrs: deviceAttrs(temporaryName, c.MTU, nil), Mode: netlink.IPVLAN_MODE_L2}
	}
	a := dev.Attrs()
	a.ParentIndex, a.Flags, a.Namespace = parent, 0, netlink.NsFd(c.In.ns.FD())
	if err := h.nl.LinkAdd(dev); err != nil {
		return creationError(dev.Type(), c.Name, err)
	}
	born, err := c.In.nl.LinkByName(temporaryName)
	if err != nil {
		return fmt.Errorf("find the new %s device: %w", dev.Type(), err)
	}
	if err := c.In.nl.LinkSetName(born, c.Name); err != nil {
		return fmt.Errorf("name the new %s device %s: %w", dev.Type(), c.Name, err)
	}
	return c.In.Up(c.Name)
}

// VLAN is a device for the frames of one VLAN (802.1Q) on its parent, with a MAC address and the MTU of the parent.
type VLAN struct {
	Name, Parent string
	// ID is the number of the VLAN, 1 to 4094.
	ID int
	// MAC is chosen by the kernel when nil: that of the parent.
	MAC net.HardwareAddr
}

func (v VLAN) addTo(h *Handle) error {
	parent, err := h.indexOf(v.Parent)
	if err != nil {
		return err
	}
	dev := &netlink.Vlan{LinkAttrs: deviceAttrs(v.Name, 0, v.MAC), VlanId: v.ID}
	dev.ParentIndex = parent
	return h.makeDevice(dev)
}

// Dummy is a device that discards packets, used to hold addresses. It stays down, like the one of kube-proxy.
type Dummy struct{ Name string }

func (d Dummy) addTo(h *Handle) error {
	dev := &netlink.Dummy{LinkAttrs: deviceAttrs(d.Name, 0, nil)}
	dev.Flags = 0
	return h.makeDevice(dev)
}

// deviceAttrs returns the attributes of a device that is up. mtu 0 and mac nil leave the choice to the kernel.
func deviceAttrs(name string, mtu int, mac net.HardwareAddr) netlink.LinkAttrs {
	a := netlink.NewLinkAttrs()
	a.Name, a.MTU, a.HardwareAddr, a.Flags = name, mtu, mac, net.FlagUp
	return a
}

// makeDevice creates a device in the handle's own namespace, and caches its index.
func (h *Handle) makeDevice(dev netlink.Link) error {
	a := dev.Attrs()
	if err := h.nl.LinkAdd(dev); err != nil {
		return creationError(dev.Type(), a.Name, err)
	}
	h.index[a.Name] = a.Index
	return nil
}

// Netkit is a pair of devices without a queue between the ends; BPF programs run where packets are sent. It works at
// layer 3: neither end has a MAC address, so there is no neighbour discovery. As Cilium configures it, the primary end
// forwards packets, and the peer drops them until it has a program. Marks and priorities set on the node are kept on
// the way into the pod.
type Netkit struct {
	// Name is the primary end, in the handle's own namespace. Programs of both ends are attached through it.
	Name string
	// Peer is the other end, and PeerIn its namespace; nil means the same namespace.
	Peer   string
	PeerIn *Handle
	// MTU is of both ends, in bytes.
	MTU int
}

func (n Netkit) addTo(h *Handle) error {
	if n.PeerIn == nil {
		n.PeerIn = h
	}
	dev := &netlink.Netkit{
		LinkAttrs: deviceAttrs(n.Name, n.MTU, nil), Mode: netlink.NETKIT_MODE_L3,
		Policy: netlink.NETKIT_POLICY_FORWARD, PeerPolicy: netlink.NETKIT_POLICY_BLACKHOLE,
		Scrub: netlink.NETKIT_SCRUB_NONE, PeerScrub: netlink.NETKIT_SCRUB_DEFAULT,
	}
	peer := deviceAttrs(n.Peer, n.MTU, nil)
	peer.Flags &^= net.FlagUp // until it is in its namespace
	peer.Namespace = netlink.NsFd(n.PeerIn.ns.FD())
	dev.SetPeerAttrs(&peer)
	if err := h.makeDevice(dev); err != nil {
		return err
	}
	return n.PeerIn.Up(n.Peer)
}
