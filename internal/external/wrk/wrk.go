package wrk

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

func match(b []byte) bool {
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
	threads, conns int
	requests, read float64 // read is in bytes, headers included
	window         time.Duration
	rate           float64 // less than 0 until it is printed
	bad, socket    float64
	late           float64
	// times are the metrics of response time in ns, and what of the URL changes what is measured.
	times   adapter.Reading
	paced   bool
	failure string
	// uncorrected is true below the head of a second table of times.
	uncorrected bool
}

// text decodes what wrk and wrk2 print.
var text = adapter.RunText[*wrkRun]{Tool: "wrk", New: func() *wrkRun { return &wrkRun{rate: -1} }, Begins: func(_ *wrkRun, line string) bool {
	return strings.HasPrefix(line, "Running ") || strings.HasPrefix(line, "unable to connect to")
}}

// Take reads one line.
func (r *wrkRun) Take(_ *adapter.Batch, line string) error {
	if strings.HasPrefix(line, "unable to connect to") {
		r.failure = line
		return nil
	}
	var err, err2 error
	if m := wrkThreads.FindStringSubmatch(line); m != nil {
		r.threads, err = adapter.Count(m[1])
		r.conns, err2 = adapter.Count(m[2])
		return errors.Join(err, err2)
	}
	if m := wrkTotal.FindStringSubmatch(line); m != nil {
		ns, err := wrkTime(m[2])
		r.window = adapter.Seconds(ns / 1e9)
		r.read, err2 = wrkSize(m[3])
		return errors.Join(adapter.Amounts(m[1:], &r.requests), err, err2)
	}
	if m := wrkErrors.FindStringSubmatch(line); m != nil {
		var connect, read, write, timeout float64
		err := adapter.Amounts(m[1:], &connect, &read, &write, &timeout)
		r.socket, r.late = r.socket+connect+read+write, r.late+timeout
		return err
	}
	if m := wrkShare.FindStringSubmatch(line); m != nil && !r.uncorrected {
		var share float64
		ns, err := wrkTime(m[2])
		err = errors.Join(adapter.Amounts(m[1:], &share), err)
		r.times.Percentile(metric.ResponseTime, share, ns)
		return err
	}
	switch words := strings.Fields(line); {
	case strings.HasPrefix(line, "Running ") && len(words) == 5:
		r.times.URL(words[4])
	case strings.HasPrefix(line, "Thread calibration:"):
		r.paced = true
	case strings.Contains(line, "Uncorrected Latency"): // of wrk2 --u_latency, below the times that count
		r.uncorrected = true
	case strings.HasPrefix(line, "Latency ") && len(words) == 5:
		return r.latency(words)
	case strings.HasPrefix(line, "Non-2xx or 3xx responses: "):
		r.bad, err = adapter.Amount(words[len(words)-1])
	case strings.HasPrefix(line, "Requests/sec:") && len(words) == 2:
		r.rate, err = adapter.Amount(words[1])
	}
	return err
}

// latency reads "Latency avg stdev max share".
func (r *wrkRun) latency(words []string) error {
	for i, member := range []string{"mean", "stddev", "max"} {
		ns, err := wrkTime(words[1+i])
		if err != nil {
			return err
		}
		r.times.Time(metric.ResponseTime, member, ns)
	}
	return nil
}

// wrkTime reads a time with its unit right behind it, in ns.
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

// wrkSize reads a size with its unit right behind it, in bytes. Its units are powers of 1024.
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
	out := &adapter.Reading{Window: r.window}
	out.Condition(r.times.Conditions...)
	if r.conns > 0 {
		s := plan.HTTP{Threads: r.threads, Connections: r.conns}
		if r.requests > 0 {
			s.ResponseSize = adapter.ThreeDigits(r.read / r.requests)
		}
		w := plan.Workload{Spec: s}.Normalize()
		if err := w.Validate(); err != nil {
			return nil, err
		}
		out.Workload = w
		out.Warn(adapter.Assumed, "wrk does not print the size of a body; assumed: %d B, headers included", w.Traits().Response)
	}
	if r.paced { // wrk2 counts connections that wait; wrk counts responses that came after its timeout, among the requests
		r.socket, r.late = r.socket+r.late, 0
	}
	r.bad = min(r.bad+r.late, r.requests)
	switch {
	case r.failure != "":
		out.Fail(adapter.FailureKind(r.failure), r.failure)
	case r.rate < 0 || r.window <= 0:
		return nil, errors.New("it ends before its totals: the output is cut off")
	case r.requests == 0:
		out.Fail("error", "no request was answered")
	case r.late >= r.requests:
		out.Fail("timeout", fmt.Sprintf("each of %.0f responses came after wrk's timeout", r.requests))
	case r.bad >= r.requests:
		out.Fail("status", fmt.Sprintf("none of %.0f responses had a status of success", r.requests))
	default:
		out.Metrics = r.times.Metrics
		out.Put(metric.Requests, r.requests)
		if r.paced {
			out.Condition("rate=" + strconv.Itoa(adapter.TwoDigits(r.rate)))
			out.Warn(adapter.Paced, "wrk2 sends at the requested rate: its request rate is not a capacity")
		}
		out.Put(metric.RequestRate, r.rate*(1-r.bad/r.requests))
		out.Put(metric.ErrorRate, (r.bad+r.socket)/(r.requests+r.socket))
		if len(r.times.Metrics) > 0 {
			out.Warn(adapter.Corrected, "%s", map[bool]string{
				false: "wrk adds the times of requests that it would have sent while it waited",
				true:  "wrk2 counts times from when a request was due",
			}[r.paced])
		}
		batch.LeaveOut("Transfer/sec, which counts headers, and the Req/Sec of single threads")
	}
	return out, nil
}
