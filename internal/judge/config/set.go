package config

import (
	"fmt"
	"strconv"
	"strings"
)

// assignment is one key=value of a --set expression.
type assignment struct {
	path, text string
	null       bool
}

// parseSet reads what helm --set takes: assignments with commas between them, each with dots between its keys, [n] for
// an item of a list, {a,b} for a list, null to take a default away, and a backslash before a character that is meant.
func parseSet(expression string) ([]assignment, error) {
	var list []assignment
	for _, part := range splitSet(expression) {
		name, text, found := cutSet(part)
		if !found || name == "" {
			return nil, fmt.Errorf("--set %s: want key=value, with dots between the keys", expression)
		}
		path, err := setPath(name)
		if err != nil {
			return nil, fmt.Errorf("--set %s: %w", expression, err)
		}
		if inner, ok := strings.CutPrefix(text, "{"); ok {
			if inner, ok = strings.CutSuffix(inner, "}"); !ok {
				return nil, fmt.Errorf("--set %s: the list of %s has no end", expression, path)
			}
			text = strings.Join(splitSet(inner), ", ")
		}
		list = append(list, assignment{path, unescape(text), text == "null"})
	}
	return list, nil
}

// splitSet cuts at commas that are neither escaped nor inside a list.
func splitSet(s string) []string {
	var parts []string
	begin, depth := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '{':
			depth++
		case '}':
			depth--
		case ',':
			if depth <= 0 {
				parts, begin = append(parts, s[begin:i]), i+1
			}
		}
	}
	return append(parts, s[begin:])
}

// cutSet cuts at the first equals sign that is not escaped.
func cutSet(s string) (name, text string, found bool) {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '=':
			return strings.TrimSpace(s[:i]), s[i+1:], true
		}
	}
	return s, "", false
}

// setPath turns a[0].b into a.0.b.
func setPath(name string) (string, error) {
	var b strings.Builder
	for name != "" {
		open := strings.IndexByte(name, '[')
		if open < 0 {
			b.WriteString(name)
			break
		}
		index, rest, closed := strings.Cut(name[open+1:], "]")
		if n, err := strconv.Atoi(index); !closed || err != nil || n < 0 || open == 0 && b.Len() == 0 {
			return "", fmt.Errorf("%q is no item of a list: want name[0]", name)
		}
		b.WriteString(name[:open] + "." + index)
		name = rest
	}
	path := unescape(b.String())
	if strings.HasPrefix(path, ".") || strings.HasSuffix(path, ".") || strings.Contains(path, "..") {
		return "", fmt.Errorf("%q has an empty key", path)
	}
	return path, nil
}

func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
