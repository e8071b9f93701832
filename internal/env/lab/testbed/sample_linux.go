package testbed

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/kernel/bpf/space"
	"github.com/cnibench/cnibench/internal/kernel/perf"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

// sampleRate is how many samples are taken in a second of a CPU: few enough that they cost little of it, and not in step with
// the kernel's own timers.
const sampleRate = 499

// slack is how much longer than a trial its rings have room for.
const slack = 500 * time.Millisecond

// followEvery is how many sampled trials of a path have one in which packets are followed, the first. Following them costs
// more than the samples do.
const followEvery = 4

// sampling follows packets for samples. Its programs are loaded once, when the first trial is sampled.
type sampling struct {
	// rate is how many samples are taken in a second of a CPU. Packets are followed in one of every so many sampled trials.
	rate, every int

	load    sync.Once
	tracker *space.Tracker
	failed  error
	// turns counts the sampled trials of each path.
	turns map[plan.Route]int
}

// follow begins to follow packets, if it is the turn of a path's trial.
func (s *sampling) follow(r plan.Route) (follows bool, err error) {
	s.load.Do(func() { s.tracker, s.failed = space.Load(); s.turns = map[plan.Route]int{} })
	turn := s.turns[r]
	s.turns[r]++
	if s.failed != nil || turn%s.every != 0 {
		return false, s.failed
	}
	err = s.tracker.Follow()
	return err == nil, err
}

func (s *sampling) close() error {
	if s.tracker == nil {
		return nil
	}
	return s.tracker.Close()
}

// recorder samples the CPUs of one trial.
type recorder struct {
	sampling *sampling
	sampler  *perf.Sampler
	missing  []string
	// spaces has the names of the hosts by the inode of their namespace.
	spaces map[uint32]string
	// client and server are the hosts at the ends.
	client, server string
	// unknown says that packets are not followed in this trial, but are in others.
	unknown bool
	// apart says that the kernel accounts interrupts apart from tasks.
	apart bool
}

// sample prepares to record what the CPUs of a path do.
func (e *Environment) sample(v plan.Variant, p plan.Path, length time.Duration) (env.Recording, error) {
	inst := e.lab.Instance(v)
	if inst == nil || inst.Err != nil {
		return env.Recording{}, fmt.Errorf("profile %q is not up", v)
	}
	ends, err := inst.Spec.Ends(p)
	if err != nil {
		return env.Recording{}, err
	}
	r := &recorder{sampling: &e.sampling, client: ends.Client, server: ends.Server, apart: e.Conditions().IRQApart}
	follows, failed := e.sampling.follow(plan.Single(v, p))
	if failed != nil {
		r.missing = append(r.missing, "network namespaces of packets, so the switch is among the other parts: "+failed.Error())
	}
	r.unknown = !follows && failed == nil
	if r.spaces, err = spacesOf(inst); err != nil {
		return env.Recording{}, errors.Join(err, r.close())
	}
	o := perf.Options{CPUs: pathCPUs(inst, ends), Rate: e.sampling.rate, Length: length + slack}
	if follows {
		o.Space = e.sampling.tracker
	}
	if r.sampler, err = perf.Open(o); err != nil {
		return env.Recording{}, errors.Join(err, r.close())
	}
	return env.Recording{Start: r.sampler.Start, Finish: r.finish}, nil
}

// pathCPUs are the CPUs of the hosts on a path.
func pathCPUs(inst *lab.Instance, ends lab.Ends) []int {
	var cpus []int
	for _, h := range inst.Crossed(ends) {
		cpus = append(cpus, h.CPUs...)
	}
	slices.Sort(cpus)
	return slices.Compact(cpus)
}

func spacesOf(inst *lab.Instance) (map[uint32]string, error) {
	spaces := map[uint32]string{}
	for _, h := range inst.Hosts() {
		inode, err := h.NS.Inode()
		if err != nil {
			return nil, err
		}
		spaces[uint32(inode)] = h.Name
	}
	return spaces, nil
}

// close ends the sampling of a trial.
func (r *recorder) close() error {
	var err error
	if r.sampler != nil {
		err = r.sampler.Close()
	}
	if r.sampling.tracker != nil {
		err = errors.Join(err, r.sampling.tracker.Rest())
	}
	return err
}

