package recipe

import (
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// reference matches ${name}, and ${name?} for an optional reference.
var reference = pattern.New(`\$\{([a-z0-9-]+)(\??)\}`)

// deepest bounds the depth of references within references. The recipes have three levels.
const deepest = 8

// expander replaces references by their texts. If a reference is alone on its line, its text may have several lines, and all
// get the indentation of the reference. A line whose optional reference has no text is removed, with the comment above it.
type expander struct {
	// lookup returns the text for a name.
	lookup func(name string) (text string, ok bool)
	// missing has the names of references that have no text and are not optional, in the order of their use.
	missing []string
	depth   int
}

// expand returns text with its references replaced, also those in the texts of references.
func (x *expander) expand(text string) string {
	if x.depth >= deepest {
		x.recordMissing("a reference that ends")
		return ""
	}
	x.depth++
	defer func() { x.depth-- }()
	var out []string
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		line = strings.TrimSuffix(line, "\n")
		if m := reference.FindStringSubmatch(line); m != nil && strings.TrimSpace(line) == m[0] {
			filled, ok := x.expandReference(m[1], m[2] != "")
			if !ok {
				out = linesWithoutComment(out, line)
				continue
			}
			out = append(out, indented(filled, line[:len(line)-len(strings.TrimLeft(line, " "))])...)
			continue
		}
		keep := true
		line = reference.Regexp().ReplaceAllStringFunc(line, func(ref string) string {
			m := reference.FindStringSubmatch(ref)
			filled, ok := x.expandReference(m[1], m[2] != "")
			keep = keep && (ok || m[2] == "")
			return filled
		})
		if !keep {
			out = linesWithoutComment(out, line)
			continue
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// expandReference returns the expanded text for name, and whether there is one. It records a missing name unless it is
// optional.
func (x *expander) expandReference(name string, optional bool) (string, bool) {
	text, ok := x.lookup(name)
	if !ok || optional && strings.TrimSpace(text) == "" {
		if !optional {
			x.recordMissing(name)
		}
		return "", false
	}
	return x.expand(text), true
}

func (x *expander) recordMissing(name string) {
	if !slices.Contains(x.missing, name) {
		x.missing = append(x.missing, name)
	}
}

func indented(text, indent string) []string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if l != "" {
			lines[i] = indent + l
		}
	}
	return lines
}

// linesWithoutComment returns the lines out without the comment at their end, if the comment has the indentation of line.
func linesWithoutComment(out []string, line string) []string {
	indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
	for len(out) > 0 && strings.HasPrefix(out[len(out)-1], indent+"#") {
		out = out[:len(out)-1]
	}
	return out
}
