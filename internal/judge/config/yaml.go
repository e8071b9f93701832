package config

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds of what one input may expand to: aliases are followed, and a file of one page can stand for gigabytes.
const (
	mostValues = 100_000
	mostDepth  = 64
	mostDocs   = 500
	mostFaults = 50
)

// Fault is one thing that is wrong with an input.
type Fault struct {
	// File is empty for a fault of all inputs together; Line counts from 1, 0 is the file as a whole.
	File    string
	Line    int
	Message string
}

// Faults is everything that is wrong, as one error with a line for each.
type Faults []Fault

func (fs *Faults) add(file string, line int, format string, args ...any) {
	if len(*fs) <= mostFaults {
		*fs = append(*fs, Fault{file, line, fmt.Sprintf(format, args...)})
	}
}

func (fs Faults) Error() string {
	var lines []string
	for i, f := range fs {
		switch {
		case i == mostFaults:
			lines = append(lines, "and more")
		case f.File == "":
			lines = append(lines, f.Message)
		case f.Line == 0:
			lines = append(lines, f.File+": "+f.Message)
		default:
			lines = append(lines, fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Message))
		}
	}
	return strings.Join(lines, "\n")
}

type kind int

const (
	scalar kind = iota
	null
	mapping
	list
)

// tree is a YAML value with aliases and merges resolved.
type tree struct {
	kind kind
	// text is that of a scalar; block says that it is a literal block, whose lines are lines of the file.
	text  string
	block bool
	line  int
	// keys are those of a mapping, in the order of the file; items their values, or those of a list.
	keys  []string
	items []*tree
}

// get returns the value of a mapping's key, or nil.
func (t *tree) get(path ...string) *tree {
	for _, key := range path {
		if t = t.child(key); t == nil {
			return nil
		}
	}
	return t
}

func (t *tree) child(key string) *tree {
	if t == nil || t.kind != mapping {
		return nil
	}
	for i, k := range t.keys {
		if k == key {
			return t.items[i]
		}
	}
	return nil
}

// scalar returns the text at path, "" if there is none.
func (t *tree) scalar(path ...string) string {
	if v := t.get(path...); v != nil && v.kind == scalar {
		return v.text
	}
	return ""
}

// source is text to read: an input, or YAML inside of one.
type source struct {
	name, text string
	// in says where within the file it stands, offset how many lines are before it.
	in     string
	offset int
}

// inside returns the source that the scalar t is, which stands under key.
func inside(file, key string, t *tree) source {
	src := source{name: file, text: t.text, in: "in " + key + ": ", offset: t.line - 1}
	if t.block {
		src.offset++
	}
	return src
}

// parse returns the documents of src that are mappings, and adds its faults to those of the others.
func parse(src source, faults *Faults) []*tree {
	p := &reader{source: src, faults: faults, budget: mostValues}
	if len(src.text) > MaxInput {
		faults.add(src.name, 0, "is larger than %d bytes", MaxInput)
		return nil
	}
	var docs []*tree
	for n, dec := 0, yaml.NewDecoder(strings.NewReader(src.text)); ; n++ {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			line, message := yamlError(err)
			p.fault(line, "is not YAML: %s", message)
			break
		}
		if n == mostDocs {
			p.fault(doc.Line, "has more than %d documents", mostDocs)
			break
		}
		t := p.tree(doc.Content[0], 0)
		switch {
		case p.spent:
			return nil
		case t.kind == mapping && len(t.keys) > 0:
			docs = append(docs, t)
		case t.kind != null && t.kind != mapping:
			faults.add(src.name, t.line, "%sis not a mapping of keys to values", src.in)
		}
	}
	return docs
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// yamlError takes an error of the library apart.
func yamlError(err error) (line int, message string) {
	message = yamlLine.ReplaceAllString(err.Error(), "")
	if m := yamlLine.FindStringSubmatch(err.Error()); len(m) == 2 && m[1] != "" {
		line, _ = strconv.Atoi(m[1]) // the pattern admits digits only; 0 prints no line
		if strings.Contains(message, "did not find expected") {
			line++ // the library counts the lines of its parser's errors from 0, those of its scanner's from 1
		}
	}
	return line, message
}

type reader struct {
	source
	faults *Faults
	// budget is how many more values the input may have; spent says that it had more, or is nested too deep.
	budget int
	spent  bool
}

// fault adds a fault at a line of the source.
func (p *reader) fault(line int, format string, args ...any) {
	p.faults.add(p.name, line+p.offset, "%s", p.in+fmt.Sprintf(format, args...))
}

// tree converts n, following aliases. Its lines are those of the file.
func (p *reader) tree(n *yaml.Node, depth int) *tree {
	line := n.Line
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	t := &tree{line: line + p.offset, kind: null}
	if p.budget--; p.budget < 0 || depth > mostDepth {
		if !p.spent {
			p.fault(line, "expands to more than %d values or is nested deeper than %d", mostValues, mostDepth)
		}
		p.spent = true
	}
	if p.spent {
		return t
	}
	switch n.Kind {
	case yaml.MappingNode:
		t.kind = mapping
		p.mapping(t, n, depth)
	case yaml.SequenceNode:
		t.kind = list
		for _, item := range n.Content {
			t.items = append(t.items, p.tree(item, depth+1))
		}
	case yaml.ScalarNode:
		if n.Tag != "!!null" {
			t.kind, t.text, t.block = scalar, n.Value, n.Style == yaml.LiteralStyle
		}
	default: // an alias within an alias
		p.tree(n, depth+1)
	}
	return t
}

// mapping fills t. What a merge brings (<<) gives way to the mapping's own keys.
func (p *reader) mapping(t *tree, n *yaml.Node, depth int) {
	var merges []*tree
	at := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		item := p.tree(n.Content[i+1], depth+1)
		if key.Kind == yaml.AliasNode && key.Alias != nil {
			key = key.Alias
		}
		first, twice := at[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode:
			p.fault(key.Line, "a key is no plain text")
		case key.Tag == "!!merge":
			merges = append(merges, item)
		case twice:
			p.fault(key.Line, "%s is given twice, before in line %d", key.Value, first+p.offset)
		default:
			at[key.Value] = key.Line
			t.keys, t.items = append(t.keys, key.Value), append(t.items, item)
		}
	}
	for len(merges) > 0 {
		m := merges[0]
		merges = merges[1:]
		if m.kind == list {
			merges = append(merges, m.items...)
			continue
		}
		for i, k := range m.keys {
			if _, own := at[k]; !own {
				at[k] = m.line
				t.keys, t.items = append(t.keys, k), append(t.items, m.items[i])
			}
		}
	}
}
