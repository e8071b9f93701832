package sample

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestStacks: what was added is read back, from JSON too, and the frames that stacks share are kept once.
func TestStacks(t *testing.T) {
	var s Stacks
	s.Add(2, Counted{1, 1000}, "pod", "a", "b")
	s.Add(0, Counted{1, 1000}, "pod", "a")
	s.Add(2, Counted{1, 700}, "pod", "a", "b")
	s.Add(2, Counted{1, 1000}, "node", "a")
	b, err := json.Marshal(&s)
	if err != nil {
		t.Fatal(err)
	}
	var back Stacks
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if err := back.Check(); err != nil {
		t.Fatal(err)
	}
	var got []string
	var weight int64
	for slice := range back.Counts {
		for frame, c := range back.Of(slice) {
			weight += c.Weight
			for range c.Samples {
				got = append(got, strings.Join(back.Stack(frame), ";"))
			}
		}
	}
	if want := []string{"pod;a", "pod;a;b", "pod;a;b", "node;a"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if weight != 3700 {
		t.Errorf("the samples stand for %d", weight)
	}
	back.Weights = nil // of an earlier version: all samples stand for the same
	for _, c := range back.Of(2) {
		if c.Weight != int64(c.Samples) {
			t.Errorf("without weights: %+v", c)
		}
	}
	if len(back.Frames) != 2*5 || len(back.Names) != 4 {
		t.Errorf("%d frames, names %q", len(back.Frames)/2, back.Names)
	}
}

// TestStacksCheck refuses stacks that no writer makes.
func TestStacksCheck(t *testing.T) {
	for _, s := range []Stacks{
		{Frames: []int32{-1}}, {Frames: []int32{-1, 0}}, {Names: []string{"a"}, Frames: []int32{0, 0}}, {Names: []string{"a"}, Frames: []int32{-2, 0}},
		{Counts: [][]int32{{0}}}, {Counts: [][]int32{{0, 1}}}, {Names: []string{"a"}, Frames: []int32{-1, 0}, Counts: [][]int32{{0, -1}}},
		{Names: []string{"a"}, Frames: []int32{-1, 0}, Counts: [][]int32{{0, 1}}, Weights: [][]int64{{1, 2}}},
		{Names: []string{"a"}, Frames: []int32{-1, 0}, Counts: [][]int32{{0, 1}}, Weights: [][]int64{{-1}}}, {Weights: [][]int64{{}}},
	} {
		if s.Check() == nil {
			t.Errorf("accepted: %+v", s)
		}
	}
}

// TestHappened: events keep their stacks and sums through JSON and a join with renamed roots.
func TestHappened(t *testing.T) {
	var s, joined Stacks
	s.Add(0, Counted{1, 1000}, "pod", "a")
	s.Happen("misses", Happened{Samples: 1, Events: 300}, "pod", "a", "b")
	s.Happen("misses", Happened{Samples: 2, Events: 500}, "pod", "a", "b")
	s.Happen("cycles", Happened{Samples: 1, Events: 7}, "pod", "a")
	b, err := json.Marshal(&s)
	if err != nil {
		t.Fatal(err)
	}
	var back Stacks
	if err := json.Unmarshal(b, &back); err != nil || back.Check() != nil {
		t.Fatal(err, back.Check())
	}
	joined.Join(&back, func(string) string { return "node" })
	joined.Join(&back, nil)
	got := map[string][2]float64{}
	for event, by := range joined.Events {
		for _, h := range by {
			got[event+" "+strings.Join(joined.Stack(h.Frame), ";")] = [2]float64{float64(h.Samples), h.Events}
		}
	}
	want := map[string][2]float64{"misses node;a;b": {3, 800}, "misses pod;a;b": {3, 800}, "cycles node;a": {1, 7}, "cycles pod;a": {1, 7}}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if joined.Samples() != 2 {
		t.Errorf("%d samples of time", joined.Samples())
	}
	for _, h := range []Happened{{99, 1, 1}, {-1, 1, 1}, {0, 1, -1}, {0, -1, 1}} {
		if bad := (&Stacks{Names: []string{"a"}, Frames: []int32{-1, 0}, Events: map[string][]Happened{"misses": {h}}}); bad.Check() == nil {
			t.Errorf("accepted: %+v", bad)
		}
	}
}
