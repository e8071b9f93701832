package plan

import (
	"cmp"
	"errors"
	"fmt"
	"io"
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
	src, err := io.ReadAll(io.LimitReader(r, MaxFile+1))
	if err != nil {
		return Plan{}, fmt.Errorf("read plan: %w", err)
	}
	if len(src) > MaxFile {
		return Plan{}, Faults{{File: name, Message: fmt.Sprintf("is larger than %d bytes", MaxFile)}}
	}
	d := &decoder{lines: map[string]int{}, spoiled: map[string]bool{}}
	p := Default()
	if root := d.document(string(src)); root != nil {
		p.Environment = environmentIn(root, p.Environment)
		d.mapping(root, "", d.planKeys(&p))
		for _, must := range []string{"apiVersion", "kind"} {
			if _, ok := d.lines[must]; !ok {
				d.fault(root, must, "is missing")
			}
		}
		if _, said := d.lines["warmup"]; !said && p.OnCluster() {
			p.Warmup = ClusterWarmup
		}
		p = p.Settle()
		d.validate(p, root.Line)
	}
	for i := range d.faults {
		d.faults[i].File = name
	}
	slices.SortStableFunc(d.faults, func(f, g Fault) int { return cmp.Compare(f.Line, g.Line) })
	return p, d.faults.asError()
}

// environmentIn looks ahead, because the environment decides which profiles there can be.
func environmentIn(root *yaml.Node, usual string) string {
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == "environment" {
			return resolve(root.Content[i+1]).Value
		}
	}
	return usual
}

// decoder walks YAML nodes and collects faults.
type decoder struct {
	faults Faults
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

// validate adds the faults that only the whole plan shows, at the line of their key.
func (d *decoder) validate(p Plan, root int) {
	var fs Faults
	if err := p.Validate(); !errors.As(err, &fs) {
		return
	}
	for _, f := range fs {
		// A value that could not be read was left at its default or empty, which says nothing about the file.
		if d.spoiled[f.Field] {
			continue
		}
		f.Line = root
		if line, ok := d.lines[f.Field]; ok {
			f.Line = line
		}
		d.faults = append(d.faults, f)
	}
}
