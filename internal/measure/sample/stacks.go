package sample

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/each"
)

// NoSymbols is the prefix of an entry of Stacks.Missing if functions of the kernel have no names.
const NoSymbols = "names of kernel functions, so nothing is explained"

// Stacks has what the CPUs of a path executed in one trial: stacks of functions with the number of their samples, by
// slice.
type Stacks struct {
	// Event is the event that triggers samples, "cycles" or "cpu-clock". Rate is the number of samples per second of a
	// busy CPU.
	Event string `json:"event"`
	Rate  int    `json:"rate"`
	// Lost counts the samples that had no room in the buffer, Throttled how often the kernel paused the sampling.
	Lost      uint64 `json:"lost,omitempty"`
	Throttled uint64 `json:"throttled,omitempty"`
	// Foreign counts the samples of idle CPUs and of other tasks on these CPUs, Meter the samples of the sampling itself.
	// Counts has neither.
	Foreign uint64 `json:"foreign,omitempty"`
	Meter   uint64 `json:"meter,omitempty"`
	// Others are the foreign samples of other tasks by their names.
	Others map[string]uint64 `json:"others,omitempty"`
	// Cut counts the samples whose stack was too deep: their outermost functions are missing. They are among the
	// counts.
	Cut uint64 `json:"cut,omitempty"`
	// Counters have how often each event of the processor happened on the path's CPUs in the window, for all tasks,
	// by the name of its metric. Events that the machine does not count are absent.
	Counters map[string]float64 `json:"counters,omitempty"`
	// Events attribute the events in Counters to stacks, by samples of these events. The key is the name of the
	// metric.
	Events map[string][]Happened `json:"events,omitempty"`
	// Missing describes what the machine did not allow, and what is unknown because of that: NoSymbols among others.
	Missing []string `json:"missing,omitempty"`
	// Names are the names of functions, and of the network namespaces that are the roots of the stacks.
	Names []string `json:"names"`
	// Frames are a forest: two numbers for each frame, the index of its caller (-1 for a root) and of its name.
	Frames []int32 `json:"frames"`
	// Counts has for each slice of the client's window, in order, two numbers for each stack: its innermost frame and
	// the number of its samples.
	Counts [][]int32 `json:"counts"`
	// Weights has for each stack in Counts the total weight of its samples: the sum of their periods, in ns or in
	// cycles. Without Weights all samples count the same.
	Weights [][]int64 `json:"weights,omitempty"`

	names  map[string]int32
	frames map[[2]int32]int32
	places []map[int32]int
	// happened maps an event and an innermost frame to the index of their entry in Events[event].
	happened map[string]map[int32]int
}

// Rate is the number of samples per second of a CPU, not synchronized with the kernel's own timers. Samples take 1.0
// % of a CPU's time under rr, 1.8 % under crr and 1.9 % under stream, whose stacks are deeper: means of 22 cases
// each, with errors of 0.1, 0.3 and 0.3.
const Rate = 283

// FollowEvery is the number of sampled trials of a path in a cycle. The first of each cycle follows packets, which
// costs more than the samples do.
const FollowEvery = 4

// UnknownSpace is the root of a stack that handles a packet, in a trial that does not follow packets.
const UnknownSpace = "?"

// SwitchSpace is the root of a stack that handles a packet between the nodes, outside of any dataplane.
const SwitchSpace = "switch"

// Ended is the name of tasks that have ended.
const Ended = "ended tasks"

// Alien counts a sample that does not belong to the path: of a task called command, or of an idle CPU if command is
// "".
func (s *Stacks) Alien(command string) {
	s.Foreign++
	if command != "" {
		addCounts(&s.Others, map[string]uint64{command: 1})
	}
}

// Happened counts an event in one stack: its samples, and the number of events that they represent. Frame is the
// innermost frame of the stack.
type Happened struct {
	Frame   int32   `json:"frame"`
	Samples int     `json:"samples"`
	Events  float64 `json:"events"`
}

// Happen adds h to the counts of an event in a stack, which begins with the outermost frame. It ignores h.Frame.
func (s *Stacks) Happen(event string, h Happened, stack ...string) {
	if s.Events == nil {
		s.Events, s.happened = map[string][]Happened{}, map[string]map[int32]int{}
	}
	if s.happened[event] == nil {
		s.happened[event] = map[int32]int{}
	}
	at := s.frameIndex(stack)
	place, ok := s.happened[event][at]
	if !ok {
		place = len(s.Events[event])
		s.happened[event][at] = place
		s.Events[event] = append(s.Events[event], Happened{Frame: at})
	}
	x := &s.Events[event][place]
	x.Samples, x.Events = x.Samples+h.Samples, x.Events+h.Events
}

// frameIndex returns the index of the innermost frame of a stack, and adds frames that are missing. stack begins with the
// outermost frame.
func (s *Stacks) frameIndex(stack []string) int32 {
	if s.names == nil {
		s.names, s.frames = map[string]int32{}, map[[2]int32]int32{}
	}
	at := int32(-1)
	for _, name := range stack {
		n, ok := s.names[name]
		if !ok {
			n = int32(len(s.Names))
			s.names[name] = n
			s.Names = append(s.Names, name)
		}
		key := [2]int32{at, n}
		if at, ok = s.frames[key]; !ok {
			at = int32(len(s.Frames) / 2)
			s.frames[key] = at
			s.Frames = append(s.Frames, key[:]...)
		}
	}
	return at
}

