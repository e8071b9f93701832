package testbed

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/engine/record"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
	"github.com/cnibench/cnibench/internal/kernel/bpf/space"
	"github.com/cnibench/cnibench/internal/kernel/perf"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

// sampling decides which sampled trials also follow packets from namespace to namespace. The BPF programs for that are
// loaded once, at the first sampled trial.
type sampling struct {
	// rate is the number of samples per second and CPU.
	rate int
	// every is n if one of n sampled trials of a route follows packets.
	every int

	load    sync.Once
	tracker *space.Tracker
	failed  error
	// turns counts the sampled trials of each route.
	turns map[plan.Route]int
}

// nextTracker returns the programs that follow packets in this trial of a route. It returns nil if it is not this
// trial's turn. It fails if the programs cannot be loaded.
func (s *sampling) nextTracker(r plan.Route) (*space.Tracker, error) {
	s.load.Do(func() { s.tracker, s.failed = space.Load(); s.turns = map[plan.Route]int{} })
	turn := s.turns[r]
	s.turns[r]++
	if s.failed != nil || turn%s.every != 0 {
		return nil, s.failed
	}
	return s.tracker, nil
}

func (s *sampling) close() error {
	if s.tracker == nil {
		return nil
	}
	return s.tracker.Close()
}

// recorder records one trial.
type recorder struct {
	*record.Recorder
	// spaces maps the inode of a namespace to its host's name.
	spaces map[uint32]string
	// client and server are the hosts at the ends.
	client, server string
	// unknown means that this trial does not follow packets although other trials do.
	unknown bool
	// apart means that the kernel accounts interrupts separately from tasks.
	apart bool
}

// Sample prepares to record what the CPUs of a path execute. It fails if the path is not served.
func (e *Environment) Sample(v plan.Variant, p plan.Path, length time.Duration) (env.Recording, error) {
	inst := e.Instance(v)
	if inst == nil || inst.Err != nil {
		return env.Recording{}, fmt.Errorf("profile %q is not up", v)
	}
	ends, err := inst.Spec.Ends(p)
	if err != nil {
		return env.Recording{}, err
	}
	r := &recorder{client: namespaceOwner(inst, ends.Client), server: namespaceOwner(inst, ends.Server), apart: e.Conditions().IRQApart}
	if r.spaces, err = hostsByInode(inst); err != nil {
		return env.Recording{}, err
	}
	return e.sampling.openRecording(r, plan.Single(v, p), lab.CPUs(inst.Crossed(ends)), length)
}

// openRecording opens the recorder of a route on cpus. If packets cannot be followed, r.Missing has the reason.
func (s *sampling) openRecording(r *recorder, route plan.Route, cpus []int, length time.Duration) (_ env.Recording, err error) {
	o := record.Options{CPUs: cpus, Rate: s.rate, Length: length, Count: perf.Hardware}
	var failed error
	o.Tracker, failed = s.nextTracker(route)
	r.unknown = o.Tracker == nil && failed == nil
	if r.Recorder, err = record.Open(o); err != nil {
		return env.Recording{}, err
	}
	if failed != nil {
		r.Missing = append(r.Missing, "network namespaces of packets, so the switch is among the other parts: "+failed.Error())
	}
	return env.Recording{Start: r.Start, Finish: r.collectStacks}, nil
}

// Sample prepares to record what the CPUs of a path execute. It fails if the path is not served.
func (e *Standing) Sample(v plan.Variant, p plan.Path, length time.Duration) (env.Recording, error) {
	ends, err := e.endsOf(p)
	if err != nil {
		return env.Recording{}, err
	}
	r := &recorder{client: ends.Client, server: ends.Server, apart: e.Conditions().IRQApart, spaces: map[uint32]string{}}
	for _, h := range e.of.Hosts {
		_, ns, err := Ask(e.options.Lab, e.prefix+h.Name, e.options.Sudo)
		if err != nil {
			return env.Recording{}, err
		}
		inode, err := ns.Inode()
		if err := errors.Join(err, ns.Close()); err != nil {
			return env.Recording{}, err
		}
		r.spaces[uint32(inode)] = h.Name
	}
	return e.sampling.openRecording(r, plan.Single(v, p), e.Conditions().CPUs, length)
}

// hostsByInode returns the names of the hosts that own the namespaces, by inode. Host-network pods own none.
func hostsByInode(inst *lab.Instance) (map[uint32]string, error) {
	spaces := map[uint32]string{}
	for _, h := range inst.Distinct() {
		inode, err := h.NS.Inode()
		if err != nil {
			return nil, err
		}
		spaces[uint32(inode)] = h.Name
	}
	return spaces, nil
}

// collectStacks closes the recorder and returns the stacks of the load threads and of the kernel's work for them.
// They are counted per slice of the client's window. Without both observations it returns no stacks.
func (r *recorder) collectStacks(client, server *sample.Observation) (seen sample.Recorded, err error) {
	defer func() { err = errors.Join(err, r.Close()) }()
	if client == nil || server == nil {
		return seen, nil
	}
	w := record.Window{
		BeganNs: client.BeganNs, Slices: sample.InWindow(client.Intervals), Threads: map[int]string{},
		Space: func(inode uint32) string { return r.spaces[inode] }, Unknown: r.unknown, Apart: r.apart, Kernel: true,
	}
	for _, t := range client.Threads {
		w.Threads[t.ID] = r.client
	}
	for _, t := range server.Threads {
		w.Threads[t.ID] = r.server
	}
	seen.Stacks, err = r.Finish(w)
	return seen, err
}

// Count prepares to count the runs of BPF programs. The count includes runs for other traffic of the machine.
func (e *Environment) Count(plan.Variant, plan.Path, time.Duration) (env.Recording, error) {
	return openRunCounter()
}

// Count does the same as Environment.Count.
func (e *Standing) Count(plan.Variant, plan.Path, time.Duration) (env.Recording, error) {
	return openRunCounter()
}

func openRunCounter() (env.Recording, error) {
	c, err := attach.CountRuns()
	if err != nil {
		return env.Recording{}, err
	}
	return env.Recording{Start: c.Start, Finish: func(client, server *sample.Observation) (seen sample.Recorded, err error) {
		defer func() { err = errors.Join(err, c.Close()) }()
		if client == nil || server == nil {
			return seen, nil
		}
		seen.Programs, err = record.Programs(c, client.BeganNs)
		return seen, err
	}}, nil
}
