// Package mesh determines which pairs of nodes a run measures, and in which order: rounds of pairs that share no node,
// as in a tournament (the circle method). So n nodes take about n rounds, and the pairs of a round may run at once.
//
// It is plain data. Nodes are identified by their names. Schedule stores numbers and computes the pairs of a round on
// request, so that half a million pairs take no memory.
package mesh

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/plan/position"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Node is a node whose pairs are measured.
type Node struct {
	Name string `json:"name"`
	// Labels are the properties in which the nodes differ, such as zone, instance type and kernel. (optional)
	Labels map[string]string `json:"labels,omitempty"`
}

// Pair is the node of the client and the node of the server. The zero value is not a pair.
type Pair struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// IsZero reports whether p is not a pair.
func (p Pair) IsZero() bool { return p == Pair{} }

// String returns "node-1 node-2", as in a file of pairs.
func (p Pair) String() string { return p.From + " " + p.To }

// Swapped returns the pair in the other direction.
func (p Pair) Swapped() Pair { return Pair{p.To, p.From} }

// Pairs defines which pairs of nodes a run measures. With the zero value, the environment chooses one pair.
type Pairs struct {
	// Which is "all", "ring", "sample=N" or the name of a file.
	Which string `json:"which,omitempty"`
	// Concurrency is the number of pairs that are measured at once; 0 means one.
	Concurrency int `json:"concurrency,omitempty"`
	// Listed are the pairs that Load has read from the file. (optional)
	Listed []Line `json:"listed,omitempty"`
}

// Line is a line of a file of pairs.
type Line struct {
	Pair
	Number int `json:"line"`
}

// Values of Pairs.Which that are not the name of a file.
const (
	All    = "all"
	Ring   = "ring"
	sample = "sample="
)

// Given reports whether p is not the zero value, so that a run measures its pairs.
func (p Pairs) Given() bool { return p.Which != "" }

// AtOnce returns the number of pairs that may be measured at once, at least 1.
func (p Pairs) AtOnce() int { return max(1, p.Concurrency) }

// sampleSize returns the number of pairs of a sample. ok is false if p is not a sample.
func (p Pairs) sampleSize() (n int, ok bool) {
	digits, ok := strings.CutPrefix(p.Which, sample)
	n, _ = strconv.Atoi(digits) // Check has refused others
	return n, ok
}

// Among returns the set of nodes from which the pairs are chosen: the nodes of a file, a random subset for a small
// sample, and otherwise all. The subset has two nodes for each pair of the sample. It depends on the seed and the
// names, so that most nodes stay the same when a node is added or removed.
func (p Pairs) Among(nodes []string, seed uint64) map[string]bool {
	among := map[string]bool{}
	for _, line := range p.Listed {
		among[line.From], among[line.To] = true, true
	}
	if len(among) > 0 {
		return among
	}
	nodes = slices.Clone(nodes)
	if n, ok := p.sampleSize(); ok && 2*n < len(nodes) {
		slices.SortFunc(nodes, func(a, b string) int {
			return cmp.Or(cmp.Compare(nodeRandomNumber(a, seed), nodeRandomNumber(b, seed)), cmp.Compare(a, b))
		})
		nodes = nodes[:2*n]
	}
	for _, name := range nodes {
		among[name] = true
	}
	return among
}

// nodeRandomNumber returns a pseudorandom number for a node. It depends only on the name of the node and the seed.
func nodeRandomNumber(name string, seed uint64) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, name, " ", seed) // it never fails
	return rand.NewPCG(h.Sum64(), seed).Uint64()
}

// File returns the name of the file of pairs, "" if Which is a word.
func (p Pairs) File() string {
	if _, ok := p.sampleSize(); ok || p.Which == All || p.Which == Ring {
		return ""
	}
	return p.Which
}

// Load returns p with Listed read from its file by the function read. It returns p unchanged if the pairs are not in a
// file. The Faults say why the file cannot be read, or list its invalid lines.
func (p Pairs) Load(read func(name string) ([]byte, error)) (Pairs, position.Faults) {
	name := p.File()
	if name == "" {
		return p, nil
	}
	text, err := read(name)
	if err != nil {
		return p, position.Faults{{Field: "pairs", Message: fmt.Sprintf("%s; want all, ring, sample=N or a file of pairs", err)}}
	}
	var faults position.Faults
	p.Listed, faults = parsePairs(name, string(text))
	return p, faults
}

// LabNode returns the name of the lab's node with this number, counted from 1.
func LabNode(number int) string { return fmt.Sprintf("node-%d", number) }

