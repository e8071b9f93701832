package record

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/kernel/perf"
	"github.com/cnibench/cnibench/internal/kernel/proc"
	"github.com/cnibench/cnibench/internal/measure/sample"
)

// Window defines which samples count, and how to attribute them.
type Window struct {
	// BeganNs is when the window began, on this machine's monotonic clock. Slices are the slices of the client's
	// window.
	BeganNs int64
	Slices  []sample.Interval
	// Threads maps the id of a load thread here to its end of the path.
	Threads map[int]string
	// CPUs are the CPUs of the load threads: samples of other tasks on other CPUs do not count. nil means all CPUs.
	// (optional)
	CPUs []int
	// Space returns the name of a packet's network namespace, "" for a namespace that is not on this path. Without
	// Space, or for "", a stack keeps the name of its task's end. (optional)
	Space func(inode uint32) string
	// Unknown means that this trial does not follow packets although other trials do: stacks that handle a packet get
	// the root sample.UnknownSpace.
	Unknown bool
	// Apart means that the kernel accounts interrupts separately from tasks: softirqs count under any task.
	Apart bool
	// Kernel means that the kernel's own threads for softirqs count, as in the service demand.
	Kernel bool
}

// folder turns samples into counted stacks.
type folder struct {
	Window
	symbols perf.Symbols
	stacks  *sample.Stacks
	// deepest is how many frames the kernel keeps, 0 if unknown.
	deepest int
	// others caches what is known of other tasks.
	others map[int]other
}

// other is a task other than a load thread: its end of the path, and its name.
type other struct{ where, command string }

// foreign is the value of other.where for a task that does not belong to the path.
const foreign = "-"

// addSample counts a sample if it lies in the window: as a stack, or as a sample of other tasks or of the sampling itself.
func (f *folder) addSample(s perf.Sample) {
	at := s.Time - f.BeganNs
	i, _ := slices.BinarySearchFunc(f.Slices, at, func(x sample.Interval, t int64) int { return cmp.Compare(x.EndNs, t) })
	if at < 0 || i == len(f.Slices) {
		return
	}
	kernel := make([]string, 0, len(s.Kernel))
	for _, address := range slices.Backward(s.Kernel) {
		kernel = append(kernel, f.symbols.Name(address))
	}
	task, ofTime := f.taskOf(s), s.Event == ""
	where := task.where
	if where == foreign && !(f.Apart && inSoftIRQ(kernel)) {
		if ofTime && (f.CPUs == nil || slices.Contains(f.CPUs, s.CPU)) {
			f.stacks.Alien(task.command)
		}
		return
	}
	if isMeter(kernel) {
		if ofTime {
			f.stacks.Meter++
		}
		return
	}
	if ofTime && f.deepest > 0 && len(s.Kernel)+len(s.User) >= f.deepest {
		f.stacks.Cut++
	}
	if handlesPacket(kernel) {
		switch {
		case f.Unknown:
			where = sample.UnknownSpace
		case f.Space != nil:
			where = cmp.Or(f.Space(s.Space), where)
		}
	}
	stack := []string{where}
	for _, address := range slices.Backward(s.User) {
		stack = append(stack, userFunction(address))
	}
	if stack = append(stack, kernel...); ofTime {
		f.stacks.Add(i, sample.Counted{Samples: 1, Weight: int64(max(1, s.Period))}, stack...)
	} else {
		f.stacks.Happen(s.Event, sample.Happened{Samples: 1, Events: float64(s.Period)}, stack...)
	}
}

// taskOf returns what is known of the task of a sample: the end of the path that it belongs to, or foreign with its name.
func (f *folder) taskOf(s perf.Sample) other {
	if where, ok := f.Threads[s.Task]; ok {
		return other{where: where}
	}
	task, known := f.others[s.Task]
	if !known {
		task = lookupTask(s.Task, f.Kernel)
		if f.others == nil {
			f.others = map[int]other{}
		}
		f.others[s.Task] = task
	}
	return task
}

// lookupTask returns what is known of a task other than a load thread. kernel means that the kernel's own threads
// belong to the path.
func lookupTask(id int, kernel bool) other {
	if id <= 0 {
		return other{where: foreign} // idle
	}
	command := proc.Text(fmt.Sprintf("/proc/%d/comm", id))
	if kernel && (strings.HasPrefix(command, "ksoftirqd/") || sample.Task{Command: command}.OfPath()) {
		return other{where: "kernel"}
	}
	return other{foreign, cmp.Or(command, sample.Ended)}
}

// userFunction returns the name of an agent's function, "[user]" if unknown. Agents run this very program, at the same
// addresses.
func userFunction(address uint64) string {
	if fn := runtime.FuncForPC(uintptr(address)); fn != nil {
		return fn.Name()
	}
	return "[user]"
}

// inSoftIRQ, handlesPacket and isMeter report whether a kernel stack, outermost frame first, is in a softirq, handles a
// received packet, or belongs to the sampling itself.
func inSoftIRQ(kernel []string) bool {
	return slices.Contains(kernel, "handle_softirqs") || slices.Contains(kernel, "__do_softirq")
}

func handlesPacket(kernel []string) bool {
	return slices.ContainsFunc(kernel, func(name string) bool { return strings.HasPrefix(name, "__netif_receive_skb") })
}

func isMeter(kernel []string) bool {
	return slices.ContainsFunc(kernel[max(0, len(kernel)-4):], func(name string) bool {
		return strings.HasSuffix(name, "_cnibench_space") || slices.Contains(calls, name)
	})
}

// calls are the kernel functions between the tracepoint for received packets and the BPF program that follows packets.
var calls = []string{"__traceiter_netif_receive_skb", "__bpf_trace_netif_receive_skb", "__bpf_trace_net_dev_template", "bpf_trace_run1"}
