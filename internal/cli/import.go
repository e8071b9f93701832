package cli

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/external"
	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

const importLong = `Convert other tools' output to a result file, for report, compare and check. The contents tell the format.

%s
Most output names neither profile nor path: give them for all files, or for each as PROFILE=FILE or PROFILE:PATH=FILE.
Several files of one profile, path and workload are its repetitions. Failed trials stay failed, and numbers that were not
measured stay absent. One line on stderr says what was left out. The file - is stdin. Nothing in an archive is executed.`

const importExample = `  cnibench import examples/published/*.csv -o published.jsonl
  iperf3 -c 10.42.1.5 -J |
    cnibench import --profile canal --path pod-to-pod/cross-node -`

// importing is one invocation of import.
type importing struct {
	*program
	from, profile, path, workload string
	baseline, output              string
	force                         bool
}

func importCommand(p *program) *cobra.Command {
	a := importing{program: p}
	names, about := external.Formats()
	var listing strings.Builder
	for i := range names {
		fmt.Fprintf(&listing, "  %-13s %s\n", names[i], about[i])
	}
	cmd := &cobra.Command{
		Use: "import [PROFILE[:PATH]=]FILE...", Short: "Convert other tools' output to a result file",
		Long: fmt.Sprintf(importLong, listing.String()), Example: importExample, Args: newArgumentCheck(1, math.MaxInt, "one or more files"),
		RunE: func(_ *cobra.Command, args []string) error { return a.run(args) },
	}
	f := cmd.Flags()
	f.StringVar(&a.from, "from", "", "`format` of the files, instead of the one that their contents tell")
	f.StringVar(&a.profile, "profile", "", "`profile` that was measured; any name will do")
	f.StringVar(&a.path, "path", "", "`path` that was measured (cnibench list paths)")
	f.StringVar(&a.workload, "workload", "", "`workload` that was measured, where the output does not say all of it")
	f.StringVar(&a.baseline, "baseline", "", "`profile` to compare with")
	f.StringVarP(&a.output, "output", "o", DefaultResult, "result `file`")
	f.BoolVar(&a.force, "force", false, "replace the result file if there is one")
	completeFlag(cmd, "from", func() []string { return names })
	completeFlag(cmd, "profile", profile.Names)
	completeFlag(cmd, "path", fixedWords(plan.Texts(plan.Paths)...))
	completeFlag(cmd, "workload", fixedWords(plan.Texts(plan.Kinds())...))
	completeFlag(cmd, "baseline", profile.Names)
	return cmd
}

// source is one file to import, with what the arguments say about it.
type source struct {
	file  string
	label external.Label
}

func (a *importing) run(args []string) error {
	sources, err := a.parseSources(args)
	if err != nil {
		return usageError(err)
	}
	if err := checkOutputNotInput(a.output, each.Of(sources, func(s source) string { return s.file })...); err != nil {
		return err
	}
	c, err := a.readSources(sources)
	if err != nil {
		return usageError(err)
	}
	if a.baseline != "" {
		c.Header.Plan.Baseline = plan.VariantOf(a.baseline)
	}
	if b := c.Header.Plan.Baseline; !b.IsZero() && !slices.Contains(c.Header.Plan.Profiles, b) {
		return usageError(advice.With(fmt.Errorf("baseline %q is not among the profiles of the files", b),
			"choose one of: "+strings.Join(plan.Texts(c.Header.Plan.Profiles), ", ")))
	}
	if err := a.writeResult(c); err != nil {
		return err
	}
	a.printSummary(c)
	return nil
}

// parseSources parses the arguments. A file without a profile or path of its own gets that of the flags. Its error lists all
// faults.
func (a *importing) parseSources(args []string) ([]source, error) {
	var errs []error
	var all external.Label
	check := func(err error) { errs = append(errs, err) }
	var err error
	if all.Profile = a.profile; a.profile != "" {
		check(adapter.CheckProfile(a.profile))
	}
	if a.path != "" {
		all.Path, err = plan.ParsePath(a.path)
		check(err)
	}
	if a.workload != "" {
		all.Workload, err = plan.ParseWorkload(a.workload)
		check(err)
	}
	var sources []source
	for _, arg := range args {
		s := source{file: arg, label: all}
		// An existing file whose name is the whole argument is imported, even if the name has an "=".
		if label, file, ok := strings.Cut(arg, "="); ok && !fileExists(arg) {
			s.file = file
			name, path, placed := strings.Cut(label, ":")
			s.label.Profile = name
			check(adapter.CheckProfile(name))
			if placed {
				s.label.Path, err = plan.ParsePath(path)
				check(err)
			}
		}
		sources = append(sources, s)
	}
	return sources, errors.Join(errs...)
}

func fileExists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// readSources reads all sources into one result. Its error names every file that cannot be read.
func (a *importing) readSources(sources []source) (result.Contents, error) {
	var batches []external.Batch
	var errs []error
	for _, s := range sources {
		b, err := a.readSource(s)
		batches, errs = append(batches, b), append(errs, err)
	}
	external.ShareWorkload(batches)
	for i, s := range sources {
		if errs[i] == nil {
			errs[i] = s.label.Apply(filepath.Base(s.file), &batches[i])
		}
	}
	if err := errors.Join(errs...); err != nil {
		return result.Contents{}, err
	}
	return external.Contents(batches...)
}

func (a *importing) readSource(s source) (external.Batch, error) {
	if s.file == "-" {
		return external.Read(a.stdin, "stdin", a.from)
	}
	return external.Open(s.file, a.from)
}

// writeResult writes c into the result file. It removes a file that it cannot complete.
func (a *importing) writeResult(c result.Contents) error {
	w, err := createResult(a.output, a.force)
	if errors.Is(err, os.ErrExist) {
		return advice.With(err, "replace it by --force, or name another by -o")
	}
	if err != nil {
		return err
	}
	err = w.Header(c.Header)
	for _, r := range c.Records {
		if err != nil {
			break
		}
		if r.Type == result.TypeEnd {
			err = w.Finish(*r.End)
			continue
		}
		err = w.Append(r)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return errors.Join(err, os.RemoveAll(a.output))
	}
	return nil
}

// printSummary prints to stderr what was imported and what was left out.
func (a *importing) printSummary(c result.Contents) {
	say := func(format string, args ...any) { fmt.Fprintf(a.stderr, "cnibench: "+format+"\n", args...) }
	end := c.Records[len(c.Records)-1].End
	pl := c.Header.Plan
	say("%s: %s of %s, %d failed; profiles %s; paths %s", a.output, number.Counted(end.Trials, "trial"), number.Clean(c.Header.Origin), end.Failed,
		strings.Join(plan.Texts(pl.Profiles), ", "), strings.Join(plan.Texts(pl.Paths), ", "))
	if left := c.Header.Facts[external.FactLeftOut]; left != "" {
		say("left out: %s", number.Clean(left))
	}
	if pl.Baseline.IsZero() && len(pl.Profiles) > 1 {
		io.WriteString(a.stderr, "hint: name the baseline by --baseline, here or in report\n")
	}
}
