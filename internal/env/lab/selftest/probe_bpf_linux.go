package selftest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/kernel/capture"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// programChecks returns the checks of one path of a dataplane with BPF programs.
func programChecks(x expectation, path plan.Path) []check {
	var list []check
	if path.ByService() {
		seen := hiddenVIPProbe(path)
		if path.To == plan.Service || path.To == plan.Self {
			seen = vipPlacesProbe(path, x.Programs.VIP)
		}
		list = append(list,
			check{"dnat", path, "the translations in the nodes' conntrack", noTranslationProbe(path)},
			check{"vip", path, "where the Service's own address is seen", seen})
	}
	if path == dataplane.PodPodSame || path == dataplane.PodPodCross {
		step := x.Programs.Doorstep
		if path == dataplane.PodPodSame && x.Programs.DoorstepSame != "" {
			step = x.Programs.DoorstepSame
		}
		list = append(list,
			check{"doorstep", path, "the packets at the node's end of the receiving pod's device", doorstepProbe(path, step)},
			check{"forward", path, "whether the chains of FORWARD count packets", forwardRulesProbe(path, x.Programs.Forwards && path == dataplane.PodPodCross)})
	}
	if path == dataplane.ExtPortRemote || path == dataplane.ExtBalanced && !x.local {
		list = append(list,
			check{"way", path, "the senders on the wire and the encapsulation, in both directions", wireSendersProbe(path, x.Programs.Entered)},
			check{"option", path, "the packets with the frontend in an IP option", frontendOptionProbe(path, x.Programs.Option)})
	}
	return list
}

// nodeCarriersProbe returns a probe of the encapsulation between nodes. If the VNI is the sender's identity, each direction
// has its own VNI.
func nodeCarriersProbe(path plan.Path, x expectation) inspection {
	if x.Identity == nil {
		return wireCarriersProbe(path, x.expectedCarrier())
	}
	return trialProbe(path, func(_ *scene, t *trial) string {
		return joinDistinct(each.Of([]*lab.Host{t.client, t.server}, func(h *lab.Host) string {
			return fmt.Sprintf("vxlan udp %d vni %d", x.tunnel.port, x.Identity(h.Addr))
		}), "")
	}, trialCarriers)
}

// noTranslationProbe returns a probe that requires that no conntrack entry has the address that the client dialled.
func noTranslationProbe(path plan.Path) inspection {
	return conntrackProbe(path, constantText("none"), dialTranslations)
}

// vipPlacesProbe returns a probe of where packets have the Service's own address. The places are the wire, the backend,
// the client's pod and the devices of nodes. want names the expected protocols and places, or is "nowhere".
func vipPlacesProbe(path plan.Path, want string) inspection {
	return trialProbe(path, constantText(want), func(_ *scene, t *trial) string {
		var where []string
		look := func(place string, frames []capture.Frame) {
			for _, f := range frames {
				in := f.Innermost()
				if in.IP.Source != t.dial.Addr() && in.IP.Destination != t.dial.Addr() {
					continue
				}
				protocol := "tcp"
				if in.UDP != nil {
					protocol = "udp"
				}
				where = append(where, protocol+" "+place)
			}
		}
		look("on the wire", t.wire)
		// A pod that calls itself is client and backend.
		if path.To != plan.Self {
			look("at the backend", t.backend)
		}
		look("beside the client", t.near)
		for i, frames := range t.nodes {
			place := "beside the client"
			if i != t.from {
				place = "on the other node"
			}
			look(place, slices.DeleteFunc(slices.Clone(frames), func(f capture.Frame) bool { return f.Device == nic }))
		}
		return joinDistinct(where, "nowhere")
	})
}

// doorstepProbe returns a probe of the packets at the node's end of the receiving pod's device. It compares them
// with the packets in the pod. A packet that a program redirects into the pod does not appear at the node's end.
func doorstepProbe(path plan.Path, want string) inspection {
	return trialProbe(path, constantText(want), func(_ *scene, t *trial) string {
		passed, arrived, later := 0, 0, 0
		for _, f := range t.nodes[t.to] {
			if f.Device != t.pod.HostDevice || !f.Outgoing || !t.goesToServer(&f) {
				continue
			}
			passed++
			if f.TCP != nil && (!f.TCP.SYN || f.TCP.ACK) {
				later++
			}
		}
		for _, f := range t.backend {
			if t.goesToServer(&f) {
				arrived++
			}
		}
		switch {
		case arrived == 0:
			return "nothing arrived"
		case passed == 0:
			return dataplane.NoPackets
		case passed == arrived:
			return dataplane.AllPackets
		case later == 0:
			return dataplane.FirstPackets
		}
		return fmt.Sprintf("%d of %d packets", passed, arrived)
	})
}

