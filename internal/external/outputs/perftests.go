package outputs

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

var (
	perfTestsHead  = pattern.New(`(?m)^[│| \t]*MSS *[,;] *Maximum *[,;]`)
	perfTestsRow   = pattern.New(`^\d+ [a-z]`)
	perfTestsLabel = pattern.New(`^\d+ (iperf|netperf|qperf)(?: (TCP|UDP|SCTP))?\. (Same VM|Remote VM|Hairpin Pod) (?:using (Pod IP|Virtual IP)|to own Virtual IP)$`)
)

func matchPerfTests(b []byte) bool { return perfTestsHead.Match(b) }

// decodePerfTests reads the table of the network benchmark of kubernetes/perf-tests, which runs iperf3 and netperf. The
// table has a row for each test, with its rate in Mbit/s at each segment size. In a log, it ignores other text.
func decodePerfTests(b []byte) (adapter.Batch, error) {
	batch := adapter.Batch{Tool: "perf-tests", Environment: "kubernetes"}
	var faults adapter.Faults
	var sizes []string
	number := 0
	for line := range strings.Lines(string(bytes.TrimPrefix(b, []byte("\ufeff")))) {
		number++
		whole := strings.HasSuffix(line, "\n")
		line = strings.Trim(line, "│| \t\r\n")
		separator := ","
		if strings.Contains(line, ";") { // of a spreadsheet
			separator = ";"
		}
		whole = whole || strings.HasSuffix(line, separator)
		cells := strings.Split(strings.TrimRight(line, separator), separator)
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		m := perfTestsLabel.FindStringSubmatch(cells[0])
		switch {
		case cells[0] == "MSS" && len(cells) > 2:
			sizes = cells[2:]
		case sizes == nil || !perfTestsRow.MatchString(cells[0]):
		case m == nil && len(cells) > 1:
			batch.LeaveOut("row %s: not a known test", adapter.Quoted(cells[0]))
		case len(cells) < 3 || len(cells) > 3 && len(cells)-2 < len(sizes) || !whole:
			faults.Add(number, "the row is cut off")
		case len(batch.Readings) >= adapter.MaxReadings:
			return batch, fmt.Errorf("more than %d trials", adapter.MaxReadings)
		default:
			if err := addPerfTestsReading(&batch, m, cells[2:], sizes); err != nil {
				faults.Add(number, "%s", err)
			}
		}
	}
	return batch, faults.Err()
}

// Options that perf-tests gives its tools: iperf3 over TCP uses eight streams, zero-copy and large buffers; iperf3 over UDP
// and netperf use one stream.
const (
	perfTestsFlows  = 8
	perfTestsBuffer = 512 << 20
	netperfMessage  = 16 << 10
)

// addPerfTestsReading adds a reading of a row: its rate at the largest segment size. m is the match of perfTestsLabel.
func addPerfTestsReading(batch *adapter.Batch, m, values, sizes []string) error {
	tool, protocol, where, by := m[1], m[2], m[3], m[4]
	path := plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}
	switch {
	case where == "Hairpin Pod":
		path = plan.Path{From: plan.Pod, To: plan.Self}
	case where == "Same VM" && by == "Virtual IP":
		path = plan.Path{From: plan.Pod, To: plan.Service, Locality: plan.Local}
	case where == "Same VM":
		path.Locality = plan.SameNode
	case by == "Virtual IP":
		path = plan.Path{From: plan.Pod, To: plan.Service, Locality: plan.Remote}
	}
	s := plan.Stream{}
	switch {
	case protocol == "SCTP":
		batch.LeaveOut("tests of SCTP: not a supported workload")
		return nil
	case protocol == "UDP":
		s.Protocol = plan.UDP
	case tool == "iperf":
		s.Flows, s.Mode, s.Buffer = perfTestsFlows, "sendfile", perfTestsBuffer
	case tool == "netperf":
		s.MessageSize = netperfMessage
	}
	last := len(values) - 1
	v, err := adapter.Amount(values[last])
	if err != nil {
		return err
	}
	r := adapter.Reading{Path: path, Workload: plan.Workload{Spec: s}.Normalize()}
	if last > 0 {
		batch.LeaveOut("the rates at smaller segment sizes, and the highest of a row")
		if last < len(sizes) {
			r.Condition("mss=" + sizes[last])
		}
	}
	r.Condition("tool=" + tool)
	r.Warn(adapter.Assumed, "perf-tests names neither the flows, the message size nor the congestion control; assumed: what it asks its tools for")
	if v == 0 {
		r.Fail("error", "perf-tests reported a rate of 0, which it writes for a test that failed")
	} else {
		r.Received(v * 1e6)
	}
	batch.Readings = append(batch.Readings, r)
	return nil
}
