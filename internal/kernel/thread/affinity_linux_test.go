package thread

import (
	"runtime"
	"slices"
	"testing"
)

func TestSetConfinesThisThreadAlone(t *testing.T) {
	all, err := CPUs()
	if err != nil || len(all) == 0 || !slices.IsSorted(all) {
		t.Fatalf("Get = %v, %v", all, err)
	}
	last := all[len(all)-1:]
	done := make(chan []int)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its confinement
		if err := SetCPUs(last); err != nil {
			t.Error(err)
		}
		got, err := CPUs()
		if err != nil {
			t.Error(err)
		}
		done <- got
	}()
	if got := <-done; !slices.Equal(got, last) {
		t.Errorf("confined to %v, want %v", got, last)
	}
	if after, err := CPUs(); err != nil || !slices.Equal(after, all) {
		t.Errorf("another thread now has %v (%v), had %v", after, err, all)
	}
	if err := SetCPUs(nil); err == nil {
		t.Error("a thread without any CPU")
	}
}
