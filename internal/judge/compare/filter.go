package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Filter selects cells by the names of their profile, path and workload. In a pattern each * stands for any number of
// characters; "" matches any name. If two results are compared, the profile is A's.
type Filter struct{ Profile, Path, Workload string }

// filterKeys lists the keys of a filter, as error messages show them.
const filterKeys = "profile, path, workload"

// Match reports whether the filter selects the cell of k. A workload matches by its whole name or only by its kind: rr
// is every rr, whatever its options.
func (f Filter) Match(k Key) bool {
	return globMatches(f.Profile, k.Profile.String()) && globMatches(f.Path, k.Path.String()) &&
		(globMatches(f.Workload, string(k.Workload.Kind())) || globMatches(f.Workload, k.Workload.String()))
}

// globMatches reports whether name matches pattern; an empty pattern matches all.
func globMatches(pattern, name string) bool {
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

// ParseFilter parses a filter of one or more key=pattern, separated by spaces: "profile=canal path=pod-to-pod/*". It
// fails for an unknown or repeated key, and for an empty pattern.
func ParseFilter(s string) (Filter, error) {
	words := strings.Fields(s)
	if len(words) == 0 {
		words = []string{""} // at least one is wanted
	}
	f, err := parseFilter(words)
	if err != nil {
		return f, fmt.Errorf("%q: %w", number.Clean(s), err)
	}
	return f, nil
}

func parseFilter(words []string) (Filter, error) {
	var f Filter
	fields := map[string]*string{"profile": &f.Profile, "path": &f.Path, "workload": &f.Workload}
	for _, w := range words {
		key, pattern, ok := strings.Cut(w, "=")
		field := fields[key]
		switch {
		case !ok:
			return f, fmt.Errorf("want key=pattern, where the key is %s, not %q", filterKeys, number.Clean(w))
		case field == nil:
			return f, fmt.Errorf("unknown filter %q: want %s", number.Clean(key), filterKeys)
		case pattern == "":
			return f, fmt.Errorf("%s= lacks its pattern", key)
		case *field != "":
			return f, fmt.Errorf("%s is given twice", key)
		}
		*field = pattern
	}
	return f, nil
}

// Chosen reports whether any of the filters selects k; true if there are none.
func Chosen(fs []Filter, k Key) bool {
	return len(fs) == 0 || slices.ContainsFunc(fs, func(f Filter) bool { return f.Match(k) })
}
