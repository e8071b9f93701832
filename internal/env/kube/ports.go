package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Servers on nodes listen below the NodePorts (from 30000) and below the ports that clients get (from 32768).
const (
	firstHostPort, lastHostPort = 22000, 29990
	// candidates is how many ports are tried on each node.
	candidates = 64
)

// findHostPorts finds ports for servers on the nodes that are free on every one of them, as the nodes see it: other runs
// and the nodes' own daemons listen there too.
func (c *Cluster) findHostPorts(ctx context.Context) error {
	if !c.layout.hosts() {
		return nil
	}
	free := candidatePorts(c.run)
	for _, s := range c.layout.pods {
		if !s.Host() {
			continue
		}
		argv := []string{program, "hold", "--free"}
		argv = append(argv, each.Of(free, strconv.Itoa)...)
		out, err := c.Exec(ctx, s.Name, argv)
		if err != nil && refused(err) {
			break // a port in use then fails its trial
		}
		var there []int
		if err == nil {
			err = json.Unmarshal(out, &there)
		}
		if err != nil {
			return fmt.Errorf("look for free ports on node %s: %w", s.Node, err)
		}
		free = slices.DeleteFunc(free, func(port int) bool { return !slices.Contains(there, port) })
	}
	if len(free) < hostSlots {
		return fmt.Errorf("the nodes have no %d ports between %d and %d free in common", hostSlots, firstHostPort, lastHostPort)
	}
	c.hostPorts = free[:hostSlots]
	return nil
}

// candidatePorts returns first ports of slots in an order that goes by the run, so that two runs seldom try the same.
func candidatePorts(run string) []int {
	var seed [32]byte
	copy(seed[:], run)
	r := rand.New(rand.NewChaCha8(seed))
	return each.Of(r.Perm((lastHostPort - firstHostPort) / slotSize)[:candidates], func(n int) int { return firstHostPort + n*slotSize })
}
