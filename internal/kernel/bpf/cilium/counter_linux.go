package cilium

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
)

// directions has the names of the directions of maps.h.
var directions = map[uint8]string{1: "ingress", 2: "egress", 3: "service"}

// linkLocal is the reason number of link-local packets that pods send. The programs drop them, as Cilium does. Counters
// does not report them as drops, because no router would forward them.
const linkLocal = 250

// firstDrop is the lowest reason number of maps.h that means a drop.
const firstDrop = 130

// The reasons of maps.h for a full table.
const (
	flowNotCreated = 155
	noMapping      = 161
)

// outcomes has the names of the reasons of maps.h.
var outcomes = map[uint8]string{
	0:              "forwarded",
	3:              "received",
	12:             "decrypting",
	13:             "encrypting",
	14:             "socket's service forgotten",
	132:            "source address is not the pod's",
	133:            "denied by policy",
	134:            "malformed packet",
	135:            "transport header is cut off",
	137:            "unknown transport protocol",
	139:            "unknown network protocol",
	140:            "tail call to a program that is not there",
	141:            "packet could not be written",
	148:            "unknown endpoint",
	flowNotCreated: "flow could not be remembered",
	156:            "extension headers are cut off or too many",
	157:            "fragment without its first",
	158:            "service has no backend",
	159:            "no tunnel key",
	noMapping:      "no free port for source translation",
	169:            "no route",
	196:            "time to live exceeded",
	197:            "no number of a node",
	linkLocal:      "link-local message of a pod",
}

// Counters returns what the programs of the node counted since Load, summed over CPUs, sorted by direction and
// outcome.
func (n *Node) Counters() ([]attach.Counter, error) {
	var list []attach.Counter
	var key hostMetricsKey
	var perCPU []hostCounter
	it := n.host.Maps["cilium_metrics"].Iterate()
	for it.Next(&key, &perCPU) {
		c := attach.Counter{
			Direction: directions[key.Direction], Outcome: outcomes[key.Reason],
			Drop: key.Reason >= firstDrop && key.Reason != linkLocal, Full: key.Reason == flowNotCreated || key.Reason == noMapping,
		}
		if c.Outcome == "" {
			c.Outcome = fmt.Sprintf("reason %d", key.Reason)
		}
		for _, v := range perCPU {
			c.Packets += v.Packets
		}
		list = append(list, c)
	}
	if err := it.Err(); err != nil {
		return nil, fmt.Errorf("cilium dataplane: counters: %w", err)
	}
	slices.SortFunc(list, func(a, b attach.Counter) int {
		return cmp.Or(cmp.Compare(a.Direction, b.Direction), cmp.Compare(a.Outcome, b.Outcome))
	})
	return list, nil
}
