package proc

import (
	"fmt"
	"maps"
	"os"
	"strconv"
	"sync"

	"github.com/cnibench/cnibench/internal/measure/sample"
)

// tasks reads the CPU clocks of all tasks of the machine. The clock of a process takes one system call of 0.3 us. All
// else about a process is read again only if its clock has advanced.
type tasks struct {
	known map[int]*process
	// self and parent are the ids of this process and of its parent, command is its name.
	self, parent int
	command      string
}

// process is the cached state of a process.
type process struct {
	ns int64
	// tasks are its threads by id, and its ended children under its negative id.
	tasks map[int]sample.Task
}

// newTasks returns a reader of all tasks, nil if the kernel's threads are not visible, as in a container.
func newTasks() *tasks {
	if Text("/proc/2/comm") != "kthreadd" {
		return nil
	}
	return &tasks{known: map[int]*process{}, self: os.Getpid(), parent: os.Getppid(), command: Text("/proc/self/comm")}
}

// processClocks reads the CPU clocks of all processes but this one, by id. It takes 0.1 ms for a hundred of them, so all are
// from about the same moment.
func (t *tasks) processClocks() (map[int]int64, error) {
	if t == nil {
		return nil, nil
	}
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close() // it was only read
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	clocks := make(map[int]int64, len(names))
	for _, name := range names {
		id, err := strconv.Atoi(name)
		if err != nil || id == t.self {
			continue
		}
		if ns, err := ProcessCPU(id); err == nil { // a process that has ended meanwhile is omitted
			clocks[id] = ns
		}
	}
	return clocks, nil
}

// tasksByID returns the tasks of the processes in clocks, without this run's agents. The keys are the ids of the tasks.
func (t *tasks) tasksByID(clocks map[int]int64) map[int]sample.Task {
	if t == nil || clocks == nil {
		return nil
	}
	now := make(map[int]*process, len(clocks))
	all := make(map[int]sample.Task, len(clocks))
	for id, ns := range clocks {
		p := t.known[id]
		if p == nil || p.ns != ns {
			p = t.readProcess(id, ns)
		}
		now[id] = p
		maps.Copy(all, p.tasks)
	}
	t.known = now
	return all
}

// readProcess reads the tasks of process id. The result has no tasks if the process is one of this run's agents or has
// ended.
func (t *tasks) readProcess(id int, ns int64) *process {
	p := &process{ns: ns}
	stat, err := parseFile(fmt.Sprintf("/proc/%d/stat", id), parseTaskStat)
	if err != nil || stat.Parent == t.self || stat.Parent == t.parent && stat.Command == t.command {
		return p
	}
	p.tasks = map[int]sample.Task{id: {Command: stat.Command, CPU: stat.CPU, Ns: ns}}
	if stat.Threads > 1 {
		p.tasks = threadsOf(id, stat.Command)
	}
	if stat.ChildrenNs > 0 {
		p.tasks[-id] = sample.Task{Command: "ended children of " + stat.Command, CPU: -1, Ns: stat.ChildrenNs}
	}
	return p
}

// threadsOf reads the threads of a process. Other processes cannot read their clocks; the scheduler's count lacks at
// most the current tick.
func threadsOf(id int, command string) map[int]sample.Task {
	all := map[int]sample.Task{}
	entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", id)) // a process that has ended has none
	for _, e := range entries {
		n, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		dir := fmt.Sprintf("/proc/%d/task/%d/", id, n)
		times, failed := parseFile(dir+"schedstat", ParseSchedstat)
		if stat, err := parseFile(dir+"stat", parseTaskStat); err == nil && failed == nil {
			all[n] = sample.Task{Command: command, CPU: stat.CPU, Ns: times.Ran}
		}
	}
	return all
}

func parseTaskStat(b []byte) (TaskStat, error) { return ParseTaskStat(b, UserHz()) }

// manyCPUs is the largest number of CPUs for which the list of timers is short enough to read at the edges of a window.
const manyCPUs = 32

// longTimerList reports whether the list of timers takes too long to read. It is true if the number of CPUs is unknown.
// The list has all CPUs, even those that this process may not use.
var longTimerList = sync.OnceValue(func() bool {
	online, err := OnlineCPUs()
	return err != nil || len(online) > manyCPUs
})

// timerList returns /proc/timer_list, which has the exact idle times of CPUs. It returns nil if this process may not
// read the file, or if reading would take too long.
func timerList() []byte {
	if longTimerList() {
		return nil
	}
	b, _ := os.ReadFile("/proc/timer_list") // for root only; otherwise /proc/stat has it in ticks
	return b
}
