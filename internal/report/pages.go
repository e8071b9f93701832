package report

import (
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
)

// page is the content of a result's report about one subject, each part optional.
type page struct {
	// sections come before the tables of numbers, sections with only pictures after them; a section without content
	// below its notes is omitted.
	sections []Section
	// answer replaces the answers to needs.
	answer []string
	// subjects are its data for programs.
	subjects []Subject
}

// Subject is a member of a report for programs.
type Subject struct {
	Key string
	// Value is a list whose type identifies it even if it is empty.
	Value any
}

// Addition is the section of a subject that has a separate package, with its measurement.
type Addition struct {
	// Of returns what the section needs from a trial, nil for nothing.
	Of func(*result.Record) any
	// Section returns the section for the kept data; profiles are the report's, in its order.
	Section func(profiles []plan.Variant, kept []Kept) Section
}

// Kept is the data that an Addition keeps of one trial.
type Kept struct {
	Profile plan.Variant
	Of      any
}

// additions are the registered ones.
var additions []Addition

// Register adds the section to reports. Call it before a report is built.
func (a Addition) Register() { additions = append(additions, a) }

// addTo keeps what the additions need of a record.
func (c *Collector) addTo(rec *result.Record) {
	for i, a := range additions {
		if of := a.Of(rec); of != nil && len(c.added[i]) < maxStates {
			if c.added == nil {
				c.added = map[int][]Kept{}
			}
			c.added[i] = append(c.added[i], Kept{rec.Profile, of})
		}
	}
}

// addedPage has the sections of the additions.
func addedPage(b *builder) (p page) {
	for i, a := range additions {
		p.sections = append(p.sections, a.Section(b.analysis.Profiles, b.from.added[i]))
	}
	return p
}

// pages are the contents of a report in addition to its tables, in reading order. A subject is one file, and its line
// here.
var pages = []func(*builder) page{loadPage, needPage, explainedPage, growthPage, newPodsPage, addedPage, distributionPage, nodesPage}
