package link

import (
	"net"

	"github.com/vishvananda/netlink"
)

// Netkit is a pair of devices without a queue between the ends; BPF programs run where packets are sent. It works at
// layer 3: neither end has a MAC address, so there is no neighbour discovery. As Cilium makes it, the primary end forwards
// what it is sent, and the peer drops packets until it has a program. Marks and priorities set on the node survive the way
// into the pod.
type Netkit struct {
	// Name is the primary end, in the handle's own namespace. It is the one that programs of both ends are attached by.
	Name string
	// Peer is the other end, and PeerIn where it goes; nil is the same namespace.
	Peer   string
	PeerIn *Handle
	// MTU is of both ends, in bytes.
	MTU int
}

func (n Netkit) add(h *Handle) error {
	if n.PeerIn == nil {
		n.PeerIn = h
	}
	dev := &netlink.Netkit{
		LinkAttrs: attrs(n.Name, n.MTU, nil), Mode: netlink.NETKIT_MODE_L3,
		Policy: netlink.NETKIT_POLICY_FORWARD, PeerPolicy: netlink.NETKIT_POLICY_BLACKHOLE,
		Scrub: netlink.NETKIT_SCRUB_NONE, PeerScrub: netlink.NETKIT_SCRUB_DEFAULT,
	}
	peer := attrs(n.Peer, n.MTU, nil)
	peer.Flags &^= net.FlagUp // until it is where it belongs
	peer.Namespace = netlink.NsFd(n.PeerIn.ns.FD())
	dev.SetPeerAttrs(&peer)
	if err := h.make(dev); err != nil {
		return err
	}
	return n.PeerIn.Up(n.Peer)
}
