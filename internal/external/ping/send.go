// Package ping sends ICMP echoes by ping and reads its output.
//
// Its times have steps of 1 µs. Its interval is not printed. It is computed from the time that all echoes took.
package ping

import (
	"strconv"
	"time"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// Tool is ping: ICMP echoes. The server is the kernel.
var Tool = adapter.Tool{
	Formats: []adapter.Format{{Name: "ping", About: "what ping prints (iputils, BusyBox, BSD)", Match: match, Decode: text.Decode}},
	Sender: &adapter.Sender{
		Tool:   plan.Tool{Name: "ping", Kinds: []plan.Spec{plan.Ping{}}, Lacks: plan.Workload.OneFlow, WholeSeconds: true, Ports: 1},
		Client: clientCommand, Differs: engineDifferences,
		VersionArgs: []string{"-V"}, VersionIn: pattern.New(`(?m)^ping from (.+)$`),
	},
}

// quietFrom is the shortest window for which a flood of pings prints no line for each reply: there would be too many.
const quietFrom = 4 * time.Second

// isQuiet reports whether a flood of pings is too long to print each reply.
func isQuiet(a adapter.Ask) bool {
	window, _ := a.Measured()
	return a.Workload.Traits().Interval == 0 && window >= quietFrom
}

func clientCommand(a adapter.Ask) []string {
	argv := []string{"ping", "-n", "-w", a.Seconds(), "-s", strconv.Itoa(a.Workload.Traits().Message)}
	switch interval := a.Workload.Traits().Interval; {
	case interval > 0:
		argv = append(argv, "-i", strconv.FormatFloat(interval.Seconds(), 'f', -1, 64))
	case isQuiet(a):
		argv = append(argv, "-A", "-q")
	default:
		argv = append(argv, "-A")
	}
	return append(argv, a.Address)
}

func engineDifferences(a adapter.Ask) []string {
	if isQuiet(a) {
		return []string{"it prints no percentiles for a window of this length"}
	}
	return nil
}
