package openmetrics

import (
	"io"
	"time"

	"github.com/cnibench/cnibench/internal/report"
)

// Syntax is a text format that a scraper reads.
type Syntax int

const (
	// OpenMetrics is the OpenMetrics text format 1.0.
	OpenMetrics Syntax = iota
	// Prometheus is the text format 0.0.4 of Prometheus, which has neither infos nor units.
	Prometheus
)

// ContentType is the media type of a syntax.
func (s Syntax) ContentType() string {
	if s == OpenMetrics {
		return "application/openmetrics-text; version=1.0.0; charset=utf-8"
	}
	return "text/plain; version=0.0.4; charset=utf-8"
}

// The families that only an endpoint has, since they are about files.
var (
	liveCreated = family{name: prefix + "result_created_timestamp_seconds", unit: "seconds", help: "When the run began whose numbers are shown."}
	liveUp      = family{name: prefix + "result_up", help: "1 for a result file whose numbers are shown, 0 for one that cannot be read."}
	liveFiles   = family{name: prefix + "result_files", help: "Result files by state."}
)

// Series is what one result adds to an exposition for scraping: the samples of Render without times, since they are
// shown as the last that is known for as long as they are, and with the label environment.
type Series struct {
	blocks            []*block
	plan, environment string
	created           time.Time
}

// NewSeries makes the series of a document.
func NewSeries(d report.Document) (*Series, error) {
	p := d.Run.Plan
	e := &exposition{common: labels{"plan", p.Name, "environment", p.Environment}}
	if err := e.document(d); err != nil {
		return nil, err
	}
	s := &Series{plan: p.Name, environment: p.Environment, created: d.Run.Created}
	for _, b := range e.blocks {
		b.seen = nil // it is written, and may be kept for long
		s.blocks = append(s.blocks, b)
	}
	return s, nil
}

// Size is about how many bytes the series takes.
func (s *Series) Size() int {
	n := 0
	for _, b := range s.blocks {
		n += b.samples.Len() + 200
	}
	return n
}

// File is a result file that a series was made from, or that could not be read.
type File struct {
	Name string
	// Series is nil for a file that cannot be read.
	Series *Series
}

// Live is what an endpoint shows.
type Live struct {
	// Files are the newest of each series and those that cannot be read. No two series have the same plan and environment
	// once unit.Clean has made them printable.
	Files []File
	// States counts all result files by state.
	States []State
}

// State is how many result files are in one.
type State struct {
	Name  string
	Files int
}

// Write writes l.
func (l Live) Write(w io.Writer, s Syntax) error {
	about := &exposition{}
	about.begin(liveUp)
	for _, f := range l.Files {
		if f.Series == nil {
			about.add(0, labels{"file", f.Name})
			continue
		}
		about.add(1, labels{"file", f.Name, "plan", f.Series.plan, "environment", f.Series.environment})
	}
	about.begin(liveCreated)
	for _, f := range l.Files {
		if f.Series != nil && !f.Series.created.IsZero() {
			about.add(float64(f.Series.created.Unix()), labels{"plan", f.Series.plan, "environment", f.Series.environment})
		}
	}
	about.begin(liveFiles)
	for _, state := range l.States {
		about.add(float64(state.Files), labels{"state", state.Name})
	}
	return write(w, s, append(about.blocks, merged(l.Files)...))
}

// merged are the blocks of all series, a family once.
func merged(files []File) []*block {
	var out []*block
	at := map[string]*block{}
	for _, f := range files {
		if f.Series == nil {
			continue
		}
		for _, b := range f.Series.blocks {
			all := at[b.family.name]
			if all == nil {
				all = &block{family: b.family}
				at[b.family.name] = all
				out = append(out, all)
			}
			all.samples.Write(b.samples.Bytes())
		}
	}
	return out
}
