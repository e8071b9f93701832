package report

import (
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
)

// page has the parts of a report about one subject. Each part is optional.
type page struct {
	// sections are the sections about the subject. Those with only figures follow the tables of numbers; the others precede
	// the tables. Those with only notes are omitted.
	sections []Section
	// answer has lines that replace the lines about needs. If it is nil, the lines about needs remain.
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
	// Section returns the section for the kept data. profiles are the profiles of the report, in report order.
	Section func(profiles []plan.Variant, kept []Kept) Section
}

// Kept is the data that an Addition keeps of one record. Of is what Addition.Of returned.
type Kept struct {
	Profile plan.Variant
	Of      any
}

// additions are the registered additions, in the order of their registration.
var additions []Addition

// Register adds the section to all reports. Call it before records are collected.
func (a Addition) Register() { additions = append(additions, a) }

// keepAdditionData keeps the data that the additions need of a record, up to maxStates for each addition.
func (c *Collector) keepAdditionData(rec *result.Record) {
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
