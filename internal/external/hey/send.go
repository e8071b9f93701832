// Package hey sends HTTP requests by hey; package outputs reads what it prints.
//
// Its times have steps of 100 µs.
package hey

import (
	"net"
	"strconv"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/external/outputs"
	"github.com/cnibench/cnibench/internal/plan"
)

// Tool is hey: HTTP in a closed loop, or at a constant rate. The server is ours.
var Tool = adapter.Tool{
	Formats: []adapter.Format{outputs.Hey},
	Sender: &adapter.Sender{
		Tool:   plan.Tool{Name: "hey", Kinds: []plan.Spec{plan.HTTP{}}, Lacks: lacks, Ports: 1, LooseTimes: true},
		Client: client, Differs: differs,
	},
}

func lacks(w plan.Workload) string {
	if w.Traits().Arrival != "" && w.Traits().Arrival != plan.Constant {
		return "its requests come at constant intervals only: say arrival=" + plan.Constant
	}
	return ""
}

func client(a adapter.Ask) []string {
	w := a.Workload.Spec.(plan.HTTP)
	window, _ := a.Measured()
	argv := []string{"hey", "-z", window.String(), "-c", strconv.Itoa(w.Connections), "-cpus", strconv.Itoa(w.Threads), "-t", "5"}
	if w.Rate > 0 {
		// -q is the rate of one worker, and there is one for each connection.
		argv = append(argv, "-q", strconv.FormatFloat(w.Rate/float64(w.Connections), 'f', -1, 64))
	}
	if w.Connection == "close" {
		argv = append(argv, "-disable-keepalive")
	}
	return append(argv, "http://"+net.JoinHostPort(a.Address, a.PortText())+"/")
}

func differs(a adapter.Ask) []string {
	if a.Workload.Traits().Rate > 0 {
		return []string{"a request that is due waits for the previous response, and its time begins when it is sent"}
	}
	return nil
}
