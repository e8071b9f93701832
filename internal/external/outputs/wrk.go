package outputs

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/number"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// Wrk is wrk: HTTP in a closed loop. The server is ours.
//
// wrk corrects its latencies for coordinated omission: it adds the times of requests that it would have sent while it
// waited. Rate times mean latency is therefore not the number of requests under way.
var Wrk = adapter.Tool{
	Formats: []adapter.Format{{Name: "wrk", About: "what wrk and wrk2 print, best with --latency", Match: matchWrk, Decode: wrkText.Decode}},
	Sender: &adapter.Sender{
		Tool:        plan.Tool{Name: "wrk", Kinds: []plan.Spec{plan.HTTP{}}, Lacks: wrkUnsupportedReason, WholeSeconds: true, Ports: 1, LooseTimes: true},
		Client:      wrkClientCommand,
		VersionArgs: []string{"-v"}, VersionIn: pattern.New(`(?m)^wrk (\S+)`),
	},
}

func wrkUnsupportedReason(w plan.Workload) string {
	if w.Traits().Arrival != "" {
		return "it has no open loop"
	}
	return ""
}

func wrkClientCommand(a adapter.Ask) []string {
	w := a.Workload.Spec.(plan.HTTP)
	argv := []string{"wrk", "-t", strconv.Itoa(w.Threads), "-c", strconv.Itoa(w.Connections), "-d", a.Seconds() + "s", "--latency", "--timeout", "5s"}
	if w.Connection == "close" {
		argv = append(argv, "-H", "Connection: close")
	}
	return append(argv, rootURL(a))
}

// rootURL returns the URL of the root of our server.
func rootURL(a adapter.Ask) string {
	return "http://" + net.JoinHostPort(a.Address, a.PortText()) + "/"
}

func matchWrk(b []byte) bool {
	return bytes.Contains(b, []byte("Thread Stats")) || bytes.HasPrefix(b, []byte("unable to connect to")) ||
		wrkRunning.Match(b) && bytes.Contains(b, []byte("threads and"))
}

var (
	wrkRunning = pattern.New(`(?m)^Running \S+ test @ `)
	wrkThreads = pattern.New(`^(\d+) threads? and (\d+) connections?$`)
	wrkTotal   = pattern.New(`^(\d+) requests in (\S+), (\S+) read$`)
	wrkErrors  = pattern.New(`^Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)$`)
	wrkShare   = pattern.New(`^(\d+(?:\.\d+)?)% +(\S+)$`)
)

// wrkRun is one run within the text.
type wrkRun struct {
	httpReport
	requests, read float64 // read is in bytes, headers included
	rate           float64 // of all responses, less than 0 until it is printed
	late           float64 // responses after wrk's timeout; of wrk2, connections that wait
	calibrated     bool    // by wrk2, which is held to a rate
	// uncorrected is true below the head of a second table of times.
	uncorrected bool
}

// wrkText decodes what wrk and wrk2 print.
var wrkText = adapter.RunText[*wrkRun]{
	Tool: "wrk",
	New: func() *wrkRun {
		return &wrkRun{rate: -1, httpReport: httpReport{tool: "wrk", whole: true, times: map[string]float64{}, shares: map[float64]float64{}}}
	},
	Begins: func(_ *wrkRun, line string) bool {
		return strings.HasPrefix(line, "Running ") || strings.HasPrefix(line, "unable to connect to")
	},
}