// forwardRulesProbe returns a probe of whether rules in chains of FORWARD count packets of a path. If yes is true,
// some rule must count them, otherwise none may.
func forwardRulesProbe(path plan.Path, yes bool) inspection {
	return func(ctx context.Context, s *scene) finding {
		text := func(yes bool) string {
			if yes {
				return "the packets"
			}
			return "nothing"
		}
		rules, err := s.countedRules(ctx, s.inst.Nodes, "filter", path)
		if err != nil {
			return failedFinding(text(yes), err)
		}
		found := slices.ContainsFunc(rules, func(c counted) bool { return strings.Contains(c.place, "FORWARD") })
		return finding{want: text(yes), got: text(found)}
	}
}

// wireSendersProbe returns a probe of which hosts send on the wire, and with which encapsulation, in each direction.
func wireSendersProbe(path plan.Path, want string) inspection {
	return trialProbe(path, func(s *scene, t *trial) string {
		if s.want.Identity == nil {
			return want
		}
		return strings.ReplaceAll(want, "BACKEND", strconv.Itoa(s.want.Identity(t.server.Addr)))
	}, func(_ *scene, t *trial) string {
		var there, back []string
		for _, f := range t.wire {
			// A device of the switch has the name of its host.
			step := f.Device + " " + frameCarrier(f)
			if t.goesToServer(&f) {
				there = append(there, step)
			} else {
				back = append(back, step)
			}
		}
		return "there " + joinDistinct(there, "nothing") + "; back " + joinDistinct(back, "nothing")
	})
}

// dsrOption is the type of the IPv4 option in which Cilium sends the frontend. dsrOption6 is the type of the IPv6
// destination option.
const dsrOption, dsrOption6 = 0x9a, 0x1b

func frontendOptionProbe(path plan.Path, want string) inspection {
	return trialProbe(path, constantText(want), func(_ *scene, t *trial) string {
		var found []string
		for _, f := range t.wire {
			in := f.Innermost()
			if len(in.IP.Options) == 0 {
				continue
			}
			text := "udp"
			if in.TCP != nil {
				text = "tcp"
				if in.TCP.SYN && !in.TCP.ACK {
					text = "tcp syn"
				}
			}
			kind := byte(dsrOption)
			if in.IP.Source.Is6() {
				kind = dsrOption6
			}
			if in.IP.Options[0] != kind || !t.goesToServer(&f) {
				text += " with another option or in the other direction"
			}
			found = append(found, text)
		}
		return joinDistinct(found, "none")
	})
}

// probeProgramDrops requires that programs dropped packets for each reason that the self-test causes on purpose, and for no
// other.
func probeProgramDrops(_ context.Context, s *scene) finding {
	want := map[string]bool{"denied by policy": s.want.policies > 0, "service has no backend": s.want.unbacked}
	dropped := map[string]bool{}
	var others []string
	for _, n := range s.inst.Nodes {
		lines, err := n.Drops()
		if err != nil {
			return failedFinding("the expected drops", fmt.Errorf("%s: %w", n.Name, err))
		}
		for _, line := range lines {
			known := false
			for reason, wanted := range want {
				if wanted && strings.Contains(line, reason) {
					dropped[reason], known = true, true
				}
			}
			if !known {
				others = append(others, line+" on "+n.Name)
			}
		}
	}
	maps.DeleteFunc(want, func(_ string, wanted bool) bool { return !wanted })
	return finding{want: joinDistinct(slices.Collect(maps.Keys(want)), "nothing"), got: joinDistinct(append(slices.Collect(maps.Keys(dropped)), others...), "nothing")}
}

func probeRouteMTU(_ context.Context, s *scene) finding {
	return comparePlaces(strconv.Itoa(s.podMTU()), s.allPods(), podName, func(p *lab.Pod) (string, error) {
		list, err := routesIn(p.NS)
		for _, r := range list {
			if r.To.Bits() == 0 {
				return strconv.Itoa(r.MTU), err
			}
		}
		return "no default route", err
	})
}

// ipipKind returns the kind of the IPIP tunnel device: the kernel's, or that of a declared stand-in.
func (s *scene) ipipKind() string { return kindOrStandIn(s, "ipip", "IPIP by BPF", "veth") }

// wireGuardKind returns the kind of the WireGuard device: the kernel's, or that of a declared stand-in.
func wireGuardKind(s *scene) string {
	return kindOrStandIn(s, "wireguard", "WireGuard by wireguard-go", "tuntap")
}

// kindOrStandIn returns other if the instance declares a stand-in whose text begins with standIn, and kind if not.
func kindOrStandIn(s *scene, kind, standIn, other string) string {
	if slices.ContainsFunc(s.inst.StandIn, func(what string) bool { return strings.HasPrefix(what, standIn) }) {
		return other
	}
	return kind
}
