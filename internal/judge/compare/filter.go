package compare

import (
	"fmt"
	"slices"
	"strings"
)

// Filter chooses cells by the names of their profile, path and workload. A pattern is a name in which each * stands for
// any number of characters; "" is any. The profile is A's where two results are compared.
type Filter struct{ Profile, Path, Workload string }

// filterKeys are the words of a filter in the order of help.
var filterKeys = []string{"profile", "path", "workload"}

// Match says whether the filter chooses the cell of k. A workload matches by its whole name or by its kind alone: rr
// is every rr, whatever its options.
func (f Filter) Match(k Key) bool {
	return glob(f.Profile, string(k.Profile)) && glob(f.Path, k.Path.String()) &&
		(glob(f.Workload, string(k.Workload.Kind())) || glob(f.Workload, k.Workload.String()))
}

// glob says whether name matches pattern; an empty pattern matches all.
func glob(pattern, name string) bool {
	if pattern == "" {
		return true
	}
	parts := strings.Split(pattern, "*")
	rest, ok := strings.CutPrefix(name, parts[0])
	if len(parts) == 1 || !ok {
		return ok && rest == ""
	}
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		_, after, found := strings.Cut(rest, part)
		if !found {
			return false
		}
		rest = after
	}
	return strings.HasSuffix(rest, last)
}

// set gives a word of the filter its pattern.
func (f *Filter) set(key, pattern string) error {
	if pattern == "" {
		return fmt.Errorf("%s= lacks its pattern", key)
	}
	field := map[string]*string{"profile": &f.Profile, "path": &f.Path, "workload": &f.Workload}[key]
	switch {
	case field == nil:
		return fmt.Errorf("unknown filter %q: want %s", key, strings.Join(filterKeys, ", "))
	case *field != "":
		return fmt.Errorf("%s is given twice", key)
	}
	*field = pattern
	return nil
}

// ParseFilter reads a filter, for example "profile=canal path=pod-to-pod/*": words of the form key=pattern with spaces
// between them. The error is a SyntaxError.
func ParseFilter(s string) (Filter, error) {
	var f Filter
	ws := words(s)
	if len(ws) == 0 {
		return f, &SyntaxError{s, 1, "want key=pattern, where the key is " + strings.Join(filterKeys, ", ")}
	}
	for _, w := range ws {
		key, pattern, ok := strings.Cut(w.text, "=")
		if !ok {
			return f, &SyntaxError{s, w.column, "want key=pattern, where the key is " + strings.Join(filterKeys, ", ")}
		}
		if err := f.set(key, pattern); err != nil {
			return f, &SyntaxError{s, w.column, err.Error()}
		}
	}
	return f, nil
}

// word is a part of a text without spaces, and the column of its first character, from 1.
type word struct {
	text   string
	column int
}

// words splits s at spaces.
func words(s string) []word {
	var out []word
	for i := 0; i < len(s); {
		if s[i] == ' ' || s[i] == '\t' {
			i++
			continue
		}
		j := i
		for j < len(s) && s[j] != ' ' && s[j] != '\t' {
			j++
		}
		out = append(out, word{s[i:j], i + 1})
		i = j
	}
	return out
}

// Chosen says whether any of the filters chooses k; true if there are none.
func Chosen(fs []Filter, k Key) bool {
	return len(fs) == 0 || slices.ContainsFunc(fs, func(f Filter) bool { return f.Match(k) })
}
