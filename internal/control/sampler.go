package control

import (
	"time"

	"github.com/cnibench/cnibench/internal/measure/sample"
)

// SamplerArgs is the command line of a node's sampler, which records what the CPUs of a node execute during one
// trial. The sampler writes lines of JSON: a SamplerAnswer at the start, and one for each SamplerAsk. It ends with
// its input.
var SamplerArgs = []string{"/cnibench", "sample"}

// SamplerAsk is one request: Begin prepares, Start begins to take samples or to count runs, Window returns the
// results.
type SamplerAsk struct {
	Begin  *SamplerBegin  `json:"begin,omitempty"`
	Start  bool           `json:"start,omitempty"`
	Window *SamplerWindow `json:"window,omitempty"`
}

// SamplerBegin is the request to sample.
type SamplerBegin struct {
	// CPUs are the CPUs to sample. Without any, all CPUs that are online are sampled.
	CPUs []int `json:"cpus,omitempty"`
	// Rate is the number of samples per second and CPU.
	Rate int `json:"rate"`
	// Length is the longest time between Start and Window.
	Length time.Duration `json:"length"`
	// Follow asks to follow packets from one network namespace to the next.
	Follow bool `json:"follow,omitempty"`
	// Programs asks to count the runs of BPF programs, and to sample nothing.
	Programs bool `json:"programs,omitempty"`
}

// SamplerWindow tells the sampler which samples count, and how to attribute them.
type SamplerWindow struct {
	// BeganNs is when the window began, on the monotonic clock of the sampler's machine. Slices are the slices of the
	// client's window.
	BeganNs int64             `json:"began_ns"`
	Slices  []sample.Interval `json:"slices"`
	// Ends are the load threads on this node, by the name of their end of the path.
	Ends map[string][]sample.Thread `json:"ends"`
	// CPUs are the CPUs of the load threads on this node. Samples of other tasks on other CPUs do not belong to the
	// path.
	CPUs []int `json:"cpus,omitempty"`
	// Unknown means that this trial does not follow packets although other trials do. Apart means that the kernel
	// accounts interrupts separately from tasks.
	Unknown bool `json:"unknown,omitempty"`
	Apart   bool `json:"apart,omitempty"`
}

// SamplerAnswer is a message of a sampler.
type SamplerAnswer struct {
	// Error is the reason why the request failed.
	Error string `json:"error,omitempty"`
	// Machine is the id of the kernel's boot.
	Machine string `json:"machine,omitempty"`
	// Stacks answer Window. The root of a stack that handles a followed packet is SpaceRoot and the inode of the
	// packet's network namespace. Spaces are the namespaces of the processes on this node.
	Stacks *sample.Stacks `json:"stacks,omitempty"`
	Spaces []uint64       `json:"spaces,omitempty"`
	// Programs answer Window if they were asked for.
	Programs *sample.Programs `json:"programs,omitempty"`
}

// SpaceRoot is the prefix of a stack's root in a network namespace; the namespace's inode follows.
const SpaceRoot = "net:"
