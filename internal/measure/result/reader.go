package result

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// maxLine bounds a line of a result file in bytes: a trial with two observations, each of which an agent may send in
// at most 16 MiB.
const maxLine = 40 << 20

// maxMetrics bounds the metrics of one trial, at many times the number that exist.
const maxMetrics = 1000

// Reader reads a result file line by line, in bounded memory.
type Reader struct {
	lines *bufio.Reader
	// whole holds a line that is longer than the buffer of lines. names has one copy of each repeated word.
	whole []byte
	names map[string]string
	// profiles and workloads keep one copy of each.
	profiles  map[plan.Variant]plan.Variant
	workloads map[plan.Workload]plan.Workload
	name      string
	header    Header
	// number counts lines from 1; offset is the end of the last complete line.
	number int
	offset int64
	cut    bool
	slim   bool
}

// NewReader reads the header of a result file and returns a Reader of its records. It fails if the first line is not
// a header of this version. name is the file's name in errors.
func NewReader(r io.Reader, name string) (*Reader, error) {
	rd := &Reader{lines: bufio.NewReaderSize(r, 64<<10), name: name, names: map[string]string{},
		profiles: map[plan.Variant]plan.Variant{}, workloads: map[plan.Workload]plan.Workload{}}
	b, err := rd.nextLine()
	if errors.Is(err, io.EOF) {
		if rd.cut {
			return nil, rd.fileError("is cut within its header")
		}
		return nil, rd.fileError("is empty")
	}
	if err != nil {
		return nil, err
	}
	// The schema is read separately first: a header of another version may have other fields.
	var version struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(b, &version); err != nil || !strings.HasPrefix(version.Schema, "cnibench.result/") {
		return nil, rd.fileError("is not a cnibench result file: its first line is not a header")
	}
	if version.Schema != Schema {
		return nil, advice.With(rd.fileError("has the schema %q, and this version reads %q", version.Schema, Schema),
			"read it with the version of cnibench that wrote it")
	}
	if err := json.Unmarshal(b, &rd.header); err != nil {
		return nil, rd.fileError("has a header that cannot be read: %w", describeJSONError(err))
	}
	return rd, nil
}

// Header returns the header of the file.
func (r *Reader) Header() Header { return r.header }

// Next returns the next record, or io.EOF after the last. It leaves out a last line without its newline, which was cut
// during the write; Warning reports it.
func (r *Reader) Next() (Record, error) {
	b, err := r.nextLine()
	if err != nil {
		return Record{}, err
	}
	var rec Record
	if r.slim {
		slim := slimRecord{Record: &rec}
		err = json.Unmarshal(b, &slim)
		rec.Client, rec.Server = slim.Client.observation(), slim.Server.observation()
	} else {
		err = json.Unmarshal(b, &rec)
	}
	if err != nil {
		return Record{}, r.fileError("line %d is not a record: %w", r.number, describeJSONError(err))
	}
	if err := rec.check(); err != nil {
		return Record{}, r.fileError("line %d: %w", r.number, err)
	}
	r.intern(&rec)
	return rec, nil
}

// describeJSONError returns an error for users that says what is wrong with a line. It returns an unknown err
// unchanged.
func describeJSONError(err error) error {
	var syntax *json.SyntaxError
	var value *json.UnmarshalTypeError
	var date *time.ParseError
	switch {
	case errors.As(err, &value):
		field := value.Field[strings.LastIndex(value.Field, ".")+1:]
		return fmt.Errorf("%s has a %s where another kind of value is wanted", cmp.Or(field, "it"), value.Value)
	case errors.As(err, &date):
		return fmt.Errorf("%s is not a time such as 2026-01-02T15:04:05Z", date.Value)
	case errors.As(err, &syntax), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it is not JSON: the line was edited or cut")
	}
	return err
}

// maxNames bounds each map of shared values.
const maxNames = 10_000

// intern replaces the words that many records repeat by shared copies, so that the line's memory can be freed.
func (r *Reader) intern(rec *Record) {
	shareValue(r.names, &rec.Type)
	shareValue(r.names, &rec.Status)
	shareValue(r.profiles, &rec.Profile)
	shareValue(r.workloads, &rec.Workload)
	for i := range rec.Warnings {
		shareValue(r.names, &rec.Warnings[i].ID)
	}
}

// shareValue replaces *v by the equal value in all. If there is none, it adds *v to all, at most maxNames values.
func shareValue[T comparable](all map[T]T, v *T) {
	if kept, ok := all[*v]; ok {
		*v = kept
	} else if len(all) < maxNames {
		all[*v] = *v
	}
}

// slimRecord reads a record without its distributions, which would take 200 KiB each.
type slimRecord struct {
	*Record
	Client *slimObservation `json:"client"`
	Server *slimObservation `json:"server"`
}

type slimObservation struct {
	Machine     string             `json:"machine"`
	Intervals   []sample.Interval  `json:"intervals"`
	Undisturbed map[string]float64 `json:"undisturbed"`
	Rest        []sample.NodeRest  `json:"rest"`
	Pods        *slimPods          `json:"pods"`
}

