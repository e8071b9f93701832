package external

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/metric"
)

func matchHey(b []byte) bool {
	return bytes.Contains(b, []byte("\nSummary:")) && bytes.Contains(b, []byte("Slowest:")) && bytes.Contains(b, []byte("Requests/sec:"))
}

var (
	heyShare  = regexp.MustCompile(`^(\d+)% in (\S+) secs$`)
	heyStatus = regexp.MustCompile(`^\[(\d{3})\]\s+(\d+) responses$`)
	heyError  = regexp.MustCompile(`^\[(\d+)\]\s+(.+)$`)
)

// heyRun is what hey printed of one run.
type heyRun struct {
	total     float64
	good, bad float64
	failed    float64
	failure   string
	inErrors  bool
	complete  bool
	reading   Reading
}

// decodeHey reads what hey prints, of one run or of several. It says neither its workers nor its duration as they were asked for.
func decodeHey(b []byte) (Batch, error) {
	batch := Batch{Tool: "hey"}
	var fs faults
	for _, part := range splitAt(b, func(line string) bool { return line == "Summary:" }) {
		run := &heyRun{}
		for i, line := range part.lines {
			if err := run.take(line); err != nil {
				fs.add(part.line+i, "%s", err)
			}
		}
		if !run.complete {
			fs.add(part.line, "the run that begins here: it ends before its status codes: it is cut")
		}
		run.finish()
		batch.Readings = append(batch.Readings, run.reading)
	}
	batch.leaveOut("the parts of the response time (DNS, dial-up, write, wait, read)")
	return batch, fs.asError()
}

// take reads one line.
func (h *heyRun) take(line string) error {
	if m := heyShare.FindStringSubmatch(line); m != nil {
		share, err1 := amount(m[1])
		s, err2 := amount(m[2])
		h.reading.percentile(metric.ResponseTime, share, s*1e9)
		return errors.Join(err1, err2)
	}
	if m := heyStatus.FindStringSubmatch(line); m != nil {
		n, err := amount(m[2])
		if m[1][0] == '2' || m[1][0] == '3' {
			h.good += n
		} else {
			h.bad += n
		}
		return err
	}
	if m := heyError.FindStringSubmatch(line); m != nil && h.inErrors {
		n, err := amount(m[1])
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
	v, err := amount(words[0])
	switch name {
	case "Total":
		h.total = v
	case "Slowest":
		h.reading.time(metric.ResponseTime, "max", v*1e9)
	case "Fastest":
		h.reading.time(metric.ResponseTime, "min", v*1e9)
	case "Average":
		h.reading.time(metric.ResponseTime, "mean", v*1e9)
	default:
		return nil
	}
	return err
}

func (h *heyRun) finish() {
	r := &h.reading
	r.Window = seconds(h.total)
	heyOutcome(r, h.good, h.bad, h.failed, h.failure)
}

// heyOutcome puts the rates of a run with so many good and bad responses and requests that got none.
func heyOutcome(r *Reading, good, bad, failed float64, failure string) {
	switch {
	case good == 0 && bad == 0:
		if failure == "" {
			failure = "no request was answered"
		}
		r.fail(kindOf(failure), failure)
	case good == 0:
		r.fail("status", fmt.Sprintf("none of %.0f responses had a status of success", bad))
	default:
		if s := r.Window.Seconds(); s > 0 {
			r.put(metric.RequestRate, good/s)
		}
		r.put(metric.Requests, good+bad)
		r.put(metric.ErrorRate, (bad+failed)/(good+bad+failed))
		r.warn(Rounded, "hey's times have steps of 100 µs")
	}
}

const heyHeader = "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset"

func matchHeyCSV(b []byte) bool { return bytes.HasPrefix(b, []byte(heyHeader)) }

// decodeHeyCSV reads hey -o csv: a row for each response. Requests without a response have none, so their share is
// absent.
func decodeHeyCSV(b []byte) (Batch, error) {
	batch := Batch{Tool: "hey"}
	var fs faults
	var r Reading
	var times []float64
	var bad, end float64
	number := 0
	for line := range strings.Lines(string(b)) {
		number++
		line = strings.TrimSpace(line)
		if number == 1 || line == "" {
			continue
		}
		f := strings.Split(line, ",")
		if len(f) != 8 {
			fs.add(number, "%d fields where there are 8", len(f))
			continue
		}
		took, err1 := amount(f[0])
		status, err2 := count(f[6])
		offset, err3 := amount(f[7])
		if err := errors.Join(err1, err2, err3); err != nil {
			fs.add(number, "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
			continue
		}
		end = max(end, offset+took)
		if status/100 == 2 || status/100 == 3 {
			times = append(times, took*1e9)
		} else {
			bad++
		}
	}
	if err := fs.asError(); err != nil {
		return Batch{}, err
	}
	r.Window = seconds(end)
	r.distribution(metric.ResponseTime, times)
	heyOutcome(&r, float64(len(times)), bad, 0, "")
	delete(r.Metrics, metric.ErrorRate)
	batch.Readings = []Reading{r}
	return batch, nil
}