// LabNodes returns the names of this number of the lab's nodes, beginning with node-1.
func LabNodes(count int) []string {
	var names []string
	for i := range count {
		names = append(names, LabNode(i+1))
	}
	return names
}

// Check returns what is wrong with which as a value of Pairs.Which. It returns "" if nothing is wrong.
func Check(which string) string {
	if digits, ok := strings.CutPrefix(which, sample); ok {
		if n, err := strconv.Atoi(digits); err != nil || n < 1 {
			return fmt.Sprintf("%s: want a whole number of pairs, such as sample=100", which)
		}
	}
	return ""
}

// parsePairs parses a file of pairs, which has two names of nodes on each line. It skips empty lines and comments with
// #. The Faults list every invalid line.
func parsePairs(name, text string) ([]Line, position.Faults) {
	var pairs []Line
	var faults position.Faults
	first := map[Pair]int{}
	at := 0
	wrong := func(format string, args ...any) {
		faults = append(faults, position.Fault{File: name, Line: at, Message: fmt.Sprintf(format, args...)})
	}
	for line := range strings.SplitSeq(text, "\n") {
		at++
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) != 2 {
			wrong("%q: want the names of two nodes", strings.TrimSpace(line))
			continue
		}
		p := Pair{words[0], words[1]}
		before := cmp.Or(first[p], first[p.Swapped()])
		switch {
		case p.From == p.To:
			wrong("%s is paired with itself", p.From)
		case before != 0:
			wrong("%s and %s are a pair in line %d already", p.From, p.To, before)
		default:
			first[p] = at
			pairs = append(pairs, Line{p, at})
		}
	}
	if len(pairs) == 0 && len(faults) == 0 {
		at = 0
		wrong("has no pair: want the names of two nodes a line")
	}
	return pairs, faults
}

// Fits returns what is wrong with the pairs for nodes, the names of all nodes: fewer than two nodes, a sample with more
// pairs than there are, or unknown names in a file.
func (p Pairs) Fits(nodes []string) (faults position.Faults) {
	n := len(nodes)
	if n < 2 {
		faults.Add("pairs", "a pair needs two nodes, and there %s: %s", map[bool]string{true: "is one", false: "are none"}[n == 1], strings.Join(nodes, ", "))
		return faults
	}
	if wanted, ok := p.sampleSize(); ok && wanted > n*(n-1)/2 {
		faults.Add("pairs", "sample=%d: %d nodes have %s; want at most that, or all", wanted, n, number.Counted(n*(n-1)/2, "pair"))
	}
	known := map[string]bool{}
	for _, name := range nodes {
		known[name] = true
	}
	for _, line := range p.Listed {
		for _, name := range []string{line.From, line.To} {
			if !known[name] {
				faults = append(faults, position.Fault{File: p.Which, Line: line.Number, Message: fmt.Sprintf("unknown node %q%s", name, advice.DidYouMean(name, nodes))})
			}
		}
	}
	return faults
}

// Order sorts nodes in place: by the labels with these keys, then by name. Numbers within names are compared as numbers.
func Order(nodes []Node, keys ...string) {
	slices.SortFunc(nodes, func(a, b Node) int {
		for _, k := range keys {
			if c := compareNatural(a.Labels[k], b.Labels[k]); c != 0 {
				return c
			}
		}
		return compareNatural(a.Name, b.Name)
	})
}

// Varying returns the sorted keys of the labels that divide the nodes into groups. Such a label has at least two
// values, and some nodes share a value.
func Varying(nodes []Node) []string {
	values := map[string]map[string]bool{}
	for _, n := range nodes {
		for k := range n.Labels {
			values[k] = map[string]bool{}
		}
	}
	for k, seen := range values {
		for _, n := range nodes {
			seen[n.Labels[k]] = true
		}
	}
	keys := slices.Sorted(maps.Keys(values))
	return slices.DeleteFunc(keys, func(k string) bool { return len(values[k]) < 2 || len(values[k]) == len(nodes) })
}

// compareNatural compares two names as cmp.Compare does, but compares numbers within them as numbers: node-9 comes
// before node-10.
func compareNatural(a, b string) int {
	for a != "" && b != "" {
		i, j := countLeadingDigits(a), countLeadingDigits(b)
		if i > 0 && j > 0 {
			x, y := strings.TrimLeft(a[:i], "0"), strings.TrimLeft(b[:j], "0")
			if c := cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)); c != 0 {
				return c
			}
			a, b = a[i:], b[j:]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

// countLeadingDigits returns how many digits s begins with.
func countLeadingDigits(s string) int {
	return len(s) - len(strings.TrimLeft(s, "0123456789"))
}
