package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// file is the part of *os.File that a Writer uses.
type file interface {
	io.Writer
	Sync() error
	Truncate(size int64) error
	Close() error
}

// Writer appends to a result file. Each line is on the disk when its call returns. It is for one goroutine.
type Writer struct {
	file file
	name string
	// size is the end of the last complete line.
	size int64
	// broken is the first error; after it, no more lines can be written.
	broken error
	// fresh is true until a new file has its header; Close removes a fresh file.
	fresh bool
	// replaces is true while the file has an earlier result, which Header deletes.
	replaces bool
}

// Create makes the result file called name, for this process alone. It fails if the file exists, so that no result is
// overwritten. It takes over an empty file, which a run leaves if it is killed before its first line.
func Create(name string) (*Writer, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return reuseEmptyFile(name)
	}
	if err != nil {
		return nil, fmt.Errorf("create result file: %w", err)
	}
	return newLockedWriter(f, name)
}

// Replace makes the result file called name, for this process alone. An existing file keeps its content until the header is
// written, so that a run that cannot begin deletes nothing. Replace fails if name is not a regular file, or while a process
// writes the file.
func Replace(name string) (*Writer, error) {
	if err := Replaceable(name); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open result file: %w", err)
	}
	w, err := newLockedWriter(f, name)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read result file: %w", err), f.Close())
	}
	w.replaces = st.Size() > 0
	w.fresh = !w.replaces
	return w, nil
}

func newLockedWriter(f *os.File, name string) (*Writer, error) {
	if err := lock(f, name); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	w := NewWriter(f, name)
	w.fresh = true
	return w, nil
}

// reuseEmptyFile opens the existing file called name for this process alone. It fails if the file is not empty or is not a
// regular file.
func reuseEmptyFile(name string) (*Writer, error) {
	exists := advice.With(fmt.Errorf("result file %q: %w", name, os.ErrExist),
		"continue it by --resume, replace it by --force, or name another by -o")
	st, err := os.Stat(name)
	if err != nil || !st.Mode().IsRegular() || st.Size() > 0 {
		return nil, exists
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return nil, exists
	}
	w, err := newLockedWriter(f, name)
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", err, os.ErrExist)
	}
	// Another process may have written to it before the lock.
	if st, err := f.Stat(); err != nil || st.Size() > 0 {
		return nil, errors.Join(exists, f.Close())
	}
	return w, nil
}

// NewWriter returns a Writer that appends to f, which must be empty. Errors call the file name.
func NewWriter(f file, name string) *Writer { return &Writer{file: f, name: name} }

// Header writes the first line. Before, it deletes an earlier result that the file replaces.
func (w *Writer) Header(h Header) error {
	h.Schema = Schema
	if w.replaces {
		if err := w.file.Truncate(0); err != nil {
			return fmt.Errorf("empty result file %q: %w", w.name, err)
		}
		w.fresh, w.replaces = true, false
	}
	if err := w.writeLine(h); err != nil {
		return err
	}
	w.fresh = false
	return nil
}

// Append writes a finished or failed trial. It writes any type other than TypeSampled and TypeCounted as TypeTrial.
func (w *Writer) Append(r Record) error {
	if r.Type != TypeSampled && r.Type != TypeCounted {
		r.Type = TypeTrial
	}
	return w.writeLine(r)
}

// Raised writes the cost of raising an instance.
func (w *Writer) Raised(r Raised) error {
	return w.writeLine(RaisedLine{TypeRaised, r})
}

// Finish writes the line that closes an invocation.
func (w *Writer) Finish(e End) error {
	return w.writeLine(EndLine{TypeEnd, e})
}

// writeLine appends v and syncs. After an error it truncates the file to its last complete line, if it can, and every later
// call returns the same error.
func (w *Writer) writeLine(v any) error {
	if w.broken != nil {
		return w.broken
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode a line of result file %q: %w", w.name, err)
	}
	if len(b) >= maxLine {
		return fmt.Errorf("result file %q: a line has %d bytes, more than the limit of %d", w.name, len(b), maxLine)
	}
	b = append(b, '\n')
	n, err := w.file.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err == nil {
		err = w.file.Sync()
	}
	if err != nil {
		w.broken = advice.With(fmt.Errorf("write result file %q: %w", w.name, err),
			"earlier trials are kept; free disk space, then continue with --resume")
		if cut := w.file.Truncate(w.size); cut != nil {
			w.broken = fmt.Errorf("%w; its last line may be cut short: %w", w.broken, cut)
		}
		return w.broken
	}
	w.size += int64(n)
	return nil
}

// Close releases the file. It removes a file that Create made and that has no header.
func (w *Writer) Close() error {
	err := w.file.Close()
	if w.fresh {
		err = errors.Join(err, os.Remove(w.name))
	}
	if err != nil {
		return fmt.Errorf("close result file %q: %w", w.name, err)
	}
	return nil
}
