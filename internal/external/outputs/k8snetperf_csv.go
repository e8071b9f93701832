package outputs

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// k8sHead is the begin of the first line. A spreadsheet of some languages separates by semicolons.
var k8sHead = pattern.New(`^(?:Pair[,;])?Driver[,;]Profile[,;]`)

func matchK8sCSV(b []byte) bool {
	line, _, _ := bytes.Cut(bytes.TrimPrefix(b, []byte("\ufeff")), []byte("\n"))
	return k8sHead.Match(line) && bytes.Contains(line, []byte("Throughput Metric"))
}

// k8sColumns put the text of a cell into a row, by the column's title.
var k8sColumns = map[string]func(r *k8sRow, text string) error{
	"Driver":       func(r *k8sRow, s string) error { r.Driver = s; return nil },
	"Profile":      func(r *k8sRow, s string) error { r.Profile = s; return nil },
	"UDN Info":     func(r *k8sRow, s string) error { r.UDN = s; return nil },
	"Bridge Info":  func(r *k8sRow, s string) error { r.Bridge = s; return nil },
	"SRIOV Info":   func(r *k8sRow, s string) error { r.SRIOV = s; return nil },
	"Macvlan Info": func(r *k8sRow, s string) error { r.Macvlan = s; return nil },

	"Localnet Info":   func(r *k8sRow, s string) error { r.Localnet = s; return nil },
	"Pair":            func(r *k8sRow, s string) error { r.flags = append(r.flags, "pair="+s); return nil },
	"VM mode":         k8sFlag(func(r *k8sRow) *bool { return &r.Virt }),
	"Same node":       k8sFlag(func(r *k8sRow) *bool { return &r.Local }),
	"Host Network":    k8sFlag(func(r *k8sRow) *bool { return &r.HostNetwork }),
	"Service":         k8sFlag(func(r *k8sRow) *bool { return &r.Service }),
	"External Server": k8sFlag(func(r *k8sRow) *bool { return &r.External }),
	"Duration":        k8sCount(func(r *k8sRow) *int { return &r.Duration }),
	"Parallelism":     k8sCount(func(r *k8sRow) *int { return &r.Parallelism }),
	"# of Samples":    k8sCount(func(r *k8sRow) *int { return &r.Samples }),
	"Message Size":    k8sCount(func(r *k8sRow) *int { return &r.MessageSize }),
	"Burst":           k8sCount(func(r *k8sRow) *int { return &r.Burst }),

	"Throughput Metric":        func(r *k8sRow, s string) error { r.Unit = s; return nil },
	"Latency Metric":           func(r *k8sRow, s string) error { r.LatencyUnit = s; return nil },
	"Avg Throughput":           k8sAmount(func(r *k8sRow) **float64 { return &r.Throughput }),
	"99%tile Observed Latency": k8sAmount(func(r *k8sRow) **float64 { return &r.Latency }),
}

func k8sFlag(at func(*k8sRow) *bool) func(*k8sRow, string) error {
	return func(r *k8sRow, s string) error {
		if s != "true" && s != "false" {
			return fmt.Errorf("%s is neither true nor false", adapter.Quoted(s))
		}
		*at(r) = s == "true"
		return nil
	}
}

func k8sCount(at func(*k8sRow) *int) func(*k8sRow, string) (err error) {
	return func(r *k8sRow, s string) (err error) {
		*at(r), err = adapter.Count(s)
		return err
	}
}

func k8sAmount(at func(*k8sRow) **float64) func(*k8sRow, string) error {
	return func(r *k8sRow, s string) error {
		if s == "" || s == "NaN" { // a mean of nothing
			return nil
		}
		v, err := adapter.Amount(s)
		*at(r) = &v
		return err
	}
}

// decodeK8sCSV reads what k8s-netperf --csv writes into result-*.csv: a row for each scenario. Columns came with time.
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
	titles = slices.Clone(titles)
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
		var row k8sRow
		for i, text := range cells {
			put := k8sColumns[titles[i]]
			if put == nil && text == "true" {
				row.flags = append(row.flags, strings.ReplaceAll(titles[i], " ", "-")+"=true")
			}
			if put == nil {
				continue
			}
			if err := put(&row, strings.TrimSpace(text)); err != nil {
				faults.Add(number, "%s: %s", titles[i], err)
			}
		}
		if err := row.read(&batch, drivers); err != nil {
			faults.Add(number, "%s", err)
		}
	}
	return batch, fmt.Errorf("more than %d trials", adapter.MaxReadings)
}
