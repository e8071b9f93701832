// Package finding defines the findings by which every check reports problems of a result, a configuration, a cluster or a
// machine, and the rules that describe them.
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
	// Note is for facts that are worth knowing and not a defect.
	Note Severity = "note"
	// NoEffect is for a setting that nothing reads.
	NoEffect Severity = "no effect"
	// Otherwise is for a setting that is in force in another form than requested.
	Otherwise Severity = "otherwise"
	// Doubtful is for numbers that may be right, but do not prove the conclusions from them.
	Doubtful Severity = "doubtful"
	// Refused is for a setting that ends in an error.
	Refused Severity = "refused"
	// Impossible is for numbers that cannot have been measured as stated.
	Impossible Severity = "impossible"
)

var order = []Severity{Note, NoEffect, Otherwise, Doubtful, Refused, Impossible}

// Rank returns the position of s among the severities: 0 for the mildest, -1 for an unknown word.
func (s Severity) Rank() int { return slices.Index(order, s) }

// Alarm reports whether s is worse than a note.
func (s Severity) Alarm() bool { return s.Rank() > 0 }

// Rule describes one kind of problem that a check looks for.
type Rule struct {
	// ID identifies the rule and does not change between versions. Title says in a few words what the rule finds.
	ID    string
	Title string
	// Severity is the usual severity of its findings. The evidence may require another.
	Severity Severity
	// Why explains why this is a problem, Do says what to do about it. Neither ends with a full stop.
	Why, Do string
	// Source is the reference for the rule. (optional)
	Source string
}

// Found returns a finding of r. where is the place of the problem, saw is the evidence.
func (r Rule) Found(where, saw string) Finding {
	return Finding{ID: r.ID, Severity: r.Severity, Title: r.Title, Where: where, Saw: saw, Why: r.Why, Do: r.Do, Source: r.Source}
}

// Rules are the rules of one check.
type Rules []Rule

// chapter matches the section of a rule on the page that documents its check.
const chapter = `(?m)^### (.*)\n\n(.*) \((.*)\)\.\n\n- Why: (.*)\.\n- Do: (.*)\.(?:\n- See: (.*)\.)?$`

// ParseRules returns the rules of a check from the text of the page that documents them. It ignores other sections.
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
	// Title says in a few words what the rule finds.
	Title string `json:"-"`
	// Where is the place of the problem: a cell, a claim, a fact or file:line; "" means the whole input.
	Where string `json:"where,omitempty"`
	// Saw is the evidence.
	Saw string `json:"saw"`
	// Why explains why this is a problem, Do says what to do about it.
	Why string `json:"why,omitempty"`
	Do  string `json:"do,omitempty"`
	// Source is the reference for the rule. (optional)
	Source string `json:"source,omitempty"`
}

// Text returns Where and Saw in one line, or only Saw if Where is "".
func (f Finding) Text() string {
	if f.Where == "" {
		return f.Saw
	}
	return f.Where + ": " + f.Saw
}

// Sort sorts findings in place, the worst first. Findings of equal severity keep their order.
func Sort(fs []Finding) {
	slices.SortStableFunc(fs, func(f, g Finding) int { return g.Severity.Rank() - f.Severity.Rank() })
}

// Count returns how many findings have severity s.
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

// Groups returns the findings grouped by rule and severity. The groups are in the order of their first findings.
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
