package external

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/external/iperf3"
	"github.com/cnibench/cnibench/internal/vocab/number"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// part is the output of a tool within a log.
type part struct {
	// source is the prefix of its lines in the log, "" for none.
	source string
	format adapter.Format
	body   []byte
	// above is the text before a document, which no decoder reads. heading is what above says about the measurement.
	above, heading string
}

// findLogParts returns the output of tools in a log: lines with a prefix, or JSON between other text or within the JSON of
// another program. name is the wanted format, "" for any. It also returns the prefixes of lines without such output.
func findLogParts(b []byte, name string) (parts []part, without []string) {
	if len(bytes.TrimSpace(b)) == 0 {
		return nil, nil
	}
	for _, s := range splitSources(string(b)) {
		found := outputParts([]byte(s.text), name)
		if len(found) == 0 { // after the prefix, all lines may have another one
			found = outputParts([]byte(trimCommonPrefix(s.text)), name)
		}
		for i := range found {
			found[i].source = s.prefix
		}
		parts = append(parts, found...)
		if len(found) == 0 && strings.TrimSpace(s.text) != "" && s.prefix != "" {
			without = append(without, s.prefix)
		}
	}
	return parts, without
}

// outputParts returns the output of tools in text without prefixes: in its documents, and in the text between them. name is
// the wanted format, "" for any.
func outputParts(b []byte, name string) (parts []part) {
	docs, rest := jsonDocuments(b)
	for _, p := range docs {
		f, ok := matchingFormat(p.body, name)
		if inner := wrappedOutput(p.body, name); len(inner) > 0 && !(ok && decodes(f, p.body)) {
			for i := range inner {
				inner[i].above = strings.TrimSpace(p.above + " " + inner[i].above)
				inner[i].heading = strings.TrimSpace(p.heading + " " + inner[i].heading)
			}
			parts = append(parts, inner...)
		} else if ok {
			p.format = f
			parts = append(parts, p)
		}
	}
	if len(parts) == 0 {
		if f, ok := matchingFormat(b, name); ok {
			return splitText(f, b, name)
		}
		return wrappedOutput(b, name)
	}
	if f, ok := matchingFormat(rest, name); ok && decodes(f, rest) {
		for i := range parts {
			parts[i].above, parts[i].heading = "", ""
		}
		parts = append(parts, splitText(f, rest, name)...)
	}
	return parts
}

// lines are the formats that are read line by line and ignore the lines of others.
var lines = []string{"iperf3-text", "netperf", "wrk", "hey", "ping", "sockperf", "ab", "qperf", "uperf", "vegeta"}

// tables are the formats of tables, which people paste one below another.
var tables = []string{"knb", "cilium-perf", "perf-tests"}

// splitAtHeadings splits a text with tables at the headings above the tables. Headings are marked lines (IsMarked), and lines
// before the opening fence of a code block in Markdown.
func splitAtHeadings(f adapter.Format, b []byte) (parts []part) {
	p := part{format: f}
	all := strings.SplitAfter(string(b), "\n")
	isFence := func(i int) bool { return i < len(all) && strings.HasPrefix(strings.TrimSpace(all[i]), "```") }
	open := false
	for i, line := range all {
		open = open != isFence(i)
		fenced := !open && isFence(i+1)
		if heading := adapter.Heading(line); heading != "" && (fenced || adapter.IsMarked(strings.TrimSpace(line))) {
			if f.Match(p.body) {
				parts, p.body = append(parts, p), nil
			}
			p.heading = heading
		}
		p.body = append(p.body, line...)
	}
	if len(parts) > 0 && !f.Match(p.body) {
		return parts
	}
	return append(parts, p)
}

