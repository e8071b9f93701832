package plan

import (
	"errors"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/plan/position"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Setting is one setting of a plan, defined in one place. Everything about it is derived from here: plan files, flags,
// variants, completion, validation, the command that repeats a run, the JSON Schema and the reference page.
type Setting struct {
	// Key is the name of the setting in a plan file, such as "lab.serviceProxy". Flag is its name on the command line
	// and in a variant.
	Key, Flag string
	// Help describes the setting in one line. The word in backquotes is the name of the flag's value.
	Help string
	// Words lists the possible values, nil if they are not words.
	Words []string
	// Range describes the allowed values, "" if Words lists them.
	Range string
	// Where names the environments in which the setting has an effect.
	Where where
	// PerVariant means that the setting may differ between the variants of one run.
	PerVariant bool
	// Common means that the flag is on the first page of help.
	Common bool
	// Always means that the command that repeats a run includes the flag even if the setting has its default.
	Always bool
	// Switch means that the flag takes no value.
	Switch bool
	// Number means that the values are whole numbers, so that a sweep may use them.
	Number bool

	// Set parses text into p. It fails for an invalid text.
	Set func(p *Plan, text string) error
	// Text returns the value in p in the format of Set.
	Text func(p Plan) string
	// Check returns what is wrong with the value in p, "" if nothing is wrong.
	Check func(p Plan) string

	read   func(d *decoder, p *Plan) position.Read
	schema map[string]any
}

// Groups of settings in help and in the reference.
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

// where names the environments in which a setting has an effect.
type where string

const (
	everywhere where = "lab and clusters"
	inLab      where = "lab"
	onClusters where = "clusters"
)

// InLab reports whether s has an effect in the lab only.
func (s Setting) InLab() bool { return s.Where == inLab }

// OnClusters reports whether s has an effect on clusters only.
func (s Setting) OnClusters() bool { return s.Where == onClusters }

// SettingOf returns the setting of a flag. It returns false if no setting has the flag.
func SettingOf(flag string) (Setting, bool) {
	return each.First(Settings(), func(s Setting) bool { return s.Flag == flag && flag != "" })
}

// values describes the possible values of a setting, and how they are parsed and formatted.
type values[T any] struct {
	parse  func(text string) (T, error)
	format func(v T) string
	// wrong returns what is wrong with a value, "" if nothing is wrong. A nil wrong allows every value.
	wrong func(v T) string
	words []string
	rang  string
	// number means that the values are whole numbers in a range.
	number bool
	// read returns the function that reads the value in a plan file. With nil, one text is read with parse.
	read func(d *decoder, at *T) position.Read
	// schema is the JSON Schema of the value in a plan file.
	schema map[string]any
}

// describe returns a text that describes the possible values.
func (v values[T]) describe() string {
	if v.rang != "" {
		return v.rang
	}
	return strings.Join(v.words, ", ")
}

// parseValid parses a value and checks it. It fails for an invalid text, and if the value is out of bounds.
func (v values[T]) parseValid(text string) (T, error) {
	read, err := v.parse(text)
	if err == nil && v.wrong != nil {
		if fault := v.wrong(read); fault != "" {
			err = errors.New(fault)
		}
	}
	return read, err
}

// newSetting returns s with everything that follows from its values v: parsing, text, check and schema. at returns a
// pointer to the field of the plan that has the value.
func newSetting[T any](s Setting, v values[T], at func(p *Plan) *T) Setting {
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
