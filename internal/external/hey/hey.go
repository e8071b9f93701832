package hey

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

func match(b []byte) bool {
	return bytes.Contains(b, []byte("\nSummary:")) && bytes.Contains(b, []byte("Slowest:")) && bytes.Contains(b, []byte("Requests/sec:"))
}

var (
	heyShare  = pattern.New(`^(\d+)% in (\S+) secs$`)
	heyStatus = pattern.New(`^\[(\d{3})\]\s+(\d+) responses$`)
	heyError  = pattern.New(`^\[(\d+)\]\s+(.+)$`)
)

// heyRun is what hey printed of one run.
type heyRun struct {
	total     float64
	good, bad float64
	failed    float64
	failure   string
	inErrors  bool
	complete  bool
	reading   adapter.Reading
}

// decode reads what hey prints, of one run or of several. It says neither its workers nor its duration as they were asked for.
func decode(b []byte) (adapter.Batch, error) {
	batch := adapter.Batch{Tool: "hey"}
	var fs adapter.Faults
	for _, part := range adapter.Split(b, func(line string) bool { return line == "Summary:" }) {
		run := &heyRun{}
		for i, line := range part.Lines {
			if err := run.take(line); err != nil {
				fs.Add(part.Line+i, "%s", err)
			}
		}
		if !run.complete {
			fs.Add(part.Line, "the run that begins here: it ends before its status codes: it is cut")
		}
		run.finish()
		batch.Readings = append(batch.Readings, run.reading)
	}
	batch.LeaveOut("the parts of the response time (DNS, dial-up, write, wait, read)")
	return batch, fs.Err()
}

// take reads one line.
func (h *heyRun) take(line string) error {
	if m := heyShare.FindStringSubmatch(line); m != nil {
		share, err1 := adapter.Amount(m[1])
		s, err2 := adapter.Amount(m[2])
		h.reading.Percentile(metric.ResponseTime, share, s*1e9)
		return errors.Join(err1, err2)
	}
	if m := heyStatus.FindStringSubmatch(line); m != nil {
		n, err := adapter.Amount(m[2])
		if m[1][0] == '2' || m[1][0] == '3' {
			h.good += n
		} else {
			h.bad += n
		}
		return err
	}
	if m := heyError.FindStringSubmatch(line); m != nil && h.inErrors {
		n, err := adapter.Amount(m[1])
		h.failed += n
		if h.failure == "" {
			h.failure = m[2]
		}
		return err
	}
	switch {
	case line == "Error distribution:":
		h.inErrors = true
	case line == "Status code distribution:":
		h.complete = true
	}
	name, value, ok := strings.Cut(line, ":")
	words := strings.Fields(value)
	if !ok || len(words) != 2 || words[1] != "secs" {
		return nil
	}
	if words[0] == "NaN" {
		return nil // hey divided by no responses: the number is absent
	}
	v, err := adapter.Amount(words[0])
	switch name {
	case "Total":
		h.total = v
	case "Slowest":
		h.reading.Time(metric.ResponseTime, "max", v*1e9)
	case "Fastest":
		h.reading.Time(metric.ResponseTime, "min", v*1e9)
	case "Average":
		h.reading.Time(metric.ResponseTime, "mean", v*1e9)
	default:
		return nil
	}
	return err
}

func (h *heyRun) finish() {
	r := &h.reading
	r.Window = adapter.Seconds(h.total)
	heyOutcome(r, h.good, h.bad, h.failed, h.failure)
}

// heyOutcome puts the rates of a run with so many good and bad responses and requests that got none.
func heyOutcome(r *adapter.Reading, good, bad, failed float64, failure string) {
	switch {
	case good == 0 && bad == 0:
		if failure == "" {
			failure = "no request was answered"
		}
		r.Fail(adapter.FailureKind(failure), failure)
	case good == 0:
		r.Fail("status", fmt.Sprintf("none of %.0f responses had a status of success", bad))
	default:
		if s := r.Window.Seconds(); s > 0 {
			r.Put(metric.RequestRate, good/s)
		}
		r.Put(metric.Requests, good+bad)
		r.Put(metric.ErrorRate, (bad+failed)/(good+bad+failed))
		r.Warn(adapter.Rounded, "hey's times have steps of 100 µs")
	}
}
