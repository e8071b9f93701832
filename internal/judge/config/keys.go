package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// schema is what keys a component reads.
type schema struct {
	// of is whose, with the version that was read.
	of string
	// below are the keys under a path, with spaces between; "" is the top. Paths that are not there are not looked into.
	below map[string]string
	// moved are keys of other versions, and what people write instead of the right one.
	moved []moved
}

// moved says what became of a key.
type moved struct {
	// from is the key or a path below which all is meant.
	from string
	// rule is the one that applies; say completes "FROM ...".
	rule, say string
}

// mostUnknown is how many keys that nobody reads are told: a file of another product has nothing else.
const mostUnknown = 50

// unknownKeys finds what v gives and the component does not read.
func (j *judge) unknownKeys(v *values, s schema) {
	before := len(j.Findings)
	for _, g := range v.all() {
		if len(j.Findings)-before >= mostUnknown {
			return
		}
		if m, ok := s.movedFrom(g.path); ok {
			j.find(m.rule, g, "%s: %s %s", g.path, shown(g), m.say)
			continue
		}
		if path, group, ok := s.unknown(g.path); ok {
			j.find("unknown-key", g, "%s is no key of %s%s", path, s.of, s.suggest(path, group))
		}
	}
}

func shown(g value) string {
	if g.text == "" {
		return `""`
	}
	return g.text
}

func (s schema) movedFrom(path string) (moved, bool) {
	for _, m := range s.moved {
		if path == m.from || strings.HasPrefix(path, m.from+".") {
			return m, true
		}
	}
	return moved{}, false
}

// unknown returns the shortest part of path that is not read, and the group in which it is not.
func (s schema) unknown(path string) (part, group string, found bool) {
	keys := strings.Split(path, ".")
	var above []string // with the numbers of list items left out: those of all items are the same
	for i, key := range keys {
		group = strings.Join(above, ".")
		if _, err := strconv.Atoi(key); err == nil && i > 0 {
			continue
		}
		known, closed := s.below[group]
		if !closed {
			return "", "", false
		}
		if !slices.Contains(strings.Fields(known), key) {
			return strings.Join(keys[:i+1], "."), group, true
		}
		above = append(above, key)
	}
	return "", "", false
}

// suggest returns `, did you mean "x"?` for the nearest key of the group, or "".
func (s schema) suggest(path, group string) string {
	key := path[strings.LastIndexByte(path, '.')+1:]
	at := advice.Nearest(key, strings.Fields(s.below[group]))
	if at == "" {
		return ""
	}
	if group != "" {
		at = group + "." + at
	}
	return fmt.Sprintf(", did you mean %q?", at)
}
