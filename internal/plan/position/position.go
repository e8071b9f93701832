// Package position reads YAML for people: every key and value keeps its line, and every mistake is found in one pass.
//
// Parse returns the documents of a file as Nodes, with aliases and merges resolved. A Decoder reads a Node by a table
// of Keys. It reports unknown keys with the nearest known key, and remembers the line of each field, so that a mistake
// that is found after reading is reported at its line too.
//
//	text ─► Parse ─► Node ─► Decoder.Mapping(Keys) ─► value + Faults ─► Decoder.Place(later faults)
//
// Not for files that programs write: decode those with a YAML library.
package position

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// MaxFile is the largest size of one file in bytes.
const MaxFile = 1 << 20

// Bounds of one file after its aliases are expanded. Without them, a file of one page can expand to gigabytes.
const (
	mostValues    = 100_000
	mostDepth     = 64
	mostDocuments = 500
)

// kind is the kind of a node's content.
type kind int

// The kinds of a node.
const (
	Null kind = iota
	Scalar
	Mapping
	List
)

// Key is one key of a mapping.
type Key struct {
	Name string
	Line int
}

// Node is a YAML value with aliases and merges resolved.
type Node struct {
	Kind kind
	// Line counts from 1.
	Line int
	// Text is the value of a scalar. Block is true for a literal block, whose lines are lines of the file.
	Text  string
	Block bool
	// Keys are the keys of a mapping in the order of the file. Items are their values, or the items of a list.
	Keys  []Key
	Items []*Node
	// typed is the value of a scalar in its YAML type.
	typed any
}

// At returns the value at a path of keys below n, nil if there is none.
func (n *Node) At(path ...string) *Node {
	for _, key := range path {
		if n == nil || n.Kind != Mapping {
			return nil
		}
		i := slices.IndexFunc(n.Keys, func(k Key) bool { return k.Name == key })
		if i < 0 {
			return nil
		}
		n = n.Items[i]
	}
	return n
}

// With returns a copy of the mapping n with a text added under key. The mapping must not have the key yet.
func (n *Node) With(key, text string) *Node {
	copied := *n
	copied.Keys = append(slices.Clone(n.Keys), Key{key, n.Line})
	copied.Items = append(slices.Clone(n.Items), &Node{Kind: Scalar, Line: n.Line, Text: text, typed: text})
	return &copied
}

// ScalarAt returns the text at a path of keys below n, "" if it is missing or not a scalar.
func (n *Node) ScalarAt(path ...string) string {
	if v := n.At(path...); v != nil && v.Kind == Scalar {
		return v.Text
	}
	return ""
}

// Source is text to parse: a file, or YAML within a value of a file.
type Source struct {
	// Name is the name of the file in faults.
	Name, Text string
	// in is the prefix of messages that names the key whose value is the text, "" for a whole file. offset is the
	// number of lines before the text.
	in     string
	offset int
}

// Within returns the Source for YAML that is the value of a key in file.
func Within(file, key string, value *Node) Source {
	src := Source{Name: file, Text: value.Text, in: "in " + key + ": ", offset: value.Line - 1}
	if value.Block {
		src.offset++
	}
	return src
}

// Parse returns the documents of src and adds its faults to faults. After a syntax error it returns the documents before the
// error. It returns nil if src is too large, expands to too many values or is nested too deeply.
func Parse(src Source, faults *Faults) []*Node {
	p := &parser{Source: src, faults: faults, budget: mostValues}
	if len(src.Text) > MaxFile {
		p.addFault(0, "", "is larger than %d bytes", MaxFile)
		return nil
	}
	var documents []*Node
	for dec := yaml.NewDecoder(strings.NewReader(src.Text)); ; {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return documents
		}
		if err != nil {
			line, message := yamlErrorDetails(err)
			p.addFault(line, "", "is not YAML: %s", message)
			return documents
		}
		if len(documents) == mostDocuments {
			p.addFault(doc.Line, "", "has more than %d documents", mostDocuments)
			return documents
		}
		n := p.convertNode(doc.Content[0], "", 0)
		if p.spent {
			return nil
		}
		documents = append(documents, n)
	}
}

var yamlLine = pattern.New(`^yaml: (?:line (\d+): )?`)

