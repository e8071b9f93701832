package mesh_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/plan/mesh"
	"github.com/cnibench/cnibench/internal/plan/position"
)

func names(n int) []string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("n%d", i+1))
	}
	return list
}

// unordered returns p with its lesser name first.
func unordered(p mesh.Pair) mesh.Pair {
	if p.From > p.To {
		return p.Swapped()
	}
	return p
}

// TestRounds: no node is in a round twice, no pair comes twice in a repetition, and all come.
func TestRounds(t *testing.T) {
	for _, which := range []string{mesh.All, mesh.Ring, "sample=1", "sample=7", "sample=20"} {
		for n := 2; n <= 17; n++ {
			p := mesh.Pairs{Which: which}
			if p.Fits(names(n)) != nil {
				continue
			}
			s := p.Schedule(names(n), 3)
			seen := map[mesh.Pair]bool{}
			degree, sent := map[string]int{}, map[string]int{}
			for i := range s.Rounds() {
				busy := map[string]bool{}
				back := s.Round(i, 2)
				for k, pair := range s.Round(i, 1) {
					if busy[pair.From] || busy[pair.To] || pair.From == pair.To || seen[unordered(pair)] {
						t.Fatalf("%s of %d nodes, round %d: %s", which, n, i, pair)
					}
					if back[k] != pair.Swapped() {
						t.Fatalf("%s of %d nodes: the second repetition has %s for %s", which, n, back[k], pair)
					}
					busy[pair.From], busy[pair.To], seen[unordered(pair)] = true, true, true
					degree[pair.From]++
					degree[pair.To]++
					sent[pair.From]++
				}
			}
			if len(seen) != s.Len() {
				t.Errorf("%s of %d nodes: %d pairs, want %d", which, n, len(seen), s.Len())
			}
			if s.Turns(1) != s.Len() || s.Turns(n) != s.Rounds() {
				t.Errorf("%s of %d nodes: %d turns of one pair, %d of all", which, n, s.Turns(1), s.Turns(n))
			}
			if which == mesh.All && (s.Rounds() > n || len(seen) != n*(n-1)/2) {
				t.Errorf("%d nodes: %d rounds, %d pairs", n, s.Rounds(), len(seen))
			}
			for _, name := range names(n) {
				if which == mesh.All && (2*sent[name] < n-3 || 2*sent[name] > n+1) {
					t.Errorf("%d nodes: %s is the client of %d of its %d pairs", n, name, sent[name], degree[name])
				}
			}
		}
	}
}

// TestSampleIsEven: every node has about as many pairs, and another seed draws others.
func TestSampleIsEven(t *testing.T) {
	const n = 100
	s := mesh.Pairs{Which: "sample=520"}.Schedule(names(n), 1)
	other := mesh.Pairs{Which: "sample=520"}.Schedule(names(n), 2)
	degree := map[string]int{}
	for i := range s.Rounds() {
		for _, p := range s.Round(i, 1) {
			degree[p.From]++
			degree[p.To]++
		}
	}
	for _, name := range names(n) {
		if d := degree[name]; d < 10 || d > 11 {
			t.Errorf("%s has %d pairs", name, d)
		}
	}
	if slices.Equal(s.Round(0, 1), other.Round(0, 1)) {
		t.Error("two seeds draw the same pairs")
	}
}

func TestRead(t *testing.T) {
	read := func(text string) ([]mesh.Line, position.Faults) {
		p, faults := mesh.Pairs{Which: "pairs.txt"}.Load(func(string) ([]byte, error) { return []byte(text), nil })
		return p.Listed, faults
	}
	pairs, faults := read("# suspects\nn1 n2\n\n n3\tn1 # twice slow\n")
	if want := []mesh.Line{{Pair: mesh.Pair{From: "n1", To: "n2"}, Number: 2}, {Pair: mesh.Pair{From: "n3", To: "n1"}, Number: 4}}; faults != nil || !slices.Equal(pairs, want) {
		t.Errorf("%v, %v", pairs, faults)
	}
	for text, want := range map[string]string{
		"n1\nn1 n2 n3\nn4 n4\nn1 n2\nn2 n1\n": `pairs.txt:1: "n1": want the names of two nodes
pairs.txt:2: "n1 n2 n3": want the names of two nodes
pairs.txt:3: n4 is paired with itself
pairs.txt:5: n2 and n1 are a pair in line 4 already`,
		"# none\n": "pairs.txt: has no pair: want the names of two nodes a line",
	} {
		if _, faults := read(text); faults.Error() != want {
			t.Errorf("%q:\n%s\nwant\n%s", text, faults.Error(), want)
		}
	}
}

func TestFits(t *testing.T) {
	for _, c := range []struct {
		pairs mesh.Pairs
		nodes []string
		want  string
	}{
		{mesh.Pairs{Which: mesh.All}, names(2), ""},
		{mesh.Pairs{Which: mesh.All}, names(1), "pairs: a pair needs two nodes, and there is one: n1"},
		{mesh.Pairs{Which: "sample=6"}, names(4), ""},
		{mesh.Pairs{Which: "sample=7"}, names(4), "pairs: sample=7: 4 nodes have 6 pairs; want at most that, or all"},
		{mesh.Pairs{Which: "f", Listed: []mesh.Line{{mesh.Pair{From: "n1", To: "n9"}, 1}, {mesh.Pair{From: "n2", To: "x"}, 3}}}, names(2), "f:1: unknown node \"n9\", did you mean \"n1\"?\nf:3: unknown node \"x\""},
	} {
		if got := c.pairs.Fits(c.nodes).Error(); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%v: %q, want %q", c.pairs, got, c.want)
		}
	}
	for which, good := range map[string]bool{"all": true, "sample=5": true, "sample=0": false, "sample=x": false, "pairs.txt": true} {
		if wrong := mesh.Check(which); wrong == "" != good {
			t.Errorf("%s: %q", which, wrong)
		}
	}
}

func TestOrder(t *testing.T) {
	nodes := []mesh.Node{
		{Name: "node-10", Labels: map[string]string{"zone": "a", "kernel": "6"}}, {Name: "node-9", Labels: map[string]string{"zone": "a", "kernel": "6"}},
		{Name: "node-1", Labels: map[string]string{"zone": "b", "kernel": "6"}},
	}
	if got := mesh.Varying(nodes); !slices.Equal(got, []string{"zone"}) {
		t.Errorf("the nodes vary in %v", got)
	}
	mesh.Order(nodes, "zone")
	if nodes[0].Name != "node-9" || nodes[1].Name != "node-10" || nodes[2].Name != "node-1" {
		t.Errorf("%v", nodes)
	}
}

// TestAmong: a small sample has as many nodes as ends; few of them change when a node joins.
func TestAmong(t *testing.T) {
	for which, want := range map[string]int{mesh.All: 50, mesh.Ring: 50, "sample=10": 20, "sample=25": 50, "sample=600": 50} {
		if among := (mesh.Pairs{Which: which}).Among(names(50), 1); len(among) != want {
			t.Errorf("%s: %d nodes, want %d", which, len(among), want)
		}
	}
	p := mesh.Pairs{Which: "sample=10"}
	before, other, kept, same := p.Among(names(50), 1), p.Among(names(50), 2), 0, 0
	for name := range p.Among(names(51), 1) {
		if before[name] {
			kept++
		}
		if other[name] {
			same++
		}
	}
	if kept < 19 || same > 15 {
		t.Errorf("%d of 20 nodes stayed, and %d are those of another seed", kept, same)
	}
}
