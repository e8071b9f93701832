package outputs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// ciliumStreams is the number of concurrent netperf processes in a test whose name ends in _MULTI, unless --streams
// changed it.
const ciliumStreams = 4

// ciliumMessage is the message size of streams in bytes, unless --msg-size changed it.
const ciliumMessage = 1024

func matchCilium(b []byte) bool {
	return matchCiliumTable(b) || adapter.StartsJSON(b) && bytes.Contains(b, []byte(`"dataItems"`)) && bytes.Contains(b, []byte(`"test_type"`))
}

// ciliumItem is a data item of the perfdash format that cilium connectivity perf --report-dir writes.
type ciliumItem struct {
	Data   map[string]float64 `json:"data"`
	Unit   string             `json:"unit"`
	Labels map[string]string  `json:"labels"`
}

// decodeCilium reads the tables or the report of cilium connectivity perf. A report has several items for each test.
func decodeCilium(b []byte) (adapter.Batch, error) {
	if matchCiliumTable(b) {
		return decodeCiliumTable(b)
	}
	var file struct {
		Version string            `json:"version"`
		Items   json.RawMessage   `json:"dataItems"`
		Labels  map[string]string `json:"labels"`
	}
	if err := adapter.Twice(b); err != nil {
		return adapter.Batch{}, err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if err := d.Decode(&file); err != nil {
		return adapter.Batch{}, adapter.JSONError(b, d.InputOffset(), err)
	}
	if err := adapter.Alone(b, d); err != nil {
		return adapter.Batch{}, err
	}
	if file.Version != "v1" {
		return adapter.Batch{}, fmt.Errorf("version %s of the report is not v1", adapter.Quoted(file.Version))
	}
	c := newCiliumTests()
	err := adapter.EachItem(file.Items, func(item ciliumItem) error {
		kind := item.Labels["metric"]
		r, err := c.findOrAddReading(item.Labels["scenario"], item.Labels["node"], strings.TrimPrefix(item.Labels["test_type"], "netperf-"), kind)
		if err != nil || r == nil {
			return err
		}
		for _, labels := range []map[string]string{file.Labels, item.Labels} {
			for label, value := range labels {
				if !slices.Contains([]string{"scenario", "node", "test_type", "metric"}, label) && value != "" {
					r.Condition(label + "=" + value)
				}
			}
		}
		return item.setNumbers(r, kind)
	})
	return c.batch, err
}

// setNumbers sets the numbers of an item in r. kind is the item's metric. A rate of 0 makes r a failed trial.
func (item ciliumItem) setNumbers(r *adapter.Reading, kind string) error {
	for name, v := range item.Data {
		if v < 0 {
			return fmt.Errorf("%s is negative", name)
		}
	}
	switch v := item.Data["Throughput"]; {
	case kind == "Latency" && item.Unit == "us":
		for name, member := range map[string]string{"Perc50": "p50", "Perc90": "p90", "Perc99": "p99"} {
			r.Time(metric.RTT, member, item.Data[name]*1e3)
		}
	case kind == "TransactionRate" && (item.Unit == "ops/s" || v == 0):
		setCiliumRate(r, metric.TransactionRate, v)
	case kind == "Throughput" && (item.Unit == "Mb/s" || v == 0):
		setCiliumRate(r, metric.Goodput, v*1e6)
	default:
		return fmt.Errorf("unknown metric %s in %s", adapter.Quoted(kind), adapter.Quoted(item.Unit))
	}
	return nil
}

// ciliumTests joins the parts of a test, such as its times and its rate, into one reading.
type ciliumTests struct {
	batch adapter.Batch
	// seen counts the parts that were read, by test and kind. of has, by test, the indices of its readings in batch: one for
	// each time that the test was run.
	seen map[string]int
	of   map[string][]int
}

func newCiliumTests() *ciliumTests {
	return &ciliumTests{batch: adapter.Batch{Tool: "cilium connectivity perf", Environment: "kubernetes"}, seen: map[string]int{}, of: map[string][]int{}}
}

// findOrAddReading returns the first reading of a test that has no part called kind yet, and adds one if all have it. It returns
// nil, and lists the test as left out, if the test is not supported.
func (c *ciliumTests) findOrAddReading(scenario, node, test, kind string) (*adapter.Reading, error) {
	locality, ok := map[string]string{"same-node": "same-node", "other-node": "cross-node"}[node]
	if !ok {
		return nil, fmt.Errorf("node %s is neither same-node nor other-node", adapter.Quoted(node))
	}
	path, err := plan.ParsePath(scenario + "/" + locality)
	if err != nil {
		c.batch.LeaveOut("scenario %s: not a supported path", adapter.Quoted(scenario))
		return nil, nil
	}
	base, multi := strings.CutSuffix(test, "_MULTI")
	flows := 1
	if multi {
		flows = ciliumStreams
	}
	spec, ok := adapter.NetperfTests[base]
	if !ok {
		c.batch.LeaveOut("test %s: not a supported workload", adapter.Quoted(test))
		return nil, nil
	}
	// The n-th part of this kind belongs to the n-th reading of the test.
	key := path.String() + " " + test
	n := c.seen[key+" "+kind]
	c.seen[key+" "+kind]++
	if n < len(c.of[key]) {
		return &c.batch.Readings[c.of[key][n]], nil
	}
	c.of[key] = append(c.of[key], len(c.batch.Readings))
	r := adapter.Reading{Path: path, Workload: adapter.Sized(spec, adapter.Sizes{Flows: flows, Message: ciliumMessage}).Normalize()}
	switch {
	case multi:
		r.Warn(adapter.Assumed, "the report names neither the streams nor their message size; assumed: %d of %d B", ciliumStreams, ciliumMessage)
	case !r.Workload.Traits().Exchanges():
		r.Warn(adapter.Assumed, "the report does not name the message size; assumed: %d B", ciliumMessage)
	}
	c.batch.Readings = append(c.batch.Readings, r)
	return &c.batch.Readings[len(c.batch.Readings)-1], nil
}
