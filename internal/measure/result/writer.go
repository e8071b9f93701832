package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// File is what a Writer needs of *os.File.
type File interface {
	io.Writer
	Sync() error
	Truncate(size int64) error
	Close() error
}

// Writer appends to a result file. Each line is on the disk when the call that wrote it returns. It is not for use by
// several goroutines.
type Writer struct {
	file File
	name string
	// size is where the last whole line ends.
	size int64
	// broken is the first error; the file takes no more lines after it.
	broken error
	// fresh is true until a Create'd file has its header: it is removed again if that never comes.
	fresh bool
}

// Create makes the result file called name, for this process alone. It fails if there is such a file, so that no
// result is ever overwritten; one that a killed run left before its first line holds none, and is taken over.
func Create(name string) (*Writer, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return takeOver(name)
	}
	if err != nil {
		return nil, fmt.Errorf("create result file: %w", err)
	}
	return begin(f, name)
}

func begin(f *os.File, name string) (*Writer, error) {
	if err := lock(f, name); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	w := NewWriter(f, name)
	w.fresh = true
	return w, nil
}

// takeOver begins in the file called name if nothing has been written to it.
func takeOver(name string) (*Writer, error) {
	exists := advice.With(fmt.Errorf("result file %q: %w", name, os.ErrExist),
		"go on with it by --resume, replace it by --force, or name another by -o")
	st, err := os.Stat(name)
	if err != nil || !st.Mode().IsRegular() || st.Size() > 0 {
		return nil, exists
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return nil, exists
	}
	w, err := begin(f, name)
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", err, os.ErrExist)
	}
	// Under the lock nobody else can have begun in the meantime.
	if st, err := f.Stat(); err != nil || st.Size() > 0 {
		return nil, errors.Join(exists, f.Close())
	}
	return w, nil
}

// NewWriter returns a Writer that appends to f, which is empty. name is what errors call it.
func NewWriter(f File, name string) *Writer { return &Writer{file: f, name: name} }

// Name returns the name that the file was opened by.
func (w *Writer) Name() string { return w.name }

// Header writes the first line.
func (w *Writer) Header(h Header) error {
	h.Schema = Schema
	if err := w.line(h); err != nil {
		return err
	}
	w.fresh = false
	return nil
}

// Append writes a finished or failed trial.
func (w *Writer) Append(r Record) error {
	r.Type = TypeTrial
	return w.line(r)
}

// Finish writes the line that closes an invocation.
func (w *Writer) Finish(e End) error {
	return w.line(EndLine{TypeEnd, e})
}

// line appends v and syncs. After an error the file is cut back to its last whole line, if the disk lets us, and
// every later call returns the same error.
func (w *Writer) line(v any) error {
	if w.broken != nil {
		return w.broken
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode a line of result file %q: %w", w.name, err)
	}
	if len(b) >= MaxLine {
		return fmt.Errorf("a line of result file %q would have %d bytes, more than the %d that are allowed", w.name, len(b), MaxLine)
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
			"what was measured before is kept; make room and go on with --resume")
		if cut := w.file.Truncate(w.size); cut != nil {
			w.broken = fmt.Errorf("%w; its last line may be cut short: %w", w.broken, cut)
		}
		return w.broken
	}
	w.size += int64(n)
	return nil
}

// Close releases the file. A file that Create made and that has no header is removed.
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
