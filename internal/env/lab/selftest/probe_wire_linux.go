package selftest

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/kernel/capture"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// bulk is the size of the transfer that finds the largest frame, in bytes. It is enough for a sender to build
// super-packets.
const bulk = 256 << 10

// taggedCarrier is what carries a frame with the tag of a VLAN.
const taggedCarrier = "802.1q"

// ethernetHeader is the length of an Ethernet header in bytes.
const ethernetHeader = 14

func wireCarriersProbe(path plan.Path, want string) inspection {
	return trialProbe(path, constantText(want), trialCarriers)
}

// trialCarriers returns the encapsulations of a trial's packets on the wire, each once.
func trialCarriers(_ *scene, t *trial) string {
	return joinDistinct(each.Of(t.wire, frameCarrier), "nothing")
}

// frameCarrier returns the encapsulation of a frame.
func frameCarrier(f capture.Frame) string {
	switch {
	case f.VXLAN != nil:
		return fmt.Sprintf("vxlan udp %d vni %d", f.UDP.DestinationPort, f.VXLAN.VNI)
	case f.Geneve != nil:
		return fmt.Sprintf("geneve udp %d vni %d", f.UDP.DestinationPort, f.Geneve.VNI)
	case f.Inner != nil:
		return fmt.Sprintf("ip protocol %d", f.IP.Protocol)
	case f.Ethernet != nil && f.Ethernet.VLAN != 0:
		return taggedCarrier
	}
	return "plain"
}

func wireAddressesProbe(path plan.Path, tunnel *tunnel) inspection {
	return trialProbe(path,
		func(s *scene, t *trial) string {
			inner := fmt.Sprintf("%s > %s", t.client.Addr, t.server.Addr)
			if tunnel == nil {
				return inner
			}
			outer := fmt.Sprintf("%s > %s", s.inst.Nodes[t.from].Addr, s.inst.Nodes[t.to].Addr)
			if tunnel.sealed {
				return fmt.Sprintf("%s > %s", tunnel.outerAddr(s.inst.Nodes[t.from]), tunnel.outerAddr(s.inst.Nodes[t.to]))
			}
			return outer + ", " + inner
		},
		func(s *scene, t *trial) string {
			return joinDistinct(each.Of(s.outboundFrames(t), frameAddresses), "nothing")
		})
}

func frameAddresses(f capture.Frame) string {
	text := fmt.Sprintf("%s > %s", f.IP.Source, f.IP.Destination)
	if f.Inner != nil && f.Inner.IP != nil {
		text += ", " + frameAddresses(*f.Inner)
	}
	return text
}

// frameLengthProbe returns a probe of the frame with the datagram that fills the path's MTU. That frame must fill the
// underlay's MTU, unfragmented.
func frameLengthProbe(path plan.Path) inspection {
	return trialProbe(path,
		func(s *scene, _ *trial) string {
			return strconv.Itoa(s.pathMTU() + s.inst.Profile.OverheadOn(s.inst.Spec.Lab.Family) + ethernetHeader)
		},
		func(_ *scene, t *trial) string {
			var found []string
			for _, f := range t.wire {
				if in := f.Innermost(); in.UDP == nil || !t.goesToServer(&f) {
					continue
				}
				text := strconv.Itoa(f.Length)
				if f.IP.Fragment || f.Innermost().IP.Fragment {
					text += " in fragments"
				}
				found = append(found, text)
			}
			return joinDistinct(found, "nothing")
		})
}

// probeLargestFrame checks the frames of a bulk transfer on the wire. With the NIC model "wire" or encryption, no frame may
// exceed the underlay's MTU. With "ideal", larger frames must cross, unless the pods' MTU exceeds the path's.
func probeLargestFrame(ctx context.Context, s *scene) finding {
	limit := s.maxFrameLength()
	if s.want.long {
		limit = 64 << 10
	}
	// Packets are segmented before encryption.
	segmented := s.mustSegment() || s.want.isSealed()
	want := fmt.Sprintf("at most %d", limit)
	if !segmented {
		want = fmt.Sprintf("above %d", limit)
	}
	t, err := s.transferBulk(ctx)
	if err != nil {
		return failedFinding(want, err)
	}
	frames, err := s.wire.Drain()
	if err != nil {
		return failedFinding(want, err)
	}
	own := t.receivedFrames(frames)
	if s.want.isSealed() {
		own = s.sealedFrames(frames)
	}
	largest := 0
	for _, f := range own {
		largest = max(largest, f.Length)
	}
	cut := !segmented && s.podMTU() > s.pathMTU()
	if cut {
		want = "any, for pods' packets are larger than the path carries"
	}
	return finding{want: want, got: strconv.Itoa(largest), within: largest > 0 && (cut || (largest <= limit) == segmented)}
}

// transferBulk makes a bulk transfer between nodes, and discards all frames captured before.
func (s *scene) transferBulk(ctx context.Context) (*trial, error) {
	t := &trial{}
	if t.ends, t.err = s.endsOf(s.want.crossPath()); t.err != nil {
		return t, t.err
	}
	if err := s.discardFrames(); err != nil {
		return t, err
	}
	size := bulk
	if s.want.long {
		size *= 16 // TCP sends the longest only with a window of several
	}
	t.tcp = s.exchangeTCP(ctx, t.ends, size)
	return t, t.tcp.err
}

