package result

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// Resumed is a result file that a run continues.
type Resumed struct {
	*Writer
	// Start is the first line of the file.
	Start Header
	// Records are the records of the file, without their observations.
	Records []Record
	// Warning reports that the last line was cut and removed; "" if the file was complete.
	Warning string
}

// OpenResume opens the result file called name to append to it, for this process alone. It removes an incomplete last
// line, so that its trial is measured again. It fails if the file is missing or malformed, or while another process
// writes it.
func OpenResume(name string) (*Resumed, error) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, advice.With(fmt.Errorf("result file %q is not there, so there is nothing to resume", name), "leave out --resume to begin")
	}
	if err != nil {
		return nil, fmt.Errorf("open result file: %w", err)
	}
	res, err := resume(f, name)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return res, nil
}

func resume(f *os.File, name string) (*Resumed, error) {
	if err := lock(f, name); err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err == nil && st.Size() == 0 {
		return nil, advice.With(fmt.Errorf("result file %q is empty: the run was killed at its start", name), "leave out --resume to begin in it")
	}
	r, err := NewReader(f, name)
	if err != nil {
		return nil, err
	}
	if err := r.Header().Plan.Validate(); err != nil {
		return nil, fmt.Errorf("result file %q has a plan that is not valid: %w", name, err)
	}
	c, err := r.readContents()
	if err != nil {
		return nil, err
	}
	res := &Resumed{Start: c.Header, Records: c.Records, Warning: c.Warning, Writer: NewWriter(f, name)}
	if err := f.Truncate(r.Offset()); err != nil {
		return nil, fmt.Errorf("cut result file %q after its last whole line: %w", name, err)
	}
	if _, err := f.Seek(r.Offset(), io.SeekStart); err != nil {
		return nil, fmt.Errorf("seek to the end of result file %q: %w", name, err)
	}
	res.size = r.Offset()
	return res, nil
}

// Complete reports whether the last run measured every repetition of the plan.
func (r *Resumed) Complete() bool {
	most := 0
	for _, rec := range r.Records {
		most = max(most, rec.Repetition)
	}
	if most == 0 {
		return false
	}
	p, end := r.Start.Plan, r.Records[len(r.Records)-1].End
	return end != nil && (end.Reason == Complete && most >= p.Repetitions ||
		end.Reason == Exhausted && most >= max(p.Repetitions, p.MaxRepetitions))
}

// Replan replaces the plan in the file, closes r and returns the file opened again; on an error it returns r. A kill at
// any moment leaves either the old file or the new one.
func (r *Resumed) Replan(p plan.Plan) (*Resumed, error) {
	f, err := os.CreateTemp(filepath.Dir(r.name), "."+filepath.Base(r.name)+".*")
	if err != nil {
		return r, fmt.Errorf("write result file %q anew: %w", r.name, err)
	}
	h := r.Start
	h.Plan = p
	err = errors.Join(NewWriter(f, r.name).Header(h), r.copyRecords(f), f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), r.name)
	}
	if err != nil {
		return r, errors.Join(fmt.Errorf("write result file %q anew: %w", r.name, err), os.Remove(f.Name()))
	}
	again, err := OpenResume(r.name)
	if err != nil {
		return r, err
	}
	again.Warning = r.Warning
	return again, r.Close()
}

// copyRecords copies every line of the file except the header.
func (r *Resumed) copyRecords(to io.Writer) error {
	f, err := os.Open(r.name)
	if err != nil {
		return err
	}
	defer f.Close() // it was only read
	lines := bufio.NewReader(f)
	for header := true; header; {
		switch _, err := lines.ReadSlice('\n'); {
		case err == nil:
			header = false
		case !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
	_, err = io.Copy(to, lines)
	return err
}

// SamePlan returns nil if p is the plan of the file, otherwise an error that names the differences.
func (h Header) SamePlan(p plan.Plan) error {
	names := h.Plan.Differ(p)
	if len(names) == 0 {
		return nil
	}
	return advice.With(fmt.Errorf("the plan differs from the one in the result file in: %s", strings.Join(names, ", ")),
		"use the file's plan, or no plan; or name another file by -o")
}

// Replaceable fails if name exists and is not a regular file, such as /dev/null.
func Replaceable(name string) error {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file, and is not replaced", name)
	}
	return nil
}
