package link

import (
	"net"

	"github.com/vishvananda/netlink"
)

// Netkit is a pair of devices that BPF programs see packets on as they are sent, without a queue between the ends. It works
// at layer 3: neither end has a MAC address, and nobody is asked for one.
type Netkit struct {
	// Name is the primary end, in the handle's own namespace. It is the one that programs of both ends are attached by.
	Name string
	// Peer is the other end, and PeerIn where it goes.
	Peer   string
	PeerIn *Handle
	// MTU is of both ends, in bytes.
	MTU int
}

// AddNetkit makes a pair, both ends up, as Cilium does: what the primary end is sent goes on, what the peer is sent is
// dropped until it has a program. Marks and priorities set on the node survive the way into the pod.
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
