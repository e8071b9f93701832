package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// stdoutName is the name of stdout as an output file.
const stdoutName = "-"

// writeOutput calls write with the file called name, or with stdout if name is "" or "-". It replaces a regular file only if
// write succeeds. It writes to a pipe or device directly.
func (p *program) writeOutput(name string, write func(io.Writer) error) error {
	if name == "" || name == stdoutName {
		return write(p.stdout)
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return usageError(err)
		}
		return errors.Join(write(f), f.Close())
	}
	_, err := writeAtomically(name, write)
	return err
}

// checkOutputNotInput fails if output is the same file as one of the inputs, even through a link.
func checkOutputNotInput(output string, inputs ...string) error {
	to, err := os.Stat(output)
	if err != nil {
		return nil //nolint:nilerr // there is nothing to replace
	}
	for _, name := range inputs {
		if from, err := os.Stat(name); err == nil && os.SameFile(from, to) {
			return usageError(advice.With(fmt.Errorf("-o %s is the input, which would be lost", output), "name another file by -o"))
		}
	}
	return nil
}

// writeAtomically writes a temporary file in the directory of name and renames it to name if write succeeds. It returns the
// size in bytes. If name is a link, it replaces the link's target.
func writeAtomically(name string, write func(io.Writer) error) (size int64, err error) {
	if err := result.Replaceable(name); err != nil {
		return 0, usageError(err)
	}
	if linked, err := filepath.EvalSymlinks(name); err == nil {
		name = linked
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		if wrong := (*fs.PathError)(nil); errors.As(err, &wrong) {
			err = wrong.Err // and not the name of the temporary file
		}
		return 0, usageError(fmt.Errorf("write %s: %w", name, err))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	buffered := bufio.NewWriterSize(f, 1<<20)
	err = errors.Join(write(buffered), buffered.Flush(), f.Chmod(0o644))
	if info, statErr := f.Stat(); statErr == nil {
		size = info.Size()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, err
	}
	return size, os.Rename(f.Name(), name)
}
