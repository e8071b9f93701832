package outputs

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// Numbers is the format for numbers from any source: plain numbers with declared units.
var Numbers = adapter.Tool{Formats: []adapter.Format{
	{Name: "csv", About: "plain numbers with declared units, see docs/reference/import.md", Match: matchCSV, Decode: decodeCSV},
}}

// Magic is the first line of a file of plain numbers. docs/reference/import.md specifies the format.
const Magic = "# cnibench-csv v1"

// csvNeeded are the required columns of the header row, csvKnown all supported ones.
var (
	csvNeeded = []string{"profile", "path", "workload", "metric", "value", "unit"}
	csvKnown  = append(slices.Clone(csvNeeded), "repetition", "status", "window", "note")
)

// maxCSV bounds a CSV file in bytes: a row of commas takes a hundred times its size in memory.
const maxCSV = 8 << 20

func matchCSV(b []byte) bool { return bytes.HasPrefix(b, []byte("# cnibench-csv")) }

// csvFile is the decoder's state.
type csvFile struct {
	batch  adapter.Batch
	faults adapter.Faults
	window time.Duration
	// facts counts the lines with a fact.
	facts int
	// columns maps the name of a column to its index.
	columns map[string]int
	// at has the index of the reading of a trial.
	at map[plan.Trial]int
	// said has, for each reading, the line of each of its metrics.
	said []map[string]int
}

// addFaults adds what is wrong with a line; each line of the error is one fault.
func (f *csvFile) addFaults(line int, err error) {
	if err != nil {
		for text := range strings.SplitSeq(err.Error(), "\n") {
			f.faults.Add(line, "%s", text)
		}
	}
}

// decodeCSV reads numbers with declared units, one in each row. The error lists all faults.
func decodeCSV(b []byte) (adapter.Batch, error) {
	if len(b) > maxCSV {
		return adapter.Batch{}, fmt.Errorf("it is larger than %d MiB", maxCSV>>20)
	}
	f := &csvFile{batch: adapter.Batch{Tool: "csv"}, at: map[plan.Trial]int{}}
	rest, lines := f.readPreamble(b)
	if rest == nil {
		return adapter.Batch{}, f.faults
	}
	r := csv.NewReader(bytes.NewReader(rest))
	r.FieldsPerRecord, r.Comment, r.ReuseRecord = -1, '#', true
	for {
		fields, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		var bad *csv.ParseError
		if errors.As(err, &bad) {
			f.faults.Add(lines+bad.Line, "%s", bad.Err)
			break
		}
		if err != nil {
			return adapter.Batch{}, err
		}
		line, _ := r.FieldPos(0)
		line += lines
		switch {
		case f.columns == nil:
			if !f.readHeader(line, fields) {
				return adapter.Batch{}, f.faults
			}
		case len(f.faults) > adapter.MaxFaults:
			return adapter.Batch{}, f.faults // it is something else
		case len(fields) != len(f.columns):
			f.faults.Add(line, "%d fields where the header row has %d", len(fields), len(f.columns))
		case len(f.batch.Readings) >= adapter.MaxReadings:
			f.faults.Add(line, "more than %d trials", adapter.MaxReadings)
			return adapter.Batch{}, f.faults
		default:
			row := csvRow{}
			for name, i := range f.columns {
				row[name] = strings.TrimSpace(fields[i])
			}
			f.addFaults(line, f.addRow(line, row))
		}
	}
	if f.columns == nil && len(f.faults) == 0 {
		f.faults.Add(0, "the header row is missing: want %s", strings.Join(csvNeeded, ","))
	}
	if len(f.faults) == 0 && len(f.batch.Readings) == 0 {
		f.faults.Add(0, "it contains no number")
	}
	return f.batch, f.faults.Err()
}

// mostFacts bounds the facts of a file.
const mostFacts = 1000

// FactName matches valid names of facts. factNames also matches misspelt names, such as in upper case.
var (
	FactName  = pattern.New(`^[a-z][a-z0-9_.]{0,63}$`)
	factNames = pattern.New(`^[A-Za-z][A-Za-z0-9_.-]{0,63}$`)
)

