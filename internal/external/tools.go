// Package external knows other programs: what they can send, their command lines, and how their output becomes readings.
//
//	bytes ──► Detect ──► Decode ──► Batch{Readings} ──► Label ──► Contents ──► a result like our own
//
// Each tool that sends for us is one adapter.Tool, mostly in a folder of its own; package outputs reads those that do not.
// Import, run --tool and make bench use the list below. A Label adds what a tool's output lacks: the profile, and in most
// cases the path.
//
// Read package adapter, then one tool. outputs/csv.go is the format for numbers that no tool wrote;
// docs/reference/import.md specifies it.
package external

import (
	"iter"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/external/iperf3"
	"github.com/cnibench/cnibench/internal/external/neper"
	"github.com/cnibench/cnibench/internal/external/netperf"
	"github.com/cnibench/cnibench/internal/external/outputs"
	"github.com/cnibench/cnibench/internal/external/ping"
	"github.com/cnibench/cnibench/internal/external/sockperf"
)

// tools are in the order in which their formats are tried.
var tools = []adapter.Tool{
	outputs.Numbers, outputs.Suites, iperf3.Tool, netperf.Tool, outputs.Wrk, outputs.Hey, ping.Tool, neper.Tool, sockperf.Tool, outputs.Generators,
}

// Reading and Batch are what decoders return.
type (
	Reading = adapter.Reading
	Batch   = adapter.Batch
)

func init() {
	for _, t := range tools {
		if t.Sender != nil {
			t.Sender.Tool.Register()
		}
	}
}

// Add adds a tool that sends workloads to the list of tools. Programs of the build use it. Call it before any plan is
// read.
func Add(t adapter.Tool) {
	tools = append(tools, t)
	t.Sender.Tool.Register()
}

// Sending returns the tool called name if it sends workloads; false if there is no such tool.
func Sending(name string) (adapter.Tool, bool) {
	for _, t := range tools {
		if t.Sender != nil && t.Sender.Name == name {
			return t, true
		}
	}
	return adapter.Tool{}, false
}

// formats yields the formats of all tools.
var formats iter.Seq[adapter.Format] = func(yield func(adapter.Format) bool) {
	for _, t := range tools {
		for _, f := range t.Formats {
			if !yield(f) {
				return
			}
		}
	}
}