// probeMergedFrames makes a bulk transfer, and checks that the receiving pod gets merged frames.
func probeMergedFrames(ctx context.Context, s *scene) finding {
	limit := s.maxFrameLength()
	want := fmt.Sprintf("above %d", limit)
	// Before a trial, a macvlan or ipvlan sends single segments, so they arrive one by one.
	if d, err := link.DeviceIn(s.podAt(0, 0).NS, nic); err == nil && d.Kind != "veth" && d.GSOMaxSegs == 1 {
		return finding{want: "sent one by one", got: "sent one by one"}
	}
	t, err := s.transferBulk(ctx)
	if err != nil {
		return failedFinding(want, err)
	}
	frames, err := s.pods[s.podAt(1, 0)].Drain()
	if err != nil {
		return failedFinding(want, err)
	}
	largest := 0
	for _, f := range t.receivedFrames(frames) {
		largest = max(largest, f.Length)
	}
	return finding{want: want, got: strconv.Itoa(largest), within: largest > limit}
}

// wireMACProbe returns a probe of the source MAC address of frames to the server. It must be that of the client's node,
// or of the client if pods send with their own address.
func wireMACProbe(path plan.Path) inspection {
	return func(_ context.Context, s *scene) finding {
		t := s.trials[path]
		if t == nil || t.err != nil {
			return failedFinding("the sender's", errNoTraffic)
		}
		node := &s.inst.Nodes[t.from].Host
		owner := t.client
		if s.want.Attach == nil || !s.want.Attach.OwnMAC {
			owner = node
		}
		dev := nic
		if leaves, ok := s.want.Leave[path]; ok && owner == node {
			dev = leaves
		}
		d, err := link.DeviceIn(owner.NS, dev)
		if err != nil {
			return failedFinding("that of "+owner.Name, err)
		}
		if owner != node {
			below, err := link.DeviceIn(node.NS, nic)
			if err != nil {
				return failedFinding("that of "+owner.Name, err)
			}
			if below.MAC.String() == d.MAC.String() {
				return finding{want: owner.Name + "'s own", got: macText(d.MAC, below.MAC, node.Name)}
			}
		}
		var found []string
		for _, f := range s.outboundFrames(t) {
			if f.Ethernet != nil {
				found = append(found, macText(f.Ethernet.Source, d.MAC, owner.Name))
			}
		}
		return finding{want: macText(d.MAC, d.MAC, owner.Name), got: joinDistinct(found, "nothing")}
	}
}

// leavingDevicesProbe returns a probe of the devices by which the first node on the path sends packets to the wire. This
// is the client's node, or the node that an external client entered.
func leavingDevicesProbe(path plan.Path, want string) inspection {
	return func(_ context.Context, s *scene) finding {
		t := s.trials[path]
		if t == nil || t.server == nil {
			return failedFinding(want, errNoTraffic)
		}
		names := map[string]string{}
		err := eachDevice(s.inst.Nodes[t.entry].NS, func(_ *link.Handle, d link.Device) error {
			names[d.MAC.String()] = d.Name
			return nil
		})
		if err != nil {
			return failedFinding(want, err)
		}
		var found []string
		for _, f := range t.wire {
			if f.Ethernet == nil {
				continue
			}
			if name, ok := names[f.Ethernet.Source.String()]; ok {
				found = append(found, name)
			}
		}
		return finding{want: want, got: joinDistinct(found, "nothing")}
	}
}

// vlansProbe returns a probe of the VLANs of frames at the nodes' devices on the underlay. Frames from a pod, and those to
// it, must have the VLAN of its branch interface.
func vlansProbe(path plan.Path) inspection {
	return trialProbe(path,
		func(s *scene, t *trial) string {
			var all []string
			for _, p := range s.allPods() {
				if b, ok := dataplane.BranchOf(s.inst.InterfacesOf(p.Node), p.Addr); ok && (&p.Host == t.client || &p.Host == t.server) {
					all = append(all, vlanText("from", p, b.VLAN), vlanText("to", p, b.VLAN))
				}
			}
			return joinDistinct(all, "none")
		},
		func(s *scene, t *trial) string {
			var all []string
			for k, frames := range t.nodes {
				nics := s.inst.NICs(&s.inst.Nodes[k].Host)
				for _, f := range frames {
					way, addr := "to", f.IP.Destination
					if f.Outgoing {
						way, addr = "from", f.IP.Source
					}
					p, ok := each.First(s.allPods(), func(p *lab.Pod) bool { return p.Addr == addr })
					if ok && slices.Contains(nics, f.Device) {
						all = append(all, vlanText(way, p, f.Ethernet.VLAN))
					}
				}
			}
			return joinDistinct(all, "none")
		})
}

func vlanText(way string, p *lab.Pod, vlan int) string {
	return fmt.Sprintf("%s %s in VLAN %d", way, p.Name, vlan)
}

func macText(mac, known net.HardwareAddr, owner string) string {
	if mac.String() == known.String() {
		return fmt.Sprintf("%s (%s)", mac, owner)
	}
	return mac.String()
}
