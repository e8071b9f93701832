package outputs

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// k8sHead matches the start of the first line. Spreadsheets in some languages separate by semicolons.
var k8sHead = pattern.New(`^(?:Pair[,;])?Driver[,;]Profile[,;]`)

func matchK8sCSV(b []byte) bool {
	line, _, _ := bytes.Cut(bytes.TrimPrefix(b, []byte("\ufeff")), []byte("\n"))
	return k8sHead.Match(line) && bytes.Contains(line, []byte("Throughput Metric"))
}

// k8sColumns maps the titles of the CSV columns to the keys of the JSON.
var k8sColumns = map[string]string{
	"Pair": "pair", "Driver": "driver", "Profile": "profile", "UDN Info": "udnInfo", "Bridge Info": "bridgeInfo", "SRIOV Info": "sriovInfo", "Macvlan Info": "macvlanInfo",
	"Localnet Info": "localnetInfo", "VM mode": "virt", "Same node": "local", "Host Network": "hostNetwork", "Service": "service",
	"External Server": "externalServer", "Duration": "duration", "Parallelism": "parallelism", "# of Samples": "samples", "Message Size": "messageSize",
	"Burst": "burst", "Throughput Metric": "tputMetric", "Latency Metric": "ltcyMetric", "Avg Throughput": "throughput", "99%tile Observed Latency": "latency",
}

// decodeK8sCSV reads the file result-*.csv of k8s-netperf --csv: a row for each scenario. Newer versions have more
// columns.
func decodeK8sCSV(b []byte) (adapter.Batch, error) {
	batch := adapter.Batch{Tool: "k8s-netperf", Environment: "kubernetes"}
	lines := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(b, []byte("\ufeff"))))
	if head, _, _ := bytes.Cut(b, []byte("\n")); bytes.Contains(head, []byte("Driver;Profile;")) {
		lines.Comma = ';'
	}
	titles, err := lines.Read()
	if err != nil {
		return batch, err
	}
	drivers := map[string]string{}
	var faults adapter.Faults
	for len(batch.Readings) < adapter.MaxReadings {
		cells, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return batch, faults.Err()
		}
		if err != nil {
			return batch, err
		}
		if slices.Equal(cells, titles) { // of the next file
			continue
		}
		number, _ := lines.FieldPos(0)
		item := map[string]any{}
		for i, text := range cells {
			value, err := k8sCell(strings.TrimSpace(text))
			if err != nil {
				faults.Add(number, "%s: %s", titles[i], err)
			}
			if titles[i] == "Pair" { // a number that is a name
				value = text
			}
			item[cmp.Or(k8sColumns[titles[i]], strings.ReplaceAll(titles[i], " ", "-"))] = value
		}
		raw, err := json.Marshal(item)
		if err == nil {
			err = readK8sItem(raw, &batch, drivers)
		}
		if err != nil {
			faults.Add(number, "%s", err)
		}
	}
	return batch, fmt.Errorf("more than %d trials", adapter.MaxReadings)
}

// k8sCell returns the value of a cell: a bool, a number or a text. It returns nil for an empty cell, and for NaN, which is
// the mean of no samples.
func k8sCell(text string) (any, error) {
	switch {
	case text == "" || text == "NaN":
		return nil, nil
	case text == "true" || text == "false":
		return text == "true", nil
	case text[0] >= '0' && text[0] <= '9' || text[0] == '-':
		return adapter.Amount(text)
	}
	return text, nil
}
