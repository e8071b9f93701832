package lab

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/plan/condition"
	"github.com/cnibench/cnibench/internal/plan/mesh"
)

// placement assigns CPUs to hosts.
type placement struct {
	// mode is PlacementOne or PlacementSplit.
	mode condition.Placement
	// nodes has the CPUs of each node, for its load threads and, in "split", its receive work.
	nodes [][]int
	// external has the CPUs of the external client.
	external []int
	// aside has the CPUs for the other threads of agents, in "one". It is empty with a single CPU.
	aside []int
}

// divideCPUs divides cpus among nodes. cpus must be in ascending order and not empty. In "one", all hosts get the last CPU. In
// "split", nodes share CPUs only if there are more nodes than CPUs.
func divideCPUs(mode condition.Placement, cpus []int, nodes int) placement {
	p := placement{mode: mode.On(len(cpus))}
	last := len(cpus) - 1
	if p.mode == condition.PlacementOne {
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

// String returns the mode with the CPUs, as it is recorded in the facts.
func (p placement) String() string {
	if p.mode == condition.PlacementOne {
		return fmt.Sprintf("one (CPU %s)", joinCPUs(p.nodes[0]))
	}
	shares := make([]string, len(p.nodes))
	for i, n := range p.nodes {
		shares[i] = mesh.LabNode(i+1) + ": CPU " + joinCPUs(n)
	}
	return "split (" + strings.Join(shares, "; ") + ")"
}

func joinCPUs(cpus []int) string {
	words := make([]string, len(cpus))
	for i, c := range cpus {
		words[i] = strconv.Itoa(c)
	}
	return strings.Join(words, ",")
}

// processCPUs returns the CPUs on which the processes of a host start. In "one" these are the CPUs without load, in
// "split" the host's own CPUs.
func (p placement) processCPUs(cpus []int) []int {
	if p.mode == condition.PlacementOne {
		return p.aside
	}
	return cpus
}
