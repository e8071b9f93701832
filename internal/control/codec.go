package control

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// lineError is the error of a line that is not a message. The next Decode reads the line after it.
type lineError struct {
	// Line counts from 1.
	Line int
	Err  error
}

func (e *lineError) Error() string { return fmt.Sprintf("line %d is not a message: %v", e.Line, e.Err) }
func (e *lineError) Unwrap() error { return e.Err }

// errTooLong is what a lineError wraps when the line exceeds maxLine.
var errTooLong = fmt.Errorf("it is longer than %d bytes", maxLine)

// Decoder reads messages. It is for one goroutine.
type Decoder struct {
	r    *bufio.Reader
	line int
}

// NewDecoder returns a Decoder that reads r.
func NewDecoder(r io.Reader) *Decoder { return &Decoder{r: bufio.NewReaderSize(r, 64<<10)} }

// Decode returns the next message and skips empty lines. The error is a *lineError for a bad line, io.EOF at the end of
// the stream, and io.ErrUnexpectedEOF in the middle of a line.
func (d *Decoder) Decode() (Message, error) {
	for {
		line, err := d.nextLine()
		if err != nil {
			return Message{}, err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var m Message
		if err := json.Unmarshal(line, &m); err != nil {
			return Message{}, &lineError{Line: d.line, Err: err}
		}
		if err := m.check(); err != nil {
			return Message{}, &lineError{Line: d.line, Err: err}
		}
		return m, nil
	}
}

// nextLine returns one line without its end. It holds at most maxLine bytes, whatever the peer sends.
func (d *Decoder) nextLine() ([]byte, error) {
	var line []byte
	tooLong := false
	for {
		part, err := d.r.ReadSlice('\n')
		if len(line)+len(part) > maxLine {
			line, tooLong = nil, true
		}
		if !tooLong {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && (len(line) > 0 || tooLong):
			return nil, io.ErrUnexpectedEOF
		case err != nil:
			return nil, err
		}
		d.line++
		if tooLong {
			return nil, &lineError{Line: d.line, Err: errTooLong}
		}
		return line, nil
	}
}

// check returns an error for a message with an unknown type or without the field that its type needs. So no reader
// finds a nil field.
func (m Message) check() error {
	whole, known := map[messageType]bool{
		TypeHello: m.Hello != nil, TypePrepare: m.Prepare != nil, TypeReady: m.Ready != nil, TypeDone: m.Done != nil,
		TypeError: m.Error != nil, TypeLeave: m.Leave != nil, TypeStart: m.Start != nil, TypeReturn: true, TypeRolled: true,
		TypeStarted: true, TypeHeartbeat: true, TypeFinish: true, TypeCancel: true,
	}[m.Type]
	switch {
	case !known:
		return fmt.Errorf("unknown type %q", m.Type)
	case !whole:
		return fmt.Errorf("a %q without its contents", m.Type)
	}
	return nil
}

// Encoder writes messages; it may be used by several goroutines.
type Encoder struct {
	mu sync.Mutex
	w  io.Writer
}

// NewEncoder returns an Encoder that writes to w, one Write per message.
func NewEncoder(w io.Writer) *Encoder { return &Encoder{w: w} }

// Encode writes m as one line. It returns an error for a message that the other end would refuse, before anything is
// written.
func (e *Encoder) Encode(m Message) error {
	if err := m.check(); err != nil {
		return fmt.Errorf("send message: %w", err)
	}
	b, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("send %s: %w", m.Type, err)
	}
	if len(b)+1 > maxLine {
		return fmt.Errorf("send %s: %w", m.Type, errTooLong)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, err := e.w.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("send %s: %w", m.Type, err)
	}
	return nil
}
