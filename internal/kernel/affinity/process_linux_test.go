package affinity

import (
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

func TestSetProcess(t *testing.T) {
	all, err := Get()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 2 {
		t.Skipf("the machine lends this test the CPUs %v only: nothing to leave", all)
	}
	if err := SetProcess(all[:1]); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := SetProcess(all); err != nil {
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
	if err := SetProcess(nil); err == nil {
		t.Error("confined to no CPU at all")
	}
}
