package external

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

var (
	neperKey     = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_.]*)=(.*)$`)
	neperLatency = regexp.MustCompile(`^latency_p([0-9.]+)$`)
)

// matchNeper looks for settings that neper alone prints.
func matchNeper(b []byte) bool {
	return bytes.Contains(b, []byte("control_port=")) && bytes.Contains(b, []byte("num_flows="))
}

// neperRun is one run within the text.
type neperRun struct {
	line int
	keys map[string]string
	// failure is the first complaint.
	failure string
}

// decodeNeper reads what neper's tcp_rr, tcp_crr and tcp_stream print, of one run or of several.
func decodeNeper(b []byte) (Batch, error) {
	batch := Batch{Tool: "neper"}
	var fs faults
	run := &neperRun{line: 1, keys: map[string]string{}}
	finish := func() {
		if err := run.read(&batch); err != nil {
			fs.add(run.line, "the run that begins here: %s", err)
		}
	}
	number := 0
	for line := range strings.Lines(string(b)) {
		number++
		if len(batch.Readings) >= maxReadings {
			return Batch{}, fmt.Errorf("more than %d trials", maxReadings)
		}
		line = strings.TrimSpace(line)
		m := neperKey.FindStringSubmatch(line)
		if m == nil {
			if run.failure == "" && neperFault(line) {
				run.failure = line
			}
			continue
		}
		// A key that comes again begins the next run.
		if _, again := run.keys[m[1]]; again {
			finish()
			run = &neperRun{line: number, keys: map[string]string{}}
		}
		run.keys[m[1]] = m[2]
	}
	finish()
	return batch, fs.asError()
}

// neperFault says whether a line is a complaint.
func neperFault(line string) bool {
	for _, s := range []string{"connect: ", "bind: ", "Could not ", "getaddrinfo: ", "remote host "} {
		if strings.HasPrefix(line, s) {
			return true
		}
	}
	return false
}

// read makes a reading of a run.
func (n *neperRun) read(batch *Batch) error {
	if v := n.keys["VERSION"]; v != "" && plainName.MatchString(v) {
		batch.Tool = "neper " + v
	}
	_, counts := n.keys["num_transactions"]
	_, moved := n.keys["remote_throughput"]
	switch {
	case n.keys["client"] == "0":
		batch.leaveOut("what a server prints: the client knows the whole")
		return nil
	case !counts && !moved && n.failure != "":
		r := Reading{}
		r.fail(kindOf(n.failure), n.failure)
		batch.Readings = append(batch.Readings, r)
		return nil
	case n.keys["time_end"] == "" && counts, !counts && !moved:
		return errors.New("it ends before its totals: it is cut")
	}
	r := Reading{}
	read := n.moved
	if counts {
		read = n.transactions
	}
	if err := read(&r); err != nil {
		return err
	}
	batch.Readings = append(batch.Readings, r)
	return nil
}

// parseNumber reads the value of a key; false if it is not there.
func (n *neperRun) number(key string) (float64, bool, error) {
	text, ok := n.keys[key]
	if !ok || text == "" {
		return 0, false, nil
	}
	v, err := amount(text)
	if err != nil {
		return 0, false, fmt.Errorf("%s: %w", key, err)
	}
	return v, true, nil
}

// transactions reads the totals of tcp_rr and tcp_crr, which print the same: which of them it was is not said.
func (n *neperRun) transactions(r *Reading) error {
	from, _, err1 := n.number("time_start")
	to, _, err2 := n.number("time_end")
	rate, has, err3 := n.number("throughput")
	if err := errors.Join(err1, err2, err3); err != nil {
		return oneLine(err)
	}
	r.Window = seconds(to - from)
	if !has || rate == 0 {
		r.fail("error", "no transaction was completed, or too few samples were taken for a rate")
		return nil
	}
	r.put(metric.TransactionRate, rate)
	for key := range n.keys {
		member := map[string]string{"latency_min": "min", "latency_mean": "mean", "latency_max": "max", "latency_stddev": "stddev"}[key]
		share := neperLatency.FindStringSubmatch(key)
		if member == "" && share == nil {
			continue
		}
		s, _, err := n.number(key)
		if err != nil {
			return err
		}
		if share == nil {
			r.time(metric.RTT, member, s*1e9)
			continue
		}
		p, err := amount(share[1])
		if err != nil {
			return err
		}
		r.percentile(metric.RTT, p, s*1e9)
	}
	return nil
}

// moved reads the totals of tcp_stream: what the server received, as the client was told.
func (n *neperRun) moved(r *Reading) error {
	rate, _, err1 := n.number("remote_throughput")
	length, _, err2 := n.number("test_length")
	flows, _, err3 := n.number("num_flows")
	size, _, err4 := n.number("buffer_size")
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return oneLine(err)
	}
	if n.keys["enable_read"] == "1" || n.keys["enable_tcp_maerts"] == "1" {
		return errors.New("a transfer to the client is no workload that is known here")
	}
	w := plan.Workload{Kind: plan.Stream, Flows: whole(flows), MessageSize: whole(size), Congestion: n.keys["congestion_control"]}
	if w.Congestion == "" {
		r.warn(Assumed, "the congestion control is not said: %s is taken", plan.DefaultCongestion)
	}
	r.Workload = w.Normalize()
	if err := r.Workload.Validate(); err != nil {
		return oneLine(err)
	}
	r.Window = seconds(length)
	if rate == 0 {
		r.fail("error", "the receiver reported no bytes")
		return nil
	}
	r.put(metric.Goodput, rate)
	return nil
}

// oneLine joins the lines of an error that holds several.
func oneLine(err error) error { return errors.New(strings.ReplaceAll(err.Error(), "\n", "; ")) }