// Take reads one line.
func (r *wrkRun) Take(_ *adapter.Batch, line string) error {
	if strings.HasPrefix(line, "unable to connect to") {
		r.failure = line
		return nil
	}
	var err, err2 error
	if m := wrkThreads.FindStringSubmatch(line); m != nil {
		r.threads, err = adapter.Count(m[1])
		r.connections, err2 = adapter.Count(m[2])
		return errors.Join(err, err2)
	}
	if m := wrkTotal.FindStringSubmatch(line); m != nil {
		ns, err := wrkTime(m[2])
		r.seconds = ns / 1e9
		r.read, err2 = wrkSize(m[3])
		return errors.Join(adapter.Amounts(m[1:], &r.requests), err, err2)
	}
	if m := wrkErrors.FindStringSubmatch(line); m != nil {
		var connect, read, write float64
		err := adapter.Amounts(m[1:], &connect, &read, &write, &r.late)
		r.failed = connect + read + write
		return err
	}
	if m := wrkShare.FindStringSubmatch(line); m != nil && !r.uncorrected {
		var share float64
		ns, err := wrkTime(m[2])
		err = errors.Join(adapter.Amounts(m[1:], &share), err)
		r.shares[share] = ns
		return err
	}
	switch words := strings.Fields(line); {
	case strings.HasPrefix(line, "Running ") && len(words) == 5:
		r.about.URL(words[4])
		var asked float64
		asked, err = wrkTime(words[1])
		r.about.Window = time.Duration(asked)
	case strings.HasPrefix(line, "Thread calibration:"):
		r.calibrated = true
	case strings.Contains(line, "Uncorrected Latency"): // of wrk2 --u_latency, below the times that count
		r.uncorrected = true
	case strings.HasPrefix(line, "Latency ") && len(words) == 5:
		for i, member := range []string{"mean", "stddev", "max"} {
			r.times[member], err2 = wrkTime(words[1+i])
			err = errors.Join(err, err2)
		}
	case strings.HasPrefix(line, "Non-2xx or 3xx responses: "):
		r.bad, err = adapter.Amount(words[len(words)-1])
	case strings.HasPrefix(line, "Requests/sec:") && len(words) == 2:
		r.rate, err = adapter.Amount(words[1])
	}
	return err
}

// wrkTime parses a time with its unit, such as "45.60us", and returns it in ns.
func wrkTime(s string) (float64, error) {
	v, suffix, err := adapter.Suffixed(s)
	if err != nil {
		return 0, err
	}
	switch suffix {
	case "m":
		suffix = "min"
	case "h":
		v, suffix = 60*v, "min"
	}
	return number.Convert(v, suffix, "ns")
}

// wrkSize parses a size with its unit, such as "1.23GB", and returns it in bytes. Its units are powers of 1024.
func wrkSize(s string) (float64, error) {
	v, suffix, err := adapter.Suffixed(s)
	scale, ok := map[string]float64{"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}[suffix]
	if err == nil && !ok {
		err = fmt.Errorf("unknown unit %s", adapter.Quoted(suffix))
	}
	return v * scale, err
}

// End returns the reading of the run.
func (r *wrkRun) End(batch *adapter.Batch) (*adapter.Reading, error) {
	if r.failure == "" && (r.rate < 0 || r.seconds <= 0) {
		return nil, errors.New("it ends before its totals: the output is cut off")
	}
	if r.calibrated { // wrk2 counts connections that wait; wrk counts responses that came after its timeout, among the requests
		r.failed, r.late = r.failed+r.late, 0
	}
	r.bad = min(r.bad+r.late, r.requests)
	r.good = r.requests - r.bad
	switch {
	case r.requests == 0:
	case r.late >= r.requests:
		r.failure = fmt.Sprintf("each of %.0f responses came after wrk's timeout", r.requests)
		r.good, r.bad = 0, 0
		fallthrough
	default:
		r.body, r.perSecond = r.read/r.requests, r.rate*r.good/r.requests
	}
	out := r.reading()
	if r.connections == 0 { // it failed before it named its workload
		out.Workload, out.Warnings = plan.Workload{}, nil
	}
	if out.Failure == nil {
		if r.calibrated {
			out.Condition("rate=" + strconv.Itoa(adapter.TwoDigits(r.rate)))
			out.Warn(adapter.Paced, "wrk2 sends at the requested rate: its request rate is not a capacity")
		}
		if len(r.times) > 0 {
			out.Warn(adapter.Corrected, "%s", map[bool]string{
				false: "wrk adds the times of requests that it would have sent while it waited",
				true:  "wrk2 counts times from when a request was due",
			}[r.calibrated])
		}
		batch.LeaveOut("Transfer/sec, which counts headers, and the Req/Sec of single threads")
	}
	return &out, nil
}
