package lab

import (
	"fmt"
	"strconv"
	"strings"
)

// placement says which CPUs do whose work.
type placement struct {
	// mode is "one" or "split".
	mode string
	// nodes has the CPUs of each node, for its load threads and, in "split", its receive work.
	nodes [][]int
	// external is the CPUs of the client outside.
	external []int
	// aside is where an agent's other threads begin, in "one"; empty when there is no other CPU.
	aside []int
}

// splitFrom is the number of CPUs from which "auto" means "split": with fewer, a node has no CPU besides the one that
// its load occupies, and what is measured is how CPUs wake each other.
const splitFrom = 4

// place divides the CPUs that this program may use, in ascending order and at least one, among nodes.
func place(mode string, cpus []int, nodes int) placement {
	if mode == "auto" {
		mode = "one"
		if len(cpus) >= splitFrom {
			mode = "split"
		}
	}
	p := placement{mode: mode}
	last := len(cpus) - 1
	if mode == "one" {
		// The highest number: interrupts and everybody else's work gather at the lowest.
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
	// The client outside never talks while the last node's does.
	p.external = p.nodes[nodes-1]
	return p
}

// String is the fact: the mode, with the CPUs.
func (p placement) String() string {
	if p.mode == "one" {
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

// asideOf returns where the processes of a host with these CPUs begin: beside the load where that can be, else where the
// load is, so that a node's work is done by the node's CPUs.
func (p placement) asideOf(cpus []int) []int {
	if p.mode == "one" {
		return p.aside
	}
	return cpus
}
