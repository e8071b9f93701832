package selftest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/env/lab/expect"
	"github.com/cnibench/cnibench/internal/kernel/capture"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/plan"
)

// programChecks are those of one path of a profile whose packets are moved by BPF programs.
func programChecks(x expectation, path plan.Path) []check {
	var list []check
	switch path.To {
	case plan.Service, plan.Self:
		list = append(list,
			check{"dnat", path, "the translations in the nodes' conntrack", untranslated(path)},
			check{"vip", path, "where the Service's own address is seen", vipBeside(path, x.Programs.VIP)})
	case plan.NodePort, plan.LoadBalancer:
		list = append(list,
			check{"dnat", path, "the translations in the nodes' conntrack", untranslated(path)},
			check{"vip", path, "where the Service's own address is seen", vip(path)})
	}
	if path == expect.PodPodSame || path == expect.PodPodCross {
		step := x.Programs.Doorstep
		if path == expect.PodPodSame && x.Programs.DoorstepSame != "" {
			step = x.Programs.DoorstepSame
		}
		list = append(list,
			check{"doorstep", path, "what passes the node's end of the receiving pod's device", doorstep(path, step)},
			check{"forward", path, "what the chains of FORWARD count", forwards(path, x.Programs.Forwards && path == expect.PodPodCross)})
	}
	if path == expect.ExtPortRemote || path == expect.ExtBalanced && !x.local {
		list = append(list,
			check{"way", path, "who sends the packets of client and backend on the wire, in what", way(path, x.Programs.Entered)},
			check{"option", path, "the packets that bring the frontend along in an IP option", option(path, x.Programs.Option)})
	}
	return list
}

// between is what crosses between nodes. Where the VNI is the sender's identity there is one for each direction.
func between(path plan.Path, x expectation) func(context.Context, *scene) finding {
	if x.Identity == nil {
		return carriers(path, x.carrier())
	}
	return seen(path, func(_ *scene, t *trial) string {
		var all []string
		for _, h := range []*lab.Host{t.client, t.server} {
			all = append(all, fmt.Sprintf("vxlan udp %d vni %d", x.tunnel.port, x.Identity(h.Addr)))
		}
		return set(all, "")
	}, carried)
}

// untranslated wants no node's conntrack to know the address that the client called.
func untranslated(path plan.Path) func(context.Context, *scene) finding {
	return tracked(path, always("none"), translations)
}

// vipBeside looks for a Service's own address wherever there is a capture: on the wire, at the backend, at the client's
// pod and on the devices of both nodes.
func vipBeside(path plan.Path, want string) func(context.Context, *scene) finding {
	return seen(path, always(want), func(_ *scene, t *trial) string {
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
		// A pod that calls itself is both.
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
		return set(where, "nowhere")
	})
}

// doorstep counts what the receiving node sends out of its end of the pod's device. A packet that is redirected to the
// peer is in the pod without having been there.
func doorstep(path plan.Path, want string) func(context.Context, *scene) finding {
	return seen(path, always(want), func(_ *scene, t *trial) string {
		passed, arrived, later := 0, 0, 0
		for _, f := range t.nodes[t.to] {
			if f.Device != t.pod.HostDevice || !f.Outgoing || !t.towards(&f) {
				continue
			}
			passed++
			if f.TCP != nil && (!f.TCP.SYN || f.TCP.ACK) {
				later++
			}
		}
		for _, f := range t.backend {
			if t.towards(&f) {
				arrived++
			}
		}
		switch {
		case arrived == 0:
			return "nothing arrived"
		case passed == 0:
			return expect.NoPackets
		case passed == arrived:
			return expect.AllPackets
		case later == 0:
			return expect.FirstPackets
		}
		return fmt.Sprintf("%d of %d packets", passed, arrived)
	})
}

func forwards(path plan.Path, yes bool) func(context.Context, *scene) finding {
	return func(ctx context.Context, s *scene) finding {
		text := func(yes bool) string {
			if yes {
				return "the packets"
			}
			return "nothing"
		}
		rules, err := s.counting(ctx, s.inst.Nodes, "filter", path)
		if err != nil {
			return failed(text(yes), err)
		}
		found := slices.ContainsFunc(rules, func(c counted) bool { return strings.Contains(c.place, "FORWARD") })
		return finding{want: text(yes), got: text(found)}
	}
}

