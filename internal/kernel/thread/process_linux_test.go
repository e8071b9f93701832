package thread

import (
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

func TestSetProcessCPUs(t *testing.T) {
	all, err := CPUs()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 2 {
		t.Skipf("the machine lends this test the CPUs %v only: nothing to leave", all)
	}
	if err := SetProcessCPUs(all[:1]); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := SetProcessCPUs(all); err != nil {
			t.Error(err)
		}
	}()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range tasks {
		tid, err := strconv.Atoi(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		var now unix.CPUSet
		if err := unix.SchedGetaffinity(tid, &now); err == nil && (now.Count() != 1 || !now.IsSet(all[0])) {
			t.Errorf("thread %d may run on %d CPUs", tid, now.Count())
		}
	}
	if err := SetProcessCPUs(nil); err == nil {
		t.Error("confined to no CPU at all")
	}
}
