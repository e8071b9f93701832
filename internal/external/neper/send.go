// Package neper sends streams, transactions and connections by neper and reads its output.
//
// Its rate is the slope of a line through samples of its counters. The total of a stream is not printed.
package neper

import (
	"strconv"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// Tool is neper: TCP streams, request-response and connections.
var Tool = adapter.Tool{
	Formats: []adapter.Format{{Name: "neper", About: "what tcp_rr, tcp_crr and tcp_stream of neper print", Match: match, Decode: text.Decode}},
	Sender: &adapter.Sender{
		Tool: plan.Tool{
			Name: "neper", Kinds: []plan.Spec{plan.Stream{}, plan.RR{}, plan.CRR{}}, Lacks: unsupportedReason, WholeSeconds: true, Ports: 2, Congestion: true,
		},
		Program: programName, Client: clientCommand, Server: serverCommand, Ends: true,
		VersionArgs: []string{"--nolog", "--version"}, VersionIn: pattern.New(`(?m)^\S*?(\d[\w.-]*)\s*$`),
	},
}

func unsupportedReason(w plan.Workload) string {
	switch {
	case w.Traits().Protocol == plan.UDP:
		return "only its TCP workloads are supported"
	case w.Traits().Reverse:
		return "its streams go from the client to the server only"
	}
	return ""
}

func programName(w plan.Workload) string { return "tcp_" + string(w.Kind()) }

func clientCommand(a adapter.Ask) []string {
	argv := append([]string{programName(a.Workload), "-c", "-H", a.Address}, sharedOptions(a)...)
	if a.Workload.Traits().Exchanges() {
		argv = append(argv, "-p", "50,90,99,99.9")
	}
	return argv
}

func serverCommand(a adapter.Ask) []string {
	return append([]string{programName(a.Workload)}, sharedOptions(a)...)
}

// sampleEvery is the time between two samples of neper's counters, in seconds. The rate is the slope of a line through
// them.
const sampleEvery = "0.1"

// sharedOptions returns the options that client and server must both have.
func sharedOptions(a adapter.Ask) []string {
	w := a.Workload
	flows := strconv.Itoa(w.Traits().Flows)
	argv := []string{
		"--nolog", // otherwise it leaves a file in the working directory
		"-C", a.PortText(), "-P", strconv.Itoa(a.Port + 1), "-l", a.Seconds(), "-F", flows, "-T", flows,
		"-I", sampleEvery, "--congestion-control", w.Traits().Congestion,
	}
	if family := a.Family(); family != "" {
		argv = append(argv, family)
	}
	if crr, ok := w.Spec.(plan.CRR); ok && crr.Close == "fin" {
		argv = append(argv, "--time-wait") // without it, neper resets its connections
	}
	if !w.Traits().Exchanges() {
		return append(argv, "-B", strconv.Itoa(w.Traits().Message))
	}
	return append(argv, "-Q", strconv.Itoa(w.Traits().Request), "-R", strconv.Itoa(w.Traits().Response))
}
