package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"time"

	"github.com/cnibench/cnibench/internal/conduct/run"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/env/lab/testbed"
	"github.com/cnibench/cnibench/internal/kernel/bpf/spin"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/kernel/nft"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

const (
	// subject is the profile whose twin gets the cost.
	subject = plan.Variant("bridge")
	// path and workload are where it is measured, payload is the same with messages that fit into one packet of a large MTU.
	path, workload = "pod-to-pod/cross-node", "rr"
	payload        = "rr(request=64000,response=64000)"
	window         = 300 * time.Millisecond
	// rate is that of samples: more than a run takes, because here their cost does not matter.
	rate = 3989
)

// unused is an address that no packet has: a rule about it costs its comparison.
var unused = netip.MustParseAddr("203.0.113.1")

// plant is a cost, and the parts that it belongs to. It needs that many times the trials of others.
type plant struct {
	name, title string
	parts       []string
	times       int
	// at plants it on a node of the subject's twin.
	at func(ctx context.Context, node *netns.NS) (io.Closer, error)
	// against is a second workload: then the cost is what it has more than the first, and at prepares all hosts for it. (optional)
	against string
}

// of is the variant that gets the cost.
func (p plant) of() plan.Variant {
	if p.against != "" {
		return subject
	}
	return subject.Twin()
}

var plants = []plant{
	{"rules10", "10 rules in the forward chain", []string{"rules forward"}, 3, rules(10), ""},
	{"rules100", "100 rules in the forward chain", []string{"rules forward"}, 1, rules(100), ""},
	{"notrack", "no connection tracking", []string{"conntrack", "nat", "rules prerouting", "rules output", "rules forward"}, 3, untracked, ""},
	{"hop", "a second bridge, between the node and its network device", []string{"bridge", "br_netfilter", "rules bridge", "receive", "xmit"}, 2, bridged, ""},
	{"spin", "a BPF program that counts down from 10,000", []string{"bpf " + spin.Name}, 1, spinning, ""},
	{"copies", "messages of 64 KB in place of one byte, in one packet", []string{"syscall", "memory", "socket"}, 1, wide, payload},
}

// rules are n rules that no packet matches.
func rules(n int) func(context.Context, *netns.NS) (io.Closer, error) {
	return func(ctx context.Context, node *netns.NS) (io.Closer, error) {
		table := nft.NewTable(nft.IPv4, "planted")
		chain := table.Base("forward", nft.Hook{Type: "filter", Hook: "forward", Priority: nft.RawPriority})
		for range n {
			chain.Add(nft.Is(nft.SourceAddr, unused), nft.Drop)
		}
		return nil, nft.Replace(ctx, node, table)
	}
}

// untracked takes all packets out of connection tracking.
func untracked(ctx context.Context, node *netns.NS) (io.Closer, error) {
	table := nft.NewTable(nft.IPv4, "planted")
	for _, hook := range []string{"prerouting", "output"} {
		table.Base(hook, nft.Hook{Type: "filter", Hook: hook, Priority: nft.RawPriority}).Add(nft.Untrack)
	}
	return nil, nft.Replace(ctx, node, table)
}

// spinning attaches a program to the node's device.
func spinning(_ context.Context, node *netns.NS) (io.Closer, error) {
	return spin.Attach(node, "eth0", 10_000)
}

// wide makes the devices of a host pass 64 KB in one packet.
func wide(ctx context.Context, host *netns.NS) (io.Closer, error) {
	return nil, host.Do(func() error {
		const command = `for d in $(ip -o link | sed 's/[0-9]*: \([^:@]*\).*/\1/'); do [ $d = lo ] || ip link set $d mtu 65535; done`
		if out, err := exec.CommandContext(ctx, "sh", "-ec", command).CombinedOutput(); err != nil {
			return fmt.Errorf("set the MTU: %w: %s", err, out)
		}
		return nil
	})
}