// yamlErrorDetails returns the line and the message of an error that the YAML library has returned.
func yamlErrorDetails(err error) (line int, message string) {
	message = yamlLine.ReplaceAllString(err.Error(), "")
	line = 1
	if m := yamlLine.FindStringSubmatch(err.Error()); len(m) == 2 && m[1] != "" {
		line, _ = strconv.Atoi(m[1]) // the pattern admits digits only
		if strings.Contains(message, "did not find expected") {
			line++ // the library's parser counts lines from 0, its scanner from 1
		}
	}
	return line, message
}

type parser struct {
	Source
	faults *Faults
	// budget is how many more values the file may have. spent is true if the file has more, or is nested too deeply.
	budget int
	spent  bool
}

func (p *parser) addFault(line int, field, format string, args ...any) {
	if line > 0 {
		line += p.offset
	}
	*p.faults = append(*p.faults, Fault{File: p.Name, Line: line, Field: field, Message: p.in + fmt.Sprintf(format, args...)})
}

// aliasTarget returns the node that the alias n refers to, or n itself if n is not an alias.
func aliasTarget(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}

// convertNode returns n as a Node, with aliases replaced by their targets. path is the path of n in the file, and depth
// is how deep n is nested.
func (p *parser) convertNode(n *yaml.Node, path string, depth int) *Node {
	line := n.Line
	n = aliasTarget(n)
	t := &Node{Line: line + p.offset}
	if p.budget--; p.budget < 0 || depth > mostDepth {
		if !p.spent {
			p.addFault(line, "", "expands to more than %d values or is nested deeper than %d", mostValues, mostDepth)
		}
		p.spent = true
	}
	if p.spent {
		return t
	}
	switch n.Kind {
	case yaml.MappingNode:
		t.Kind = Mapping
		p.fillMapping(t, n, path, depth)
	case yaml.SequenceNode:
		t.Kind = List
		for _, item := range n.Content {
			t.Items = append(t.Items, p.convertNode(item, path, depth+1))
		}
	case yaml.ScalarNode:
		if n.Tag != "!!null" {
			t.Kind, t.Text, t.Block = Scalar, n.Value, n.Style == yaml.LiteralStyle
			if n.Decode(&t.typed) != nil { // a tag that the text does not fit
				t.typed = n.Value
			}
		}
	}
	return t
}

// fillMapping stores the keys and values of the mapping n in t. Keys of the mapping itself override keys from a merge
// (<<). A key that is given twice is a fault, and its last value counts.
func (p *parser) fillMapping(t *Node, n *yaml.Node, path string, depth int) {
	var merges []*Node
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, line := aliasTarget(n.Content[i]), n.Content[i].Line
		field := joinPath(path, key.Value)
		item := p.convertNode(n.Content[i+1], field, depth+1)
		first, twice := lines[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode:
			p.addFault(line, path, "has a key that is not plain text")
		case key.Tag == "!!merge":
			merges = append(merges, item)
		case twice:
			p.addFault(line, field, "is given twice (first in line %d)", first)
			at := slices.IndexFunc(t.Keys, func(k Key) bool { return k.Name == key.Value })
			t.Keys[at], t.Items[at] = Key{key.Value, line + p.offset}, item // charts may render a key twice, and the last is in force
		default:
			lines[key.Value] = line + p.offset
			t.Keys, t.Items = append(t.Keys, Key{key.Value, line + p.offset}), append(t.Items, item)
		}
	}
	for len(merges) > 0 {
		m := merges[0]
		merges = merges[1:]
		if m.Kind == List {
			merges = append(merges, m.Items...)
			continue
		}
		for i, k := range m.Keys {
			if _, own := lines[k.Name]; !own {
				lines[k.Name] = k.Line
				t.Keys, t.Items = append(t.Keys, k), append(t.Items, m.Items[i])
			}
		}
	}
}

func joinPath(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// Value returns the value of the node as YAML libraries decode it: string, number, bool, []any or map[string]any.
func (n *Node) Value() any {
	switch n.Kind {
	case Mapping:
		m := map[string]any{}
		for i, k := range n.Keys {
			m[k.Name] = n.Items[i].Value()
		}
		return m
	case List:
		list := make([]any, len(n.Items))
		for i, item := range n.Items {
			list[i] = item.Value()
		}
		return list
	case Scalar:
		return n.typed
	}
	return nil
}