// readPreamble reads the first line and the facts. It returns the rest of b and the number of lines read. The rest is nil if
// the first line is wrong.
func (f *csvFile) readPreamble(b []byte) ([]byte, int) {
	b = bytes.TrimPrefix(b, []byte("\ufeff"))
	lines := 0
	for len(b) > 0 {
		line, rest, _ := bytes.Cut(b, []byte("\n"))
		text := strings.TrimRight(string(line), "\r \t")
		if lines > 0 && text != "" && !strings.HasPrefix(text, "#") {
			return b, lines
		}
		lines++
		b = rest
		switch {
		case lines == 1 && text != Magic:
			f.faults.Add(1, "the first line is %s: want %q", adapter.Quoted(text), Magic)
			return nil, 1
		case lines > 1 && strings.HasPrefix(text, "#"):
			f.addFaults(lines, f.storeFact(strings.TrimSpace(text[1:])))
		}
	}
	return []byte{}, lines
}

// storeFact stores "key: value" of a comment as a fact. It also sets the field that a key such as baseline names. A title
// sets only its field. It ignores comments of another form.
func (f *csvFile) storeFact(text string) error {
	key, value, ok := strings.Cut(text, ":")
	value = strings.TrimSpace(value)
	switch {
	case !ok || !factNames.MatchString(key) || strings.HasPrefix(value, "//"):
		return nil
	case !FactName.MatchString(key):
		return fmt.Errorf("fact %s: want lower case, with _ or . between words", adapter.Quoted(key))
	case value == "":
		return fmt.Errorf("fact %s has no value; leave out unknown facts", key)
	case !utf8.ValidString(value):
		return fmt.Errorf("fact %s is not UTF-8", key)
	}
	if f.facts++; f.facts > mostFacts {
		return fmt.Errorf("more than %d facts", mostFacts)
	}
	var err error
	switch key {
	case "title":
		f.batch.Title = value
		return nil
	case "baseline":
		f.batch.Baseline, err = value, adapter.CheckProfile(value)
	case "environment":
		f.batch.Environment = value
		if value != "lab" && value != "kubernetes" {
			err = fmt.Errorf("%s is not lab or kubernetes", adapter.Quoted(value))
		}
	case "date":
		f.batch.Created, err = parseDate(value)
	case "window":
		f.window, err = parseWindow(value)
	case "warmup":
		f.batch.Warmup, err = parseWindow(value)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	if before := f.batch.Facts[key]; before != "" {
		value = before + "; " + value
	}
	f.batch.Fact(key, value)
	return nil
}

// parseDate parses a time, a day or a month.
func parseDate(s string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, time.DateOnly, "2006-01"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s is not a date: want 2006-01-02, 2006-01 or RFC 3339", adapter.Quoted(s))
}

// parseWindow parses a duration that is not negative.
func parseWindow(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%s is not a duration: want a number with a unit, such as 30s or 500ms", adapter.Quoted(s))
	}
	return d, nil
}

// readHeader reads the row with the names of the columns. It returns false if that row has a fault.
func (f *csvFile) readHeader(line int, fields []string) bool {
	if len(fields) == 1 && strings.ContainsAny(fields[0], ";\t") {
		f.faults.Add(line, "the columns are not separated by commas")
		return false
	}
	before := len(f.faults)
	f.columns = map[string]int{}
	for i, name := range fields {
		name = strings.TrimSpace(name)
		if _, twice := f.columns[name]; twice {
			f.faults.Add(line, "column %s is listed twice", adapter.Quoted(name))
		}
		f.columns[name] = i
		if !slices.Contains(csvKnown, name) {
			f.faults.Add(line, "unknown column %s: there are %s", adapter.Quoted(name), strings.Join(csvKnown, ", "))
		}
	}
	for _, name := range csvNeeded {
		if _, ok := f.columns[name]; !ok {
			f.faults.Add(line, "column %q is missing", name)
		}
	}
	return len(f.faults) == before
}

