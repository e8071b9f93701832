package thread

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFilterCalls sees the filter on every thread, also on those that were there before.
func TestFilterCalls(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a filter without no_new_privs needs root")
	}
	if err := FilterCalls(); err != nil {
		t.Fatal(err)
	}
	tasks, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil || len(tasks) < 2 {
		t.Fatalf("%d threads, %v", len(tasks), err)
	}
	for _, task := range tasks {
		status, err := os.ReadFile(task)
		if os.IsNotExist(err) {
			continue // a thread that has ended
		}
		if err != nil || !strings.Contains(string(status), "\nSeccomp:\t2\n") {
			t.Errorf("%s: %v, and no filter", task, err)
		}
	}
}
