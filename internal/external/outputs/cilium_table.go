package outputs

import (
	"fmt"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

var ciliumTableHead = pattern.New(`(?m)Scenario +\| +Node +\| +Test +\|`)

func matchCiliumTable(b []byte) bool { return ciliumTableHead.Match(b) }

// decodeCiliumTable reads the tables that cilium connectivity perf prints: times and transaction rates, and throughput.
func decodeCiliumTable(b []byte) (adapter.Batch, error) {
	c := newCiliumTests()
	var faults adapter.Faults
	var titles []string
	number := 0
	for line := range strings.Lines(string(b)) {
		number++
		cells := strings.Split(strings.TrimLeft(strings.TrimSpace(line), "📋 "), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case cells[0] == "Scenario":
			titles = cells
		case len(titles) == 0 || len(cells) < 2:
		case len(cells) != len(titles):
			faults.Add(number, "%d cells below %d titles: the row is cut off", len(cells), len(titles))
		case len(c.batch.Readings) >= adapter.MaxReadings:
			return c.batch, fmt.Errorf("more than %d trials", adapter.MaxReadings)
		default:
			if err := c.readRow(titles, cells); err != nil {
				faults.Add(number, "%s", err)
			}
		}
	}
	return c.batch, faults.Err()
}

// ciliumTimes are the columns of round-trip times.
var ciliumTimes = map[string]string{"Min": "min", "Mean": "mean", "Max": "max", "P50": "p50", "P90": "p90", "P99": "p99"}

// readRow reads a row below its titles.
func (c *ciliumTests) readRow(titles, cells []string) error {
	r, err := c.findOrAddReading(cells[0], cells[1], cells[2], "table")
	if err != nil || r == nil {
		return err
	}
	for i, title := range titles {
		word, _, _ := strings.Cut(cells[i], " ") // a remark may follow a number
		switch member := ciliumTimes[title]; {
		case title == "Duration":
			r.Window, err = time.ParseDuration(word)
		case member != "":
			var d time.Duration
			d, err = time.ParseDuration(word)
			r.Time(metric.RTT, member, float64(d))
		case strings.HasSuffix(title, "OP/s"), strings.HasSuffix(title, "Mb/s"):
			name, unit := metric.TransactionRate, 1.0
			if strings.HasSuffix(title, "Mb/s") {
				name, unit = metric.Goodput, 1e6
			}
			var v float64
			v, err = adapter.Amount(word)
			setCiliumRate(r, name, v*unit)
		}
		if err != nil {
			return fmt.Errorf("column %s: %w", title, err)
		}
	}
	return nil
}

// setCiliumRate sets the metric called name, a rate. If v is 0, netperf had no rate: it turns r into a failed trial.
func setCiliumRate(r *adapter.Reading, name string, v float64) {
	if v == 0 {
		r.Fail("error", "netperf reported no throughput")
	}
	r.Put(name, v)
}