// finish returns the stacks of the load threads and of the kernel's own work for them, by slices of the client.
func (r *recorder) finish(client, server *sample.Observation) (stacks *sample.Stacks, err error) {
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.sampler.Stop(); err != nil || client == nil || server == nil {
		return nil, err
	}
	got, err := r.sampler.Read()
	if err != nil {
		return nil, err
	}
	symbols, err := perf.ReadKernel()
	if err != nil {
		r.missing = append(r.missing, "names of kernel functions, so nothing is explained: "+err.Error())
	}
	f := folder{recorder: r, symbols: symbols, threads: map[int]string{}, window: client, stacks: &sample.Stacks{
		Event: r.sampler.Event, Rate: r.sampling.rate, Lost: got.Lost, Throttled: got.Throttled, Missing: r.missing,
	}}
	for _, id := range client.Threads {
		f.threads[id] = r.client
	}
	for _, id := range server.Threads {
		f.threads[id] = r.server
	}
	for _, s := range got.List {
		f.add(s)
	}
	return f.stacks, nil
}

// folder turns samples into counted stacks.
type folder struct {
	*recorder
	symbols perf.Symbols
	// threads has the hosts of tasks whose samples count: "" for a task of the kernel, "-" for one that is foreign.
	threads map[int]string
	window  *sample.Observation
	stacks  *sample.Stacks
	// slices are those of the window.
	slices []sample.Interval
}

const foreign = "-"

// add counts a sample if it lies in the window.
func (f *folder) add(s perf.Sample) {
	if f.slices == nil {
		f.slices = slices.DeleteFunc(slices.Clone(f.window.Intervals), func(i sample.Interval) bool { return i.Warmup })
	}
	at := s.Time - f.window.BeganNs
	i, _ := slices.BinarySearchFunc(f.slices, at, func(x sample.Interval, t int64) int { return cmp.Compare(x.EndNs, t) })
	if at < 0 || i == len(f.slices) {
		return
	}
	kernel := make([]string, 0, len(s.Kernel))
	for _, address := range slices.Backward(s.Kernel) {
		kernel = append(kernel, f.symbols.Name(address))
	}
	where := f.host(s)
	if where == foreign && !(f.apart && inSoftIRQ(kernel)) {
		f.stacks.Foreign++
		return
	}
	if isMeter(kernel) {
		f.stacks.Meter++
		return
	}
	if space := f.spaces[s.Space]; receives(kernel) {
		switch {
		case f.unknown:
			where = sample.UnknownSpace
		case space != "":
			where = space
		}
	}
	stack := []string{where}
	for _, address := range slices.Backward(s.User) {
		stack = append(stack, f.user(address))
	}
	f.stacks.Add(i, append(stack, kernel...)...)
}

// host is the host of the task of a sample.
func (f *folder) host(s perf.Sample) string {
	where, known := f.threads[s.Task]
	if !known {
		where = foreign
		if comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", s.Task)); err == nil && strings.HasPrefix(string(comm), "ksoftirqd/") {
			where = "kernel"
		}
		f.threads[s.Task] = where
	}
	return where
}

// user names a function of an agent. Agents run this very program, at the same addresses.
func (f *folder) user(address uint64) string {
	if fn := runtime.FuncForPC(uintptr(address)); fn != nil {
		return fn.Name()
	}
	return "[user]"
}

// inSoftIRQ, receives and isMeter say what a kernel stack is in, outermost frame first: the kernel's deferred work, the
// handling of a received packet, the sampling itself.
func inSoftIRQ(kernel []string) bool {
	return slices.Contains(kernel, "handle_softirqs") || slices.Contains(kernel, "__do_softirq")
}

func receives(kernel []string) bool {
	return slices.ContainsFunc(kernel, func(name string) bool { return strings.HasPrefix(name, "__netif_receive_skb") })
}

func isMeter(kernel []string) bool {
	return slices.ContainsFunc(kernel[max(0, len(kernel)-4):], func(name string) bool {
		return strings.HasSuffix(name, "_cnibench_space") || name == "__bpf_trace_netif_receive_skb" || name == "__traceiter_netif_receive_skb"
	})
}
