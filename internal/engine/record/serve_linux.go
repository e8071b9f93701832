package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
	"github.com/cnibench/cnibench/internal/kernel/bpf/space"
	"github.com/cnibench/cnibench/internal/kernel/perf"
	"github.com/cnibench/cnibench/internal/kernel/proc"
	"github.com/cnibench/cnibench/internal/measure/sample"
)

// life is how long a sampler waits for a request, in addition to the length of a trial. Between two requests the pods
// of a run may have to start.
const life = 2 * time.Minute

// server is the state of a sampler.
type server struct {
	recorder *Recorder
	// counter replaces recorder if the runs of BPF programs are counted.
	counter *attach.RunCounter
	tracker *space.Tracker
	tasks   []proc.Task
}

// Serve runs the sampler of a node: it reads requests from in and writes answers to out, until in or ctx ends. It fails
// if no request comes for too long.
func Serve(ctx context.Context, in io.Reader, out io.Writer) (err error) {
	s := &server{}
	defer func() { err = errors.Join(err, s.close()) }()
	asks, ended := make(chan control.SamplerAsk), make(chan error, 1)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		d := json.NewDecoder(in)
		for {
			var ask control.SamplerAsk
			if err := d.Decode(&ask); err != nil {
				ended <- err
				return
			}
			select {
			case asks <- ask:
			case <-ctx.Done():
				return
			}
		}
	}()
	e := json.NewEncoder(out)
	limit := time.NewTimer(life)
	defer limit.Stop()
	for answer := (control.SamplerAnswer{Machine: proc.BootID()}); ; {
		if err := e.Encode(answer); err != nil {
			return err
		}
		select {
		case ask := <-asks:
			if ask.Begin != nil {
				limit.Reset(ask.Begin.Length + life)
			}
			if answer, err = s.answerAsk(ask); err != nil {
				answer = control.SamplerAnswer{Error: err.Error()}
			}
		case err := <-ended:
			if errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("a request to the sampler: %w", err)
		case <-limit.C:
			return errors.New("the controller asks for nothing more: the sampler ends")
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *server) answerAsk(ask control.SamplerAsk) (a control.SamplerAnswer, err error) {
	switch {
	case ask.Begin != nil && s.recorder == nil && s.counter == nil:
		return a, s.beginSampling(*ask.Begin)
	case ask.Start && s.counter != nil:
		return a, s.counter.Start()
	case ask.Window != nil && s.counter != nil:
		a.Programs, err = Programs(s.counter, ask.Window.BeganNs)
		return a, err
	case ask.Start && s.recorder != nil:
		return a, errors.Join(s.rememberTasks(), s.recorder.Start())
	case ask.Window != nil && s.recorder != nil:
		return s.endRecording(*ask.Window)
	}
	return a, errors.New("the sampler was asked out of turn")
}

func (s *server) beginSampling(b control.SamplerBegin) (err error) {
	if b.Programs {
		s.counter, err = attach.CountRuns()
		return err
	}
	var failed error
	if b.Follow {
		s.tracker, failed = space.Load()
	}
	if len(b.CPUs) == 0 {
		online, err := proc.OnlineCPUs()
		if err != nil {
			return err
		}
		b.CPUs = online
	}
	r, err := Open(Options{CPUs: b.CPUs, Rate: b.Rate, Length: b.Length, Tracker: s.tracker, Count: perf.Hardware})
	if err != nil {
		return err
	}
	if failed != nil {
		r.Missing = append(r.Missing, "network namespaces of packets, so the switch between nodes of one machine is among the other parts: "+failed.Error())
	}
	s.recorder = r
	return nil
}

// endRecording ends the recording and returns the stacks. It finds the load threads by the ids of tasks on this node.
func (s *server) endRecording(w control.SamplerWindow) (a control.SamplerAnswer, err error) {
	if err := s.rememberTasks(); err != nil {
		return a, err
	}
	threads, err := s.endsByThread(w.Ends)
	if err != nil {
		return a, err
	}
	fold := Window{BeganNs: w.BeganNs, Slices: w.Slices, Threads: threads, CPUs: w.CPUs, Unknown: w.Unknown, Apart: w.Apart, Kernel: w.Apart}
	if s.tracker != nil {
		fold.Space = func(inode uint32) string { return control.SpaceRoot + strconv.FormatUint(uint64(inode), 10) }
		if a.Spaces, err = proc.NetSpaces(); err != nil {
			return a, err
		}
	}
	a.Stacks, err = s.recorder.Finish(fold)
	return a, err
}

// rememberTasks adds the tasks of this node to s.tasks. The threads of agents exist while both sides run, but may be
// gone after the window.
func (s *server) rememberTasks() error {
	tasks, err := proc.Tasks()
	s.tasks = append(s.tasks, tasks...)
	return err
}

// endsByThread maps the ids of the load threads on this node to their ends of the path. It fails if one is not found: its
// samples would count as foreign.
func (s *server) endsByThread(ends map[string][]sample.Thread) (map[int]string, error) {
	threads := map[int]string{}
	for end, list := range ends {
		for _, t := range list {
			i := slices.IndexFunc(s.tasks, func(x proc.Task) bool { return x.Inner == t.ID && x.Space == t.Space })
			if i < 0 {
				return nil, fmt.Errorf("load thread %d of the %s is not among the processes of this node: "+
					"the sampler's pod needs hostPID and CAP_SYS_PTRACE", t.ID, end)
			}
			threads[s.tasks[i].ID] = end
		}
	}
	return threads, nil
}

func (s *server) close() error {
	var errs []error
	if s.counter != nil {
		errs = append(errs, s.counter.Close())
	}
	if s.recorder != nil {
		errs = append(errs, s.recorder.Close())
	}
	if s.tracker != nil {
		errs = append(errs, s.tracker.Close())
	}
	return errors.Join(errs...)
}
