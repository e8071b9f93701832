package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/cnibench/cnibench/internal/conduct/run"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// maxSize is the largest result that is read.
const maxSize = 1 << 30

// tailSize is how much of the end of a file is searched for the line that ends a run.
const tailSize = 64 << 10

// Names of what a result can be.
const (
	finished    = "finished"
	interrupted = "interrupted"
	unfinished  = "unfinished"
	unreadable  = "unreadable"
)

var states = []string{finished, interrupted, unfinished, unreadable}

// head is what the first and the last line of a result say.
type head struct {
	// Plan, Environment and Origin are printable.
	Plan, Environment, Origin string
	Created                   time.Time
	State                     string
	// Why says why it is unreadable.
	Why string
}

// series is what results follow one another in.
type series struct{ plan, environment string }

func (h head) series() series { return series{h.Plan, h.Environment} }

// readHead reads the head of f.
func readHead(f file) head {
	h, err := f.head()
	if err != nil {
		return broken(err)
	}
	return h
}

func broken(err error) head { return head{State: unreadable, Why: number.Clean(err.Error())} }

func (f file) head() (head, error) {
	opened, info, err := f.open()
	if err != nil {
		return head{}, err
	}
	defer opened.Close() // it was only read
	if info.Size() > maxSize {
		return head{}, fmt.Errorf("it has %d bytes, more than the %d that are served: cnibench report reads it", info.Size(), maxSize)
	}
	r, err := result.NewReader(opened, f.name)
	if err != nil {
		return head{}, err
	}
	first := r.Header()
	h := head{
		Plan: number.Clean(first.Plan.Name), Environment: number.Clean(first.Plan.Environment), Origin: number.Clean(first.Origin),
		Created: first.Created, State: unfinished,
	}
	reason, err := ending(opened, info.Size())
	if err != nil {
		return head{}, err
	}
	switch reason {
	case "":
	case run.Interrupted:
		h.State = interrupted
	default:
		h.State = finished
	}
	return h, nil
}

// ending is the reason in the last line of f, which has size bytes; "" if that is not the end of a run.
func ending(f *os.File, size int64) (string, error) {
	from := max(0, size-tailSize)
	tail := make([]byte, size-from)
	if _, err := f.ReadAt(tail, from); err != nil && !errors.Is(err, io.EOF) {
		return "", reason(err)
	}
	line, whole := bytes.CutSuffix(tail, []byte("\n"))
	if !whole {
		return "", nil
	}
	line = line[bytes.LastIndexByte(line, '\n')+1:]
	var last struct {
		Type string      `json:"type"`
		End  *result.End `json:"end"`
	}
	if json.Unmarshal(line, &last) != nil || last.Type != result.TypeEnd || last.End == nil {
		return "", nil
	}
	return last.End.Reason, nil
}
