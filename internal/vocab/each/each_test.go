package each

import (
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
)

// TestAtOnce: all run side by side, and their errors keep the order of the list.
func TestAtOnce(t *testing.T) {
	met := make(chan int)
	err := AtOnce([]string{"a", "b"}, func(i int, name string) error {
		select {
		case met <- i:
		case <-met:
		}
		return errors.New(name)
	})
	if err == nil || err.Error() != "a\nb" {
		t.Errorf("%v", err)
	}
	if err := AtOnce(nil, func(int, int) error { return errors.New("called") }); err != nil {
		t.Error(err)
	}
}

// TestAtMost: every value is visited once, and no more than the limit at a time.
func TestAtMost(t *testing.T) {
	var now, most, sum atomic.Int64
	all := []int{1, 2, 3, 4, 5, 6, 7, 8, 9}
	seen := make([]int, len(all))
	AtMost(3, all, func(i, v int) {
		n := now.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		runtime.Gosched()
		seen[i] = v
		sum.Add(int64(v))
		now.Add(-1)
	})
	if !slices.Equal(seen, all) || sum.Load() != 45 || most.Load() > 3 {
		t.Errorf("visited %v, sum %d, %d at a time", seen, sum.Load(), most.Load())
	}
	AtMost(3, nil, func(int, int) { t.Error("called for no value") })
}
