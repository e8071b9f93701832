package selftest

import (
	"context"
	"net/netip"
	"strings"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/kernel/inspect"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// probeAgentPrograms checks that each pod's device has both programs of AWS's network policy agent, each on its side.
func probeAgentPrograms(_ context.Context, s *scene) finding {
	const want = "handle_egress at tc ingress and handle_ingress at tc egress"
	return comparePlaces(want, s.inst.Nodes, nodeName, func(n *lab.Node) (string, error) {
		all, err := inspect.Programs(n.NS)
		found := map[string][]string{}
		for _, p := range all {
			found[p.Device] = append(found[p.Device], p.Name+" at "+p.Hook)
		}
		return joinDistinct(each.Of(n.Pods, func(p *lab.Pod) string { return strings.Join(found[p.HostDevice], " and ") }), ""), err
	})
}

// heldPort is the port of the connection that probeAgentTable holds open.
const heldPort = 7008

// probeAgentTable holds a connection between pods of two nodes open. The programs of both pods must have it in their table, and
// note the time of each packet.
func probeAgentTable(ctx context.Context, s *scene) finding {
	const want = "both"
	e, err := s.endsOf(dataplane.PodPodCross)
	if err != nil {
		return failedFinding(want, err)
	}
	e.listen, e.dial = heldPort, netip.AddrPortFrom(e.dial.Addr(), heldPort)
	pods := []*lab.Pod{s.podAt(0, 0), e.pod}
	known := map[*lab.Pod]bool{}
	err = s.newExchange(e, question, longest).holdConnection(ctx, func(client netip.AddrPort, round func() error) error {
		before := map[*lab.Pod]int64{}
		for range 2 {
			if err := round(); err != nil {
				return err
			}
			for _, p := range pods {
				seen, err := p.LastSeen(client, e.dial)
				if err != nil {
					return err
				}
				known[p] = before[p] > 0 && seen > before[p]
				before[p] = seen
			}
		}
		return nil
	})
	if err != nil {
		return failedFinding(want, err)
	}
	switch {
	case known[pods[0]] && known[pods[1]]:
		return finding{want: want, got: want}
	case known[pods[0]]:
		return finding{want: want, got: "the sending pod only"}
	case known[pods[1]]:
		return finding{want: want, got: "the receiving pod only"}
	}
	return finding{want: want, got: "neither"}
}
