package selftest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/dataplane/policy"
	"github.com/cnibench/cnibench/internal/dataplane/service"
	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/kernel/ipt"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/nft"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// policyCountersProbe returns a probe that connects pods of two nodes. It checks the counters in the chain of the pod on
// one node. New packets must reach the rule that names profile. If the connection is tracked, a rule must accept
// established packets.
func policyCountersProbe(node int, chain, profile string, tracked bool) inspection {
	return func(ctx context.Context, s *scene) finding {
		const both, onlyNew = "new and established packets", "new packets only"
		want := both
		if !tracked {
			want = onlyNew
		}
		pod := s.podAt(node, 0)
		counted, err := s.countedRules(ctx, s.inst.Nodes[node:node+1], "filter", dataplane.PodPodCross)
		if err != nil {
			return failedFinding(want, err)
		}
		fresh, established := false, false
		for _, c := range counted {
			if c.place == "filter "+chain+pod.HostDevice {
				fresh = fresh || strings.Contains(c.rule, profile)
				// Only the rule for established packets accepts in such a chain.
				established = established || strings.Contains(c.rule, "-j ACCEPT") || c.rule == "accept"
			}
		}
		switch {
		case fresh && established:
			return finding{want: want, got: both}
		case fresh:
			return finding{want: want, got: onlyNew}
		case established:
			return finding{want: want, got: "established packets only"}
		}
		return finding{want: want, got: "nothing"}
	}
}

// firewallCountersProbe returns a probe that connects pods of two nodes and checks kube-router's chain of the pod on one
// node. New packets must be marked there, and its first rule must accept established packets.
func firewallCountersProbe(node int) inspection {
	return func(ctx context.Context, s *scene) finding {
		const want = "new and established packets"
		rules, err := s.countedRules(ctx, s.inst.Nodes[node:node+1], "filter", dataplane.PodPodCross)
		if err != nil {
			return failedFinding(want, err)
		}
		var seen []string
		for _, c := range rules {
			switch {
			case c.place == "filter "+policy.RouterPodChain(s.podAt(node, 0).Name) && strings.Contains(c.rule, "0x20000/0x20000"):
				seen = append(seen, "new")
			case c.place == "filter "+policy.RouterCommon && strings.Contains(c.rule, "ESTABLISHED"):
				seen = append(seen, "established")
			}
		}
		if len(seen) == 2 {
			return finding{want: want, got: want}
		}
		return finding{want: want, got: joinDistinct(seen, "no") + " packets"}
	}
}

// probeTunnelRule checks that each node has one routing rule, for packets of its pods.
func probeTunnelRule(_ context.Context, s *scene) finding {
	const want = "from its pods lookup 77"
	return comparePlaces(want, s.inst.Nodes, nodeName, func(n *lab.Node) (string, error) {
		list, err := link.At(n.NS, (*link.Handle).Policy)
		return joinDistinct(each.Of(list, func(r link.PolicyEntry) string { return strings.Replace(r.Words, n.PodCIDR.String(), "its pods", 1) }), "none"), err
	})
}

func countingRulesProbe(path plan.Path) inspection {
	return func(ctx context.Context, s *scene) finding {
		const want = "nothing"
		rules, err := s.countedRules(ctx, s.inst.Nodes, "", path)
		// IPv6 hosts also send packets by themselves. Rules that count the pods' packets do so every time.
		for again := 0; again < 3 && err == nil && len(rules) > 0; again++ {
			var more []counted
			more, err = s.countedRules(ctx, s.inst.Nodes, "", path)
			rules = slices.DeleteFunc(rules, func(c counted) bool { return !slices.Contains(more, c) })
		}
		if err != nil {
			return failedFinding(want, err)
		}
		return finding{want: want, got: joinDistinct(each.Of(rules, func(c counted) string { return c.place }), want)}
	}
}

// counted is a rule that counted packets.
type counted struct{ place, rule string }

// countedRules makes a TCP exchange on the path. It returns the rules whose counters changed meanwhile. table
// limits them to one table, unless it is "". Other packets of the nodes count, too.
func (s *scene) countedRules(ctx context.Context, nodes []*lab.Node, table string, path plan.Path) ([]counted, error) {
	e, err := s.endsOf(path)
	if err != nil {
		return nil, err
	}
	return rulesCountedDuring(ctx, s, nodes, table, func() error { return s.exchangeTCP(ctx, e, question).err })
}

// rulesCountedDuring runs do, and returns the nodes' rules whose counters changed meanwhile. It fails if do fails.
func rulesCountedDuring(ctx context.Context, s *scene, nodes []*lab.Node, table string, do func() error) ([]counted, error) {
	before := make([]map[string][]ipt.Counter, len(nodes))
	var err error
	for i, n := range nodes {
		if before[i], err = s.ruleCounters(ctx, n, table); err != nil {
			return nil, err
		}
	}
	if err := do(); err != nil {
		return nil, err
	}
	var list []counted
	for i, n := range nodes {
		after, err := s.ruleCounters(ctx, n, table)
		if err != nil {
			return nil, err
		}
		for place, rules := range after {
			for k, r := range rules {
				if old := before[i][place]; k >= len(old) || r.Packets != old[k].Packets {
					list = append(list, counted{place, r.Rule})
				}
			}
		}
	}
	return list, nil
}

