package selftest

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/kernel/conntrack"
	"github.com/cnibench/cnibench/internal/plan"
)

// errNoTraffic is the error of probes on a path that does not work. The "exchange" check of the path has the reason.
var errNoTraffic = errors.New("no traffic on the path")

// trialProbe returns a probe that compares the texts of want and got for the trial of a path. The probe fails if the trial
// failed.
func trialProbe(path plan.Path, want, got func(*scene, *trial) string) inspection {
	return func(_ context.Context, s *scene) finding {
		t := s.trials[path]
		if t == nil || t.server == nil || t.client == nil {
			return failedFinding("traffic on the path", errNoTraffic)
		}
		if t.err != nil {
			return failedFinding(want(s, t), errNoTraffic)
		}
		return finding{want: want(s, t), got: got(s, t)}
	}
}

// conntrackProbe returns a trialProbe for texts about conntrack. It also fails if the tables could not be read.
func conntrackProbe(path plan.Path, want, got func(*scene, *trial) string) inspection {
	probe := trialProbe(path, want, got)
	return func(ctx context.Context, s *scene) finding {
		if s.trackErr != nil {
			return failedFinding("conntrack entries", s.trackErr)
		}
		return probe(ctx, s)
	}
}

func constantText(text string) func(*scene, *trial) string {
	return func(*scene, *trial) string { return text }
}

func exchangeProbe(path plan.Path) inspection {
	return func(_ context.Context, s *scene) finding {
		const want = "both answered"
		t := s.trials[path]
		if t == nil {
			return failedFinding(want, errNoTraffic)
		}
		if t.err != nil {
			return failedFinding(want, t.err)
		}
		return finding{want: want, got: want}
	}
}

// refusalProbe returns a probe of the exchange that tryRefused made for the check with this kind and path. It requires that
// the client got no answer although a server listened.
func refusalProbe(kind string, path plan.Path) inspection {
	return func(_ context.Context, s *scene) finding {
		const want = "no answer"
		switch o := s.refusals[check{kind: kind, path: path}.id()]; {
		case o.listened == 0:
			return failedFinding(want, fmt.Errorf("not tried: %w", o.err))
		case o.err == nil:
			return finding{want: want, got: "answered"}
		}
		return finding{want: want, got: want}
	}
}

// sourceAddressesProbe returns a probe of the client addresses that the server saw over TCP and UDP. who[0] is
// the expected client over TCP, who[1] over UDP.
func sourceAddressesProbe(path plan.Path, who [2]dataplane.Client) inspection {
	both := func(s *scene, tcp, udp netip.Addr) string {
		if tcp != udp {
			return fmt.Sprintf("tcp %s, udp %s", s.describeAddr(tcp), s.describeAddr(udp))
		}
		return s.describeAddr(tcp)
	}
	return trialProbe(path,
		func(s *scene, t *trial) string {
			return both(s, s.expectedClientAddr(t, who[0]), s.expectedClientAddr(t, who[1]))
		},
		func(s *scene, t *trial) string {
			return both(s, t.tcp.seen.Addr().Unmap(), t.udp.seen.Addr().Unmap())
		})
}

// expectedClientAddr returns the address that a backend must see as the client of a trial, according to the expectation who.
func (s *scene) expectedClientAddr(t *trial, who dataplane.Client) netip.Addr {
	node := s.inst.Nodes[t.entry]
	switch who {
	case dataplane.NodeAddress:
		return node.Addr
	case dataplane.TunnelEnd:
		return node.TunnelAddr
	case dataplane.FirstOfRange:
		return firstAddr(node.PodCIDR)
	case dataplane.OfRange:
		return node.PodCIDR.Masked().Addr()
	default:
		return t.client.Addr
	}
}

// entryTranslationProbe returns a probe of the node that translates the dialled address to the server's. It must be the
// first node on the path, and no other.
func entryTranslationProbe(path plan.Path) inspection {
	return conntrackProbe(path, func(s *scene, t *trial) string {
		real := netip.AddrPortFrom(t.server.Addr, t.listen)
		return fmt.Sprintf("%s: %s is %s", s.inst.Nodes[t.entry].Name, t.dial, real)
	}, dialTranslations)
}

// dialTranslations describes the conntrack entries of all nodes for the address that the client dialled.
func dialTranslations(s *scene, t *trial) string {
	var found []string
	q := conntrack.Tuple{Protocol: t.protocol, SourcePort: t.traced.local.Port(), Destination: t.dial.Addr(), DestinationPort: t.dial.Port()}
	for i, entries := range s.tracks {
		for _, e := range conntrack.Select(entries, q) {
			real := netip.AddrPortFrom(e.Reply.Source, e.Reply.SourcePort)
			found = append(found, fmt.Sprintf("%s: %s is %s", s.inst.Nodes[i].Name, t.dial, real))
		}
	}
	return joinDistinct(found, "none")
}

// hiddenVIPProbe returns a probe that requires that no packet on the wire or to the backend has the dialled address. For
// an external client it does not check the wire. There, packets have the address of the node port or load balancer.
func hiddenVIPProbe(path plan.Path) inspection {
	return trialProbe(path, constantText("nowhere"), func(s *scene, t *trial) string {
		var where []string
		for _, f := range t.wire {
			ip := f.Innermost().IP
			if path.From != plan.External && (ip.Source == t.dial.Addr() || ip.Destination == t.dial.Addr()) {
				where = append(where, "on the wire")
			}
		}
		arrived := 0
		for _, f := range t.backend {
			if !t.goesToServer(&f) {
				continue
			}
			arrived++
			if f.IP.Destination == t.dial.Addr() {
				where = append(where, "at the backend")
			}
		}
		if t.pod != nil && arrived == 0 {
			return "nothing arrived"
		}
		return joinDistinct(where, "nowhere")
	})
}

