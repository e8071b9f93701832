package outputs

import (
	"bytes"
	"errors"
	"strings"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

func matchAb(b []byte) bool { return bytes.Contains(b, []byte("This is ApacheBench")) }

var (
	abShare = pattern.New(`^(\d+)% +(\d+)(?: \(longest request\))?$`)
	// abFailures matches the line with the kinds of requests that ab counts as failed.
	abFailures = pattern.New(`^\(Connect: \d+, Receive: \d+, Length: (\d+), Exceptions: \d+\)$`)
	abRefused  = pattern.New(`apr_\w+: (.+)$`)
	// abMark matches the markup of the tables that -w writes, a row in a line.
	abMark = pattern.New(`</?[a-z][^>]*>`)
)

// abRun is the output of ab for one run. Its percentiles are whole milliseconds.
type abRun struct {
	httpReport
	complete  float64
	keepAlive float64
	hasTable  bool
	// unequal counts responses whose length differs from the first one's. ab counts them as failed, but they are
	// answers.
	unequal float64
	host    string
	tls     bool
	rated   bool // the rate was printed, which follows the counts
}

// ab decodes the output of ab.
var ab = adapter.RunText[*abRun]{
	Tool: "ab",
	New: func() *abRun {
		return &abRun{httpReport: httpReport{tool: "ab", times: map[string]float64{}, shares: map[float64]float64{}}}
	},
	Begins: func(_ *abRun, line string) bool { return strings.HasPrefix(line, "This is ApacheBench") },
}

// Take reads one line.
func (r *abRun) Take(_ *adapter.Batch, line string) error {
	line = abMark.ReplaceAllString(line, "")
	if m := abShare.FindStringSubmatch(line); m != nil {
		var share, ms float64
		err := adapter.Amounts(m[1:], &share, &ms)
		if r.hasTable = true; share == 100 {
			r.times["max"] = ms * 1e6
		} else {
			r.shares[share] = ms * 1e6
		}
		return err
	}
	if m := abRefused.FindStringSubmatch(line); m != nil {
		r.failure = m[1]
		return nil
	}
	if m := abFailures.FindStringSubmatch(line); m != nil {
		return adapter.Amounts(m[1:], &r.unequal)
	}
	name, value, _ := strings.Cut(line, ":")
	words := strings.Fields(value)
	if len(words) == 0 {
		return nil
	}
	r.rated = r.rated || name == "Requests per second"
	at := map[string]*float64{
		"Time taken for tests": &r.seconds, "Complete requests": &r.complete, "Failed requests": &r.failed, "Document Length": &r.body,
		"Non-2xx responses": &r.bad, "Keep-Alive requests": &r.keepAlive,
	}[name]
	switch {
	case at != nil:
		return adapter.Amounts(words, at)
	case name == "Server Hostname":
		r.host = words[0]
	case name == "SSL/TLS Protocol":
		r.tls = true
	case name == "Total body sent":
		r.about.Condition("body=true")
	case name == "Concurrency Level":
		n, err := adapter.Count(words[0])
		r.connections = n
		return err
	case name == "Time per request" && strings.HasSuffix(value, "(mean)"): // the second is divided by the connections
		v, err := adapter.Amount(words[0])
		r.times["mean"] = v * 1e6
		return err
	}
	return nil
}

// End returns the reading of the run.
func (r *abRun) End(batch *adapter.Batch) (*adapter.Reading, error) {
	if !r.rated && r.failure == "" {
		return nil, errors.New("it ends before its totals: the output is cut off")
	}
	r.threads, r.reconnect = 1, r.keepAlive < r.complete/2
	if r.unequal > 0 {
		batch.LeaveOut("that responses differ in length, which ab counts as failures")
	}
	r.failed = max(r.failed-r.unequal, 0)
	r.good = max(r.complete-r.failed-r.bad, 0)
	out := r.reading()
	out.Host(r.host)
	if r.tls {
		out.Condition("tls=true")
	}
	if r.hasTable && out.Failure == nil {
		out.Warn(adapter.Rounded, "ab's percentiles are whole milliseconds: those under 1 ms are absent")
	}
	batch.LeaveOut("connection times and the transfer rate, which counts headers")
	return &out, nil
}
