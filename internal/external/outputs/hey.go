package outputs

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// Hey is hey: HTTP in a closed loop, or at a constant rate. The server is ours. Its times have steps of 100 µs.
var Hey = adapter.Tool{
	Formats: []adapter.Format{{Name: "hey", About: "what hey prints", Match: matchHey, Decode: heyText.Decode}},
	Sender: &adapter.Sender{
		Tool:   plan.Tool{Name: "hey", Kinds: []plan.Spec{plan.HTTP{}}, Lacks: heyUnsupportedReason, Ports: 1, LooseTimes: true},
		Client: heyClientCommand, Differs: heyEngineDifferences,
	},
}

func heyUnsupportedReason(w plan.Workload) string {
	if w.Traits().Arrival != "" && w.Traits().Arrival != plan.Constant {
		return "its requests come at constant intervals only: say arrival=" + plan.Constant
	}
	return ""
}

func heyClientCommand(a adapter.Ask) []string {
	w := a.Workload.Spec.(plan.HTTP)
	window, _ := a.Measured()
	argv := []string{"hey", "-z", window.String(), "-c", strconv.Itoa(w.Connections), "-cpus", strconv.Itoa(w.Threads), "-t", "5"}
	if w.Rate > 0 {
		// -q is the rate of one worker, and there is one for each connection.
		argv = append(argv, "-q", strconv.FormatFloat(w.Rate/float64(w.Connections), 'f', -1, 64))
	}
	if w.Connection == "close" {
		argv = append(argv, "-disable-keepalive")
	}
	return append(argv, rootURL(a))
}

func heyEngineDifferences(a adapter.Ask) []string {
	if a.Workload.Traits().Rate > 0 {
		return []string{"a request that is due waits for the previous response, and its time begins when it is sent"}
	}
	return nil
}

func matchHey(b []byte) bool {
	return bytes.Contains(b, []byte("\nSummary:")) && bytes.Contains(b, []byte("Slowest:")) && bytes.Contains(b, []byte("Requests/sec:"))
}

var (
	heyShare  = pattern.New(`^(\d+)% in (\S+) secs$`)
	heyStatus = pattern.New(`^\[(\d{3})\]\s+(\d+) responses$`)
	heyError  = pattern.New(`^\[(\d+)\]\s+(.+)$`)
)

// heyRun is what hey printed of one run.
type heyRun struct {
	httpReport
	inErrors, complete bool
	// perSecond is the rate of all requests, bytes the sum of all bodies.
	perSecond, bytes float64
}

// heyKept is how many responses hey keeps: it counts statuses and times of the first so many, and divides the sums over all by
// their number.
const heyKept = 1_000_000

// addUncounted corrects a run of more responses than hey keeps, and reports whether it is one.
func (h *heyRun) addUncounted() bool {
	counted, all := h.good+h.bad, math.Round(h.perSecond*h.seconds)-h.failed
	if counted != heyKept || all <= counted {
		return false
	}
	h.good, h.bad = h.good*all/counted, h.bad*all/counted
	h.times["mean"] *= counted / all
	h.body = math.Round(h.bytes / all)
	return true
}

var heyText = adapter.RunText[*heyRun]{
	Tool: "hey", Begins: func(_ *heyRun, line string) bool { return line == "Summary:" },
	New: func() *heyRun {
		return &heyRun{httpReport: httpReport{tool: "hey", usual: 50, times: map[string]float64{}, shares: map[float64]float64{}}}
	},
}

// Take reads one line.
func (h *heyRun) Take(_ *adapter.Batch, line string) error {
	var share, n, s float64
	if m := heyShare.FindStringSubmatch(line); m != nil {
		err := adapter.Amounts(m[1:], &share, &s)
		h.shares[share] = s * 1e9
		return err
	}
	if m := heyStatus.FindStringSubmatch(line); m != nil {
		err := adapter.Amounts(m[2:], &n)
		h.countStatuses(map[string]float64{m[1]: n})
		return err
	}
	if m := heyError.FindStringSubmatch(line); m != nil && h.inErrors {
		err := adapter.Amounts(m[1:], &n)
		h.failed, h.failure = h.failed+n, cmp.Or(h.failure, m[2])
		return err
	}
	h.inErrors = h.inErrors || line == "Error distribution:"
	h.complete = h.complete || line == "Status code distribution:"
	name, value, _ := strings.Cut(line, ":")
	words := strings.Fields(value)
	if name == "Requests/sec" && len(words) == 1 && words[0] != "NaN" {
		return adapter.Amounts(words, &h.perSecond)
	}
	if len(words) != 2 || words[0] == "NaN" { // hey divided by no responses: the number is absent
		return nil
	}
	member := map[string]string{"Slowest": "max", "Fastest": "min", "Average": "mean"}[name]
	switch {
	case name == "Size/request":
		return adapter.Amounts(words, &h.body)
	case name == "Total data":
		return adapter.Amounts(words, &h.bytes)
	case name == "Total":
		return adapter.Amounts(words, &h.seconds)
	case member != "":
		err := adapter.Amounts(words, &s)
		h.times[member] = s * 1e9
		return err
	}
	return nil
}

// End returns the reading of the run.
func (h *heyRun) End(batch *adapter.Batch) (*adapter.Reading, error) {
	batch.NoURL("hey")
	batch.LeaveOut("the parts of the response time (DNS, dial-up, write, wait, read), and whether a rate was asked for (-q)")
	if !h.complete {
		return nil, errors.New("it ends before its status codes: the output is cut off")
	}
	more := h.addUncounted()
	r := h.reading()
	if r.Failure == nil {
		r.Warn(adapter.Rounded, "hey's times have steps of 100 µs")
	}
	if r.Failure == nil && more {
		r.Warn(adapter.Note, "hey counts statuses and keeps times of the first %d responses only", heyKept)
	}
	return &r, nil
}
