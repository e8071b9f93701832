package position

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// Decoder reads the nodes of one file into Go values and collects the faults.
type Decoder struct {
	file string
	root int
	// faults are the faults found while reading the file.
	faults Faults
	// lines has the line of each field that the file has.
	lines map[string]int
	// spoiled has the fields with a fault, and all fields that contain such a field.
	spoiled map[string]bool
}

// Read reads the value of one node and stores it, or adds a fault. field is its path in the file.
type Read func(field string, n *Node)

// Keys has the possible keys of a mapping, each with the function that reads its value.
type Keys map[string]Read

// NewDecoder returns a decoder of text, and the first document of text. If the document is missing or not a mapping, it
// is nil, and the decoder has a fault. A second document is a fault too. purpose completes the message "is empty: want
// ...".
func NewDecoder(file, text, purpose string) (*Decoder, *Node) {
	d := &Decoder{file: file, lines: map[string]int{}, spoiled: map[string]bool{}}
	documents := Parse(Source{Name: file, Text: text}, &d.faults)
	for _, f := range d.faults {
		d.Spoil(f.Field)
	}
	switch {
	case len(documents) == 0:
		if len(d.faults) == 0 {
			d.Fault(0, "", "is empty: want %s", purpose)
		}
		return d, nil
	case documents[0].Kind != Mapping:
		d.Fault(documents[0].Line, "", "is not a mapping of keys to values")
		return d, nil
	case len(documents) > 1:
		d.Fault(documents[1].Line, "", "has more than one document")
	}
	d.root = documents[0].Line
	return d, documents[0]
}

// Fault adds a fault of field at a line, and marks the field as not read. A line of 0 means the file as a whole.
func (d *Decoder) Fault(line int, field, format string, args ...any) {
	d.Spoil(field)
	d.faults = append(d.faults, Fault{File: d.file, Line: line, Field: field, Message: fmt.Sprintf(format, args...)})
}

// Faults returns the faults of the file in the order of their lines.
func (d *Decoder) Faults() Faults {
	all := slices.Clone(d.faults)
	all.Sort()
	return all
}

// Count returns the number of faults so far.
func (d *Decoder) Count() int { return len(d.faults) }

// Spoil marks field, and the fields that contain it, as not read. Place then leaves out their faults, because their
// values are not from the file.
func (d *Decoder) Spoil(field string) {
	d.spoiled[field] = true
	for i := range len(field) {
		if field[i] == '.' {
			d.spoiled[field[:i]] = true
		}
	}
}

// Spoiled reports whether field, or a field within it, has a fault.
func (d *Decoder) Spoiled(field string) bool { return d.spoiled[field] }

// Line returns the line of field, 0 if the file does not have it.
func (d *Decoder) Line(field string) int { return d.lines[field] }

// Fields returns the fields that the file has, sorted.
func (d *Decoder) Fields() []string { return slices.Sorted(maps.Keys(d.lines)) }

// Place returns the Faults in err, each with the file and the line of its field. It leaves out faults of fields that
// could not be read. It returns nil if err has no Faults.
func (d *Decoder) Place(err error) Faults {
	var found, placed Faults
	if !errors.As(err, &found) {
		return nil
	}
	for _, f := range found {
		if d.spoiled[f.Field] {
			continue
		}
		f.File, f.Line = d.file, d.root
		for _, key := range []string{f.Field, f.Field + "." + f.Item} {
			if line, ok := d.lines[key]; ok {
				f.Line = line
			}
		}
		placed = append(placed, f)
	}
	return placed
}

// Mapping reads the value of each key of n with the function that known has for the key. It adds a fault for an unknown
// key, or if n is not a mapping. field is the path of n, "" for the root.
func (d *Decoder) Mapping(field string, n *Node, known Keys) {
	if n.Kind != Mapping {
		d.Fault(n.Line, field, "want a mapping of keys to values")
		return
	}
	for i, key := range n.Keys {
		path := joinPath(field, key.Name)
		read, ok := known[key.Name]
		if !ok {
			d.Spoil(path)
			d.Fault(key.Line, "", "unknown key %q%s", path, advice.DidYouMean(key.Name, slices.Sorted(maps.Keys(known))))
			continue
		}
		d.lines[path] = n.Items[i].Line
		read(path, n.Items[i])
	}
}

// Scalar returns the text of n. If n is not a scalar, it adds a fault and returns false.
func (d *Decoder) Scalar(field string, n *Node) (string, bool) {
	if n.Kind != Scalar {
		d.Fault(n.Line, field, "want one value")
		return "", false
	}
	return n.Text, true
}

// Each calls read for every item of the list n. It adds a fault if n is not a list.
func (d *Decoder) Each(field string, n *Node, read func(*Node)) {
	if n.Kind != List {
		d.Fault(n.Line, field, "want a list, such as [a, b]")
		return
	}
	for _, item := range n.Items {
		read(item)
	}
}

// Within returns a Read for a mapping with the keys of known.
func (d *Decoder) Within(known Keys) Read {
	return func(field string, n *Node) { d.Mapping(field, n, known) }
}

// Values returns a Read that stores a list of values, each parsed by parse. It leaves out invalid values and adds a
// fault for each.
func Values[T any](d *Decoder, at *[]T, parse func(string) (T, error)) Read {
	return func(field string, n *Node) {
		*at = nil
		d.Each(field, n, func(item *Node) {
			var v T
			before := d.Count()
			if Value(d, &v, parse)(field, item); d.Count() == before {
				*at = append(*at, v)
			}
		})
	}
}

// Labels returns a Read that stores a mapping of names to texts, for names that the user chooses.
func (d *Decoder) Labels(at *map[string]string) Read {
	return func(field string, n *Node) {
		*at = map[string]string{}
		if n.Kind != Mapping {
			d.Fault(n.Line, field, "want a mapping of names to values")
			return
		}
		for i, key := range n.Keys {
			if s, ok := d.Scalar(field, n.Items[i]); ok {
				(*at)[key.Name] = s
				d.lines[joinPath(field, key.Name)] = key.Line
			}
		}
	}
}

// Value returns a Read that stores one value, parsed by parse. An error of parse becomes a fault.
func Value[T any](d *Decoder, at *T, parse func(string) (T, error)) Read {
	return func(field string, n *Node) {
		s, ok := d.Scalar(field, n)
		if !ok {
			return
		}
		v, err := parse(s)
		if err != nil {
			d.Fault(n.Line, field, "%s", err)
			return
		}
		*at = v
	}
}

// Constant returns a Read that adds a fault if the text is not the text want. It stores nothing.
func (d *Decoder) Constant(want string) Read {
	return Value(d, new(string), func(s string) (string, error) {
		if s != want {
			return "", fmt.Errorf("%q is not %q, which is all that this version reads", s, want)
		}
		return s, nil
	})
}

// ParseDuration parses a duration such as 500ms. Its error names the format.
func ParseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration: want a number with a unit, such as 500ms, 10s or 2m", s)
	}
	return d, nil
}
