package selftest

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/kernel/capture"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/plan"
)

// wireGuardOverhead is what WireGuard adds to a packet besides IP and UDP, in bytes: its own header and the authenticator.
const wireGuardOverhead = 32

// sealed says that what crosses between nodes is encrypted.
func (x expectation) sealed() bool { return x.tunnel != nil && x.tunnel.sealed }

// sealedChecks are wireChecks of a tunnel that encrypts: what crosses shows the nodes, a port and a length.
func sealedChecks(t *tunnel, path plan.Path) []check {
	return []check{
		{"wire", path, "what carries packets between nodes", sealedCarriers(path, t)},
		{"wire.clear", path, "the frames in which a pod's address can be read", inClear(path)},
		{"wire.addresses", path, "the addresses on the wire", wireAddresses(path, t)},
		{"wire.frame", path, "the frame around the largest packet that a pod may send, in bytes", sealedLength(path)},
		{"wire.limit", path, "the largest frame of a bulk transfer, in bytes", largestFrame},
		{"wire.mac", path, "whose MAC address a packet bears on the wire", wireMAC(path)},
		{"conntrack.outer", path, "the entries for packets of the tunnel", outerTracked(path, t)},
	}
}

// sealedFrames are the frames that the switch received of the tunnel between the first two nodes. Nothing in them tells
// one exchange from another.
func (s *scene) sealedFrames(frames []capture.Frame) []capture.Frame {
	port, nodes := uint16(s.want.tunnel.port), s.inst.Nodes[:2]
	of := func(f *capture.Frame, from, to *lab.Node) bool {
		return f.IP.Source == from.Addr && f.IP.Destination == to.Addr
	}
	var list []capture.Frame
	for _, f := range frames {
		if !f.Outgoing && f.UDP != nil && f.UDP.DestinationPort == port && (of(&f, nodes[0], nodes[1]) || of(&f, nodes[1], nodes[0])) {
			list = append(list, f)
		}
	}
	return list
}

// bareFrames are the frames with a pod's address in any header.
func (s *scene) bareFrames(frames []capture.Frame) []capture.Frame {
	pods := s.allPods()
	var list []capture.Frame
	for _, f := range frames {
		for in := &f; in != nil; in = in.Inner {
			if in.IP != nil && slices.ContainsFunc(pods, func(p *lab.Pod) bool { return p.Addr == in.IP.Source || p.Addr == in.IP.Destination }) {
				list = append(list, f)
				break
			}
		}
	}
	return list
}

// outbound are the frames that carry a trial's packets to the server.
func (s *scene) outbound(t *trial) []capture.Frame {
	var list []capture.Frame
	for _, f := range t.wire {
		if t.towards(&f) {
			list = append(list, f)
		}
	}
	for _, f := range t.sealed {
		if f.IP.Source == s.inst.Nodes[t.from].Addr {
			list = append(list, f)
		}
	}
	return list
}

func sealedCarriers(path plan.Path, tunnel *tunnel) func(context.Context, *scene) finding {
	return seen(path,
		func(s *scene, _ *trial) string {
			a, b := s.inst.Nodes[0].Name, s.inst.Nodes[1].Name
			return set([]string{fmt.Sprintf("udp %d from %s", tunnel.port, a), fmt.Sprintf("udp %d from %s", tunnel.port, b)}, "")
		},
		func(s *scene, t *trial) string {
			var found []string
			for _, f := range t.wire {
				found = append(found, carrier(&f))
			}
			for _, f := range t.sealed {
				// On the switch a device is called after the host behind it.
				found = append(found, fmt.Sprintf("udp %d from %s", f.UDP.DestinationPort, f.Device))
			}
			return set(found, "nothing")
		})
}

func inClear(path plan.Path) func(context.Context, *scene) finding {
	return seen(path, always("none"), func(_ *scene, t *trial) string {
		var found []string
		for _, f := range t.bare {
			found = append(found, addresses(&f))
		}
		return set(found, "none")
	})
}

// sealedLength looks at the longest frame towards the server: around the one datagram that fills the pod's MTU.
func sealedLength(path plan.Path) func(context.Context, *scene) finding {
	return seen(path,
		func(s *scene, _ *trial) string {
			return strconv.Itoa(s.podMTU() + wireGuardOverhead + s.ipUDPHeaders() + ethernetHeader)
		},
		func(s *scene, t *trial) string {
			longest, suffix := 0, ""
			for _, f := range s.outbound(t) {
				longest = max(longest, f.Length)
				if f.IP.Fragment {
					suffix = " in fragments"
				}
			}
			return strconv.Itoa(longest) + suffix
		})
}

// tunnelPeers wants each node to know every other by its address, the port, and the range of its pods.
func tunnelPeers(t *tunnel) func(context.Context, *scene) finding {
	return func(_ context.Context, s *scene) finding {
		const want = "each other node at its address and port, for its pods"
		return collect(want, s.inst.Nodes, nodeName, func(n *lab.Node) (string, error) {
			h, err := link.Open(n.NS)
			if err != nil {
				return "", err
			}
			defer h.Close()
			port, peers, err := h.WireGuardPeers(t.device)
			if err != nil {
				return "", err
			}
			known := map[string]bool{}
			for _, p := range peers {
				known[fmt.Sprintf("%s %s", p.Endpoint, p.Allowed)] = true
			}
			var missing []string
			for _, other := range s.inst.Nodes {
				peer := fmt.Sprintf("%s %s", netip.AddrPortFrom(other.Addr, uint16(t.port)), []netip.Prefix{other.PodCIDR})
				if other != n && !known[peer] {
					missing = append(missing, "no "+peer)
				}
				delete(known, peer)
			}
			if port != t.port {
				missing = append(missing, fmt.Sprintf("listens at %d", port))
			}
			for peer := range known {
				missing = append(missing, "also "+peer)
			}
			return set(missing, want), nil
		})
	}
}