func ttlProbe(path plan.Path, want int) inspection {
	return trialProbe(path, constantText(strconv.Itoa(want)), func(_ *scene, t *trial) string {
		var ttls []string
		for _, f := range t.backend {
			if t.goesToServer(&f) {
				ttls = append(ttls, strconv.Itoa(int(f.IP.TTL)))
			}
		}
		return joinDistinct(ttls, "nothing arrived")
	})
}

// innerTrackingProbe returns a probe of the nodes that have a conntrack entry for the connection between the pods. With yes,
// both nodes must have it, otherwise none.
func innerTrackingProbe(path plan.Path, yes bool) inspection {
	return conntrackProbe(path,
		func(s *scene, t *trial) string {
			names := []string{s.inst.Nodes[t.from].Name, s.inst.Nodes[t.to].Name}
			if !yes {
				names = nil
			}
			return joinDistinct(names, "none")
		},
		func(s *scene, t *trial) string {
			q := conntrack.Tuple{
				Protocol: t.protocol, Source: t.client.Addr, Destination: t.server.Addr,
				SourcePort: t.traced.local.Port(), DestinationPort: t.traced.listened,
			}
			var names []string
			for i, entries := range s.tracks {
				if len(conntrack.Select(entries, q)) > 0 {
					names = append(names, s.inst.Nodes[i].Name)
				}
			}
			return joinDistinct(names, "none")
		})
}

// connectionMarkProbe returns a probe of the connection's mark on the first node that the client's packets pass.
func connectionMarkProbe(path plan.Path, mark uint32) inspection {
	return conntrackProbe(path, constantText(fmt.Sprintf("%#x", mark)), func(s *scene, t *trial) string {
		return joinDistinct(t.entryTexts(s.tracks[t.entry:t.entry+1], func(e conntrack.Entry) string { return fmt.Sprintf("%#x", e.Mark) }), "not tracked")
	})
}

// connectionLabelsProbe returns a probe of the connection's labels on all nodes.
func connectionLabelsProbe(path plan.Path, label int) inspection {
	return conntrackProbe(path, constantText(fmt.Sprint([]int{label})), func(s *scene, t *trial) string {
		return joinDistinct(t.entryTexts(s.tracks, func(e conntrack.Entry) string { return fmt.Sprint(e.Labels.Numbers()) }), "not tracked")
	})
}

// entryTexts returns the texts of describe for the conntrack entries of the trial's connection to the dialled address. nodes
// has the entries of each node.
func (t *trial) entryTexts(nodes [][]conntrack.Entry, describe func(conntrack.Entry) string) (all []string) {
	q := conntrack.Tuple{Protocol: t.protocol, SourcePort: t.traced.local.Port(), Destination: t.dial.Addr(), DestinationPort: t.dial.Port()}
	for _, tracked := range nodes {
		for _, e := range conntrack.Select(tracked, q) {
			all = append(all, describe(e))
		}
	}
	return all
}

// outerTrackingProbe returns a probe of the conntrack entries for the tunnel's packets. It checks their nodes, their
// directions, and whether they saw a reply. The source ports of VXLAN differ in each direction, so no entry sees a
// reply. WireGuard uses the same two ports in both directions, and the client's node sends first.
func outerTrackingProbe(path plan.Path, tunnel *tunnel) inspection {
	return conntrackProbe(path,
		func(s *scene, _ *trial) string {
			var all []string
			if tunnel.sealed && tunnel.tracked {
				return joinDistinct([]string{s.inst.Nodes[0].Name + " out replied", s.inst.Nodes[1].Name + " in replied"}, "")
			}
			for _, n := range s.inst.Nodes[:2] {
				if tunnel.tracked {
					all = append(all, n.Name+" in unreplied", n.Name+" out unreplied")
				}
			}
			return joinDistinct(all, "none")
		},
		func(s *scene, t *trial) string {
			var all []string
			q := conntrack.Tuple{Protocol: conntrack.UDP, DestinationPort: uint16(tunnel.port)}
			if tunnel.esp {
				q = conntrack.Tuple{Protocol: espProtocol}
			}
			for i, entries := range s.tracks {
				for _, e := range conntrack.Select(entries, q) {
					all = append(all, outerEntryText(s.inst.Nodes[i], e))
				}
			}
			return joinDistinct(all, "none")
		})
}

func outerEntryText(n *lab.Node, e conntrack.Entry) string {
	text := n.Name + " in"
	if e.Original.Source == n.Addr {
		text = n.Name + " out"
	}
	if e.Replied {
		return text + " replied"
	}
	return text + " unreplied"
}

// joinDistinct joins the distinct words in alphabetical order, separated by commas. It returns none if there are no words.
func joinDistinct(words []string, none string) string {
	if len(words) == 0 {
		return none
	}
	words = slices.Clone(words)
	slices.Sort(words)
	return strings.Join(slices.Compact(words), ", ")
}
