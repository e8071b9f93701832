// Package wrk sends HTTP requests by wrk; package outputs reads what wrk and wrk2 print.
//
// wrk corrects its latencies for coordinated omission: it adds the times of requests that it would have sent while it
// waited. Rate times mean latency is therefore not the number of requests under way.
package wrk

import (
	"net"
	"strconv"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/external/outputs"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// Tool is wrk: HTTP in a closed loop. The server is ours.
var Tool = adapter.Tool{
	Formats: []adapter.Format{outputs.Wrk},
	Sender: &adapter.Sender{
		Tool:        plan.Tool{Name: "wrk", Kinds: []plan.Spec{plan.HTTP{}}, Lacks: lacks, WholeSeconds: true, Ports: 1, LooseTimes: true},
		Client:      client,
		VersionArgs: []string{"-v"}, VersionIn: pattern.New(`(?m)^wrk (\S+)`),
	},
}

func lacks(w plan.Workload) string {
	if w.Traits().Arrival != "" {
		return "it has no open loop"
	}
	return ""
}

func client(a adapter.Ask) []string {
	w := a.Workload.Spec.(plan.HTTP)
	argv := []string{"wrk", "-t", strconv.Itoa(w.Threads), "-c", strconv.Itoa(w.Connections), "-d", a.Seconds() + "s", "--latency", "--timeout", "5s"}
	if w.Connection == "close" {
		argv = append(argv, "-H", "Connection: close")
	}
	return append(argv, "http://"+net.JoinHostPort(a.Address, a.PortText())+"/")
}
