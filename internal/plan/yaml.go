package plan

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MaxFile bounds a plan file in bytes.
const MaxFile = 1 << 20

// Parse reads a plan file. name is what faults call it. What the file leaves out has the value that Default gives; the
// result is valid. The error is Faults: everything that is wrong, each with its line.
func Parse(name string, r io.Reader) (Plan, error) {
	p, f, err := Read(name, r, "")
	if err != nil {
		return p, err
	}
	p = p.Settle()
	all := append(f.Faults(), f.Place(p.Validate())...)
	all.Sort()
	return p, all.asError()
}

// File is a plan file that was read: what is wrong with it, and where its keys are. The zero value is no file.
type File struct {
	name string
	root int
	d    decoder
}

// Read reads a plan file that a command line completes: the plan is neither settled nor valid yet. environment is the one that
// the command line gives, by which a file is judged that says none; "" is none. The error is of a file that is no plan at all.
func Read(name string, r io.Reader, environment string) (Plan, File, error) {
	src, err := io.ReadAll(io.LimitReader(r, MaxFile+1))
	if err != nil {
		return Plan{}, File{}, fmt.Errorf("read plan: %w", err)
	}
	if len(src) > MaxFile {
		return Plan{}, File{}, Faults{{File: name, Message: fmt.Sprintf("is larger than %d bytes", MaxFile)}}
	}
	f := File{name: name, d: decoder{lines: map[string]int{}, spoiled: map[string]bool{}}}
	d := &f.d
	p := Default()
	root := d.document(string(src))
	if root == nil {
		return p, f, f.Faults()
	}
	f.root = root.Line
	p.Environment = cmp.Or(environment, p.Environment)
	d.environmentIn(root, &p.Environment)
	d.mapping(root, "", d.planKeys(&p))
	for _, must := range []string{"apiVersion", "kind"} {
		if _, ok := d.lines[must]; !ok {
			d.fault(root, must, "is missing")
		}
	}
	if _, said := d.lines["warmup"]; !said && p.OnCluster() {
		p.Warmup = ClusterWarmup
	}
	d.elsewhere(p)
	return p, f, nil
}

// Faults returns what is wrong with the file itself, whatever the plan becomes that it is a part of.
func (f File) Faults() Faults {
	all := slices.Clone(f.d.faults)
	for i := range all {
		all[i].File = f.name
	}
	all.Sort()
	return all
}

// Place returns the faults of the plan as a whole, which Validate found, at the lines of their keys.
func (f File) Place(err error) Faults {
	var found, placed Faults
	if !errors.As(err, &found) {
		return nil
	}
	for _, x := range found {
		// A value that could not be read was left at its default or empty, which says nothing about the file.
		if f.d.spoiled[x.Field] {
			continue
		}
		x.File, x.Line = f.name, f.root
		for _, key := range []string{x.Field, x.Field + "." + x.item} {
			if line, ok := f.d.lines[key]; ok {
				x.Line = line
			}
		}
		placed = append(placed, x)
	}
	return placed
}

// environmentIn looks ahead, because the environment decides which profiles there can be. A slip in its name is a fault of its
// own, and the profiles are judged as they were meant.
func (d *decoder) environmentIn(root *yaml.Node, at *string) {
	for i := 0; i+1 < len(root.Content); i += 2 {
		switch key := root.Content[i].Value; {
		case key == "environment":
			d.said = true
		case suggest(key, []string{"environment"}) == "":
			continue
		}
		*at = resolve(root.Content[i+1]).Value
		if !slices.Contains(environments, *at) {
			d.spoil("environment") // the key or its value has a fault where it stands
		}
		if d.said {
			return
		}
	}
}

// decoder walks YAML nodes and collects faults.
type decoder struct {
	faults Faults
	// said is true if the file says its environment. One that does not is for all.
	said bool
	// lines remembers where each key was, so that a fault that is found later is reported at the right place.
	lines map[string]int
	// spoiled has the fields with a fault, and all that they are part of.
	spoiled map[string]bool
}

