package sample

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestStacks: what was added is read back, from JSON too, and the frames that stacks share are kept once.
func TestStacks(t *testing.T) {
	var s Stacks
	s.Add(2, "pod", "a", "b")
	s.Add(0, "pod", "a")
	s.Add(2, "pod", "a", "b")
	s.Add(2, "node", "a")
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
	for slice := range back.Counts {
		for frame, n := range back.Of(slice) {
			for range n {
				got = append(got, strings.Join(back.Stack(frame), ";"))
			}
		}
	}
	if want := []string{"pod;a", "pod;a;b", "pod;a;b", "node;a"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
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
	} {
		if s.Check() == nil {
			t.Errorf("accepted: %+v", s)
		}
	}
}
