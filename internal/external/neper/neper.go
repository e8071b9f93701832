package neper

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

var (
	neperKey     = pattern.New(`^([A-Za-z_][A-Za-z0-9_.]*)=(.*)$`)
	neperLatency = pattern.New(`^latency_p([0-9.]+)$`)
)

// match reports whether b has settings that only neper prints.
func match(b []byte) bool {
	return bytes.Contains(b, []byte("control_port=")) && bytes.Contains(b, []byte("num_flows="))
}

// neperRun is one run within the text.
type neperRun struct {
	keys map[string]string
	// failure is the first line with an error.
	failure string
}

// text decodes the output of neper's tcp_rr, tcp_crr and tcp_stream. A repeated key begins the next run.
var text = adapter.RunText[*neperRun]{
	Tool: "neper", New: func() *neperRun { return &neperRun{keys: map[string]string{}} }, Begins: func(run *neperRun, line string) bool {
		m := neperKey.FindStringSubmatch(line)
		if m == nil {
			return false
		}
		_, again := run.keys[m[1]]
		return again || len(run.keys) == 0
	},
}

// Take reads one line.
func (n *neperRun) Take(_ *adapter.Batch, line string) error {
	if m := neperKey.FindStringSubmatch(line); m != nil {
		n.keys[m[1]] = m[2]
	} else if n.failure == "" && isErrorLine(line) {
		n.failure = line
	}
	return nil
}

// isErrorLine reports whether a line is an error.
func isErrorLine(line string) bool {
	return slices.ContainsFunc([]string{"connect: ", "bind: ", "Could not ", "getaddrinfo: ", "remote host "},
		func(s string) bool { return strings.HasPrefix(line, s) })
}

// End returns the reading of the run.
func (n *neperRun) End(batch *adapter.Batch) (*adapter.Reading, error) {
	r := &adapter.Reading{}
	if v := n.keys["VERSION"]; v != "" && adapter.PlainName.MatchString(v) {
		batch.Tool = "neper " + v
	}
	_, counts := n.keys["num_transactions"]
	_, moved := n.keys["remote_throughput"]
	switch {
	case n.keys["client"] == "0":
		batch.LeaveOut("a server's output: the client's is complete")
		return nil, nil
	case !counts && !moved && n.failure != "":
		r.Fail(adapter.FailureKind(n.failure), n.failure)
		return r, nil
	case n.keys["time_end"] == "" && counts, !counts && !moved:
		return nil, errors.New("it ends before its totals: the output is cut off")
	}
	for _, key := range settings {
		if v := n.keys[key]; strings.Trim(v, "0.") != "" {
			r.Condition(key + "=" + v)
		}
	}
	for _, key := range singles {
		if v := n.keys[key]; v != "" && v != "1" && (counts || key == "num_ports") {
			r.Condition(key + "=" + v)
		}
	}
	if n.keys["ipv6"] == "1" || strings.Contains(n.keys["host"], ":") {
		r.Condition("family=6")
	}
	if rate := n.keys["max_pacing_rate"]; strings.Trim(rate, "0.") != "" {
		r.Warn(adapter.Paced, "the sender was held to %s B/s a flow", rate)
	}
	if counts {
		return r, n.readTransactions(r)
	}
	return r, n.readStream(r)
}

// settings are options that no workload has; 0 is their default.
var settings = []string{"delay", "tcp_tx_delay", "tcp_fastopen", "max_pacing_rate", "no_delay", "nonblocking", "mark", "enable_udp", "skip_rx_copy", "zerocopy",
	"pin_cpu", "async_connect", "noburst", "edge_trigger", "reuseaddr"}

// singles are settings whose default is 1. Other values become conditions. For a stream, only num_ports does: its
// workload has the number of flows.
var singles = []string{"num_ports", "num_flows", "request_size", "response_size"}

// readNumbers parses the value of each key and stores it in the element of to with the same index. A missing key leaves
// its element unchanged. It fails if a value is not a number from 0.
func (n *neperRun) readNumbers(keys []string, to ...*float64) error {
	var errs []error
	for i, key := range keys {
		if text := n.keys[key]; text != "" {
			if err := adapter.Amounts([]string{text}, to[i]); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", key, err))
			}
		}
	}
	return errors.Join(errs...)
}

// readTransactions reads the totals of tcp_rr or tcp_crr. Both print the same keys, so the output does not name the
// workload.
func (n *neperRun) readTransactions(r *adapter.Reading) error {
	var from, to, rate float64
	if err := n.readNumbers([]string{"time_start", "time_end", "throughput", "num_transactions"}, &from, &to, &rate, &r.Work); err != nil {
		return err
	}
	r.Window = adapter.Seconds(to - from)
	if rate == 0 {
		r.Fail("error", "no transaction was completed, or too few samples were taken for a rate")
		return nil
	}
	r.Put(metric.TransactionRate, rate)
	for key := range n.keys {
		member := map[string]string{"latency_min": "min", "latency_mean": "mean", "latency_max": "max", "latency_stddev": "stddev"}[key]
		share := neperLatency.FindStringSubmatch(key)
		if member == "" && share == nil {
			continue
		}
		var s, p float64
		err := n.readNumbers([]string{key}, &s)
		if share == nil {
			r.Time(metric.RTT, member, s*1e9)
		} else {
			err = errors.Join(err, adapter.Amounts(share[1:], &p))
			r.Percentile(metric.RTT, p, s*1e9)
		}
		if err != nil {
			return err
		}
	}
	// A test_length below 0 counts transactions, not time.
	if asked, err := strconv.ParseFloat(n.keys["test_length"], 64); err == nil {
		r.EndedEarly(adapter.Seconds(asked))
	}
	return nil
}

// readStream reads the totals of tcp_stream: the rate at which the server received, as it reported to the client.
func (n *neperRun) readStream(r *adapter.Reading) error {
	var rate, length, flows, size float64
	if err := n.readNumbers([]string{"remote_throughput", "test_length", "num_flows", "buffer_size"}, &rate, &length, &flows, &size); err != nil {
		return err
	}
	if n.keys["enable_read"] == "1" || n.keys["enable_tcp_maerts"] == "1" {
		return errors.New("a transfer to the client is not a supported workload")
	}
	w := plan.Workload{Spec: plan.Stream{Flows: adapter.Whole(flows), MessageSize: adapter.Whole(size), Congestion: n.keys["congestion_control"]}}
	if w.Traits().Congestion == "" {
		r.Warn(adapter.Assumed, "the output does not name the congestion control; assumed: %s", plan.DefaultCongestion)
	}
	r.Workload = w.Normalize()
	if err := r.Workload.Validate(); err != nil {
		return err
	}
	r.Window = adapter.Seconds(length)
	r.Received(rate)
	return nil
}
