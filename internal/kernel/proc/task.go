package proc

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/cnibench/cnibench/internal/measure/sample"
)

// TaskStat is the content of /proc/<pid>/stat for a task, or for all threads of a process.
type TaskStat struct {
	// Command is the name; a kernel worker's includes the queue that it serves or served last.
	Command string
	// Parent is the id of the parent, Threads the number of threads, CPU the CPU on which it ran last.
	Parent, Threads, CPU int
	// ChildrenNs is the CPU time of ended children, in steps of a tick.
	ChildrenNs int64
}

// Columns of stat, from the one after the command on.
const (
	columnParent   = 1
	columnChildren = 13 // user, then system
	columnThreads  = 17
	columnCPU      = 36
)

// ParseTaskStat parses /proc/<pid>/stat; hz is USER_HZ. A command may contain any character.
func ParseTaskStat(b []byte, hz int64) (TaskStat, error) {
	begin, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if begin < 0 || end < begin || hz <= 0 {
		return TaskStat{}, fmt.Errorf("stat of a task: %q", b)
	}
	t := TaskStat{Command: string(b[begin+1 : end])}
	f := bytes.Fields(b[end+1:])
	if len(f) <= columnCPU {
		return TaskStat{}, fmt.Errorf("stat of a task: %q has %d columns", b, len(f))
	}
	var number [4]int64
	for i, column := range []int{columnParent, columnThreads, columnCPU, columnChildren} {
		n, err := strconv.ParseInt(string(f[column]), 10, 64)
		if err != nil {
			return TaskStat{}, fmt.Errorf("stat of a task: column %d: %w", column, err)
		}
		number[i] = n
	}
	system, err := strconv.ParseInt(string(f[columnChildren+1]), 10, 64)
	if err != nil {
		return TaskStat{}, fmt.Errorf("stat of a task: column %d: %w", columnChildren+1, err)
	}
	t.Parent, t.Threads, t.CPU = int(number[0]), int(number[1]), int(number[2])
	t.ChildrenNs = (number[3] + system) * 1e9 / hz
	return t, nil
}

// ParseIdle returns how long each CPU has been idle since boot, in ns. b is /proc/timer_list, read when the monotonic
// clock showed now (ns). A CPU whose tick is stopped counts as idle until now. The result is empty for a kernel without
// dynamic ticks, which does not count idle time.
func ParseIdle(b []byte, now int64) (map[int]int64, error) {
	idle := map[int]int64{}
	n, values := -1, map[string]int64{}
	end := func() {
		slept, counts := values["idle_sleeptime"]
		if n < 0 || !counts || values["nohz"] == 0 && values["nohz_mode"] == 0 {
			return
		}
		if entered := values["idle_entrytime"]; values["tick_stopped"] > 0 && entered > values["idle_exittime"] {
			slept += max(0, now-entered)
		}
		idle[n] = slept + values["iowait_sleeptime"]
	}
	for line := range bytes.Lines(b) {
		line = bytes.TrimSpace(line)
		if number, ok := bytes.CutPrefix(line, []byte("cpu: ")); ok {
			end()
			clear(values)
			var err error
			if n, err = strconv.Atoi(string(number)); err != nil {
				return nil, fmt.Errorf("/proc/timer_list: %q", line)
			}
			continue
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok || len(name) == 0 || name[0] != '.' {
			continue
		}
		value, _, _ = bytes.Cut(bytes.TrimSpace(value), []byte(" "))
		if v, err := strconv.ParseInt(string(value), 10, 64); err == nil {
			values[string(bytes.TrimSpace(name[1:]))] = v
		}
	}
	end()
	return idle, nil
}

// slight is the least share of the time between two snapshots for which a task is listed.
const slight = 0.001

// tasksBetween returns the tasks that ran on the snapshots' CPUs between two snapshots, the longest first. It includes
// tasks that worked for a path on any CPU. It excludes ksoftirqd of these CPUs. It returns nil if a snapshot has no
// tasks.
func tasksBetween(before, after Snapshot) []sample.Task {
	if before.Tasks == nil || after.Tasks == nil {
		return nil
	}
	type place struct {
		command string
		cpu     int
	}
	sum := map[place]int64{}
	for id, t := range after.Tasks {
		was := before.Tasks[id]
		// A worker serves many queues. Its name only has the latest.
		if !t.OfPath() && was.OfPath() {
			t.Command = was.Command
		}
		n, soft := KsoftirqdCPU([]byte(t.Command))
		_, here := after.CPUs[t.CPU]
		_, own := after.CPUs[n]
		if soft && own || !soft && !here && t.CPU >= 0 && !t.OfPath() {
			continue
		}
		if ns := t.Ns - was.Ns; ns > 0 {
			sum[place{t.Command, t.CPU}] += ns
		}
	}
	var list []sample.Task
	for p, ns := range sum {
		if float64(ns) >= slight*float64(after.At-before.At) {
			list = append(list, sample.Task{Command: p.command, CPU: p.cpu, Ns: ns})
		}
	}
	slices.SortFunc(list, func(a, b sample.Task) int {
		return cmp.Or(cmp.Compare(b.Ns, a.Ns), cmp.Compare(a.Command, b.Command), cmp.Compare(a.CPU, b.CPU))
	})
	return list
}
