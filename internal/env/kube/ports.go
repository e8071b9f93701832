package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Servers in host-network pods listen below the NodePorts (from 30000) and below the ports that clients get (from 32768).
const (
	firstHostPort, lastHostPort = 22000, 29990
	// candidates is how many ports are checked on each node.
	candidates = 64
	// requestsAtOnce bounds the concurrent requests to the API server.
	requestsAtOnce = 16
)

// chooseHostPorts chooses ports for the servers in host-network pods, and stores them. It chooses ports that are free on
// every node, because other runs and daemons also listen there. If exec is refused, it does not check this. It fails if too
// few are free.
func (c *Cluster) chooseHostPorts(ctx context.Context) error {
	if !c.layout.hasHostPod() {
		return nil
	}
	free := candidatePorts(c.run)
	argv := append([]string{program, "hold", "--free"}, each.Of(free, strconv.Itoa)...)
	hosts := slices.DeleteFunc(slices.Clone(c.place.presentPods(c.layout.pods)), func(s *podSpec) bool { return !s.Host() })
	outs, errs := make([][]byte, len(hosts)), make([]error, len(hosts))
	var all errgroup.Group
	all.SetLimit(requestsAtOnce)
	for i, s := range hosts {
		all.Go(func() error {
			outs[i], errs[i] = c.Exec(ctx, s.Name, argv)
			return nil
		})
	}
	_ = all.Wait() // each node's error is in errs
	for i, s := range hosts {
		var there []int
		err := errs[i]
		if err != nil && isExecRefused(err) {
			break // a port in use fails its trial
		}
		if err == nil {
			err = json.Unmarshal(outs[i], &there)
		}
		if lost := c.place.awayMarker(c.options.Say); err != nil && lost != nil {
			lost(s.Name, "look for free ports: "+err.Error())
			continue
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

// candidatePorts returns the ports to check on the nodes. They and their order depend on the run's id, so that two runs
// seldom choose the same ports.
func candidatePorts(run string) []int {
	var seed [32]byte
	copy(seed[:], run)
	r := rand.New(rand.NewChaCha8(seed))
	return each.Of(r.Perm((lastHostPort - firstHostPort) / slotSize)[:candidates], func(n int) int { return firstHostPort + n*slotSize })
}
