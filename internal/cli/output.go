package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// timeMark in the name of a result file is replaced by the time at which the run began. timeLayout is the format of
// that time, in UTC, so that names sort by time.
const (
	timeMark   = "{time}"
	timeLayout = "20060102T150405Z"
)

// series is a pattern of file names with one timeMark: the directory, and the texts before and after the mark. The
// names of the files of a series differ only in the time.
type series struct{ dir, before, after string }

// parseSeries splits name at timeMark; ok is false if it has none. It fails if timeMark is in the directory, or occurs twice.
func parseSeries(name string) (s series, ok bool, err error) {
	dir, base := filepath.Split(name)
	if strings.Contains(dir, timeMark) || strings.Count(base, timeMark) > 1 {
		return s, false, fmt.Errorf("output %q: %s stands once, and in the name of the file", name, timeMark)
	}
	before, after, ok := strings.Cut(base, timeMark)
	return series{dir, before, after}, ok, nil
}

// nameAt returns the name of the result that began at t.
func (s series) nameAt(t time.Time) string {
	return s.dir + s.before + t.UTC().Format(timeLayout) + s.after
}

// existingNames returns the names of the existing results of the series, oldest first and without their directory.
func (s series) existingNames() ([]string, error) {
	entries, err := os.ReadDir(filepath.Clean(s.dir + "."))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() && s.matchesName(e.Name()) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// matchesName reports whether base is a name that nameAt can return.
func (s series) matchesName(base string) bool {
	rest, ok := strings.CutPrefix(base, s.before)
	stamp, ended := strings.CutSuffix(rest, s.after)
	if !ok || !ended {
		return false
	}
	t, err := time.Parse(timeLayout, stamp)
	return err == nil && t.Format(timeLayout) == stamp
}

// prune removes all but the newest keep results.
func (s series) prune(keep int) error {
	names, err := s.existingNames()
	if err != nil {
		return fmt.Errorf("look for old results: %w", err)
	}
	var failed []error
	for _, name := range names[:max(0, len(names)-keep)] {
		if err := os.Remove(s.dir + name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, fmt.Errorf("remove old result: %w", err))
		}
	}
	return errors.Join(failed...)
}

// runDated runs the measurement. It first replaces a timeMark in the name of the output by the current time. Afterwards it
// removes the oldest results of that series beyond --keep.
func (a *measurement) runDated(cmd *cobra.Command) error {
	s, marked, err := parseSeries(a.output)
	switch {
	case err != nil:
		return commandUsageError(cmd, err)
	case cmd.Flags().Changed("keep") && !marked:
		return commandUsageError(cmd, fmt.Errorf("--keep is for an output with %s in its name, and that is %q", timeMark, a.output))
	case cmd.Flags().Changed("keep") && a.keep < 1:
		return commandUsageError(cmd, fmt.Errorf("--keep %d: want at least 1, the result of this run", a.keep))
	case marked && a.resume:
		return commandUsageError(cmd, fmt.Errorf("--resume needs the name of one file, and %q is that of a new one", a.output))
	case !marked:
		return a.run(cmd)
	}
	a.output = s.nameAt(time.Now())
	err = a.run(cmd)
	if a.keep > 0 && !a.dryRun {
		if err := s.prune(a.keep); err != nil {
			fmt.Fprintf(a.stderr, "cnibench: %v\n", err)
		}
	}
	return err
}
