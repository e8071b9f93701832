package external

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// Bounds of the search in a document of another program.
const (
	// deepestWrapped bounds the depth of values, mostWrapped their number.
	deepestWrapped = 8
	mostWrapped    = 10_000
	// shortestOutput is the least length in bytes of a string that may be the output of a tool.
	shortestOutput = 40
	// longestLabel bounds a value that is used as a description of what was measured, in bytes.
	longestLabel = 60
)

// fleeting matches keys whose values differ between repetitions.
var fleeting = pattern.New(`(?i)^_|id$|time|date|start|end$|^delta$|pod|container|host|node|version|image|stderr|status|phase`)

// wrappedOutput returns the output of tools in the values of JSON documents, as a test harness, Ansible or a workflow writes
// them. name is the wanted format, "" for any.
func wrappedOutput(b []byte, name string) (parts []part) {
	w := &wrapper{name: name}
	d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(b, []byte("\ufeff"))))
	for {
		var doc json.RawMessage
		if d.Decode(&doc) != nil {
			return w.parts
		}
		w.visitValue(doc, nil, 0)
	}
}

type wrapper struct {
	name    string
	parts   []part
	visited int
}

// visitValue searches one value. labels are from the objects around it.
func (w *wrapper) visitValue(raw json.RawMessage, labels []string, depth int) {
	if w.visited++; w.visited > mostWrapped || depth > deepestWrapped || len(raw) < shortestOutput {
		return
	}
	switch raw[0] {
	case '{':
		if depth > 0 && w.takePart(raw, labels) {
			return
		}
		var object map[string]json.RawMessage
		if json.Unmarshal(raw, &object) != nil {
			return
		}
		labels = append(slices.Clone(labels), objectLabels(object)...)
		for _, key := range slices.Sorted(maps.Keys(object)) {
			w.visitValue(object[key], labels, depth+1)
		}
	case '[':
		if depth > 0 && w.takePart(raw, labels) {
			return
		}
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil {
			return
		}
		for _, item := range list {
			w.visitValue(item, labels, depth+1)
		}
	case '"':
		var text string
		if json.Unmarshal(raw, &text) == nil {
			w.takePart([]byte(text), labels)
		}
	}
}

// takePart adds b to the parts if it is the output of a tool, and reports whether it is.
func (w *wrapper) takePart(b []byte, labels []string) bool {
	f, ok := matchingFormat(b, w.name)
	if !ok || !decodes(f, b) {
		return false
	}
	said := strings.Join(labels, " ")
	for _, p := range splitText(f, b, w.name) {
		p.above, p.heading = said, said
		w.parts = append(w.parts, p)
	}
	return true
}

// objectLabels returns the short texts in an object that may describe what was measured, as "key=value".
func objectLabels(object map[string]json.RawMessage) (labels []string) {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		var value any
		if json.Unmarshal(object[key], &value) != nil || fleeting.MatchString(key) {
			continue
		}
		if text, ok := value.(string); ok && len(text) <= longestLabel && adapter.Heading(text) != "" {
			labels = append(labels, fmt.Sprintf("%s=%s", key, adapter.Heading(text)))
		}
	}
	return labels
}
