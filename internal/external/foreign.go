// Package external reads what other tools wrote: bytes in, readings in our words and base units out.
//
//	bytes ──► Detect ──► Decode ──► Batch{Readings} ──► Label ──► Contents ──► a result like our own
//
// There is one file for each tool. A decoder is a total function of bytes: it opens nothing, runs nothing, believes
// no size and no path, and ends with readings or with an error that names the line. What the tool did not measure is
// absent from a reading, never 0; a trial that failed stays a failed trial; numbers that have no word here are named in
// Batch.LeftOut. What a tool does not say at all (the profile, mostly the path) is given by a Label.
//
// Read Reading, Batch and formats; csv.go is the format for numbers that no tool wrote, and docs/format.md specifies it.
package external

import (
	"fmt"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Limits on what is read from a stranger.
const (
	// MaxInput bounds a file, and what an archive unpacks to, in bytes; some decoders take less.
	MaxInput = 64 << 20
	// maxReadings bounds the trials of one input, maxNames the distinct things that are listed.
	maxReadings = 200_000
	maxNames    = 200
)

// Reading is one trial as a tool tells it. The zero value of what identifies it means that the tool does not say.
type Reading struct {
	Profile  string
	Path     plan.Path
	Workload plan.Workload
	// Repetition counts from 1; 0 takes the next number of its case.
	Repetition int
	// Started is when it began, Window how long it measured; zero if not said.
	Started time.Time
	Window  time.Duration
	// Metrics are in base units by name of package metric. A failed trial has none.
	Metrics map[string]float64
	// Failure is why the trial failed; nil if it did not.
	Failure *result.Failure
	// Warnings are what a reader of the numbers must know, for example what was assumed.
	Warnings []result.Warning
	// Client is the client's series over time, nil if the tool gives none.
	Client *sample.Observation
}

// Ids of warnings that decoders raise.
const (
	// Assumed marks a setting that the tool's output does not say.
	Assumed = "assumed"
	// Note carries a remark of the source.
	Note = "note"
	// Paced marks a rate that the tool was held to.
	Paced = "paced"
	// Aggregated marks a reading that is a mean of several.
	Aggregated = "aggregated"
	// Rounded marks numbers that the tool printed with few digits.
	Rounded = "rounded"
)

// put notes a number, unless the trial has failed: what another part of its output says is not of a whole trial.
func (r *Reading) put(name string, v float64) {
	if r.Failure != nil {
		return
	}
	if r.Metrics == nil {
		r.Metrics = map[string]float64{}
	}
	r.Metrics[name] = v
}

func (r *Reading) warn(id, format string, args ...any) {
	r.Warnings = append(r.Warnings, result.Warning{ID: id, Message: fmt.Sprintf(format, args...)})
}

// fail makes r a failed trial, which has a reason and no metrics.
func (r *Reading) fail(kind, message string) {
	r.Failure = &result.Failure{Kind: kind, Message: message}
	r.Metrics, r.Client = nil, nil
}

// Batch is what one input holds.
type Batch struct {
	// Tool is what measured, with its version where it is known: the origin of the result.
	Tool string
	// Title, Environment ("lab", "kubernetes" or "") and Baseline are as in a plan; mostly "".
	Title, Environment, Baseline string
	// Created is when it was measured; zero takes the first reading's start.
	Created time.Time
	// Warmup is what was discarded before each window.
	Warmup   time.Duration
	Facts    facts.Facts
	Readings []Reading
	// LeftOut names what was found and has no word here, each once.
	LeftOut []string
}

// leaveOut notes what is not imported, once.
func (b *Batch) leaveOut(format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	if len(b.LeftOut) < maxNames && !slices.Contains(b.LeftOut, s) {
		b.LeftOut = append(b.LeftOut, s)
	}
}

// fact records a condition, unless it is empty.
func (b *Batch) fact(name, value string) {
	if value == "" {
		return
	}
	if b.Facts == nil {
		b.Facts = facts.Facts{}
	}
	b.Facts[name] = value
}

// Label says what a tool does not. Zero fields say nothing.
type Label struct {
	Profile  string
	Path     plan.Path
	Workload plan.Workload
}

// Label puts l on every reading and wants every reading to be whole then. name is that of the input. Where the input
// names several profiles, paths or workloads itself, one label for all would merge what is different: that is an error.
func (b *Batch) Label(name string, l Label) error {
	if b.Title == "" {
		b.Title = name
	}
	if err := b.apply(l); err != nil {
		return prefixed(name, err)
	}
	for i, r := range b.Readings {
		if err := r.whole(); err != nil {
			if len(b.Readings) > 1 {
				err = advice.With(fmt.Errorf("trial %d: %w", i+1, err), advice.Of(err))
			}
			return prefixed(name, err)
		}
	}
	return nil
}

func (b *Batch) apply(l Label) error {
	for i := range b.Readings {
		r := &b.Readings[i]
		if w := l.Workload; w.Kind != "" && r.Workload.Kind != "" && (w.Kind != r.Workload.Kind || w.Normalize().Protocol != r.Workload.Protocol) {
			return fmt.Errorf("it says that its workload is %s, and not %s", r.Workload, w)
		}
	}
	for _, c := range []labelled{
		{l.Profile != "", "profile", func(r Reading) string { return r.Profile }, func(r *Reading) { r.Profile = l.Profile }},
		{l.Path != plan.Path{}, "path", pathName, func(r *Reading) { r.Path = l.Path }},
		{l.Workload.Kind != "", "workload", workloadName, func(r *Reading) {
			r.Workload = l.Workload.Normalize()
			r.Warnings = slices.DeleteFunc(r.Warnings, func(w result.Warning) bool { return w.ID == Assumed })
		}},
	} {
		if err := b.put(c); err != nil {
			return err
		}
	}
	return nil
}

// labelled is one part of a Label: what it is called, how it is read and how it is put.
type labelled struct {
	said bool
	what string
	name func(r Reading) string
	set  func(r *Reading)
}

// put sets one part of a label: where it is missing if it is missing anywhere, else in place of the one that is there.
func (b *Batch) put(c labelled) error {
	if !c.said {
		return nil
	}
	missing := slices.ContainsFunc(b.Readings, func(r Reading) bool { return c.name(r) == "" })
	if names := b.distinct(c.name); len(names) > 1 && !missing {
		return advice.With(fmt.Errorf("it has several of its own where one %s is to be put on all: %s", c.what, number.Few(names)),
			"leave out --"+c.what+" for this file")
	}
	for i := range b.Readings {
		if r := &b.Readings[i]; !missing || c.name(*r) == "" {
			c.set(r)
		}
	}
	return nil
}

// distinct returns the names that readings have, in order.
func (b *Batch) distinct(name func(Reading) string) []string {
	var names []string
	for _, r := range b.Readings {
		if n := name(r); n != "" && !slices.Contains(names, n) {
			if names = append(names, n); len(names) > maxNames {
				break
			}
		}
	}
	return names
}

func pathName(r Reading) string {
	if r.Path == (plan.Path{}) {
		return ""
	}
	return r.Path.String()
}

func workloadName(r Reading) string {
	if r.Workload.Kind == "" {
		return ""
	}
	return r.Workload.String()
}
