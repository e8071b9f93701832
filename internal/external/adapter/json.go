package adapter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// StartsJSON reports whether b begins with an object or a list.
func StartsJSON(b []byte) bool {
	b = bytes.TrimLeft(b, " \t\r\n\ufeff")
	return len(b) > 0 && (b[0] == '{' || b[0] == '[')
}

// EachItem calls take with each item of the JSON list b. It decodes one item at a time, to save memory. A missing list
// counts as empty. It fails for more than MaxReadings items.
func EachItem[T any](b []byte, take func(T) error) error {
	d := json.NewDecoder(bytes.NewReader(b))
	open, err := d.Token()
	if errors.Is(err, io.EOF) || err == nil && open == nil {
		return nil
	}
	if err != nil {
		return JSONError(b, d.InputOffset(), err)
	}
	if open != json.Delim('[') {
		return errors.New("want a list")
	}
	for n := 1; d.More(); n++ {
		var item T
		if err := d.Decode(&item); err != nil {
			return JSONError(b, d.InputOffset(), err)
		}
		if n > MaxReadings {
			return fmt.Errorf("more than %d items", MaxReadings)
		}
		if err := take(item); err != nil {
			return fmt.Errorf("item %d: %w", n, err)
		}
	}
	if _, err := d.Token(); err != nil {
		return JSONError(b, d.InputOffset(), err)
	}
	return Alone(b, d)
}

// Alone fails if b has another JSON object or list after the part that d has read. Other text may follow, such as messages.
func Alone(b []byte, d *json.Decoder) error {
	if StartsJSON(b[min(d.InputOffset(), int64(len(b))):]) {
		return fmt.Errorf("line %d: a second result begins: put each into its own file", LineAt(b, d.InputOffset()))
	}
	return nil
}

// LineAt returns the number of the line of b that contains offset, counted from 1.
func LineAt(b []byte, offset int64) int {
	return 1 + bytes.Count(b[:min(max(offset, 0), int64(len(b)))], []byte("\n"))
}

// JSONError returns err, an error in the JSON text b at offset, with the number of its line. If the JSON is cut off, it
// returns an error that says so.
func JSONError(b []byte, offset int64, err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		offset = max(offset, syntax.Offset)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || syntax != nil && int(syntax.Offset) >= len(bytes.TrimSpace(b)) {
		return fmt.Errorf("line %d: it is cut in the middle", LineAt(b, int64(len(b))))
	}
	return fmt.Errorf("line %d: %w", LineAt(b, offset), Typed(err))
}

// Typed returns an error that names the field whose value has the wrong type, and any other error unchanged.
func Typed(err error) error {
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return fmt.Errorf("%s is a %s, where this format has another type", wrong.Field, wrong.Value)
	}
	return err
}

// Documents calls take with each JSON document in b; if one is a list, with each of its items. It fails for an object with
// a duplicate key (see Twice), and for more than MaxReadings documents.
func Documents[T any](b []byte, take func(T) error) error {
	if err := Twice(b); err != nil {
		return err
	}
	b = bytes.TrimPrefix(b, []byte("\ufeff"))
	d := json.NewDecoder(bytes.NewReader(b))
	for range MaxReadings {
		var raw json.RawMessage
		err := d.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return nil
		}
		var doc T
		switch {
		case err != nil:
		case raw[0] == '[':
			err = EachItem(raw, take)
		default:
			if err = json.Unmarshal(raw, &doc); err == nil {
				err = take(doc)
			}
		}
		if err != nil {
			return JSONError(b, d.InputOffset(), err)
		}
	}
	return fmt.Errorf("more than %d documents", MaxReadings)
}

// Definite is an error in an input whose format is certain: trying other formats would hide the error.
type Definite struct{ error }

// Twice returns a Definite error if an object of the JSON documents in b has a key twice with different values: a
// decoder cannot know which value is right. Keys that differ only in case count as equal. Allowed paths, such as
// "end.sum", are skipped with everything below them. Text that is not JSON is left to the decoder.
func Twice(b []byte, allowed ...string) error {
	s := repeats{b: bytes.TrimPrefix(b, []byte("\ufeff")), allowed: allowed}
	s.d = json.NewDecoder(bytes.NewReader(s.b))
	for s.readValue("") {
	}
	return s.found
}

// repeats searches JSON for keys that an object has twice. found is the error about the first such key.
type repeats struct {
	b       []byte
	d       *json.Decoder
	allowed []string
	found   error
	depth   int
}

// mostDepth bounds how deeply arrays and objects are nested, as in encoding/json.
const mostDepth = 10_000

// readValue reads one value at path. It returns false if nothing more can be read, or a fault was found.
func (s *repeats) readValue(path string) bool {
	s.depth++
	defer func() { s.depth-- }()
	t, err := s.d.Token()
	switch {
	case err != nil || s.found != nil || s.depth > mostDepth:
		return false
	case t == json.Delim('['):
		for s.d.More() {
			if !s.readValue(path) {
				return false
			}
		}
	case t == json.Delim('{'):
		if !s.readObject(path) {
			return false
		}
	default:
		return true
	}
	_, err = s.d.Token() // the closing bracket
	return err == nil
}

// readObject reads the keys and values of an object at path. It returns false if an object is cut off, or a fault was found.
func (s *repeats) readObject(path string) bool {
	values := map[string][]byte{}
	for s.d.More() {
		t, err := s.d.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return false
		}
		at := strings.TrimPrefix(path+"."+name, ".")
		from := s.d.InputOffset()
		if !s.readValue(at) {
			return false
		}
		value := bytes.TrimLeft(s.b[from:s.d.InputOffset()], " \t\r\n:")
		was, twice := values[strings.ToLower(name)]
		if twice && !bytes.Equal(was, value) && !s.allows(at) {
			s.found = Definite{fmt.Errorf("line %d: an object has the key %s twice (%s), with different values: correct the file, or "+
				"write its numbers into a CSV file", LineAt(s.b, from), Quoted(name), at)}
			return false
		}
		values[strings.ToLower(name)] = value
	}
	return true
}

func (s *repeats) allows(path string) bool {
	return slices.ContainsFunc(s.allowed, func(a string) bool { return path == a || strings.HasPrefix(path, a+".") })
}

// Values returns the values of a key of the JSON object b, in their order: several if the key is repeated.
func Values(b []byte, key string) (values []json.RawMessage) {
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			return values
		}
		if name == key {
			values = append(values, value)
		}
	}
	return values
}

// Unread returns the keys of the JSON object b that are not in known, as sorted "key=value". It skips lists, objects, and
// the values "", 0 and false.
func Unread(b []byte, known ...string) (conditions []string) {
	var all map[string]json.RawMessage
	if json.Unmarshal(b, &all) != nil {
		return nil
	}
	for key, raw := range all {
		var value any
		if slices.Contains(known, key) || json.Unmarshal(raw, &value) != nil {
			continue
		}
		switch v := value.(type) {
		case string:
			if v != "" {
				conditions = append(conditions, key+"="+v)
			}
		case float64:
			if v != 0 {
				conditions = append(conditions, key+"="+strconv.FormatFloat(v, 'f', -1, 64))
			}
		case bool:
			if v {
				conditions = append(conditions, key+"=true")
			}
		}
	}
	slices.Sort(conditions)
	return conditions
}
