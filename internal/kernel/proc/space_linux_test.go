package proc

import (
	"os"
	"slices"
	"testing"
)

// TestTasks: the threads of this program are found by their ids in its own PID namespace.
func TestTasks(t *testing.T) {
	own := PIDSpace()
	tasks, err := Tasks()
	if own == 0 || err != nil || !slices.Contains(tasks, Task{ID: os.Getpid(), Inner: os.Getpid(), Space: own}) {
		t.Errorf("namespace %d: %v, %v", own, tasks, err)
	}
	if spaces, err := NetSpaces(); err != nil || !slices.Contains(spaces, inodeOf("/proc/self/ns/net")) || slices.Contains(spaces, 0) {
		t.Errorf("%v, %v", spaces, err)
	}
}

func TestInnermost(t *testing.T) {
	for status, want := range map[string]int{"Name:\tx\nNSpid:\t4001\t12\t7\nNSpgid:\t1\n": 7, "NSpid:\t9\n": 9} {
		if got, ok := innermostID(status); !ok || got != want {
			t.Errorf("%q: %d %v", status, got, ok)
		}
	}
	for _, status := range []string{"", "Name:\tx\n", "NSpid:\n", "NSpid:\tx\n"} {
		if got, ok := innermostID(status); ok {
			t.Errorf("%q: %d", status, got)
		}
	}
}
