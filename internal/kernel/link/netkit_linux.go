package link

import (
	"net"

	"github.com/vishvananda/netlink"
)

// Netkit is a pair of devices without a queue between the ends; BPF programs run where packets are sent. It works at
// layer 3: neither end has a MAC address, so there is no neighbour discovery.
type Netkit struct {
	// Name is the primary end, in the handle's own namespace. It is the one that programs of both ends are attached by.
	Name string
	// Peer is the other end, and PeerIn where it goes.
	Peer   string
	PeerIn *Handle
	// MTU is of both ends, in bytes.
	MTU int
}

// AddNetkit makes a pair as Cilium does, both ends up. The primary end forwards what it is sent; the peer drops packets
// until it has a program. Marks and priorities set on the node survive the way into the pod.
func (h *Handle) AddNetkit(n Netkit) error {
	dev := &netlink.Netkit{
		LinkAttrs: attrs(n.Name, n.MTU, nil), Mode: netlink.NETKIT_MODE_L3,
		Policy: netlink.NETKIT_POLICY_FORWARD, PeerPolicy: netlink.NETKIT_POLICY_BLACKHOLE,
		Scrub: netlink.NETKIT_SCRUB_NONE, PeerScrub: netlink.NETKIT_SCRUB_DEFAULT,
	}
	peer := attrs(n.Peer, n.MTU, nil)
	peer.Flags &^= net.FlagUp // until it is where it belongs
	peer.Namespace = netlink.NsFd(n.PeerIn.ns.FD())
	dev.SetPeerAttrs(&peer)
	if err := h.add(dev); err != nil {
		return err
	}
	return n.PeerIn.Up(n.Peer)
}