// splitText returns b, a text in the format f, as parts. Tables are split at their headings. If b mixes formats of lines,
// there is a part for each, all with the whole text. With name, the wanted format, there is only the part for f.
func splitText(f adapter.Format, b []byte, name string) []part {
	parts := []part{{format: f, body: b}}
	switch {
	case adapter.StartsJSON(b):
		return parts
	case slices.Contains(tables, f.Name):
		return splitAtHeadings(f, b)
	case name != "" || !slices.Contains(lines, f.Name):
		return parts
	}
	for other := range formats {
		if other.Name != f.Name && slices.Contains(lines, other.Name) && other.Match(b) && decodes(other, b) {
			parts = append(parts, part{format: other, body: b})
		}
	}
	return parts
}

// decodes reports whether f can decode b into a valid batch.
func decodes(f adapter.Format, b []byte) bool {
	batch, err := f.Decode(b)
	return err == nil && len(batch.Readings) > 0 && batch.Check() == nil
}

// matchingFormat returns the first format that matches b; false if there is none. If name is not "", it tries only that
// format.
func matchingFormat(b []byte, name string) (adapter.Format, bool) {
	for f := range formats {
		if f.Match != nil && (name == "" || f.Name == name) && f.Match(b) {
			return f, true
		}
	}
	return adapter.Format{}, false
}

// source has the lines of a log that begin with the same prefix. text is these lines without it.
type source struct {
	prefix string
	text   string
	lines  strings.Builder
}

var (
	colours = pattern.New("\x1b\\[[0-9;]*m")
	// origin matches a prefix that names where a line is from: of kubectl logs --prefix, and of compose.
	origin = pattern.New(`^(\[pod/[^\]]+\]|[A-Za-z0-9][A-Za-z0-9_.-]* +\|) ?`)
	// objects matches the start of a list of objects.
	objects = pattern.New(`^\s*\[\s*\{`)
	// times matches what kubectl logs --timestamps, the runtime's log, iperf3 --timestamps and the journal put before a line.
	times = pattern.New(`^(?:1\d{9}(?:\.\d+)? +|\d{4}-\d{2}-\d{2}[T ][0-9:.,]+(?:Z|[+-]\d{2}:?\d{2})? (?:std(?:out|err) [FP] )?|[A-Z][a-z]{2} [A-Z][a-z]{2} +\d+ [0-9:]{8} \d{4} |[A-Z][a-z]{2} +\d+ [0-9:]{8} \S+ [^ :]+: |\[?\d{2}:\d{2}:\d{2}(?:[.,]\d+)?\]?[: ] *|\[? *\d+\.\d{6}\]? +)`)
)

// splitSources splits a log by the prefixes of its lines. A log without a known prefix is one source, without the text that
// all its lines begin with. It returns nil for more than adapter.MaxNames prefixes.
func splitSources(text string) (found []*source) {
	at := map[string]int{}
	known := false
	text = colours.ReplaceAllString(unwrapJSONLog(text), "")
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		rest := times.ReplaceAllString(line, "")
		prefix := strings.TrimSpace(origin.Regexp().FindString(rest))
		rest = times.ReplaceAllString(origin.ReplaceAllString(rest, ""), "")
		known = known || rest != line
		i, ok := at[prefix]
		if !ok {
			i = len(found)
			if i == adapter.MaxNames {
				return nil
			}
			at[prefix] = i
			found = append(found, &source{prefix: prefix})
		}
		found[i].lines.WriteString(rest + "\n")
	}
	if !known {
		return []*source{{text: trimCommonPrefix(text)}}
	}
	for _, s := range found {
		s.text = s.lines.String()
	}
	return found
}

// unwrapJSONLog returns the messages of a log whose lines are JSON objects. Docker's json-file driver, stern and Loki write
// such logs. It returns other text unchanged.
func unwrapJSONLog(text string) string {
	if !strings.HasPrefix(text, `{"`) {
		return text
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		var entry struct {
			Log, Message, Line     *string
			PodName, ContainerName string
		}
		if strings.TrimSpace(line) == "" {
			continue
		}
		if json.Unmarshal([]byte(line), &entry) != nil {
			return text
		}
		said := cmp.Or(entry.Log, entry.Message, entry.Line)
		if said == nil {
			return text
		}
		if entry.PodName != "" {
			fmt.Fprintf(&out, "[pod/%s/%s] ", entry.PodName, entry.ContainerName)
		}
		out.WriteString(strings.TrimSuffix(*said, "\n") + "\n")
	}
	return out.String()
}

