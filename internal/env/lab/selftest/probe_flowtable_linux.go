package selftest

import (
	"context"
	"net/netip"
	"strings"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/kernel/conntrack"
	"github.com/cnibench/cnibench/internal/plan"
)

// opening is the number of packets that open a TCP connection. mostRound is the largest number of packets in a
// round of holdConnection. A round has a byte in each direction, and an acknowledgement of each.
const (
	opening   = 3
	mostRound = 4
)

// flow has the observations of one long connection.
type flow struct {
	// way has the names of the nodes on the path.
	way []string
	// early has the nodes whose flowtable has the connection before it has had more packets than the threshold.
	early []string
	// late has the nodes whose flowtable has the connection after that.
	late []string
	// rules has the rules of the forward hook that count packets of the connection although flowtables should have it.
	rules []string
	err   error
}

// flowtableChecks returns the checks of connections that bypass the nodes' rules by a flowtable. It returns none if
// x.flowtable is 0.
func flowtableChecks(x expectation) (list []check) {
	if x.flowtable == 0 {
		return nil
	}
	for _, path := range []plan.Path{dataplane.PodPodSame, dataplane.PodPodCross, dataplane.PodSvcRemote} {
		var seen *flow
		probe := func(got func(flow) (want, got []string)) inspection {
			return func(ctx context.Context, s *scene) finding {
				if seen == nil {
					seen = watchFlow(ctx, s, path)
				}
				want, have := got(*seen)
				if seen.err != nil {
					return failedFinding(joinDistinct(want, "none"), seen.err)
				}
				return finding{want: joinDistinct(want, "none"), got: joinDistinct(have, "none")}
			}
		}
		if x.flowtable >= opening {
			list = append(list, check{"flowtable.early", path, "the nodes that have a connection of few packets in their flowtable",
				probe(func(f flow) (want, got []string) { return nil, f.early })})
		}
		list = append(list,
			check{"flowtable.late", path, "the nodes that have a connection of many packets in their flowtable",
				probe(func(f flow) (want, got []string) { return f.way, f.late })},
			check{"flowtable.rules", path, "the rules of the forward hook that count further packets of it",
				probe(func(f flow) (want, got []string) { return nil, f.rules })})
	}
	return list
}

// watchFlow holds a connection on the path until it has had many more packets than the threshold. It returns what
// the nodes did with the connection.
func watchFlow(ctx context.Context, s *scene, path plan.Path) *flow {
	e, err := s.endsOf(path)
	if err != nil {
		return &flow{err: err}
	}
	f := &flow{way: []string{s.inst.Nodes[e.entry].Name, s.inst.Nodes[e.to].Name}}
	f.err = s.newExchange(e, 0, 10*longest).holdConnection(ctx, func(client netip.AddrPort, round func() error) (err error) {
		if err = repeat((s.want.flowtable-opening)/mostRound, round); err != nil {
			return err
		}
		if f.early, err = offloadingNodes(s, client); err != nil {
			return err
		}
		// The kernel drops a flow whose route it has to look up again, and a later packet puts it back.
		for range 3 {
			if err = repeat(s.want.flowtable+1, round); err != nil {
				return err
			}
			if f.late, err = offloadingNodes(s, client); err != nil {
				return err
			}
			rules, err := rulesCountedDuring(ctx, s, s.inst.Nodes, "", func() error { return repeat(20, round) })
			if err != nil {
				return err
			}
			f.rules = nil
			for _, c := range rules {
				if strings.Contains(c.place, "FORWARD") {
					f.rules = append(f.rules, c.place)
				}
			}
			if joinDistinct(f.late, "") == joinDistinct(f.way, "") && f.rules == nil {
				break
			}
		}
		return nil
	})
	return f
}

// offloadingNodes returns the nodes that have the client's connection in their flowtable.
func offloadingNodes(s *scene, client netip.AddrPort) (nodes []string, err error) {
	tracks, err := s.conntrackEntries()
	for i, entries := range tracks {
		q := conntrack.Tuple{Protocol: conntrack.TCP, Source: client.Addr(), SourcePort: client.Port()}
		for _, e := range conntrack.Select(entries, q) {
			if e.Offloaded {
				nodes = append(nodes, s.inst.Nodes[i].Name)
			}
		}
	}
	return nodes, err
}

// repeat calls do n times, or until it fails.
func repeat(n int, do func() error) error {
	for range n {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}