// csvRow is a data row by column.
type csvRow map[string]string

// addRow adds a number to its trial, or marks the trial as failed.
func (f *csvFile) addRow(line int, r csvRow) error {
	t, err := r.trial()
	if err != nil {
		return err
	}
	w := f.window
	if s := r["window"]; s != "" {
		if w, err = parseWindow(s); err != nil {
			return fmt.Errorf("window: %w", err)
		}
	}
	i, ok := f.at[t]
	if !ok {
		i = len(f.batch.Readings)
		f.at[t] = i
		f.batch.Readings = append(f.batch.Readings, adapter.Reading{
			Profile: t.Profile.String(), Path: t.Path, Workload: t.Workload, Repetition: t.Repetition, Window: w, Started: f.batch.Created,
		})
		f.said = append(f.said, map[string]int{})
	}
	switch reading := &f.batch.Readings[i]; cmp.Or(r["status"], result.OK) {
	case result.OK:
		return r.addValue(line, reading, f.said[i])
	case result.Failed:
		if len(f.said[i]) > 0 || r["value"] != "" {
			return errors.New("a failed trial has no values")
		}
		reading.Fail("failed", cmp.Or(r["note"], "the source gives no reason"))
	case "warning": // its id is in the column of the metric, its message in the note
		if !adapter.PlainName.MatchString(r["metric"]) || r["note"] == "" || r["value"] != "" {
			return errors.New("a warning has an id as its metric, a note, and no value")
		}
		reading.Warn(r["metric"], "%s", r["note"])
	default:
		return fmt.Errorf("unknown status %s: want ok, failed or warning", adapter.Quoted(r["status"]))
	}
	return nil
}

// trial returns the trial that a row belongs to.
func (r csvRow) trial() (plan.Trial, error) {
	t := plan.Trial{Case: plan.Case{Profile: plan.VariantOf(r["profile"])}, Repetition: 1}
	for _, s := range r {
		if !utf8.ValidString(s) {
			return t, errors.New("it is not UTF-8")
		}
	}
	var errs [4]error
	errs[0] = adapter.CheckProfile(r["profile"])
	t.Path, errs[1] = plan.ParsePath(r["path"])
	t.Workload, errs[2] = plan.ParseWorkload(r["workload"])
	if s := r["repetition"]; s != "" {
		t.Repetition, errs[3] = adapter.Count(s)
		if errs[3] != nil || t.Repetition < 1 || t.Repetition > adapter.MaxReadings {
			errs[3] = fmt.Errorf("repetition %s: want a number from 1", adapter.Quoted(s))
		}
	}
	return t, errors.Join(errs[:]...)
}

// addValue stores the number of a row in reading, in base units, and notes the row's line in said, by metric. It fails if said
// has the metric, or if the metric, the number or the unit is invalid.
func (r csvRow) addValue(line int, reading *adapter.Reading, said map[string]int) error {
	name := r["metric"]
	before, twice := said[name]
	switch _, known := metric.Lookup(name); {
	case reading.Failure != nil:
		return errors.New("a failed trial has no values")
	case !known:
		return fmt.Errorf("unknown metric %s (`cnibench list metrics` names those that there are)", adapter.Quoted(name))
	case twice:
		return fmt.Errorf("line %d has %s of this trial too; number the trials in a column \"repetition\"", before, name)
	}
	said[name] = line
	v, err := adapter.Number(r["value"])
	if err == nil && v < 0 && name != metric.CPUUtilization { // an idle run may have used more CPU time
		err = fmt.Errorf("%s is negative", adapter.Quoted(r["value"]))
	}
	if err == nil {
		v, err = number.Convert(v, r["unit"], metric.UnitFor(name, reading.Workload.Traits().Work))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	reading.Put(name, v)
	if note := r["note"]; note != "" {
		reading.Warn(adapter.Note, "%s: %s", name, note)
	}
	return nil
}