// trimCommonPrefix removes the prefix that all lines share. The prefix ends at its last space, tab or one of ]:>|. It
// ignores blank lines, and returns a text of one line unchanged.
func trimCommonPrefix(text string) string {
	common, first, single := "", true, true
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.TrimSpace(line) == "":
		case first:
			common, first = line, false
		default:
			single = false
			n := 0
			for n < min(len(common), len(line)) && common[n] == line[n] {
				n++
			}
			common = common[:n]
		}
	}
	common = common[:strings.LastIndexAny(common, " ]:>|\t")+1]
	if single || common == "" || strings.TrimSpace(common) == "[" {
		return text
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(strings.TrimPrefix(line, common))
	}
	return out.String()
}

// jsonDocuments returns the JSON documents of b, each with the text above it. A document is an object or a list of objects
// that begins a line; documents without text between them are one part. between is all other text. If a document is cut off,
// it returns nothing, so that the fault is reported.
func jsonDocuments(b []byte) (parts []part, between []byte) {
	var above, headings []string
	var heading string // of a part and of those behind it up to the next heading
	fresh := true
	for len(b) > 0 {
		line, rest, _ := bytes.Cut(b, []byte("\n"))
		text := bytes.TrimSpace(line)
		if bytes.HasPrefix(text, []byte("{")) || bytes.HasPrefix(text, []byte("[")) && objects.Match(b) {
			d := json.NewDecoder(bytes.NewReader(b))
			var doc json.RawMessage
			err := d.Decode(&doc)
			switch {
			case err == nil && (fresh || len(above) > 0):
				heading = cmp.Or(strings.Join(headings, " "), heading)
				parts = append(parts, part{above: strings.Join(above, " "), heading: heading})
				fallthrough
			case err == nil:
				p := &parts[len(parts)-1]
				p.body = append(append(p.body, doc...), '\n')
				b, above, headings, fresh = b[d.InputOffset():], nil, nil, false
				continue
			case errors.Is(err, io.ErrUnexpectedEOF):
				return nil, nil
			}
		}
		if len(text) > 0 && len(above) < adapter.MaxNames && !iperf3.IsDebug(text) {
			above = append(above, string(text))
			adapter.AddName(&headings, adapter.Heading(string(text)))
		}
		between = append(append(between, line...), '\n')
		b = rest
	}
	return parts, between
}

// decodeParts decodes the parts of a log into one batch. It fails if no part can be decoded; otherwise it lists parts that
// cannot be decoded, and the prefixes in without, as left out.
func decodeParts(parts []part, without []string) (Batch, error) {
	var all Batch
	var errs []error
	for _, p := range parts {
		b, err := p.format.Decode(p.body)
		if b, err = checkBatch(p.format, b, err); err != nil {
			errs = append(errs, sourceError(p.source, err))
			continue
		}
		if p.above != "" {
			b.LeaveOut("text between the documents: %s", adapter.Quoted(p.above))
		}
		for i := range b.Readings {
			b.Readings[i].Above(p.heading)
		}
		all.Join(b)
	}
	if len(all.Readings) == 0 {
		return Batch{}, errors.Join(errs...)
	}
	for _, err := range errs {
		all.LeaveOut("%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	var from []string
	for _, p := range parts {
		adapter.AddName(&from, p.source)
	}
	if len(from) > 1 {
		all.LeaveOut("the prefixes of lines: runs of %s are counted as alike", number.Few(from))
	}
	for _, s := range without {
		all.LeaveOut("the lines of %s: not the output of a supported tool", s)
	}
	return all, nil
}

func sourceError(source string, err error) error {
	if source == "" {
		return err
	}
	return fmt.Errorf("%s: %w", source, err)
}
