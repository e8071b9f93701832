package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// stdoutName is the name of stdout as an output file.
const stdoutName = "-"

// writeTo has write fill the file called name, or stdout if that is "" or "-". A file is replaced only if all went well. A pipe
// or device is written to directly.
func (p *program) writeTo(name string, write func(io.Writer) error) error {
	if name == "" || name == stdoutName {
		return write(p.stdout)
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return usage(err)
		}
		return errors.Join(write(f), f.Close())
	}
	_, err := writeWhole(name, write)
	return err
}

// keepInputs refuses an output that is one of the inputs.
func keepInputs(output string, inputs ...string) error {
	to, err := os.Stat(output)
	if err != nil {
		return nil //nolint:nilerr // there is nothing to replace
	}
	for _, name := range inputs {
		if from, err := os.Stat(name); err == nil && os.SameFile(from, to) {
			return usage(advice.With(fmt.Errorf("-o %s is the input, which would be lost", output), "name another file by -o"))
		}
	}
	return nil
}

// cannotWrite names the file that was asked for, and not a temporary one.
func cannotWrite(name string, err error) error {
	if wrong := (*fs.PathError)(nil); errors.As(err, &wrong) {
		err = wrong.Err
	}
	return usage(fmt.Errorf("write %s: %w", name, err))
}
