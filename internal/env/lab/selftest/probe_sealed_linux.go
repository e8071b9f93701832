package selftest

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/kernel/capture"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// wireGuardOverhead is the length of WireGuard's header and authenticator, in bytes.
const wireGuardOverhead = 32

// isSealed reports whether packets between nodes are encrypted.
func (x expectation) isSealed() bool { return x.tunnel != nil && x.tunnel.sealed }

// sealedChecks returns the checks of packets between nodes for a tunnel that encrypts. On the wire, only nodes, port and
// length are visible.
func sealedChecks(t *tunnel, path plan.Path) []check {
	return []check{
		{"wire", path, "the carrier of packets between nodes", sealedCarriersProbe(path, t)},
		{"wire.clear", path, "the frames with a readable pod address", clearFramesProbe(path)},
		{"wire.addresses", path, "the addresses on the wire", wireAddressesProbe(path, t)},
		{"wire.frame", path, "the length of the frame with the largest packet of a pod, in bytes", sealedLengthProbe(path)},
		{"wire.limit", path, "the largest frame of a bulk transfer, in bytes", probeLargestFrame},
		{"wire.mac", path, "the source MAC address on the wire", wireMACProbe(path)},
		{"wire", dataplane.PodHostCross, "what crosses the wire", wireCarriersProbe(dataplane.PodHostCross, "plain")},
		{"conntrack.outer", path, "the entries for packets of the tunnel", outerTrackingProbe(path, t)},
	}
}

// sealedFrames returns the received frames of the tunnel between the first two nodes. They may belong to any exchange,
// because encryption hides the ports.
func (s *scene) sealedFrames(frames []capture.Frame) []capture.Frame {
	nodes := s.inst.Nodes[:2]
	of := func(f *capture.Frame, from, to *lab.Node) bool {
		return f.IP.Source == s.want.tunnel.outerAddr(from) && f.IP.Destination == s.want.tunnel.outerAddr(to)
	}
	return each.Where(frames, func(f capture.Frame) bool {
		return !f.Outgoing && f.IP != nil && outerProtocol(&f) == s.want.tunnel.sealedCarrier() && (of(&f, nodes[0], nodes[1]) || of(&f, nodes[1], nodes[0]))
	})
}

// outerAddr returns the outer address of a node in a tunnel that encrypts. With IPsec this is the gateway of the
// node's pods, otherwise the node's own address.
func (t *tunnel) outerAddr(n *lab.Node) netip.Addr {
	if t.esp {
		return firstAddr(n.PodCIDR)
	}
	return n.Addr
}

// espProtocol is the IP protocol number of ESP, which IPsec uses.
const espProtocol = 50

// outerProtocol names the outermost protocol of a frame, as "udp 51820".
func outerProtocol(f *capture.Frame) string {
	if f.UDP != nil {
		return fmt.Sprintf("udp %d", f.UDP.DestinationPort)
	}
	return fmt.Sprintf("ip protocol %d", f.IP.Protocol)
}

// sealedCarrier names the protocol that carries the tunnel's packets, as "udp 51820".
func (t *tunnel) sealedCarrier() string {
	if t.esp {
		return fmt.Sprintf("ip protocol %d", espProtocol)
	}
	return fmt.Sprintf("udp %d", t.port)
}

