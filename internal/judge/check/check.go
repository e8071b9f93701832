// Package check asks of a result whether it can be true: of one of ours as of one that was imported or published.
//
//	header ──► New ──► View ◄── Add ◄── records
//	                     │
//	                     ▼
//	            rules ──► Report{Findings} ──► Text, Markdown, JSON
//
// A rule knows physics, arithmetic, Kubernetes or statistics, and never who measured: every rule is tried on every
// result, and is silent where what it needs was not said. Some look at one trial (rate times time is not what was moved),
// some at the cells of a result side by side (a wire that is crossed faster than the bare hosts cross it), some at the
// recorded conditions (a CNI installed over the remains of another), some at what the text makes of the numbers: its
// claims (claim.go). docs/check.md lists them.
//
// What is compared stands on intervals, so that noise is no defect: of two cells the near ends must be apart by the
// margin of the rule. Where there was one repetition, its value is all there is, and a rule of its own says so.
//
// Read Finding, rule and View first. Values are in the base units of package metric; what was not measured is absent.
package check

import (
	"fmt"
	"slices"
	"strings"
)

// Severity says how bad a finding is.
type Severity int

const (
	// Note is worth knowing and no defect by itself.
	Note Severity = iota
	// Doubtful numbers may be right, and what is concluded from them does not stand as it is.
	Doubtful
	// Impossible numbers cannot have been measured as they are stated.
	Impossible
)

// String returns "note", "doubtful" or "impossible".
func (s Severity) String() string { return [...]string{"note", "doubtful", "impossible"}[s] }

// MarshalText makes a severity one word in JSON.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Finding is one thing that is wrong, or not sure, with a result.
type Finding struct {
	// Rule is the id of the rule that found it.
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	// Where names the cell, the claim or the fact; "" is the result as a whole.
	Where string `json:"where,omitempty"`
	// Saw has the numbers.
	Saw string `json:"saw"`
	// Why says why that cannot be, or is doubtful; Do what to do about it.
	Why string `json:"why"`
	Do  string `json:"do"`
}

// Rule is one question that is asked of every result.
type Rule struct {
	// ID is stable; Title says what the rule finds, in a few words.
	ID    string `json:"id"`
	Title string `json:"title"`
	// Severity is that of the rule's findings, as a rule: some are milder or harder where the numbers say so.
	Severity Severity `json:"severity"`
	Why      string   `json:"why"`
	Do       string   `json:"do"`
}

// rule is a Rule with its question: about each trial, or about all of a result.
type rule struct {
	Rule
	trial func(*trial) string
	find  func(*View) []seen
}

// seen is what a rule saw, before it is a Finding. severity nil takes the rule's.
type seen struct {
	where, saw string
	severity   *Severity
}

// as returns s with another severity than its rule's.
func (s seen) as(v Severity) seen {
	s.severity = &v
	return s
}

// rules are in the order of a report: sums first, then the wire, the set-up, the sample, the claims.
var rules = slices.Concat(sumRules, wireRules, setupRules, sampleRules, claimRules)

// Rules returns all rules in the order in which a report shows them.
func Rules() []Rule {
	list := make([]Rule, len(rules))
	for i, r := range rules {
		list[i] = r.Rule
	}
	return list
}

// Report is what was found in one result.
type Report struct {
	// Name is the file; Source what the result says it is, "" if it does not.
	Name   string `json:"name"`
	Source string `json:"source,omitempty"`
	// Cells, Trials and Failed count what was looked at, Claims the sentences that were held against the numbers.
	Cells  int `json:"cells"`
	Trials int `json:"trials"`
	Failed int `json:"failed"`
	Claims int `json:"claims"`
	// Findings are sorted by severity, worst first, and within it by the order of the rules.
	Findings []Finding `json:"findings"`
}

// Count returns how many findings have the severity s.
func (r Report) Count(s Severity) int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// Alarm says whether something was found that is more than a note.
func (r Report) Alarm() bool { return r.Count(Impossible)+r.Count(Doubtful) > 0 }

// Report asks the rules that only names, all if it is empty.
func (v *View) Report(name string, only []string) (Report, error) {
	if err := Known(only); err != nil {
		return Report{}, err
	}
	v.finish()
	r := Report{
		Name: name, Source: v.source(), Cells: len(v.cells), Trials: v.trials, Failed: v.failed, Claims: len(v.claims),
		Findings: []Finding{},
	}
	for i, q := range rules {
		if len(only) > 0 && !slices.Contains(only, q.ID) {
			continue
		}
		list := v.tallied(i)
		if q.find != nil {
			list = append(list, q.find(v)...)
		}
		for _, s := range list {
			f := Finding{Rule: q.ID, Severity: q.Severity, Where: s.where, Saw: s.saw, Why: q.Why, Do: q.Do}
			if s.severity != nil {
				f.Severity = *s.severity
			}
			r.Findings = append(r.Findings, f)
		}
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return int(b.Severity) - int(a.Severity) })
	return r, nil
}

// Known refuses ids that are no rule's.
func Known(ids []string) error {
	var unknown []string
	for _, id := range ids {
		if !slices.ContainsFunc(rules, func(r rule) bool { return r.ID == id }) {
			unknown = append(unknown, id)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return fmt.Errorf("there is no rule %s", strings.Join(unknown, ", "))
}
