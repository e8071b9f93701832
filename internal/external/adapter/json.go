package adapter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// StartsJSON says whether b begins with an object or a list.
func StartsJSON(b []byte) bool {
	b = bytes.TrimLeft(b, " \t\r\n\ufeff")
	return len(b) > 0 && (b[0] == '{' || b[0] == '[')
}

// EachItem reads a JSON list item by item, so that a list of millions is not held at once. No list is an empty one.
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

// Alone refuses a second result behind the one that d has read; text behind it may be a tool's last words.
func Alone(b []byte, d *json.Decoder) error {
	if StartsJSON(b[min(d.InputOffset(), int64(len(b))):]) {
		return fmt.Errorf("line %d: a second result begins: put each into its own file", LineAt(b, d.InputOffset()))
	}
	return nil
}

// LineAt returns the number of the line of b that holds offset.
func LineAt(b []byte, offset int64) int {
	return 1 + bytes.Count(b[:min(max(offset, 0), int64(len(b)))], []byte("\n"))
}

// JSONError says in which line JSON is wrong, and what cut JSON is.
func JSONError(b []byte, offset int64, err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		offset = max(offset, syntax.Offset)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || syntax != nil && int(syntax.Offset) >= len(bytes.TrimSpace(b)) {
		return fmt.Errorf("line %d: it is cut in the middle", LineAt(b, int64(len(b))))
	}
	return fmt.Errorf("line %d: %w", LineAt(b, offset), err)
}
