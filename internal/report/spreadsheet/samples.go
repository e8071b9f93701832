package spreadsheet

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/external/outputs"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// sampleColumns are the names of the fields that Samples writes.
var sampleColumns = []string{"profile", "path", "workload", "repetition", "metric", "value", "unit", "status", "window", "note"}

// Samples writes the trials of a result, one row per number. A failed trial has one row, without a number. A warning has a
// row with the status "warning". Observations are omitted, and so are metrics that this version does not know.
type Samples struct {
	rows *csv.Writer
}

// NewSamples writes the lines before the first trial to w and returns a Samples for the trials. The lines have the title,
// baseline, environment, date and warm-up of h, its facts if the format allows their names, and the names of the columns.
func NewSamples(w io.Writer, h result.Header) (*Samples, error) {
	var b strings.Builder
	b.WriteString(outputs.Magic + "\n")
	for _, f := range preambleFields(h) {
		fmt.Fprintf(&b, "# %s: %s\n", f[0], f[1])
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return nil, err
	}
	s := &Samples{rows: csv.NewWriter(w)}
	return s, s.rows.Write(sampleColumns)
}

// reserved has the names with a meaning in the format. Facts with these names are omitted.
var reserved = []string{"title", "baseline", "environment", "date", "window", "warmup"}

// preambleFields returns the names and values of the lines before the first trial.
func preambleFields(h result.Header) [][2]string {
	var out [][2]string
	add := func(name, value string) {
		value = strings.TrimSpace(number.Clean(value))
		if value != "" && !strings.HasPrefix(value, "//") {
			out = append(out, [2]string{name, value})
		}
	}
	add("title", h.Plan.Name)
	add("baseline", h.Plan.Baseline.String())
	add("environment", h.Plan.Environment)
	if !h.Created.IsZero() {
		add("date", h.Created.UTC().Format(time.RFC3339))
	}
	if h.Plan.Warmup > 0 {
		add("warmup", h.Plan.Warmup.String())
	}
	for _, name := range h.Facts.Names() {
		if outputs.FactName.MatchString(name) && !slices.Contains(reserved, name) {
			add(name, h.Facts[name])
		}
	}
	return out
}

// Add writes the rows of a trial. It ignores records of other types.
func (s *Samples) Add(rec *result.Record) error {
	if rec.Type != result.TypeTrial {
		return nil
	}
	window := ""
	if rec.WindowNs > 0 {
		window = time.Duration(rec.WindowNs).String()
	}
	row := func(status, name, value, unit, note string) error {
		return s.rows.Write([]string{
			fieldText(rec.Profile.String()), fieldText(rec.Path.String()), fieldText(rec.Workload.String()), strconv.Itoa(rec.Repetition),
			fieldText(name), value, unit, status, window, fieldText(note),
		})
	}
	var errs []error
	if rec.Status != result.OK {
		errs = append(errs, row(rec.Status, "", "", "", failureReason(rec.Error)))
	}
	for _, w := range rec.Warnings {
		errs = append(errs, row("warning", w.ID, "", "", w.Message))
	}
	if rec.Status != result.OK {
		return errors.Join(errs...)
	}
	for _, m := range metric.All() {
		if v, ok := rec.Metrics[m.Name]; ok && number.Finite(v) {
			errs = append(errs, row(rec.Status, m.Name, formatNumber(v), metric.UnitFor(m.Name, rec.Workload.Traits().Work), ""))
		}
	}
	return errors.Join(errs...)
}

// failureReason returns why a trial failed; "" if that is not recorded.
func failureReason(f *result.Failure) string {
	if f == nil {
		return ""
	}
	return strings.TrimPrefix(strings.TrimSpace(f.Side+" "+f.Kind)+": "+f.Message, ": ")
}

// Close writes the buffered rows. It fails if any row could not be written.
func (s *Samples) Close() error {
	s.rows.Flush()
	return s.rows.Error()
}
