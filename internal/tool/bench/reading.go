package bench

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// task is what a tool is asked to do. Sizes are bytes.
type task struct {
	name    string
	unit    string // of the rate
	work    string // of the cost
	message int    // of stream and udp
	sizes   [2]int // request and response of rr and crr
	// threads and connections are those of an http client.
	threads, connections int
	length               time.Duration // whole seconds: iperf3 takes no less
}

// reading is what one run of one tool gave.
type reading struct {
	rate float64 // units/s
	cost float64 // CPU ns per unit of work, both ends
}

// count is what a peer says that it did.
type count struct{ units, seconds float64 }

// reading makes a reading of a peer's count and the CPU time of its processes; scale is units of work per unit.
func (c count) reading(cpu time.Duration, scale float64) (reading, error) {
	if err := c.sound(); err != nil {
		return reading{}, err
	}
	return reading{rate: c.units / c.seconds, cost: float64(cpu) / (c.units * scale)}, nil
}

// sound says what is wrong with a count that no rate can be made of.
func (c count) sound() error {
	if c.units <= 0 || c.seconds <= 0 {
		return fmt.Errorf("it did %v units in %v s", c.units, c.seconds)
	}
	return nil
}

// parseIperf3 reads iperf3's JSON: bits received per second for TCP, datagrams received for UDP of the given size.
func parseIperf3(b []byte, datagram int) (count, error) {
	var out struct {
		Error string
		End   struct {
			SumReceived *struct{ Bytes, Seconds float64 } `json:"sum_received"`
		}
	}
	if err := json.Unmarshal(b, &out); err != nil {
		return count{}, fmt.Errorf("read iperf3's answer: %w", err)
	}
	if out.Error != "" {
		return count{}, fmt.Errorf("iperf3: %s", out.Error)
	}
	if out.End.SumReceived == nil {
		return count{}, errors.New("iperf3's answer has no end.sum_received")
	}
	c := count{units: out.End.SumReceived.Bytes * 8, seconds: out.End.SumReceived.Seconds}
	if datagram > 0 {
		c.units = out.End.SumReceived.Bytes / float64(datagram)
	}
	return c, nil
}

// parsePingpong reads "TRANSACTIONS SECONDS".
func parsePingpong(b []byte) (count, error) {
	var c count
	if _, err := fmt.Sscan(string(b), &c.units, &c.seconds); err != nil {
		return count{}, fmt.Errorf("read pingpong's answer %q: %w", strings.TrimSpace(string(b)), err)
	}
	return c, nil
}

// parseNetperf reads netperf's keyword output, as asked for by -k THROUGHPUT,ELAPSED_TIME: transactions per second and
// the length.
func parseNetperf(b []byte) (count, error) {
	values := map[string]float64{}
	for line := range strings.Lines(string(b)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if f, err := strconv.ParseFloat(value, 64); ok && err == nil {
			values[name] = f
		}
	}
	rate, seconds := values["THROUGHPUT"], values["ELAPSED_TIME"]
	if rate <= 0 || seconds <= 0 {
		return count{}, fmt.Errorf("netperf's answer has no THROUGHPUT and ELAPSED_TIME: %q", strings.TrimSpace(string(b)))
	}
	return count{units: rate * seconds, seconds: seconds}, nil
}

// parseWrk reads wrk's summary: how many requests there were, and how many per second. What wrk says of failures makes
// the answer none.
func parseWrk(b []byte) (count, error) {
	var c count
	var rate float64
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		switch f := strings.Fields(line); {
		case strings.HasPrefix(line, "Socket errors:") || strings.HasPrefix(line, "Non-2xx"):
			return count{}, fmt.Errorf("wrk: %s", line)
		case len(f) > 3 && f[1] == "requests" && f[2] == "in":
			c.units, _ = strconv.ParseFloat(f[0], 64) // 0 is refused below
		case len(f) == 2 && f[0] == "Requests/sec:":
			rate, _ = strconv.ParseFloat(f[1], 64)
		}
	}
	if !(c.units > 0 && rate > 0) {
		return count{}, fmt.Errorf("wrk's answer has no requests and Requests/sec: %q", strings.TrimSpace(string(b)))
	}
	c.seconds = c.units / rate // wrk writes the time with two digits
	return c, nil
}

// parseCalls reads the table of strace -c -U calls,name.
func parseCalls(b []byte) map[string]uint64 {
	calls := map[string]uint64{}
	for s := bufio.NewScanner(strings.NewReader(string(b))); s.Scan(); {
		fields := strings.Fields(s.Text())
		if len(fields) < 2 || fields[1] == "total" {
			continue
		}
		if n, err := strconv.ParseUint(fields[0], 10, 64); err == nil {
			calls[fields[1]] = n
		}
	}
	return calls
}

// listens says whether tables, lines of /proc/net/tcp or tcp6, have a listener on port.
func listens(tables []byte, port int) bool {
	const listen = "0A"
	local := fmt.Sprintf(":%04X", port)
	for line := range strings.Lines(string(tables)) {
		f := strings.Fields(line)
		if len(f) > 3 && strings.HasSuffix(f[1], local) && f[3] == listen {
			return true
		}
	}
	return false
}
