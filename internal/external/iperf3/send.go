// Package iperf3 sends streams by iperf3 and reads its output.
//
// Its numbers are the receiver's. In its text, prefixes of bytes are powers of 1024, prefixes of bits powers of 1000.
// Its CPU utilization covers the two processes, not the machines, and is left out.
package iperf3

import (
	"fmt"
	"strconv"
	"time"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// Tool is iperf3: streams over TCP and UDP.
var Tool = adapter.Tool{
	Formats: []adapter.Format{
		{Name: "iperf3", About: "iperf3 -J, --json-stream", Match: matchJSON, Decode: DecodeJSON},
		{Name: "iperf3-text", About: "the totals that iperf3 prints without -J", Match: matchText, Decode: DecodeText},
	},
	Sender: &adapter.Sender{
		Tool: plan.Tool{
			Name: "iperf3", Kinds: []plan.Spec{plan.Stream{}}, Lacks: unsupportedReason, WholeSeconds: true, Omits: true, Ports: 1, Congestion: true,
		},
		Client: clientCommand, Server: serverCommand, Ends: true,
		VersionArgs: []string{"--version"}, VersionIn: pattern.New(`(?m)^iperf (\S+)`),
	},
}

// Bounds of iperf3.
const (
	maxMessage = 1 << 20
	maxFlows   = 128
)

func unsupportedReason(w plan.Workload) string {
	switch {
	case w.Traits().Flows > maxFlows:
		return fmt.Sprintf("it has at most %d flows", maxFlows)
	case w.Traits().Protocol == plan.TCP && w.Traits().Message > maxMessage:
		return fmt.Sprintf("its messages have at most %d bytes", maxMessage)
	}
	return ""
}

func clientCommand(a adapter.Ask) []string {
	w := a.Workload
	argv := []string{"iperf3", "-c", a.Address, "-p", a.PortText(), "-t", a.Seconds(), "-J", "-l", strconv.Itoa(w.Traits().Message), "-P", strconv.Itoa(w.Traits().Flows)}
	if _, warmup := a.Measured(); warmup > 0 {
		argv = append(argv, "-O", strconv.Itoa(int(warmup/time.Second)))
	}
	if w.Traits().Protocol == plan.UDP {
		// -b is the rate of one flow; 0 is as fast as possible.
		argv = append(argv, "-u", "-b", strconv.FormatFloat(w.Traits().Rate/float64(w.Traits().Flows), 'f', 0, 64))
	} else if !a.SystemCongestion {
		argv = append(argv, "-C", w.Traits().Congestion)
	}
	if w.Traits().Reverse {
		argv = append(argv, "-R")
	}
	return argv
}

func serverCommand(a adapter.Ask) []string {
	argv := []string{"iperf3", "-s", "-1", "-p", a.PortText()}
	if a.Address != "" {
		argv = append(argv, "-B", a.Address)
	}
	return argv
}
