// Package sockperf sends request-response by sockperf and reads its output.
//
// Its latency is half of a round trip, unless --full-rtt is given. Readings have the whole round trip.
package sockperf

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// Tool is sockperf: request-response over UDP and TCP.
var Tool = adapter.Tool{
	Formats: []adapter.Format{{Name: "sockperf", About: "what sockperf ping-pong prints", Match: match, Decode: text.Decode}},
	Sender: &adapter.Sender{
		Tool: plan.Tool{
			Name: "sockperf", Kinds: []plan.Spec{plan.RR{}}, Lacks: unsupportedReason, WholeSeconds: true, Lead: 400 * time.Millisecond, Tail: 50 * time.Millisecond, Ports: 1,
		},
		Client: clientCommand, Server: serverCommand, Datagrams: true,
		VersionArgs: []string{"--version"}, VersionIn: pattern.New(`(?m)^sockperf, version (\S+)`),
	},
}

// minMessage is the least size of a message in bytes, which is the size of sockperf's header.
const minMessage = 14

func unsupportedReason(w plan.Workload) string {
	switch {
	case w.Traits().Request != w.Traits().Response:
		return "its responses are as long as its requests"
	case w.Traits().Request < minMessage:
		return fmt.Sprintf("its messages have %d bytes at least: say request=%d,response=%[2]d", minMessage, plan.MinDatagram)
	case w.Traits().Request > plan.MaxDatagram:
		return fmt.Sprintf("its messages have at most %d bytes", plan.MaxDatagram)
	}
	return w.OneFlow()
}

func clientCommand(a adapter.Ask) []string {
	argv := []string{"sockperf", "ping-pong", "-i", a.Address, "-p", a.PortText(), "-t", a.Seconds(), "-m", strconv.Itoa(a.Workload.Traits().Request), "--full-rtt"}
	return append(argv, transportOption(a)...)
}

func serverCommand(a adapter.Ask) []string {
	return append([]string{"sockperf", "server", "-i", cmp.Or(a.Address, "0.0.0.0"), "-p", a.PortText()}, transportOption(a)...)
}

func transportOption(a adapter.Ask) []string {
	if a.Workload.Traits().Protocol == plan.TCP {
		return []string{"--tcp"}
	}
	return nil
}
