// Package adapter is the contract between package external and the folder of each tool.
//
//	bytes ──► Format.Match ──► Format.Decode ──► Batch{Readings}
//	plan.Workload ──► Sender.Client, Sender.Server ──► argv
//
// A decoder works on bytes alone: it opens no file, runs no program, and trusts no size and no path. It returns readings, or
// an error with the line. A metric that the tool did not measure is missing from a reading, never 0. A
// failed trial stays failed. Numbers without a metric of ours are listed in Batch.LeftOut.
package adapter

import (
	"net/netip"
	"strconv"
	"time"

	"github.com/cnibench/cnibench/internal/vocab/pattern"

	"github.com/cnibench/cnibench/internal/plan"
)

// Tool is a program whose output can be imported and which may send workloads for us.
type Tool struct {
	// Formats are the outputs that can be decoded.
	Formats []Format
	// Sender describes how it sends our workloads; nil if it cannot. The first of Formats reads the output of its client.
	Sender *Sender
}

// Format is one kind of output.
type Format struct {
	// Name and About are printed by help.
	Name, About string
	// Match reports whether b, the whole input, is in this format.
	Match func(b []byte) bool
	// Decode decodes b. It fails if b is invalid or cut off.
	Decode func(b []byte) (Batch, error)
	// Folder reads the folder called name; nil if the format is a file. Formats that are folders have no Match and Decode.
	Folder func(name string) (Batch, error)
}

// Sender describes how a tool sends workloads.
type Sender struct {
	// Tool has the properties that a plan needs.
	plan.Tool
	// Program returns the name of the program file; nil means the name of the tool.
	Program func(w plan.Workload) string
	// Client and Server return the command lines of the two sides. Server is nil if our engine or the kernel is the server.
	Client, Server func(a Ask) []string
	// Ends is true if the server ends by itself when its client has ended.
	Ends bool
	// Datagrams is true if the server of a UDP workload listens on UDP only.
	Datagrams bool
	// Differs lists how a trial differs from one by our engine, except for its window; nil means no difference.
	Differs func(a Ask) []string
	// VersionArgs makes the tool print its version, and VersionIn matches it in that output; nil if it does not print
	// one.
	VersionArgs []string
	VersionIn   *pattern.Pattern
}

// Ask describes what a tool must do as one side of one trial.
type Ask struct {
	// Workload is normalized, and its tool can send it.
	Workload plan.Workload
	// Address and Port are what the client dials, or what the server binds to. The Address "" binds to any address.
	Address string
	Port    int
	// Window and Warmup are those of the plan. Measured returns those that the tool uses.
	Window, Warmup time.Duration
	// SystemCongestion means that the user of the tool may not set the congestion control: the system's default
	// applies, and the tool's output names it.
	SystemCongestion bool
}

// PortText returns the port as text.
func (a Ask) PortText() string { return strconv.Itoa(a.Port) }

// Measured returns the window and the warm-up that the tool uses, which may differ from those of the plan.
func (a Ask) Measured() (window, warmup time.Duration) {
	return a.Workload.Measured(a.Window, a.Warmup)
}

// Seconds returns the tool's run time after its warm-up in whole seconds, as text.
func (a Ask) Seconds() string {
	window, _ := a.Measured()
	t, _ := plan.ToolNamed(a.Workload.Tool)
	return strconv.Itoa(int((window + t.Lead + t.Tail) / time.Second))
}

// Family returns "-4" or "-6" for the version of IP of the address, "" if Address is a name or empty.
func (a Ask) Family() string {
	addr, err := netip.ParseAddr(a.Address)
	switch {
	case err != nil:
		return ""
	case addr.Is6():
		return "-6"
	}
	return "-4"
}
