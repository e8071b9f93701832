package plan

import (
	"errors"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/plan/position"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Setting is one thing that a plan decides, defined in one place: plan files, flags, variants, completion,
// validation, the command that repeats a run, the JSON Schema and the reference page follow from it.
type Setting struct {
	// Key is its name in a plan file, such as "lab.serviceProxy"; Flag its name on the command line and in a variant.
	Key, Flag string
	// Help says in one line what it is. The flag's value is called by the word in backquotes.
	Help string
	// Words are the values that it can have, "" within Range otherwise.
	Words []string
	// Range says in words which values are allowed, "" where Words says it.
	Range string
	// Where says in which environments it has a meaning.
	Where where
	// PerVariant says that the variants of one run may differ in it.
	PerVariant bool
	// Common flags are on the first page of help.
	Common bool
	// Always says that a command line that repeats a run gives it, default or not.
	Always bool
	// Switch says that its flag takes no value.
	Switch bool
	// Number says that its values are whole numbers, so that a sweep may go through them.
	Number bool

	// Set reads text into p. The error says what is wrong with the text.
	Set func(p *Plan, text string) error
	// Text returns the value in p as Set reads it.
	Text func(p Plan) string
	// Check returns what is wrong with the value in p, or "".
	Check func(p Plan) string

	read   func(d *decoder, p *Plan) position.Read
	schema map[string]any
}

// The groups in which help and reference list settings.
const (
	GroupWhat    = "What is measured"
	GroupTime    = "How long and how often"
	GroupLab     = "Conditions of the lab"
	GroupCluster = "Cluster"
)

// Group returns the group of s.
func (s Setting) Group() string {
	switch {
	case strings.HasPrefix(s.Key, "lab."):
		return GroupLab
	case strings.HasPrefix(s.Key, "kubernetes."):
		return GroupCluster
	case slices.Contains([]string{"name", "environment", "profiles", "sweep", "paths", "workloads", "flows", "message", "pairs", "concurrency", "baseline", "twin", "sequential"}, s.Key):
		return GroupWhat
	}
	return GroupTime
}

// where says in which environments a setting has a meaning.
type where string

const (
	everywhere where = "lab and clusters"
	inLab      where = "lab"
	onClusters where = "clusters"
)

// InLab reports whether s has a meaning in the lab alone.
func (s Setting) InLab() bool { return s.Where == inLab }

// OnClusters reports whether s has a meaning on clusters alone.
func (s Setting) OnClusters() bool { return s.Where == onClusters }

// SettingOf returns the setting of a flag.
func SettingOf(flag string) (Setting, bool) {
	return each.First(Settings(), func(s Setting) bool { return s.Flag == flag && flag != "" })
}

// values are those that a setting can have.
type values[T any] struct {
	parse  func(text string) (T, error)
	format func(v T) string
	// wrong says what is wrong with a value, "" for nothing; nil allows all that can be read.
	wrong func(v T) string
	words []string
	rang  string
	// number says that they are whole numbers in a range.
	number bool
	// read reads the value of a plan file; nil reads one text by parse.
	read func(d *decoder, at *T) position.Read
	// schema is the JSON Schema of the value in a plan file.
	schema map[string]any
}

// describe says which values there are.
func (v values[T]) describe() string {
	if v.rang != "" {
		return v.rang
	}
	return strings.Join(v.words, ", ")
}

// sound reads a value that is not wrong.
func (v values[T]) sound(text string) (T, error) {
	read, err := v.parse(text)
	if err == nil && v.wrong != nil {
		if fault := v.wrong(read); fault != "" {
			err = errors.New(fault)
		}
	}
	return read, err
}

// setting returns s with values at a place of the plan.
func setting[T any](s Setting, v values[T], at func(p *Plan) *T) Setting {
	s.Words, s.Range, s.Number = v.words, v.rang, v.number
	s.Set = func(p *Plan, text string) error {
		read, err := v.parse(text)
		if err == nil {
			*at(p) = read
		}
		return err
	}
	s.schema = v.schema
	s.read = func(d *decoder, p *Plan) position.Read {
		if v.read != nil {
			return v.read(d, at(p))
		}
		return position.Value(d.Decoder, at(p), v.parse)
	}
	s.Text = func(p Plan) string { return v.format(*at(&p)) }
	s.Check = func(p Plan) string {
		if v.wrong == nil {
			return ""
		}
		return v.wrong(*at(&p))
	}
	return s
}
