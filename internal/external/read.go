package external

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// MaxOutput bounds the output of a tool, in bytes. ping prints most: 60 bytes for each of up to 250,000 replies a second.
// It prints replies only in windows shorter than quietFrom of package ping.
const MaxOutput = 64 << 20

// Output is the output of a client, and how it ended.
type Output struct {
	Stdout, Stderr []byte
	// Exit is the error of the process, nil for success.
	Exit error
}

// Outcome is the measurement of a client.
type Outcome struct {
	// Version is the tool's version, "" if its output lacks it.
	Version string
	// Metrics are in base units, by the names of package metric.
	Metrics map[string]float64
	// Window is how long it measured.
	Window time.Duration
	// Work is the number of units of work, warm-up included; 0 if unknown.
	Work float64
	// Notes are warnings for readers of the numbers.
	Notes []sample.Warning
	// Series is its time series, with what it sent and received; nil if it has none.
	Series *sample.Observation
}

// ReadOutput converts the output of a client into an outcome. It fails if the client failed, or if its output is not one
// valid result of the requested workload. The error is an *Error.
func ReadOutput(a Ask, out Output) (Outcome, error) {
	tool := a.Workload.Tool
	batch, err := decodeOutput(tool, out)
	if err == nil && len(batch.Readings) == 1 && batch.Readings[0].Failure != nil {
		f := batch.Readings[0].Failure
		return Outcome{}, Errorf(f.Kind, tool, "%s", f.Message)
	}
	switch {
	case out.Exit != nil:
		return Outcome{}, Errorf(KindExit, tool, "%s%s", out.Exit, Said(out))
	case isBlank(out.Stdout):
		return Outcome{}, Errorf(KindOutput, tool, "it printed nothing%s", Said(out))
	case err != nil:
		return Outcome{}, Errorf(KindOutput, tool, "cannot read its output: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	case len(batch.Readings) != 1:
		return Outcome{}, Errorf(KindOutput, tool, "its output has %d results, want 1", len(batch.Readings))
	}
	r := batch.Readings[0]
	got, asked := r.Workload.Traits(), a.Workload.Traits()
	if r.Workload.Kind() != "" && (r.Workload.Kind() != a.Workload.Kind() || got.Protocol != asked.Protocol ||
		got.Reverse != asked.Reverse || got.Bidirectional != asked.Bidirectional) {
		return Outcome{}, Errorf(KindOutput, tool, "it sent %s, not the requested %s", r.Workload, a.Workload)
	}
	if r.Window <= 0 {
		r.Window, _ = a.Measured()
	}
	_, version, _ := strings.Cut(batch.Tool, tool+" ")
	o := Outcome{Version: version, Metrics: maps.Clone(r.Metrics), Window: r.Window, Work: workUnits(a.Workload, r)}
	for _, w := range r.Warnings {
		// The request has what the output lacks, and it asked for a paced rate.
		if w.ID != adapter.Assumed && w.ID != adapter.Paced {
			o.Notes = append(o.Notes, w)
		}
	}
	o.Series = r.Client
	return o, nil
}

// decodeOutput decodes stdout. If stdout is blank, or if the tool failed and stdout cannot be decoded, it decodes stderr
// instead, unless stderr is blank.
func decodeOutput(tool string, out Output) (adapter.Batch, error) {
	t, _ := Sending(tool)
	format := t.Formats[0].Name
	batch, err := Decode(format, out.Stdout)
	if (isBlank(out.Stdout) || out.Exit != nil && err != nil) && !isBlank(out.Stderr) {
		return Decode(format, out.Stderr)
	}
	return batch, err
}

func isBlank(b []byte) bool { return len(bytes.TrimSpace(b)) == 0 }

// Said returns a line of a tool's output in quotes, to append to an error. It is the first line that looks like an error,
// else the last line, of stderr or else of stdout. It returns "" if the tool wrote nothing.
func Said(out Output) string {
	const most = 200
	for _, b := range [][]byte{out.Stderr, out.Stdout} {
		lines := strings.Split(strings.TrimSpace(string(b)), "\n")
		line := lines[len(lines)-1]
		if i := slices.IndexFunc(lines, complaint.MatchString); i >= 0 {
			line = lines[i]
		}
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if r := []rune(line); len(r) > most {
			line = string(r[:most]) + "..."
		}
		return ": it wrote " + strconv.Quote(line)
	}
	return ""
}

// complaint matches words of tools' error messages.
var complaint = pattern.New(`(?i)\berror\b|\binvalid\b|\bfailed\b|unable to|cannot|could not|unknown host`)

// workUnits returns how many units of work a client did, as printed by the tool or computed from the metrics. The CPU
// time of the client is divided by this number. A unit of a bulk transfer is 1 kB over TCP and a datagram over UDP.
func workUnits(w plan.Workload, r adapter.Reading) float64 {
	switch {
	case r.Work > 0:
		return r.Work
	case w.Traits().Work == plan.Request:
		return r.Metrics[metric.Requests]
	case w.Traits().Exchanges():
		return r.Metrics[metric.TransactionRate] * r.Window.Seconds()
	}
	bytes := r.Metrics[metric.Transferred]
	if r.Client != nil {
		bytes = 0
		for _, row := range r.Client.Intervals {
			bytes += float64(row.Bytes)
		}
	}
	if w.Traits().Protocol != plan.UDP {
		return bytes / 1000
	}
	if r.Client == nil && r.Metrics[metric.Datagrams] > 0 {
		return r.Metrics[metric.Datagrams]
	}
	return bytes / float64(w.Traits().Message)
}
