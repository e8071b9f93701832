package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// value is one leaf of a configuration.
type value struct {
	// path is the keys to it, with dots; text what is written there, a list's items joined with ", ".
	path, text string
	// origin is Given or Default; the zero value is neither: no such setting.
	origin string
	file   string
	line   int
	// turn orders what was given.
	turn int
}

// where is file:line of what was given, or the --set.
func (v value) where() string {
	switch {
	case v.origin != Given:
		return ""
	case v.line == 0:
		return v.file
	}
	return fmt.Sprintf("%s:%d", v.file, v.line)
}

// given reports whether the value was given.
func (v value) given() bool { return v.origin == Given }

// on reports whether the value says yes. Helm reads YAML 1.1, where yes and on are true.
func (v value) on() bool {
	switch strings.ToLower(v.text) {
	case "true", "yes", "on":
		return true
	}
	return false
}

// is compares without case.
func (v value) is(text string) bool { return strings.EqualFold(v.text, text) }

// values are the leaves of a configuration over its defaults.
type values struct {
	leaves map[string]value
	// puts counts what was put: the order of the leaves is that in which they were given last.
	puts int
	// groups are the paths that have others below.
	groups map[string]bool
	// defaults are what is in force where nothing is given; defaultOf says whose they are.
	defaults  map[string]string
	defaultOf string
}

func newValues(defaultOf string, defaults map[string]string) *values {
	return &values{leaves: map[string]value{}, groups: map[string]bool{}, defaults: defaults, defaultOf: defaultOf}
}

// at returns what is in force at path.
func (v *values) at(path string) value {
	if v == nil {
		return value{path: path}
	}
	if g, ok := v.leaves[path]; ok {
		return g
	}
	if text, ok := v.defaults[path]; ok {
		return value{path: path, text: text, origin: Default}
	}
	return value{path: path}
}

// has reports whether something was given at path or below.
func (v *values) has(path string) bool {
	if v == nil {
		return false
	}
	_, leaf := v.leaves[path]
	return leaf || v.groups[path]
}

// all returns what was given, in the order of the inputs.
func (v *values) all() []value {
	if v == nil {
		return nil
	}
	list := slices.Collect(maps.Values(v.leaves))
	slices.SortFunc(list, func(a, b value) int { return a.turn - b.turn })
	return list
}

// put sets one leaf. As in Helm, what is given later replaces what stood there, and a null takes it away.
func (v *values) put(g value, isNull bool) {
	if v.groups[g.path] {
		for p := range v.leaves {
			if strings.HasPrefix(p, g.path+".") {
				delete(v.leaves, p)
			}
		}
		delete(v.groups, g.path)
	}
	if isNull {
		delete(v.leaves, g.path)
		return
	}
	for i := range len(g.path) {
		if g.path[i] == '.' {
			delete(v.leaves, g.path[:i])
			v.groups[g.path[:i]] = true
		}
	}
	v.puts++
	g.turn = v.puts
	g.origin = Given
	v.leaves[g.path] = g
}

// flatten adds the leaves of t under prefix.
func (v *values) flatten(file string, t *tree, prefix string) {
	switch t.kind {
	case mapping:
		for i, key := range t.keys {
			path := key
			if prefix != "" {
				path = prefix + "." + key
			}
			v.flatten(file, t.items[i], path)
		}
	case list:
		v.flattenList(file, t, prefix)
	default:
		v.put(value{path: prefix, text: t.text, file: file, line: t.line}, t.kind == null)
	}
}

// flattenList keeps a list of scalars as one leaf, and numbers the items of any other.
func (v *values) flattenList(file string, t *tree, prefix string) {
	var texts []string
	for i, item := range t.items {
		if item.kind == scalar {
			texts = append(texts, item.text)
			continue
		}
		v.flatten(file, item, prefix+"."+strconv.Itoa(i))
	}
	if len(texts) == len(t.items) {
		v.put(value{path: prefix, text: strings.Join(texts, ", "), file: file, line: t.line}, false)
	}
}
