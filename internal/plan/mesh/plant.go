package mesh

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Plant is a known fault of one node, or of the link between two nodes, that a lab adds to test the search for faults.
type Plant struct {
	Node string `json:"node"`
	// Peer is the other node of a link, "" for a fault of the node.
	Peer string `json:"peer,omitempty"`
	// Delay is the additional delay of what the node sends, 0 for other faults.
	Delay time.Duration `json:"delay,omitempty"`
	// Loss is the share of lost frames: of those that the node sends, or of those on the link in both directions.
	Loss float64 `json:"loss,omitempty"`
	// Rate is the line rate of the node in bit/s.
	Rate float64 `json:"rate,omitempty"`
}

// At returns the place of the fault: the name of the node, or NODE/NODE for a link.
func (p Plant) At() string {
	if p.Peer == "" {
		return p.Node
	}
	return p.Node + "/" + p.Peer
}

// Found reports whether nodes is the place of p: its node alone, or both nodes of its link in any order.
func (p Plant) Found(nodes []string) bool {
	if len(nodes) == 1 {
		return p.Peer == "" && p.Node == nodes[0]
	}
	return len(nodes) == 2 && (p.Node == nodes[0] && p.Peer == nodes[1] || p.Node == nodes[1] && p.Peer == nodes[0])
}

// Wrong returns what is wrong with known faults in a lab with this number of nodes. It returns "" if nothing is wrong.
func Wrong(plants []Plant, nodes int) string {
	var wrong []string
	known := LabNodes(nodes)
	at := map[string]bool{}
	for _, p := range plants {
		for _, name := range []string{p.Node, p.Peer} {
			if name != "" && !slices.Contains(known, name) {
				wrong = append(wrong, fmt.Sprintf("%s: there is no node %q among %d", p.At(), name, nodes))
			}
		}
		what := fmt.Sprint(p.At(), p.Delay > 0, p.Loss > 0, p.Rate > 0)
		switch {
		case p.Node == p.Peer:
			wrong = append(wrong, p.At()+" is not a link")
		case p.Peer != "" && p.Loss == 0:
			wrong = append(wrong, p.At()+": a link can lose frames; delay and rate are of a node")
		case at[what]:
			wrong = append(wrong, p.At()+" is given twice")
		}
		at[what] = true
	}
	return strings.Join(wrong, "; ")
}