// Counted is the number of samples of a stack in a slice, and their total weight.
type Counted struct {
	Samples int
	Weight  int64
}

// Add adds c to the counts of a stack in a slice. stack begins with the outermost frame.
func (s *Stacks) Add(slice int, c Counted, stack ...string) {
	at := s.frameIndex(stack)
	for len(s.places) <= slice {
		s.places, s.Counts, s.Weights = append(s.places, map[int32]int{}), append(s.Counts, nil), append(s.Weights, nil)
	}
	place, ok := s.places[slice][at]
	if !ok {
		place = len(s.Weights[slice])
		s.places[slice][at] = place
		s.Counts[slice], s.Weights[slice] = append(s.Counts[slice], at, 0), append(s.Weights[slice], 0)
	}
	s.Counts[slice][2*place+1] += int32(c.Samples)
	s.Weights[slice][place] += c.Weight
}

// Join adds the stacks that another host recorded in the same slices. root renames the outermost entry of each stack;
// it may be nil.
func (s *Stacks) Join(o *Stacks, root func(string) string) {
	s.Event, s.Rate = o.Event, o.Rate
	s.Lost, s.Throttled, s.Foreign, s.Meter = s.Lost+o.Lost, s.Throttled+o.Throttled, s.Foreign+o.Foreign, s.Meter+o.Meter
	s.Cut += o.Cut
	addCounts(&s.Others, o.Others)
	addCounts(&s.Counters, o.Counters)
	s.Missing = each.Once(append(s.Missing, o.Missing...))
	renamed := func(frame int32) []string {
		stack := o.Stack(frame)
		if root != nil {
			stack[0] = root(stack[0])
		}
		return stack
	}
	for i := range o.Counts {
		for frame, c := range o.Of(i) {
			s.Add(i, c, renamed(frame)...)
		}
	}
	for _, event := range slices.Sorted(maps.Keys(o.Events)) {
		for _, h := range o.Events[event] {
			s.Happen(event, h, renamed(h.Frame)...)
		}
	}
}

// Samples returns how many samples the stacks have.
func (s *Stacks) Samples() (all uint64) {
	for i := range s.Counts {
		for _, c := range s.Of(i) {
			all += uint64(c.Samples)
		}
	}
	return all
}

// HasPrograms reports whether a function of the stacks is a BPF program.
func (s *Stacks) HasPrograms() bool {
	return slices.ContainsFunc(s.Names, func(name string) bool { return strings.HasPrefix(name, ProgramPrefix) })
}

// ProgramPrefix is the prefix of the kernel's name of a BPF program, before its tag.
const ProgramPrefix = "bpf_prog_"

// Check fails if stacks from a file refer to missing frames, names or slices, or have negative numbers.
func (s *Stacks) Check() error {
	if len(s.Frames)%2 != 0 {
		return fmt.Errorf("stacks: %d numbers of frames", len(s.Frames))
	}
	for i := 0; i < len(s.Frames); i += 2 {
		if caller, name := s.Frames[i], s.Frames[i+1]; caller < -1 || int(caller) >= i/2 || name < 0 || int(name) >= len(s.Names) {
			return fmt.Errorf("stacks: frame %d is called by %d and has the name %d", i/2, caller, name)
		}
	}
	for i, counts := range s.Counts {
		if len(counts)%2 != 0 {
			return fmt.Errorf("stacks: %d numbers in slice %d", len(counts), i)
		}
		for j := 0; j < len(counts); j += 2 {
			if at, n := counts[j], counts[j+1]; at < 0 || int(at) >= len(s.Frames)/2 || n < 0 {
				return fmt.Errorf("stacks: %d samples of frame %d in slice %d", n, at, i)
			}
		}
	}
	for i, weights := range s.Weights {
		if i >= len(s.Counts) || 2*len(weights) != len(s.Counts[i]) || slices.ContainsFunc(weights, func(w int64) bool { return w < 0 }) {
			return fmt.Errorf("stacks: %d weights in slice %d", len(weights), i)
		}
	}
	for event, by := range s.Events {
		for _, h := range by {
			if h.Frame < 0 || int(h.Frame) >= len(s.Frames)/2 || h.Samples < 0 || !(h.Events >= 0) {
				return fmt.Errorf("stacks: %g of %s in %d samples of frame %d", h.Events, event, h.Samples, h.Frame)
			}
		}
	}
	return nil
}

// Stack returns the stack of a frame, outermost first.
func (s *Stacks) Stack(frame int32) []string {
	var stack []string
	for at := frame; at >= 0; at = s.Frames[2*at] {
		stack = append(stack, s.Names[s.Frames[2*at+1]])
	}
	slices.Reverse(stack)
	return stack
}

// Root returns the outermost name of a frame's stack.
func (s *Stacks) Root(frame int32) string {
	for s.Frames[2*frame] >= 0 {
		frame = s.Frames[2*frame]
	}
	return s.Names[s.Frames[2*frame+1]]
}

// Of returns the innermost frames of a slice with the samples of each.
func (s *Stacks) Of(slice int) iter.Seq2[int32, Counted] {
	return func(yield func(int32, Counted) bool) {
		for i := 0; i+1 < len(s.Counts[slice]); i += 2 {
			n := s.Counts[slice][i+1]
			c := Counted{int(n), int64(n)}
			if slice < len(s.Weights) {
				c.Weight = s.Weights[slice][i/2]
			}
			if !yield(s.Counts[slice][i], c) {
				return
			}
		}
	}
}
