package hey

import (
	"bytes"
	"cmp"
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
	total float64
	// rate is of all responses, those without success included.
	rate      float64
	good, bad float64
	failed    float64
	failure   string
	inErrors  bool
	complete  bool
	reading   adapter.Reading
}

// text decodes what hey prints, which does not say the workers and the duration asked for.
var text = adapter.RunText[*heyRun]{Tool: "hey", New: func() *heyRun { return &heyRun{} }, Begins: func(_ *heyRun, line string) bool { return line == "Summary:" }}

// Take reads one line.
func (h *heyRun) Take(_ *adapter.Batch, line string) error {
	if m := heyShare.FindStringSubmatch(line); m != nil {
		var share, s float64
		err := adapter.Amounts(m[1:], &share, &s)
		h.reading.Percentile(metric.ResponseTime, share, s*1e9)
		return err
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
		h.failure = cmp.Or(h.failure, m[2])
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
	if name == "Requests/sec" && len(words) == 1 && words[0] != "NaN" {
		return adapter.Amounts(words, &h.rate)
	}
	if !ok || len(words) != 2 || words[1] != "secs" {
		return nil
	}
	if words[0] == "NaN" {
		return nil // hey divided by no responses: the number is absent
	}
	member := map[string]string{"Slowest": "max", "Fastest": "min", "Average": "mean"}[name]
	if name == "Total" {
		return adapter.Amounts(words, &h.total)
	} else if member == "" {
		return nil
	}
	v, err := adapter.Amount(words[0])
	h.reading.Time(metric.ResponseTime, member, v*1e9)
	return err
}

// End returns the reading of the run.
func (h *heyRun) End(batch *adapter.Batch) (*adapter.Reading, error) {
	batch.NoURL("hey")
	batch.LeaveOut("the parts of the response time (DNS, dial-up, write, wait, read)")
	if !h.complete {
		return nil, errors.New("it ends before its status codes: the output is cut off")
	}
	r := &h.reading
	r.Window = adapter.Seconds(h.total)
	switch {
	case h.good == 0 && h.bad == 0:
		failure := cmp.Or(h.failure, "no request was answered")
		r.Fail(adapter.FailureKind(failure), failure)
	case h.good == 0:
		r.Fail("status", fmt.Sprintf("none of %.0f responses had a status of success", h.bad))
	default:
		if h.rate > 0 {
			r.Put(metric.RequestRate, h.rate*h.good/(h.good+h.bad))
		}
		r.Put(metric.Requests, h.good+h.bad)
		r.Put(metric.ErrorRate, (h.bad+h.failed)/(h.good+h.bad+h.failed))
		r.Warn(adapter.Rounded, "hey's times have steps of 100 µs")
	}
	return r, nil
}