// slimPods is the part of sample.Pods that a slim record keeps.
type slimPods struct {
	TimeoutNs int64  `json:"timeout_ns"`
	Attached  string `json:"attached"`
}

// observation returns o as an Observation, nil if o has nothing.
func (o *slimObservation) observation() *sample.Observation {
	if o == nil || len(o.Intervals) == 0 && len(o.Rest) == 0 && o.Pods == nil {
		return nil
	}
	out := &sample.Observation{Machine: o.Machine, Intervals: o.Intervals, Undisturbed: o.Undisturbed, Rest: o.Rest}
	if o.Pods != nil {
		out.Pods = &sample.Pods{TimeoutNs: o.Pods.TimeoutNs, Attached: o.Pods.Attached}
	}
	return out
}

// Slim makes Next leave out the observations of the two sides, except for their slices, the machine, undisturbed
// percentiles, nodes at rest, and how new pods were attached.
func (r *Reader) Slim() { r.slim = true }

// check fails if a record has an unknown type or status, or lacks what its type requires.
func (rec *Record) check() error {
	switch rec.Type {
	case TypeEnd:
		if rec.End == nil {
			return errors.New("its end has no contents")
		}
		return nil
	case TypeRaised:
		if rec.Raised == nil || rec.Raised.Profile.IsZero() || len(rec.Raised.Metrics) > maxMetrics {
			return errors.New("it does not say what was raised")
		}
		return nil
	case TypeTrial, TypeSampled, TypeCounted:
	case "":
		return errors.New("it has no type; a header here means that two result files were joined")
	default:
		return fmt.Errorf("unknown type %q", rec.Type)
	}
	if rec.Status != OK && rec.Status != Failed {
		return fmt.Errorf("unknown status %q", rec.Status)
	}
	if rec.Profile.IsZero() || rec.Path == (plan.Path{}) || rec.Workload.Spec == nil || rec.Repetition < 1 {
		return errors.New("it does not name its trial")
	}
	if len(rec.Metrics) > maxMetrics {
		return fmt.Errorf("it has %d metrics, more than %d", len(rec.Metrics), maxMetrics)
	}
	if rec.Status == Failed && rec.Error == nil {
		return errors.New("it failed and has no error")
	}
	if rec.Stacks != nil {
		return rec.Stacks.Check()
	}
	return nil
}

// Offset returns the end of the last complete line that was read, in bytes.
func (r *Reader) Offset() int64 { return r.offset }

// Warning reports, after io.EOF, that the last line was cut; "" if it was complete.
func (r *Reader) Warning() string {
	if !r.cut {
		return ""
	}
	return fmt.Sprintf("%s: line %d is cut short at byte %d and left out", r.name, r.number+1, r.offset)
}

// keepLine is the largest buffer that is kept for the next line.
const keepLine = 4 << 20

// nextLine returns the next whole line without its newline; it is valid until the next call.
func (r *Reader) nextLine() ([]byte, error) {
	if cap(r.whole) > keepLine {
		r.whole = nil
	}
	whole := r.whole[:0]
	for {
		part, err := r.lines.ReadSlice('\n')
		switch {
		case err == nil && len(whole) == 0:
			whole = part
		case err == nil || errors.Is(err, bufio.ErrBufferFull) || errors.Is(err, io.EOF):
			whole = append(whole, part...)
			r.whole = whole
		default:
			return nil, r.fileError("cannot be read: %w", err)
		}
		if len(whole) > maxLine {
			return nil, r.fileError("line %d is longer than %d bytes", r.number+1, maxLine)
		}
		if errors.Is(err, io.EOF) {
			r.cut = len(whole) > 0
			return nil, io.EOF
		}
		if err == nil {
			r.number++
			r.offset += int64(len(whole))
			return bytes.TrimSuffix(whole, []byte("\n")), nil
		}
	}
}

func (r *Reader) fileError(format string, args ...any) error {
	return fmt.Errorf("result file %q "+format, append([]any{r.name}, args...)...)
}

// Contents is a result file in memory.
type Contents struct {
	Header Header
	// Records are all records, without the observations of the two sides. A Reader returns them with the
	// observations.
	Records []Record
	// Warning reports that the last line was cut; "" if it was complete.
	Warning string
}

// Load reads the result file called name. Its memory grows with the number of trials; a Reader's does not.
func Load(name string) (Contents, error) {
	f, err := os.Open(name)
	if err != nil {
		return Contents{}, fmt.Errorf("open result file: %w", err)
	}
	defer f.Close() // it was only read
	r, err := NewReader(f, name)
	if err != nil {
		return Contents{}, err
	}
	return r.readContents()
}

// readContents reads the remaining records, without their observations.
func (r *Reader) readContents() (Contents, error) {
	r.Slim()
	c := Contents{Header: r.header}
	err := r.Each(func(rec *Record) error {
		rec.Client, rec.Server = nil, nil
		c.Records = append(c.Records, *rec)
		return nil
	})
	c.Warning = r.Warning()
	return c, err
}

// Each calls do with every remaining record. It stops at the first error of do, and returns it with the number of the
// line.
func (r *Reader) Each(do func(*Record) error) error {
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := do(&rec); err != nil {
			return r.fileError("line %d: %w", r.number, err)
		}
	}
}
