// Package junit writes a report as JUnit XML, for systems of continuous integration: one suite per run, one test case per
// cell of the tables of the report.
//
// A case has the class profile.path, so that its parts are found again, and the name "workload metric". It failed if every
// trial failed or, where Options ask for it, if its verdict is worse; it was skipped if the profile was not measured or
// does not serve the path, each with the reason; it passed otherwise, which says that it was measured and not that it is
// good. Values, comparison and doubts are its output. A case has no time of its own and so none is claimed.
package junit

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Options say what fails a case; by the zero value only what could not be measured does.
type Options struct {
	// Worse makes a case with the verdict worse a failed one. (optional)
	Worse bool
}

type suites struct {
	XMLName  xml.Name `xml:"testsuites"`
	Name     string   `xml:"name,attr"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Errors   int      `xml:"errors,attr"`
	Suite    suite    `xml:"testsuite"`
}

type suite struct {
	Name       string     `xml:"name,attr"`
	Tests      int        `xml:"tests,attr"`
	Failures   int        `xml:"failures,attr"`
	Errors     int        `xml:"errors,attr"`
	Skipped    int        `xml:"skipped,attr"`
	Time       string     `xml:"time,attr,omitempty"`
	Timestamp  string     `xml:"timestamp,attr,omitempty"`
	Properties []property `xml:"properties>property,omitempty"`
	Cases      []testcase `xml:"testcase"`
}

type property struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type testcase struct {
	Class   string   `xml:"classname,attr"`
	Name    string   `xml:"name,attr"`
	Skipped *skipped `xml:"skipped"`
	Failure *failure `xml:"failure"`
	Output  string   `xml:"system-out,omitempty"`
}

type skipped struct {
	Message string `xml:"message,attr"`
}

type failure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

// Kinds of failures.
const (
	failedTrials = "failed-trials"
	worse        = "worse"
)

// Render writes d.
func Render(w io.Writer, d report.Document, o Options) error {
	b := builder{d: d, options: o}
	for _, p := range d.Profiles {
		b.profile(p)
	}
	if d.Analysis != nil {
		for _, s := range d.Sections {
			for _, t := range s.Tables {
				b.table(t.Workload, t.Metric)
			}
		}
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(b.suites()); err != nil {
		return fmt.Errorf("report as JUnit XML: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// builder collects the cases of a document.
type builder struct {
	d               report.Document
	options         Options
	cases           []testcase
	failures, skips int
}

func (b *builder) add(c testcase) {
	if c.Failure != nil {
		b.failures++
	}
	if c.Skipped != nil {
		b.skips++
	}
	b.cases = append(b.cases, c)
}

// profile adds the case of a profile as a whole, which has none of a path if it was skipped.
func (b *builder) profile(p result.Profile) {
	if strings.HasSuffix(p.Name, plan.TwinSuffix) {
		return
	}
	c := testcase{Class: class(p.Name), Name: "measured"}
	if p.Skipped != "" {
		c.Skipped = &skipped{number.Clean(p.Skipped)}
	}
	var lines []string
	if p.Assertions > 0 {
		lines = append(lines, fmt.Sprintf("self-test: %d of %d assertions hold", p.Assertions-p.Failed, p.Assertions))
	}
	for _, s := range p.StandIn {
		lines = append(lines, "stand-in: "+number.Clean(s))
	}
	c.Output = strings.Join(lines, "\n")
	b.add(c)
}

// class is the first part of a class name; a point would begin the next.
func class(profile string) string { return strings.ReplaceAll(number.Clean(profile), ".", "_") }

// table adds the cases of one metric under one workload.
func (b *builder) table(w plan.Workload, name string) {
	t, ok := b.d.Analysis.Table(w, name)
	if !ok {
		return
	}
	for i, path := range t.Paths {
		for j, p := range t.Profiles {
			if c, ok := b.entry(t, i, j); ok {
				c.Class = class(p) + "." + path.String()
				c.Name = w.String() + " " + name
				b.add(c)
			}
		}
	}
}

// entry is the case of one place of a table; false if there is none.
func (b *builder) entry(t compare.Table, i, j int) (testcase, bool) {
	e := t.Rows[i][j]
	switch {
	case e.Cell == nil:
		why, ok := b.absent(t.Profiles[j], t.Paths[i], t.Workload)
		return testcase{Skipped: &skipped{why}}, ok
	case e.Cell.N == 0 && e.Cell.Failed > 0:
		f := &failure{Type: failedTrials, Message: fmt.Sprintf("all %d trials failed", e.Cell.Failed), Text: doubts(e.Cell)}
		return testcase{Failure: f}, true
	case e.Cell.N == 0:
		return testcase{Skipped: &skipped{"no trial has this number"}, Output: doubts(e.Cell)}, true
	}
	c := testcase{Output: output(e)}
	if x := e.Comparison; x != nil && x.Verdict == compare.Worse && b.options.Worse {
		c.Failure = &failure{Type: worse, Message: "worse than " + number.Clean(x.Baseline), Text: c.Output}
	}
	return c, true
}

// absent is why there is no cell of a profile on a path under a workload; false if that was not asked for, or is said elsewhere.
func (b *builder) absent(profile string, path plan.Path, w plan.Workload) (why string, ok bool) {
	for _, p := range b.d.Profiles {
		if p.Name != profile {
			continue
		}
		if p.Skipped != "" {
			return "", false // it has a case of its own
		}
		if why := p.NotServed[path.String()]; why != "" {
			return "not served: " + number.Clean(why), true
		}
	}
	if why := w.Barred(path); why != "" {
		return "not served: " + why, true
	}
	// The baseline alone is measured where the plan has no path, to stand in for others.
	return "not measured", slices.Contains(b.d.Run.Plan.Paths, path)
}

// output is what there is to say about a measured cell.
func output(e compare.Entry) string {
	c := e.Cell
	scale := number.Common(c.Unit, c.Median)
	lines := []string{fmt.Sprintf("median %s %s of %d", scale.Format(c.Median), scale.Unit, c.N)}
	if c.N > 1 {
		lines[0] += fmt.Sprintf(", %s to %s at %s confidence", scale.Format(c.Low), scale.Format(c.High), number.Percent(c.Confidence))
	}
	if x := e.Comparison; x != nil {
		line := "compared with " + number.Clean(x.Baseline)
		if !math.IsNaN(x.Ratio) {
			line += fmt.Sprintf(": %s, %s to %s", number.Ratio(x.Ratio), number.Ratio(x.Low), number.Ratio(x.High))
		}
		if x.Verdict != compare.None {
			line += fmt.Sprintf("; %s (p %s, noise floor %s)", x.Verdict, number.Number(x.Adjusted), number.Percent(x.Floor))
		}
		lines = append(lines, line)
	}
	if s := doubts(c); s != "" {
		lines = append(lines, s)
	}
	return strings.Join(lines, "\n")
}

// doubts are the warnings of a cell, one to a line.
func doubts(c *compare.Cell) string {
	var lines []string
	for _, w := range c.Warnings {
		lines = append(lines, number.Clean(w.ID+": "+w.Message))
	}
	return strings.Join(lines, "\n")
}

// suites is the document as XML has it.
func (b *builder) suites() suites {
	r := b.d.Run
	s := suite{Name: "cnibench", Tests: len(b.cases), Failures: b.failures, Skipped: b.skips, Cases: b.cases}
	if r.Plan.Name != "" {
		s.Name += " " + number.Clean(r.Plan.Name)
	}
	if r.Wall > 0 {
		s.Time = strconv.FormatFloat(r.Wall.Seconds(), 'f', 3, 64)
	}
	if !r.Created.IsZero() {
		s.Timestamp = r.Created.UTC().Format("2006-01-02T15:04:05")
	}
	for _, name := range b.d.Facts.Names() {
		s.Properties = append(s.Properties, property{number.Clean(name), number.Clean(b.d.Facts[name])})
	}
	return suites{Name: "cnibench", Tests: s.Tests, Failures: s.Failures, Suite: s}
}