// keys maps the keys of a mapping to what reads their values.
type keys map[string]func(field string, n *yaml.Node)

func (d *decoder) fault(n *yaml.Node, field, format string, args ...any) {
	d.spoil(field)
	d.faults = append(d.faults, Fault{Line: n.Line, Field: field, Message: fmt.Sprintf(format, args...)})
}

func (d *decoder) spoil(field string) {
	d.spoiled[field] = true
	for i := range len(field) {
		if field[i] == '.' {
			d.spoiled[field[:i]] = true
		}
	}
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// document returns the mapping at the root, or nil after a fault.
func (d *decoder) document(src string) *yaml.Node {
	dec := yaml.NewDecoder(strings.NewReader(src))
	var doc yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		d.faults = Faults{{Message: "is empty: want apiVersion, kind and what to measure"}}
		return nil
	}
	if err != nil {
		m := yamlLine.FindStringSubmatch(err.Error())
		f := Fault{Line: 1, Message: "is not YAML: " + yamlLine.ReplaceAllString(err.Error(), "")}
		if len(m) == 2 && m[1] != "" {
			f.Line, _ = strconv.Atoi(m[1]) // the pattern admits digits only; 0 prints no line
			if strings.Contains(f.Message, "did not find expected") {
				f.Line++ // the library counts the lines of its parser's errors from 0, those of its scanner's from 1
			}
		}
		d.faults = Faults{f}
		return nil
	}
	var more yaml.Node
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		d.fault(&doc, "", "has more than one document")
	}
	root := resolve(doc.Content[0])
	if root.Kind != yaml.MappingNode {
		d.fault(root, "", "is not a mapping of keys to values")
		return nil
	}
	return root
}

// resolve follows an alias. An alias within an alias ends at the first, which then is a node of the wrong kind; the
// depth of the walk is bounded by the schema.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

// mapping reads each key of n by its entry in known; prefix is put before the names.
func (d *decoder) mapping(n *yaml.Node, prefix string, known keys) {
	n = resolve(n)
	if n.Kind != yaml.MappingNode {
		d.fault(n, strings.TrimSuffix(prefix, "."), "want a mapping of keys to values")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], resolve(n.Content[i+1])
		field := prefix + key.Value
		read, ok := known[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode || !ok:
			d.spoil(field)
			d.fault(key, "", "unknown key %q%s", field, suggest(key.Value, sortedKeys(known)))
		case seen[key.Value]:
			d.fault(key, field, "is given twice")
		default:
			seen[key.Value] = true
			d.lines[field] = value.Line
			read(field, value)
		}
	}
}

// scalar returns the text of n.
func (d *decoder) scalar(field string, n *yaml.Node) (string, bool) {
	if n = resolve(n); n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		d.fault(n, field, "want one value")
		return "", false
	}
	return n.Value, true
}

// list calls each for every item of n.
func (d *decoder) list(field string, n *yaml.Node, each func(*yaml.Node)) {
	if n = resolve(n); n.Kind != yaml.SequenceNode {
		d.fault(n, field, "want a list, such as [a, b]")
		return
	}
	for _, item := range n.Content {
		each(resolve(item))
	}
}

// elsewhere refuses what is for the lab alone in a file that says it is for a cluster: who writes a delay and gets numbers
// takes them for numbers with that delay. A file that says no environment may be for both.
func (d *decoder) elsewhere(p Plan) {
	if !p.OnCluster() || !d.said {
		return
	}
	for _, field := range slices.Sorted(maps.Keys(d.lines)) {
		if LabOnly(field) && !d.spoiled[field] {
			d.fault(&yaml.Node{Line: d.lines[field]}, field, "is for the lab, and this file is for a cluster, "+
				"which is measured as it stands: remove it, or remove environment and say --env with each run")
		}
	}
}
