// Package netperf sends streams, transactions and connections by netperf and reads its output.
//
// Latencies exist only with -j or omni output. RT_LATENCY is computed from the rate and is left out. The send size of a
// stream is the size of one call, and the CPU utilization covers the machine.
package netperf

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// Tool is netperf: streams, request-response and connections.
var Tool = adapter.Tool{
	Formats: []adapter.Format{{Name: "netperf", About: "netperf -k, -o, -O, and its classic tables", Match: match, Decode: text.Decode}},
	Sender: &adapter.Sender{
		Tool:   plan.Tool{Name: "netperf", Kinds: []plan.Spec{plan.Stream{}, plan.RR{}, plan.CRR{}}, Lacks: unsupportedReason, WholeSeconds: true, Ports: 2},
		Client: clientCommand, Server: serverCommand, Differs: engineDifferences,
		VersionArgs: []string{"-V"}, VersionIn: pattern.New(`(?i)netperf version (\S+)`),
	},
}

func unsupportedReason(w plan.Workload) string {
	if w.Traits().Datagrams() {
		switch {
		case w.Traits().Rate != 0:
			return "it sends datagrams as fast as it can, not at a rate"
		case w.Traits().Reverse:
			return "its datagrams go from the client to the server only"
		}
	}
	return w.OneFlow()
}

// baseKeys are the selectors of every test.
const baseKeys = "PROTOCOL,DIRECTION,THROUGHPUT,THROUGHPUT_UNITS,ELAPSED_TIME"

func clientCommand(a adapter.Ask) []string {
	test, keys := "", baseKeys
	var options []string
	switch w := a.Workload.Spec.(type) {
	case plan.Stream:
		test, options = "TCP_STREAM", []string{"-m", strconv.Itoa(w.MessageSize)}
		switch {
		case w.Protocol == plan.UDP:
			options = append(options, "-R", "1") // without it, its datagrams are not routed
			test, keys = "UDP_STREAM", keys+",LOCAL_SEND_SIZE,LOCAL_SEND_THROUGHPUT,LOCAL_SEND_CALLS,REMOTE_RECV_CALLS"
		case w.Reverse:
			test, keys, options[0] = "TCP_MAERTS", keys+",REMOTE_SEND_SIZE", "-M"
		default:
			keys += ",LOCAL_SEND_SIZE,LOCAL_TRANSPORT_RETRANS"
		}
	case plan.RR:
		test = strings.ToUpper(string(w.Protocol)) + "_RR"
	case plan.CRR:
		test = "TCP_CRR"
	}
	if t := a.Workload.Traits(); t.Exchanges() {
		keys += ",REQUEST_SIZE,RESPONSE_SIZE,MIN_LATENCY,MEAN_LATENCY,MAX_LATENCY,STDDEV_LATENCY,P50_LATENCY,P90_LATENCY,P99_LATENCY"
		options = []string{"-r", fmt.Sprintf("%d,%d", t.Request, t.Response)}
	}
	argv := []string{"netperf", "-H", a.Address, "-p", a.PortText(), "-t", test, "-l", a.Seconds(), "-P", "0", "-j", "--"}
	return append(append(argv, options...), "-k", keys)
}

func serverCommand(a adapter.Ask) []string {
	argv := []string{"netserver", "-D", "-f", "-p", a.PortText()}
	if family := a.Family(); family != "" {
		argv = append(argv, family)
	}
	return argv
}

func engineDifferences(a adapter.Ask) []string {
	if crr, ok := a.Workload.Spec.(plan.CRR); ok && crr.Close != "fin" {
		return []string{"its connections end by FIN, not by RST"}
	}
	return nil
}
