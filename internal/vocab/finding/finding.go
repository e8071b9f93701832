// Package finding is the one form of what a check found: in a result, a configuration, a cluster or a machine.
package finding

import (
	"regexp"
	"slices"
	"strings"
)

// Severity is how serious a finding is.
type Severity string

// The severities, mildest first.
const (
	// Note is worth knowing and not a defect.
	Note Severity = "note"
	// NoEffect: a setting that nothing reads.
	NoEffect Severity = "no effect"
	// Otherwise: a setting is in force in another form than requested.
	Otherwise Severity = "otherwise"
	// Doubtful: numbers may be right, but the conclusions from them are not proven.
	Doubtful Severity = "doubtful"
	// Refused: a setting that ends in an error.
	Refused Severity = "refused"
	// Impossible numbers cannot have been measured as stated.
	Impossible Severity = "impossible"
)

var order = []Severity{Note, NoEffect, Otherwise, Doubtful, Refused, Impossible}

// Rank orders severities: 0 is the mildest, -1 an unknown word.
func (s Severity) Rank() int { return slices.Index(order, s) }

// Alarm reports whether s is worse than a note.
func (s Severity) Alarm() bool { return s.Rank() > 0 }

// Rule is one question that a check asks.
type Rule struct {
	// ID is stable; Title is in a few words what the rule finds.
	ID    string
	Title string
	// Severity is the severity of its findings, unless the evidence requires another.
	Severity Severity
	// Why is the reason, Do what to do about it. Neither ends with a full stop.
	Why, Do string
	// Source is the reference for the rule. (optional)
	Source string
}

// Found returns a finding of r: where it is, and what was seen.
func (r Rule) Found(where, saw string) Finding {
	return Finding{ID: r.ID, Severity: r.Severity, Title: r.Title, Where: where, Saw: saw, Why: r.Why, Do: r.Do, Source: r.Source}
}

// Rules are the questions of one check.
type Rules []Rule

// chapter matches a rule on the page of its check.
const chapter = `(?m)^### (.*)\n\n(.*) \((.*)\)\.\n\n- Why: (.*)\.\n- Do: (.*)\.(?:\n- See: (.*)\.)?$`

// ParseRules parses the rules of a check from the page that documents them, so that their words are written only once.
func ParseRules(page string) Rules {
	var all Rules
	for _, m := range regexp.MustCompile(chapter).FindAllStringSubmatch(page, -1) {
		title := m[2]
		if second := title[1:2]; second == strings.ToLower(second) { // an acronym keeps its capitals
			title = strings.ToLower(title[:1]) + title[1:]
		}
		all = append(all, Rule{ID: m[1], Title: title, Severity: Severity(m[3]), Why: m[4], Do: m[5], Source: m[6]})
	}
	return all
}

// Of returns the rule with the given id, or the zero Rule.
func (rs Rules) Of(id string) Rule {
	i := slices.IndexFunc(rs, func(r Rule) bool { return r.ID == id })
	if i < 0 {
		return Rule{}
	}
	return rs[i]
}

// Finding is one thing that a rule found.
type Finding struct {
	// ID names the rule.
	ID       string   `json:"rule"`
	Severity Severity `json:"severity"`
	// Title is in a few words what the rule finds.
	Title string `json:"-"`
	// Where is the cell, the claim, the fact or file:line; "" is the whole.
	Where string `json:"where,omitempty"`
	// Saw has the evidence.
	Saw string `json:"saw"`
	// Why gives the reason, Do the way out.
	Why string `json:"why,omitempty"`
	Do  string `json:"do,omitempty"`
	// Source is the reference for the rule. (optional)
	Source string `json:"source,omitempty"`
}

// Text returns where and what in one line.
func (f Finding) Text() string {
	if f.Where == "" {
		return f.Saw
	}
	return f.Where + ": " + f.Saw
}

// Sort sorts the worst findings first and keeps the order of equal ones.
func Sort(fs []Finding) {
	slices.SortStableFunc(fs, func(f, g Finding) int { return g.Severity.Rank() - f.Severity.Rank() })
}

// Count returns how many findings have the severity.
func Count(fs []Finding, s Severity) int {
	n := 0
	for _, f := range fs {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// Alarm reports whether any finding is worse than a note.
func Alarm(fs []Finding) bool {
	return slices.ContainsFunc(fs, func(f Finding) bool { return f.Severity.Alarm() })
}

// Groups returns the findings grouped by rule and severity, in the order of the first of each group.
func Groups(fs []Finding) [][]Finding {
	var out [][]Finding
	for _, f := range fs {
		i := slices.IndexFunc(out, func(g []Finding) bool { return g[0].ID == f.ID && g[0].Severity == f.Severity })
		if i < 0 {
			i = len(out)
			out = append(out, nil)
		}
		out[i] = append(out[i], f)
	}
	return out
}
