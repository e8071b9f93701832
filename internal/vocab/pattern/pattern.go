// Package pattern has regular expressions that are compiled on first use, and cuts texts outside parentheses. Patterns that
// are compiled when the program starts would make every start of an agent slower. A test at the root compiles each of them.
package pattern

import (
	"regexp"
	"sync"
)

// Pattern is a regular expression that is compiled on first use. It is safe for concurrent use.
type Pattern struct{ compile func() *regexp.Regexp }

// New returns the pattern of an expression, without compiling it. An invalid expression panics on first use.
func New(expression string) *Pattern {
	return &Pattern{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })}
}

// MatchString reports whether s contains a match.
func (p *Pattern) MatchString(s string) bool { return p.compile().MatchString(s) }

// FindStringSubmatch returns the first match in s and its groups, or nil.
func (p *Pattern) FindStringSubmatch(s string) []string { return p.compile().FindStringSubmatch(s) }

// Regexp returns the compiled expression.
func (p *Pattern) Regexp() *regexp.Regexp { return p.compile() }

// FindAllStringSubmatch returns up to n matches in s and their groups; all if n is negative.
func (p *Pattern) FindAllStringSubmatch(s string, n int) [][]string {
	return p.compile().FindAllStringSubmatch(s, n)
}

// ReplaceAllString returns s with the text by in place of each match. $1 in by stands for the first group of the
// match.
func (p *Pattern) ReplaceAllString(s, by string) string { return p.compile().ReplaceAllString(s, by) }

// Match reports whether b contains a match.
func (p *Pattern) Match(b []byte) bool { return p.compile().Match(b) }