// readableFrames returns the frames with a pod's address in any readable header.
func (s *scene) readableFrames(frames []capture.Frame) []capture.Frame {
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

// outboundFrames returns the frames that carry a trial's packets to the server.
func (s *scene) outboundFrames(t *trial) []capture.Frame {
	var list []capture.Frame
	for _, f := range t.wire {
		if t.goesToServer(&f) {
			list = append(list, f)
		}
	}
	for _, f := range t.sealed {
		if f.IP.Source == s.want.tunnel.outerAddr(s.inst.Nodes[t.from]) {
			list = append(list, f)
		}
	}
	return list
}

func sealedCarriersProbe(path plan.Path, tunnel *tunnel) inspection {
	return trialProbe(path,
		func(s *scene, _ *trial) string {
			by := tunnel.sealedCarrier() + " from "
			return joinDistinct([]string{by + s.inst.Nodes[0].Name, by + s.inst.Nodes[1].Name}, "")
		},
		func(s *scene, t *trial) string {
			found := each.Of(t.wire, frameCarrier)
			for _, f := range t.sealed {
				// A device of the switch has the name of its host.
				found = append(found, outerProtocol(&f)+" from "+f.Device)
			}
			return joinDistinct(found, "nothing")
		})
}

func clearFramesProbe(path plan.Path) inspection {
	return trialProbe(path, constantText("none"), func(_ *scene, t *trial) string {
		return joinDistinct(each.Of(t.bare, frameAddresses), "none")
	})
}

// sealedLengthProbe returns a probe of the length of the longest frame to the server. That frame has the datagram that fills
// the path's MTU.
func sealedLengthProbe(path plan.Path) inspection {
	return trialProbe(path,
		func(s *scene, _ *trial) string {
			length := s.pathMTU() + s.want.tunnel.inside
			if s.want.tunnel.esp {
				return strconv.Itoa(espLength(length) + ethernetHeader)
			}
			if s.want.tunnel.inside > 0 && len(s.inst.StandIn) == 0 {
				// A packet with a route is padded by the kernel up to the MTU of that route, which is the wire's.
				length = (length + 15) &^ 15
			}
			return strconv.Itoa(length + wireGuardOverhead + s.ipUDPHeaderLength() + ethernetHeader)
		},
		func(s *scene, t *trial) string {
			longest, suffix := 0, ""
			for _, f := range s.outboundFrames(t) {
				longest = max(longest, f.Length)
				if f.IP.Fragment {
					suffix = " in fragments"
				}
			}
			return strconv.Itoa(longest) + suffix
		})
}

// espLength returns the length of an IPv4 packet of ESP with AES-GCM in tunnel mode, in bytes. inner is the length
// of the packet in it. IP takes 20 bytes, ESP 8, the IV 8 and the authenticator 16. The inner packet and 2 more
// bytes are padded to a multiple of 4.
func espLength(inner int) int { return 20 + 8 + 8 + (inner+2+3)&^3 + 16 }

// probeIPsecStates checks that each node has exactly the expected IPsec states and policies. These are states to and
// from each other node, and the policies for them.
func probeIPsecStates(_ context.Context, s *scene) finding {
	const want = "a state each way for each other node, and policies"
	return comparePlaces(want, s.inst.Nodes, nodeName, func(n *lab.Node) (string, error) {
		found, err := link.At(n.NS, (*link.Handle).XFRM)
		if err != nil {
			return "", err
		}
		expected := []string{"policy dir out 0.0.0.0/0 mark 0xe00/0xf00", "policy dir fwd 0.0.0.0/0 mark any", "policy dir in 0.0.0.0/0 mark any"}
		here := firstAddr(n.PodCIDR)
		for i, other := range s.inst.Nodes {
			if other == n {
				continue
			}
			there, number := firstAddr(other.PodCIDR), i+1
			out := fmt.Sprintf("mark %#x/0xffffff00", number<<16|0x3e00)
			expected = append(expected,
				fmt.Sprintf("state %s > %s spi 3 %s rfc4106(gcm(aes))", here, there, out),
				fmt.Sprintf("state %s > %s spi 3 mark %#x/0xffff0f00 rfc4106(gcm(aes))", there, here, number<<16|0xd00),
				fmt.Sprintf("policy dir out %s %s", other.PodCIDR, out))
		}
		slices.Sort(found)
		slices.Sort(expected)
		if slices.Equal(found, expected) {
			return want, nil
		}
		return strings.Join(found, "; ") + " instead of " + strings.Join(expected, "; "), nil
	})
}

// tunnelPeersProbe returns a probe of the WireGuard peers of each node. Every other node must be a peer with its
// address, port and allowed ranges. There must be no other peer.
func tunnelPeersProbe(t *tunnel) inspection {
	return func(_ context.Context, s *scene) finding {
		const want = "each other node at its address and port, for its pods and tunnels"
		return comparePlaces(want, s.inst.Nodes, nodeName, func(n *lab.Node) (string, error) {
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
				slices.SortFunc(p.Allowed, netip.Prefix.Compare)
				known[fmt.Sprintf("%s %s", p.Endpoint, p.Allowed)] = true
			}
			var missing []string
			for i, other := range s.inst.Nodes {
				peer := fmt.Sprintf("%s %s", netip.AddrPortFrom(other.Addr, uint16(t.port)), slices.SortedFunc(slices.Values(s.inst.Spec.Nodes[i].Allowed), netip.Prefix.Compare))
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
			return joinDistinct(missing, want), nil
		})
	}
}

// routingRulesProbe returns a probe that compares the routing rules of each node with want.
func routingRulesProbe(want string) inspection {
	return func(_ context.Context, s *scene) finding {
		return comparePlaces(want, s.inst.Nodes, nodeName, func(n *lab.Node) (string, error) {
			list, err := link.At(n.NS, (*link.Handle).Policy)
			return joinDistinct(each.Of(list, func(e link.PolicyEntry) string { return fmt.Sprintf("%d %s", e.Priority, e.Words) }), "none"), err
		})
	}
}
