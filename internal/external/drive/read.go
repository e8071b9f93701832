package drive

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/external"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// MaxOutput bounds what a tool may write, in bytes. Most of all is a line of ping for each of 250,000 replies in a second, 60 bytes
// each, for up to pingQuiet.
const MaxOutput = 64 << 20

// Output is what a client wrote, and how it ended.
type Output struct {
	Stdout, Stderr []byte
	// Exit is how it ended, nil for success.
	Exit error
}

// Outcome is what a client measured.
type Outcome struct {
	// Version is that of the tool where its output says it, "" where not.
	Version string
	// Metrics are in base units, by name of package metric.
	Metrics map[string]float64
	// Window is how long it measured.
	Window time.Duration
	// Work is how many units of the workload's work it did in all, warm-up included; 0 if it does not say.
	Work float64
	// Notes are what a reader of the numbers must know.
	Notes []sample.Note
	// Series is its series over time, with what it sent and received; nil if it gives none.
	Series *sample.Observation
}

// formats are the formats of package foreign that the tools are asked to print.
var formats = map[string]string{
	plan.Iperf3: "iperf3", plan.Netperf: "netperf", plan.Wrk: "wrk", plan.Hey: "hey", plan.PingTool: "ping",
	plan.Neper: "neper", plan.Sockperf: "sockperf",
}

// Read makes an outcome of what a client wrote. The error is an *Error.
func Read(a Ask, out Output) (Outcome, error) {
	tool := a.Workload.Tool
	batch, err := decode(tool, out)
	if err == nil && len(batch.Readings) == 1 && batch.Readings[0].Failure != nil {
		f := batch.Readings[0].Failure
		return Outcome{}, Errorf(f.Kind, tool, "%s", f.Message)
	}
	switch {
	case out.Exit != nil:
		return Outcome{}, Errorf(KindExit, tool, "%s%s", out.Exit, Said(out))
	case blank(out.Stdout):
		return Outcome{}, Errorf(KindOutput, tool, "it printed nothing%s", Said(out))
	case err != nil:
		return Outcome{}, Errorf(KindOutput, tool, "its output cannot be read: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	case len(batch.Readings) != 1:
		return Outcome{}, Errorf(KindOutput, tool, "its output has %d results where one is wanted", len(batch.Readings))
	}
	r := batch.Readings[0]
	if got := r.Workload; got.Kind != "" && (got.Kind != a.Workload.Kind || got.Protocol != a.Workload.Protocol || got.Reverse != a.Workload.Reverse) {
		return Outcome{}, Errorf(KindOutput, tool, "it says that it sent %s, and %s was asked for", got, a.Workload)
	}
	if r.Window <= 0 {
		r.Window, _ = a.Workload.Measured(a.Window, a.Warmup)
	}
	o := Outcome{Version: version(tool, batch.Tool), Metrics: maps.Clone(r.Metrics), Window: r.Window, Work: work(a.Workload, r, out.Stdout)}
	for _, w := range r.Warnings {
		// What the output does not say is known: it was asked for. A rate that was asked for is no surprise either.
		if w.ID != external.Assumed && w.ID != external.Paced {
			o.Notes = append(o.Notes, sample.Note(w))
		}
	}
	o.Series = r.Client
	return o, nil
}

// decode reads stdout, or stderr where that has nothing.
func decode(tool string, out Output) (external.Batch, error) {
	text := out.Stdout
	if blank(text) || out.Exit != nil && !complains(tool, text) {
		if !blank(out.Stderr) {
			text = out.Stderr
		}
	}
	return external.Decode(formats[tool], text)
}

// complains says whether the failure of a tool can be read from its stdout.
func complains(tool string, stdout []byte) bool {
	_, err := external.Decode(formats[tool], stdout)
	return err == nil
}

func blank(b []byte) bool { return len(bytes.TrimSpace(b)) == 0 }

// Said quotes a line of what a tool wrote, for the end of an error: the first that speaks of an error, else the last; ""
// if it wrote nothing.
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

// complaint is how tools begin to complain.
var complaint = regexp.MustCompile(`(?i)\berror\b|\binvalid\b|\bfailed\b|unable to|cannot|could not|unknown host`)

// version is what a decoder says of the tool without its name, "" if it says no more.
func version(tool, said string) string {
	v, ok := strings.CutPrefix(said, tool+" ")
	if !ok {
		return ""
	}
	return v
}

var (
	sockperfTotal     = regexp.MustCompile(`\[Total Run\].*ReceivedMessages=(\d+)`)
	neperTransactions = regexp.MustCompile(`(?m)^num_transactions=(\d+)`)
	pingReceived      = regexp.MustCompile(`(?m)^\d+ packets transmitted, (\d+) (?:packets )?received`)
)

// work counts what a client did in all of its life: CPU time is known of that alone.
func work(w plan.Workload, r external.Reading, stdout []byte) float64 {
	switch {
	case w.Tool == plan.Sockperf:
		return found(sockperfTotal, stdout)
	case w.Tool == plan.Neper && w.Kind != plan.Stream:
		return found(neperTransactions, stdout)
	case w.Tool == plan.Neper:
		return 0 // a rate alone is known, and not how long it lasted
	case w.Tool == plan.PingTool:
		return found(pingReceived, stdout)
	case w.Kind == plan.HTTP:
		return r.Metrics[metric.Requests]
	case w.Kind != plan.Stream:
		return r.Metrics[metric.TransactionRate] * r.Window.Seconds()
	}
	bytes := r.Metrics[metric.Transferred]
	if r.Client != nil {
		bytes = 0
		for _, row := range r.Client.Intervals {
			bytes += float64(row.Bytes)
		}
	}
	if w.Protocol != plan.UDP {
		return bytes / 1000
	}
	if r.Client == nil && r.Metrics[metric.Datagrams] > 0 {
		return r.Metrics[metric.Datagrams]
	}
	return bytes / float64(w.MessageSize)
}

// found returns the number that a pattern picks out, 0 if there is none.
func found(pattern *regexp.Regexp, text []byte) float64 {
	m := pattern.FindSubmatch(text)
	if m == nil {
		return 0
	}
	n, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		return 0
	}
	return n
}
