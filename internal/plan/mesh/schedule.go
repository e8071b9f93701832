package mesh

import (
	"math/rand/v2"
	"slices"
)

// Schedule has the rounds of a run. No node is in two pairs of one round. Round computes the pairs of a round on
// request.
type Schedule struct {
	nodes []string
	// circle has the seats of a round-robin tournament: the number of the node on each seat, -1 for an empty seat.
	// turns has the rounds of the tournament in the order of measurement.
	circle, turns []int
	// fixed has the rounds of a ring, or of the pairs of a file. count is the number of pairs of all rounds.
	fixed [][]match
	count int
}

// match is a pair by the numbers of its nodes.
type match struct{ from, to int }

// Schedule arranges the pairs among nodes in rounds. Fits must have found no fault. The seed decides the order of the rounds
// and the pairs of a sample. A sample has whole rounds, of which only the last may be cut, so that all nodes are in about
// equally many pairs.
func (p Pairs) Schedule(nodes []string, seed uint64) Schedule {
	s := Schedule{nodes: nodes}
	r := rand.New(rand.NewPCG(seed, uint64(len(nodes))))
	number := map[string]int{}
	for i, name := range nodes {
		number[name] = i
	}
	switch {
	case p.Which == Ring:
		s.assignRounds(ringMatches(len(nodes)))
	case p.File() != "":
		list := make([]match, len(p.Listed))
		for i, pair := range p.Listed {
			list[i] = match{number[pair.From], number[pair.To]}
		}
		s.assignRounds(list)
	default:
		s.circle = r.Perm(len(nodes))
		if len(nodes)%2 == 1 {
			s.circle = append(s.circle, -1)
		}
		s.turns = r.Perm(len(s.circle) - 1)
		s.count = len(nodes) * (len(nodes) - 1) / 2
		if n, ok := p.sampleSize(); ok {
			s.count = min(s.count, n)
			s.turns = s.turns[:(s.count+len(nodes)/2-1)/(len(nodes)/2)]
		}
	}
	return s
}

// ringMatches returns pairs that form a ring of n nodes: each node with the next, and the last with the first. Two
// nodes are one pair.
func ringMatches(n int) []match {
	list := make([]match, 0, n)
	for i := range n {
		list = append(list, match{i, (i + 1) % n})
	}
	if n == 2 {
		list = list[:1]
	}
	return list
}

// assignRounds assigns each pair to the first round that has neither of its nodes, and adds rounds as needed.
func (s *Schedule) assignRounds(list []match) {
	s.count = len(list)
	var busy []map[int]bool
	for _, m := range list {
		at := slices.IndexFunc(busy, func(b map[int]bool) bool { return !b[m.from] && !b[m.to] })
		if at < 0 {
			at = len(busy)
			busy, s.fixed = append(busy, map[int]bool{}), append(s.fixed, nil)
		}
		busy[at][m.from], busy[at][m.to] = true, true
		s.fixed[at] = append(s.fixed[at], m)
	}
}

// Len returns the number of pairs.
func (s Schedule) Len() int { return s.count }

// Rounds returns the number of rounds.
func (s Schedule) Rounds() int { return max(len(s.turns), len(s.fixed)) }

// Turns returns how many measurements of a case, one after the other, cover all pairs. At most atOnce pairs of a round
// are measured at once.
func (s Schedule) Turns(atOnce int) (turns int) {
	for i := range s.Rounds() {
		turns += (len(s.roundMatches(i)) + atOnce - 1) / atOnce
	}
	return turns
}

// Round returns the pairs of round i, counted from 0, in a repetition, counted from 1. Every second repetition reverses
// the direction of each pair. Over the rounds of one repetition, a node is the client of about half its pairs.
func (s Schedule) Round(i, repetition int) []Pair {
	var pairs []Pair
	for _, m := range s.roundMatches(i) {
		p := Pair{s.nodes[m.from], s.nodes[m.to]}
		if repetition%2 == 0 {
			p = p.Swapped()
		}
		pairs = append(pairs, p)
	}
	return pairs
}

func (s Schedule) roundMatches(i int) []match {
	if s.turns == nil {
		return s.fixed[i]
	}
	// The last seat stays; the others are a circle of an odd number of seats, which turns by one a round. A seat sends to
	// the half of the circle before it, so that every node sends to about half of the others.
	last, turn := len(s.circle)-1, s.turns[i]
	list := make([]match, 0, len(s.circle)/2)
	add := func(from, to int, swapped bool) {
		m := match{s.circle[from], s.circle[to]}
		if swapped {
			m = match{m.to, m.from}
		}
		if m.from >= 0 && m.to >= 0 {
			list = append(list, m)
		}
	}
	add(last, turn, turn%2 == 1)
	for k := 1; k <= last/2; k++ {
		add((turn+k)%last, (turn-k+last)%last, (last-2*k)%last > last/2)
	}
	if over := i*(len(s.nodes)/2) + len(list) - s.count; over > 0 {
		list = list[:len(list)-over]
	}
	return list
}
