package lab

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/kernel/impair"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/plan"
)

// placement assigns CPUs to hosts.
type placement struct {
	// mode is PlacementOne or PlacementSplit.
	mode plan.Placement
	// nodes has the CPUs of each node, for its load threads and, in "split", its receive work.
	nodes [][]int
	// external has the CPUs of the external client.
	external []int
	// aside has the CPUs for the other threads of agents, in "one"; empty with a single CPU.
	aside []int
}

// splitFrom is the number of CPUs from which "auto" means "split". With fewer CPUs a node has only the CPU of its load,
// and a trial would measure how CPUs wake each other.
const splitFrom = 4

// place divides the CPUs that this program may use, in ascending order and at least one, among nodes.
func place(mode plan.Placement, cpus []int, nodes int) placement {
	if mode == plan.PlacementAuto {
		mode = plan.PlacementOne
		if len(cpus) >= splitFrom {
			mode = plan.PlacementSplit
		}
	}
	p := placement{mode: mode}
	last := len(cpus) - 1
	if mode == plan.PlacementOne {
		// The highest CPU: interrupts and other programs usually run on the lowest.
		p.external, p.aside = cpus[last:], cpus[:last]
		for range nodes {
			p.nodes = append(p.nodes, cpus[last:])
		}
		return p
	}
	for i := range nodes {
		share := cpus[i*len(cpus)/nodes : (i+1)*len(cpus)/nodes]
		if len(share) == 0 {
			share = cpus[i%len(cpus) : i%len(cpus)+1]
		}
		p.nodes = append(p.nodes, share)
	}
	// The external client and the last node are never active at the same time.
	p.external = p.nodes[nodes-1]
	return p
}

// String returns the mode with the CPUs, as a recorded fact.
func (p placement) String() string {
	if p.mode == plan.PlacementOne {
		return fmt.Sprintf("one (CPU %s)", list(p.nodes[0]))
	}
	shares := make([]string, len(p.nodes))
	for i, n := range p.nodes {
		shares[i] = fmt.Sprintf("node-%d: CPU %s", i+1, list(n))
	}
	return "split (" + strings.Join(shares, "; ") + ")"
}

func list(cpus []int) string {
	words := make([]string, len(cpus))
	for i, c := range cpus {
		words[i] = strconv.Itoa(c)
	}
	return strings.Join(words, ",")
}

// asideOf returns the CPUs on which the processes of a host start: in "one" the CPUs without load, in "split" the
// host's own CPUs.
func (p placement) asideOf(cpus []int) []int {
	if p.mode == plan.PlacementOne {
		return p.aside
	}
	return cpus
}

// wire adds the link with delay and loss between a host's end in the switch and its port, and returns the name of the
// port. Without delay and loss the end is the port. Pods that are connected to the switch have no such link. The link is
// perfect until Impair.
func (b *builder) wire(end string) (port string, err error) {
	if b.spec.Lab.Delay == 0 && b.spec.Lab.Loss == 0 {
		return end, nil
	}
	inner, port := end+"-w", end+"-p"
	at := b.at[b.inst.Switch]
	if err := at.Add(link.Veth{Name: inner, Peer: port, MTU: b.spec.Lab.MTU}); err != nil {
		return "", err
	}
	if err := errors.Join(at.Up(end), at.Up(inner)); err != nil {
		return "", err
	}
	l, err := impair.Open(b.inst.Switch.NS, impair.Options{
		A: end, B: inner, Delay: b.spec.Lab.Delay, Loss: b.spec.Lab.Loss, CPUs: b.lab.place.aside,
	})
	if err != nil {
		return "", fmt.Errorf("impaired link: %w", err)
	}
	b.inst.lines = append(b.inst.lines, l)
	return port, nil
}

// Impair switches on the delay and loss of the instance's wires. Self-tests run before, because their probes do not
// repeat lost packets and do not wait for late ones.
func (i *Instance) Impair() {
	for _, l := range i.lines {
		l.Impair()
	}
}

// unwire removes the impaired links.
func (i *Instance) unwire() {
	for _, l := range i.lines {
		_ = l.Close() // closes its sockets despite an error
	}
	i.lines = nil
}