// hop puts the network device of a node into a bridge, which gets its addresses, routes and neighbours.
const hop = `set -e
addresses=$(ip -4 -o addr show dev eth0 | awk '{print $4}')
routes=$(ip -4 route show dev eth0 | grep -v 'proto kernel' || true)
neighbours=$(ip neigh show dev eth0 nud permanent | awk '{print $1, "lladdr", $3}')
link=$(ip -o link show dev eth0)
mac=$(echo "$link" | sed 's/.*link.ether \([^ ]*\).*/\1/')
mtu=$(echo "$link" | sed 's/.* mtu \([0-9]*\).*/\1/')
ip link add hop0 address $mac mtu $mtu type bridge mcast_snooping 0
ip addr flush dev eth0
ip link set eth0 master hop0
ip link set hop0 up
for a in $addresses; do ip addr add $a dev hop0; done
echo "$neighbours" | while read -r n; do [ -z "$n" ] || ip neigh replace $n nud permanent dev hop0; done
echo "$routes" | while read -r r; do [ -z "$r" ] || ip route replace $r dev hop0; done
`

// bridged adds a bridge between a node and its network device.
func bridged(ctx context.Context, node *netns.NS) (io.Closer, error) {
	return nil, node.Do(func() error {
		if out, err := exec.CommandContext(ctx, "sh", "-c", hop).CombinedOutput(); err != nil {
			return fmt.Errorf("add a bridge: %w: %s", err, out)
		}
		return nil
	})
}

// planted is the lab with the cost on the nodes of the subject's twin.
type planted struct {
	*testbed.Environment
	plant
	// links hold programs on devices that go with their instance.
	links *[]io.Closer
}

// At returns the lab with the cost.
func (p planted) At(plan.Variant) env.Site { return p }

// Renew raises variants anew and plants the cost again.
func (p planted) Renew(ctx context.Context, names []plan.Variant) map[plan.Variant]error {
	stands := p.Environment.Renew(ctx, names)
	if err, there := stands[p.of()]; there && err == nil {
		stands[p.of()] = p.begin(ctx)
	}
	return stands
}

// begin plants the cost.
func (p planted) begin(ctx context.Context) error {
	inst := p.Instance(p.of())
	if inst == nil || inst.Err != nil {
		return fmt.Errorf("%s is not up", p.of())
	}
	spaces := each.Of(inst.Nodes, func(n *lab.Node) *netns.NS { return n.NS })
	if p.against != "" {
		spaces = each.Of(inst.Hosts(), func(h *lab.Host) *netns.NS { return h.NS })
	}
	var errs []error
	for _, ns := range spaces {
		c, err := p.at(ctx, ns)
		if errs = append(errs, err); c != nil {
			*p.links = append(*p.links, c)
		}
	}
	return errors.Join(errs...)
}

// measure runs the plan with a cost that many times.
func measure(ctx context.Context, program string, what plant, repetitions int, file string) (err error) {
	p := plan.Default()
	p.Name, p.Environment, p.Profiles, p.Baseline, p.Twin, p.Explain = "explain", plan.EnvLab, []plan.Variant{subject}, subject, what.against == "", true
	p.Repetitions, p.Duration = repetitions*what.times, window
	if p.Paths, err = plan.ParsePaths(path); err != nil {
		return err
	}
	p.Workloads = nil
	for _, text := range []string{workload, what.against} {
		if text == "" {
			continue
		}
		w, err := plan.ParseWorkload(text)
		if err != nil {
			return err
		}
		p.Workloads = append(p.Workloads, w)
	}
	p = p.Settle()
	if err := p.Validate(); err != nil {
		return err
	}
	e, err := testbed.Open(ctx, p, testbed.Options{
		Agent: []string{program, "agent"}, Version: "explain", Name: fmt.Sprintf("explain-%d", os.Getpid()), Say: func(string, ...any) {}, SampleRate: rate,
	})
	if err != nil {
		return err
	}
	at := planted{e, what, new([]io.Closer)}
	defer func() {
		for _, c := range *at.links {
			_ = c.Close() // fails for those whose device has gone
		}
		err = env.Close(ctx, e, err)
	}()
	if err := at.begin(ctx); err != nil {
		return err
	}
	out, err := result.Create(file)
	if err != nil {
		return err
	}
	end, err := run.Run(ctx, at, p, out, run.Options{})
	if err == nil && end.Reason != result.Complete {
		err = fmt.Errorf("the run ended: %s", end.Reason)
	}
	return errors.Join(err, out.Close())
}
