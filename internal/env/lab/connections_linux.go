package lab

import (
	"fmt"
	"math"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/kernel/conntrack"
	"github.com/cnibench/cnibench/internal/kernel/proc"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// Connect adds the standing connections of the conditions to the tables of all nodes, and their kernel memory to
// Raised. It returns the smallest number of connections in a node's table, 0 if the conditions have none. Call it after
// self-tests, which empty the tables.
func (i *Instance) Connect() (tracked int, err error) {
	want := i.Spec.Lab.Connections
	if i.Err != nil || want == 0 {
		return 0, nil
	}
	if i.lab.options.Account {
		i.lab.alone.Lock()
		defer i.lab.alone.Unlock()
	}
	before := proc.Spent()
	tracked = math.MaxInt
	for k, n := range i.Nodes {
		got, err := n.addConnections(want, i.Spec.Nodes[k])
		if err != nil {
			return 0, fmt.Errorf("%s: standing connections: %w", n.Name, err)
		}
		tracked = min(tracked, got)
	}
	if after := proc.Spent(); i.Raised != nil && after.KernelMemory > before.KernelMemory {
		i.Raised[metric.StateMemory] += float64(after.KernelMemory - before.KernelMemory)
	}
	return tracked, nil
}

// addConnections fills the node's table with want connections, and returns how many connections the table then has.
func (n *Node) addConnections(want int, as dataplane.Node) (int, error) {
	if n.programs.Connect != nil {
		tracked, err := n.programs.Connect(want)
		if err != nil || n.programs.Serve != nil { // without programs for Services, conntrack tracks connections, too
			return tracked, err
		}
	}
	err := conntrack.Fill(n.NS, want, func(i int) conntrack.Tuple {
		from, to := dataplane.Standing(as, i)
		return conntrack.Tuple{Source: from.Addr(), SourcePort: from.Port(), Destination: to.Addr(), DestinationPort: to.Port(), Protocol: conntrack.TCP}
	})
	if err != nil {
		return 0, err
	}
	return conntrack.Count(n.NS)
}
