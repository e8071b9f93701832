package report

// page is what the report of a result has on one subject, each part optional.
type page struct {
	// sections come before the tables of numbers, those of pictures alone behind them; one without anything below its notes is
	// left out.
	sections []Section
	// answer takes the place of the answers to needs.
	answer []string
	// subjects are its data for programs.
	subjects []Subject
}

// Subject is a member of a report for programs.
type Subject struct {
	Key string
	// Value is a list whose type says what it is, also when it is empty.
	Value any
}

// pages returns what a report has beside its tables, in reading order. A subject is one file, and its line here.
var pages = []func(*builder) page{loadPage, needPage, explainedPage, growthPage, newPodsPage, restPage, distributionPage, nodesPage}
