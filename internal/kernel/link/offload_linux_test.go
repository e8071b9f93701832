package link

import (
	"runtime"
	"testing"
)

// TestOffloadAtAnyDepth reads features from stacks that are more and more full, while the collector makes others smaller. Of
// an address on the stack that the kernel was given as a plain number, a stack that moves would leave the answer behind.
func TestOffloadAtAnyDepth(t *testing.T) {
	h := fresh(t)
	if err := h.Add(Veth{Name: "a", Peer: "b"}); err != nil {
		t.Fatal(err)
	}
	want, err := h.Segmentation("a")
	if err != nil || len(want) == 0 {
		t.Fatalf("%q, %v", want, err)
	}
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			select {
			case <-done:
				return
			default:
				runtime.GC()
			}
		}
	}()
	for depth := range 700 {
		got := make(chan int)
		go func() { got <- below(depth, func() int { on, _ := h.Segmentation("a"); return len(on) }) }()
		if n := <-got; n != len(want) {
			t.Fatalf("%d features at depth %d, want %d", n, depth, len(want))
		}
	}
}

// below calls do with so many frames on the stack.
//
//go:noinline
func below(depth int, do func() int) int {
	var room [10]int
	if depth == 0 {
		return do() + room[depth]
	}
	return below(depth-1, do) + room[depth%len(room)]
}
