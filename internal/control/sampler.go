package control

import (
	"time"

	"github.com/cnibench/cnibench/internal/measure/sample"
)

// SamplerArgs start the sampler of a node. It records what the CPUs of a node execute during one trial, and speaks lines of
// JSON: it begins with a SamplerAnswer, and gives one to each SamplerAsk. It ends with its input.
var SamplerArgs = []string{"/cnibench", "sample"}

// SamplerAsk is one of: prepare (Begin), take samples or count runs (Start), return them (Window).
type SamplerAsk struct {
	Begin  *SamplerBegin  `json:"begin,omitempty"`
	Start  bool           `json:"start,omitempty"`
	Window *SamplerWindow `json:"window,omitempty"`
}

// SamplerBegin says what to sample.
type SamplerBegin struct {
	// CPUs are those to sample, none for all that are online.
	CPUs []int `json:"cpus,omitempty"`
	// Rate is how many samples are taken in a second of a CPU.
	Rate int `json:"rate"`
	// Length is the longest time between Start and Window.
	Length time.Duration `json:"length"`
	// Follow asks to follow packets from one network namespace to the next.
	Follow bool `json:"follow,omitempty"`
	// Programs asks to count the runs of BPF programs, and to sample nothing.
	Programs bool `json:"programs,omitempty"`
}

// SamplerWindow says which samples count, and whose they are.
type SamplerWindow struct {
	// BeganNs is when the window began, on the monotonic clock of the sampler's machine. Slices are those of the client's window.
	BeganNs int64             `json:"began_ns"`
	Slices  []sample.Interval `json:"slices"`
	// Ends are the load threads on this node by the name of their end.
	Ends map[string][]sample.Thread `json:"ends"`
	// CPUs are those of the load threads on this node. Samples of other tasks on other CPUs say nothing of the path.
	CPUs []int `json:"cpus,omitempty"`
	// Unknown says that packets are not followed in this trial, but are in others. Apart says that the kernel accounts
	// interrupts apart from tasks.
	Unknown bool `json:"unknown,omitempty"`
	Apart   bool `json:"apart,omitempty"`
}

// SamplerAnswer is what a sampler says.
type SamplerAnswer struct {
	// Error says why the request failed.
	Error string `json:"error,omitempty"`
	// Machine is the id of the kernel's boot.
	Machine string `json:"machine,omitempty"`
	// Stacks answer Window. The root of a stack that handles a followed packet is SpaceRoot and the inode of the packet's
	// network namespace. Spaces are the namespaces of the processes on this node.
	Stacks *sample.Stacks `json:"stacks,omitempty"`
	Spaces []uint64       `json:"spaces,omitempty"`
	// Programs answer Window if they were asked for.
	Programs *sample.Programs `json:"programs,omitempty"`
}

// SpaceRoot begins the root of a stack in a network namespace, before its inode.
const SpaceRoot = "net:"
