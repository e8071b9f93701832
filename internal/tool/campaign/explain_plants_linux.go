package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"

	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/kernel/bpf/spin"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/kernel/nft"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

const (
	// oneByte is the workload, wide the same with messages that fit into one packet of a large MTU.
	oneByte, wide = "rr", "rr(request=64000,response=64000)"
	// sampleRate is more than a run takes, because here the cost of samples does not matter.
	sampleRate = 3989
)

// plant is a cost, and the parts that it belongs to. It needs that many times the trials of others.
type plant struct {
	name, title string
	parts       []string
	times       int
	// at plants it on a node of the subject's twin.
	at planter
	// against is a second workload: then the cost is what it has more than the first, and at prepares all hosts for it.
	// (optional)
	against string
}

var plants = []plant{
	{"rules10", "10 rules in the forward chain", []string{"rules forward"}, 3, manyRules(10), ""},
	{"rules100", "100 rules in the forward chain", []string{"rules forward"}, 1, manyRules(100), ""},
	{"notrack", "no connection tracking", []string{"conntrack", "nat", "rules prerouting", "rules output", "rules forward"}, 3, untracked, ""},
	{"hop", "a second bridge, between the node and its network device", []string{"bridge", "br_netfilter", "rules bridge", "receive", "xmit"}, 2, bridged, ""},
	{"spin", "a BPF program that counts down from 10,000", []string{"bpf " + spin.Name}, 1, spinning, ""},
	{"copies", "messages of 64 KB in place of one byte, in one packet", []string{"syscall", "memory", "socket"}, 1, widened, wide},
}

func (p plant) String() string { return p.name }

// manyRules are n rules that no packet matches.
func manyRules(n int) planter {
	return func(ctx context.Context, node *netns.NS) (io.Closer, error) { return plantRules(ctx, node, n) }
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

// widened makes the devices of a host pass 64 KB in one packet.
func widened(ctx context.Context, host *netns.NS) (io.Closer, error) {
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

// measure runs the plan with a cost that many times.
func (p plant) measure(ctx context.Context, program string, repetitions int, file string) error {
	r := plan.Default()
	r.Name, r.Profiles, r.Baseline, r.Twin, r.Explain = "explain", []plan.Variant{subject}, subject, p.against == "", true
	r.Repetitions = repetitions * p.times
	cost := planted{program: program, rate: sampleRate, of: subject.Twin(), spaces: nodes, at: p.at}
	workloads := []string{oneByte}
	if p.against != "" {
		workloads = append(workloads, p.against)
		cost.of, cost.spaces = subject, func(inst *lab.Instance) []*netns.NS {
			return each.Of(inst.Hosts(), func(h *lab.Host) *netns.NS { return h.NS })
		}
	}
	return cost.measure(ctx, r, workloads, file)
}
