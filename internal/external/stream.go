package external

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// Stream is a result that is read record by record. It is a result of cnibench, read in bounded memory, or the converted
// output of another tool. Such output has at most adapter.MaxInput bytes.
type Stream struct {
	// Header is the header of the result.
	Header result.Header
	// ours is nil for the output of another tool, whose records are in records.
	ours    *result.Reader
	records []result.Record
	close   func() error
}

// headSize is how many bytes of a file are read to decide whether it is a result of cnibench.
const headSize = 4096

// OpenStream opens the file or folder called name: a result of cnibench, or the output of a tool that names profile, path
// and workload. It fails for other output: import adds what is missing.
func OpenStream(name string) (*Stream, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, prefixError(name, adapter.Cause(err))
	}
	if st, err := f.Stat(); err == nil && st.IsDir() {
		b, err := Open(name, "")
		return newBatchStream(b, name, errors.Join(err, f.Close()))
	}
	s, err := NewStream(f, name)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	s.close = f.Close
	return s, nil
}

// NewStream reads r like OpenStream reads a file. name is the name of the input in errors. The caller closes r.
func NewStream(r io.Reader, name string) (*Stream, error) {
	head := bufio.NewReaderSize(r, headSize)
	b, err := head.Peek(headSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, prefixError(name, adapter.Cause(err))
	}
	if !isOwnResult(b) {
		unpacked, _ := unpackGzip(b, headSize) // it ends early, as b does
		if isOwnResult(plainText(b)) || isOwnResult(unpacked) {
			return nil, prefixError(name, advice.With(errors.New("a result of cnibench that is packed, or in another encoding than UTF-8"), "unpack it; save it as UTF-8 without a byte order mark"))
		}
		batch, err := Read(head, name, "")
		return newBatchStream(batch, name, err)
	}
	reader, err := result.NewReader(head, name)
	if err != nil {
		return nil, err
	}
	return &Stream{Header: reader.Header(), ours: reader}, nil
}

func newBatchStream(b Batch, name string, err error) (*Stream, error) {
	if err != nil {
		return nil, err
	}
	if err := (Label{}).Apply(filepath.Base(name), &b); err != nil {
		return nil, err
	}
	c, err := Contents(b)
	return &Stream{Header: c.Header, records: c.Records}, err
}

// Slim makes Each leave out the observations of the two sides, whose histograms take 200 KiB each.
func (s *Stream) Slim() {
	if s.ours != nil {
		s.ours.Slim()
	}
}

// Each calls do with every record; an error of do ends the reading. do must not keep the record.
func (s *Stream) Each(do func(*result.Record) error) error {
	if s.ours != nil {
		return s.ours.Each(do)
	}
	for i := range s.records {
		if err := do(&s.records[i]); err != nil {
			return err
		}
	}
	return nil
}

// Warning returns a warning if the last line of a result was cut off, and "" if the line was complete. Call it after
// Each.
func (s *Stream) Warning() string {
	if s.ours != nil {
		return s.ours.Warning()
	}
	return ""
}

// Close closes the file that OpenStream opened. It does nothing for other streams.
func (s *Stream) Close() error {
	if s.close == nil {
		return nil
	}
	return s.close()
}
