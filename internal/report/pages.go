package report

import (
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
)

// page has the parts of a report about one subject. Each part is optional.
type page struct {
	// sections come before the tables of numbers, sections with only figures after them. A section with only notes is
	// omitted.
	sections []Section
	// answer has lines that replace the lines about needs; nil keeps these.
	answer []string
	// subjects are members of the JSON report.
	subjects []Subject
}

// Subject is a member of the JSON report.
type Subject struct {
	Key string
	// Value is a list. The schema of the member is derived from the list's type, even if the list is empty.
	Value any
}

// Addition is a section that another package adds to reports, with the data that it needs.
type Addition struct {
	// Of returns the data of a record that the section needs; nil for none.
	Of func(*result.Record) any
	// Section returns the section for the kept data; profiles are the report's, in its order.
	Section func(profiles []plan.Variant, kept []Kept) Section
}

// Kept is the data that an Addition keeps of one trial.
type Kept struct {
	Profile plan.Variant
	Of      any
}

// additions are the registered additions.
var additions []Addition

// Register adds the section to all reports. Call it before records are collected.
func (a Addition) Register() { additions = append(additions, a) }

// addTo keeps the data that the additions need of a record, up to maxStates for each addition.
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

// addedPage returns the sections of the additions.
func addedPage(b *builder) (p page) {
	for i, a := range additions {
		p.sections = append(p.sections, a.Section(b.analysis.Profiles, b.from.added[i]))
	}
	return p
}

// pages has a function for each subject of a report besides its tables, in reading order. To add a subject, add its
// function here.
var pages = []func(*builder) page{loadPage, needPage, explainedPage, growthPage, newPodsPage, addedPage, distributionPage, nodesPage}
