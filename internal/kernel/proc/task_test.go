package proc

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/measure/sample"
)

func TestParseTaskStat(t *testing.T) {
	const (
		worker = "11 (kworker/0:1-events) I 2 0 0 0 -1 69238880 0 0 0 0 3 7 0 0 20 0 1 0 12 0 0 18446744073709551615 0 0 0 0 0 0 0 2147483647 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
		parent = "834 (a) (b c)) S 1 834 834 0 -1 4194560 1 2 3 4 11 12 250 50 20 0 9 0 99 1 1 1 1 1 0 0 0 0 0 0 0 0 0 0 17 3 0 0 0 0 0 0 0 0 0 0 0 0 0"
	)
	got, err := ParseTaskStat([]byte(worker), 100)
	check(t, "a worker", got, err, TaskStat{Command: "kworker/0:1-events", Parent: 2, Threads: 1})
	got, err = ParseTaskStat([]byte(parent), 100)
	check(t, "a command with parentheses", got, err, TaskStat{Command: "a) (b c)", Parent: 1, Threads: 9, CPU: 3, ChildrenNs: 3e9})
	for _, in := range []string{"", "1 (a", "1 a) S 2", "1 (a) S 2 3", "9 (x) S y" + worker[len("11 (kworker/0:1-events) I 2"):]} {
		_, err := ParseTaskStat([]byte(in), 100)
		refuse(t, "stat", in, err)
	}
	if _, err := ParseTaskStat([]byte(worker), 0); err == nil {
		t.Error("without the length of a tick")
	}
}

// timers is /proc/timer_list of a machine of three CPUs: busy, idle without a tick, idle with it.
const timers = `Timer List Version: v0.10
now at 834943000000 nsecs

cpu: 0
 clock 0:
  .base:       00000000d2a7548d
  .resolution: 1 nsecs
 #0: <000000002cbff794>, tick_nohz_handler, S:01
 # expires at 816816000000-816816000000 nsecs [in 798951 to 798951 nsecs]
  .hres_active    : 1
  .nohz           : 1
  .tick_stopped   : 0
  .idle_entrytime : 834941560237 nsecs
  .idle_exittime  : 834936519915 nsecs
  .idle_sleeptime : 5000 nsecs
  .iowait_sleeptime: 20 nsecs
jiffies: 4295100975

cpu: 1
  .nohz_mode      : 2
  .tick_stopped   : 1
  .idle_entrytime : 834942000000 nsecs
  .idle_exittime  : 834936519915 nsecs
  .idle_sleeptime : 7000 nsecs
  .iowait_sleeptime: 0 nsecs

cpu: 12
  .nohz           : 1
  .tick_stopped   : 1
  .idle_entrytime : 10 nsecs
  .idle_exittime  : 20 nsecs
  .idle_sleeptime : 9000 nsecs
  .iowait_sleeptime: 1 nsecs
Tick Device: mode:     1
Per CPU device: 0
`

func TestParseIdle(t *testing.T) {
	got, err := ParseIdle([]byte(timers), 834943000000)
	check(t, "three CPUs", got, err, map[int]int64{0: 5020, 1: 1007000, 12: 9001})
	got, err = ParseIdle([]byte("cpu: 0\n  .nohz           : 0\n  .idle_sleeptime : 0 nsecs\n"), 1)
	check(t, "no dynamic ticks", got, err, map[int]int64{})
	got, err = ParseIdle(nil, 1)
	check(t, "nothing", got, err, map[int]int64{})
	_, err = ParseIdle([]byte("cpu: x\n"), 1)
	refuse(t, "timer_list", "cpu: x", err)
}

// TestRan: of what ran between two snapshots, the tasks on the chosen CPUs and those of a path anywhere.
func TestRan(t *testing.T) {
	one := map[int]sample.Time{1: {}}
	before := Snapshot{At: 5e9, CPUs: one, Tasks: map[int]sample.Task{
		1: {Command: "gzip", CPU: 1, Ns: 4e9}, 2: {Command: "gzip", CPU: 1}, 3: {Command: "make", CPU: 0},
		4: {Command: "kworker/0:1-wg-crypt-wg0", CPU: 0}, 5: {Command: "kworker/1:3-events", CPU: 1}, 6: {Command: "ksoftirqd/1", CPU: 1},
		7: {Command: "ksoftirqd/0", CPU: 0}, 8: {Command: "sleep", CPU: 1}, -3: {Command: "ended children of make", CPU: -1},
	}}
	after := Snapshot{At: 6e9, CPUs: one, Tasks: map[int]sample.Task{
		1: {Command: "gzip", CPU: 1, Ns: 4.1e9}, 2: {Command: "gzip", CPU: 1, Ns: 2e8}, 3: {Command: "make", CPU: 0, Ns: 5e8},
		4: {Command: "kworker/0:1-events", CPU: 0, Ns: 4e8}, 5: {Command: "kworker/1:3-events", CPU: 1, Ns: 2e6}, 6: {Command: "ksoftirqd/1", CPU: 1, Ns: 5e8},
		7: {Command: "ksoftirqd/0", CPU: 0, Ns: 3e6}, 8: {Command: "sleep", CPU: 1, Ns: 9e5}, -3: {Command: "ended children of make", CPU: -1, Ns: 1e8},
		9: {Command: "new", CPU: 1, Ns: 5e6},
	}}
	want := []sample.Task{
		{Command: "kworker/0:1-wg-crypt-wg0", CPU: 0, Ns: 4e8}, {Command: "gzip", CPU: 1, Ns: 3e8}, {Command: "ended children of make", CPU: -1, Ns: 1e8},
		{Command: "new", CPU: 1, Ns: 5e6}, {Command: "ksoftirqd/0", CPU: 0, Ns: 3e6}, {Command: "kworker/1:3-events", CPU: 1, Ns: 2e6},
	}
	if diff := cmp.Diff(want, tasksBetween(before, after)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := tasksBetween(Snapshot{}, after); got != nil {
		t.Errorf("without a first look: %v", got)
	}
}