// way tells for each direction who puts the packets on the wire, and in what.
func way(path plan.Path, want string) func(context.Context, *scene) finding {
	return seen(path, func(s *scene, t *trial) string {
		if s.want.Identity == nil {
			return want
		}
		return strings.ReplaceAll(want, "BACKEND", strconv.Itoa(s.want.Identity(t.server.Addr)))
	}, func(_ *scene, t *trial) string {
		var there, back []string
		for _, f := range t.wire {
			// On the switch a device is called after the host behind it.
			step := f.Device + " " + carrier(&f)
			if t.towards(&f) {
				there = append(there, step)
			} else {
				back = append(back, step)
			}
		}
		return "there " + set(there, "nothing") + "; back " + set(back, "nothing")
	})
}

// dsrOption is the type of the IP option in which Cilium hands the frontend on, dsrOption6 that of the destination option
// in IPv6.
const dsrOption, dsrOption6 = 0x9a, 0x1b

func option(path plan.Path, want string) func(context.Context, *scene) finding {
	return seen(path, always(want), func(_ *scene, t *trial) string {
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
			if in.IP.Options[0] != kind || !t.towards(&f) {
				text += " with another option or the other way"
			}
			found = append(found, text)
		}
		return set(found, "none")
	})
}

// drops wants the programs to have dropped what the self-test sent to nobody, and nothing else.
func drops(_ context.Context, s *scene) finding {
	want := map[string]bool{"denied by policy": s.want.policies > 0, "service has no backend": s.want.unbacked}
	dropped := map[string]bool{}
	var others []string
	for _, n := range s.inst.Nodes {
		lines, err := n.Drops()
		if err != nil {
			return failed("what was sent to nobody", fmt.Errorf("%s: %w", n.Name, err))
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
	var reasons []string
	for reason, wanted := range want {
		if wanted {
			reasons = append(reasons, reason)
		}
	}
	return finding{want: set(reasons, "nothing"), got: set(append(slices.Collect(maps.Keys(dropped)), others...), "nothing")}
}

func routeMTU(_ context.Context, s *scene) finding {
	return collect(strconv.Itoa(s.podMTU()), s.allPods(), podName, func(p *lab.Pod) (string, error) {
		list, err := routes(p.NS)
		for _, r := range list {
			if r.To.Bits() == 0 {
				return strconv.Itoa(r.MTU), err
			}
		}
		return "no default route", err
	})
}

// noForwarding wants a device whose programs name the outer address to have none of its own.
func noForwarding(t *tunnel) func(context.Context, *scene) finding {
	return noEntries(t, (*link.Handle).Forwarding)
}

func noNeighbours(t *tunnel) func(context.Context, *scene) finding {
	return noEntries(t, func(h *link.Handle, dev string) ([]link.Neighbour, error) {
		list, err := h.Neighbours(dev)
		return slices.DeleteFunc(list, func(n link.Neighbour) bool { return noise(n.Addr) }), err
	})
}

func noEntries(t *tunnel, list func(*link.Handle, string) ([]link.Neighbour, error)) func(context.Context, *scene) finding {
	return func(_ context.Context, s *scene) finding {
		return collect("none", s.inst.Nodes, nodeName, func(n *lab.Node) (string, error) {
			h, err := link.Open(n.NS)
			if err != nil {
				return "", err
			}
			defer h.Close()
			entries, err := list(h, t.device)
			var found []string
			for _, e := range entries {
				found = append(found, e.Addr.String())
			}
			return set(found, "none"), err
		})
	}
}

// ipipKind is the kind of tunl0: the kernel's, or that of its stand-in, which the instance must own up to.
func (s *scene) ipipKind() string {
	for _, what := range s.inst.StandIn {
		if strings.HasPrefix(what, "IPIP by BPF") {
			return "veth"
		}
	}
	return "ipip"
}