// ruleCounters returns the counters of a node's rules, by table and chain. table limits them to one table, unless
// it is "".
func (s *scene) ruleCounters(ctx context.Context, n *lab.Node, table string) (map[string][]ipt.Counter, error) {
	tool, err := s.inst.Iptables()
	if err != nil {
		return nil, err
	}
	text, err := tool.Save(ctx, n.NS, table)
	if err != nil {
		return nil, err
	}
	tables, err := ipt.ParseSave(text)
	if err != nil {
		return nil, err
	}
	counters := map[string][]ipt.Counter{}
	for _, t := range tables {
		for _, c := range t.Chains {
			if s.want.nft && strings.HasPrefix(c.Name, "cali-") {
				continue // the chains in nftables are checked
			}
			rules := append([]ipt.Counter(nil), c.Rules...)
			if c.Policy != "-" {
				rules = append(rules, ipt.Counter{Rule: "policy", Packets: c.Packets})
			}
			counters[t.Name+" "+c.Name] = rules
		}
	}
	if s.want.nft {
		err = s.addNFTCounters(n, table, counters)
	}
	return counters, err
}

// addNFTCounters adds the counters of Calico's table, under the names of the chains in iptables. The text of a rule is its
// verdict.
func (s *scene) addNFTCounters(n *lab.Node, table string, counters map[string][]ipt.Counter) error {
	list, err := nft.Counters(n.NS, nft.FamilyOf(s.want.ipv6), policy.TableCalico)
	for _, k := range list {
		layer, chain, _ := strings.Cut(k.Chain, "-")
		if table != "" && layer != table {
			continue
		}
		place := layer + " " + chain
		counters[place] = append(counters[place], ipt.Counter{Rule: k.Verdict, Packets: k.Packets})
	}
	return err
}

// probeProxyNFT checks that kube-proxy's nftables map has the Services of the lab on each node. iptables must have no
// chains of Services.
func probeProxyNFT(ctx context.Context, s *scene) finding {
	ports := 0
	for _, svc := range s.inst.Spec.Services {
		if len(svc.Backends) == 0 {
			continue // the map of refused Services has it
		}
		entries := 1
		if svc.Balanced.IsValid() {
			entries++
		}
		if svc.UDP {
			entries *= 2
		}
		ports += entries
	}
	return comparePlaces(fmt.Sprintf("%d in the map, 0 chains in iptables", ports), s.inst.Nodes, nodeName, func(n *lab.Node) (string, error) {
		entries, err := nft.Elements(n.NS, nft.FamilyOf(s.want.ipv6), service.TableNFT, service.MapServiceIPs)
		if err != nil {
			return "", err
		}
		chains, err := s.countServiceChains(ctx, n)
		return fmt.Sprintf("%d in the map, %d chains in iptables", entries, chains), err
	})
}

// countServiceChains returns the number of iptables chains of Services on a node.
func (s *scene) countServiceChains(ctx context.Context, n *lab.Node) (int, error) {
	counters, err := s.ruleCounters(ctx, n, "nat")
	maps.DeleteFunc(counters, func(place string, _ []ipt.Counter) bool { return !strings.HasPrefix(place, "nat KUBE-SVC-") })
	return len(counters), err
}

// deniedPaths returns the paths on which the self-test connects to the port that policies deny. The "exchange" check of
// such a path proves that other ports work.
func (x expectation) deniedPaths() []plan.Path {
	if x.policies == 0 || !x.policed && x.Programs == nil && !x.Firewall && !x.Agent {
		return nil
	}
	return slices.DeleteFunc([]plan.Path{dataplane.PodPodSame, dataplane.PodPodCross}, func(p plan.Path) bool {
		_, served := x.Served[p]
		return !served
	})
}

// walkedPoliciesProbe returns a probe that makes a new connection between pods of two nodes. It counts the policies to
// whose chains the pod's chain jumps. All policies that select the pod must be counted, because only the last one
// accepts.
func walkedPoliciesProbe(node int, chain string) inspection {
	return func(ctx context.Context, s *scene) finding {
		want := strconv.Itoa(s.want.policies)
		rules, err := s.countedRules(ctx, s.inst.Nodes[node:node+1], "filter", dataplane.PodPodCross)
		if err != nil {
			return failedFinding(want, err)
		}
		asked := 0
		for _, c := range rules {
			if strings.HasSuffix(c.place, s.podAt(node, 0).HostDevice) && strings.Contains(c.rule, chain) {
				asked++
			}
		}
		return finding{want: want, got: strconv.Itoa(asked)}
	}
}
