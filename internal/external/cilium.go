package external

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// ciliumStreams is how many netperf run at once in a test whose name ends in _MULTI, unless --streams said otherwise.
const ciliumStreams = 4

// ciliumMessage is the message size of its streams in bytes, unless --msg-size said otherwise.
const ciliumMessage = 1024

func matchCiliumJSON(b []byte) bool {
	return startsJSON(b) && bytes.Contains(b, []byte(`"dataItems"`)) && bytes.Contains(b, []byte(`"test_type"`))
}

// ciliumItem is a data item of the perfdash format that cilium connectivity perf --report-dir writes.
type ciliumItem struct {
	Data   map[string]float64 `json:"data"`
	Unit   string             `json:"unit"`
	Labels map[string]string  `json:"labels"`
}

// decodeCiliumJSON reads the report of cilium connectivity perf: some items for each test.
func decodeCiliumJSON(b []byte) (Batch, error) {
	var file struct {
		Version string          `json:"version"`
		Items   json.RawMessage `json:"dataItems"`
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if err := d.Decode(&file); err != nil {
		return Batch{}, jsonError(b, d.InputOffset(), err)
	}
	if err := alone(b, d); err != nil {
		return Batch{}, err
	}
	if file.Version != "v1" {
		return Batch{}, fmt.Errorf("version %s of the report is not v1", quoted(file.Version))
	}
	c := &ciliumTests{batch: Batch{Tool: "cilium connectivity perf", Environment: "kubernetes"}, seen: map[string]int{}, of: map[string][]int{}}
	err := eachItem(file.Items, func(item ciliumItem) error {
		kind := item.Labels["metric"]
		r, err := c.reading(item.Labels["scenario"], item.Labels["node"], strings.TrimPrefix(item.Labels["test_type"], "netperf-"), kind)
		if err != nil || r == nil {
			return err
		}
		return item.read(r, kind)
	})
	return c.batch, err
}

// read puts the numbers of an item. One that is 0 is one that netperf did not have.
func (item ciliumItem) read(r *Reading, kind string) error {
	for name, v := range item.Data {
		if v < 0 {
			return fmt.Errorf("%s is negative", name)
		}
	}
	v := item.Data["Throughput"]
	switch {
	case kind == "Latency" && item.Unit == "us":
		for name, member := range map[string]string{"Perc50": "p50", "Perc90": "p90", "Perc99": "p99"} {
			r.time(metric.RTT, member, item.Data[name]*1e3)
		}
	case kind == "TransactionRate" && item.Unit == "ops/s" && v > 0:
		r.put(metric.TransactionRate, v)
	case kind == "Throughput" && item.Unit == "Mb/s" && v > 0:
		r.put(metric.Goodput, v*1e6)
	case kind != "Latency" && v == 0:
		r.fail("error", "netperf had no throughput of it")
	default:
		return fmt.Errorf("%s in %s is not known here", quoted(kind), quoted(item.Unit))
	}
	return nil
}

// ciliumTests gathers the parts of tests.
type ciliumTests struct {
	batch Batch
	// seen counts the parts of each kind of a test, and of finds its readings: a test that comes again is its next sample.
	seen map[string]int
	of   map[string][]int
}

// reading returns the reading of a test that has no part called kind yet, or nil if the test has no word here.
func (c *ciliumTests) reading(scenario, node, test, kind string) (*Reading, error) {
	locality, ok := map[string]string{"same-node": "same-node", "other-node": "cross-node"}[node]
	if !ok {
		return nil, fmt.Errorf("node %s is neither same-node nor other-node", quoted(node))
	}
	path, err := plan.ParsePath(scenario + "/" + locality)
	if err != nil {
		c.batch.leaveOut("scenario %s, which is no path here", quoted(scenario))
		return nil, nil
	}
	base, multi := strings.CutSuffix(test, "_MULTI")
	w := plan.Workload{Flows: 1}
	if multi {
		w.Flows = ciliumStreams
	}
	switch base {
	case "TCP_STREAM":
		w.Kind, w.MessageSize = plan.Stream, ciliumMessage
	case "UDP_STREAM":
		w.Kind, w.Protocol, w.MessageSize = plan.Stream, plan.UDP, ciliumMessage
	case "TCP_RR":
		w.Kind = plan.RR
	case "UDP_RR":
		w.Kind, w.Protocol = plan.RR, plan.UDP
	case "TCP_CRR":
		w.Kind, w.Close = plan.CRR, "fin"
	default:
		c.batch.leaveOut("test %s, which is no workload here", quoted(test))
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
	r := Reading{Path: path, Workload: w.Normalize()}
	switch {
	case multi:
		r.warn(Assumed, "the report does not say how many streams there were nor their message size: %d and %d B taken", ciliumStreams, ciliumMessage)
	case w.Kind == plan.Stream:
		r.warn(Assumed, "the report does not say the message size: %d B taken", ciliumMessage)
	}
	c.batch.Readings = append(c.batch.Readings, r)
	return &c.batch.Readings[len(c.batch.Readings)-1], nil
}

var ciliumHead = regexp.MustCompile(`Scenario +\| +Node +\| +Test +\|`)

func matchCiliumTable(b []byte) bool { return ciliumHead.Match(b) }

// ciliumColumns are the columns of its tables with a distribution, by title.
var ciliumColumns = map[string]string{"Min": "min", "Mean": "mean", "Max": "max", "P50": "p50", "P90": "p90", "P99": "p99"}

// decodeCiliumTable reads the tables that cilium connectivity perf prints.
func decodeCiliumTable(b []byte) (Batch, error) {
	c := &ciliumTests{batch: Batch{Tool: "cilium connectivity perf", Environment: "kubernetes"}, seen: map[string]int{}, of: map[string][]int{}}
	var fs faults
	var titles []string
	number := 0
	for line := range strings.Lines(string(b)) {
		number++
		cells := strings.Split(strings.TrimSpace(line), "|")
		for i, s := range cells {
			cells[i] = strings.TrimSpace(s)
		}
		// Each line may begin with an ornament.
		if i := strings.IndexFunc(cells[0], func(r rune) bool { return r < 0x80 && r != ' ' && r != '?' }); i > 0 {
			cells[0] = cells[0][i:]
		}
		switch {
		case len(cells) < 4:
			continue
		case cells[0] == "Scenario":
			titles = cells
			continue
		case len(cells) != len(titles):
			fs.add(number, "%d columns where the head has %d", len(cells), len(titles))
			continue
		}
		if err := c.row(titles, cells); err != nil {
			fs.add(number, "%s", err)
		}
		if len(c.batch.Readings) > maxReadings {
			return Batch{}, fmt.Errorf("more than %d trials", maxReadings)
		}
	}
	return c.batch, fs.asError()
}

// row reads one row of a table.
func (c *ciliumTests) row(titles, cells []string) error {
	r, err := c.reading(cells[0], cells[1], cells[2], "row")
	if err != nil || r == nil {
		return err
	}
	for i, title := range titles[3:] {
		s := cells[3+i]
		switch {
		case title == "Duration":
			d, err := time.ParseDuration(s)
			if err != nil || d < 0 {
				return fmt.Errorf("%s is not a duration", quoted(s))
			}
			r.Window = min(d, longest)
		case ciliumColumns[title] != "":
			v, suffix, err := suffixed(s)
			if err != nil {
				return err
			}
			ns, err := number.Convert(v, suffix, "ns")
			if err != nil {
				return err
			}
			r.time(metric.RTT, ciliumColumns[title], ns)
		case title == "OP/s" || title == "Transaction rate OP/s":
			err = c.rate(r, metric.TransactionRate, s, 1)
		case title == "Throughput Mb/s":
			err = c.rate(r, metric.Goodput, s, 1e6)
		default:
			c.batch.leaveOut("column %s", quoted(title))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (*ciliumTests) rate(r *Reading, name, text string, scale float64) error {
	v, err := amount(text)
	if err == nil && v == 0 {
		r.fail("error", "netperf had no throughput of it")
		return nil
	}
	if err == nil {
		r.put(name, v*scale)
	}
	return err
}
