package cli

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/judge/check"
	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/impact"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/figure"
	"github.com/cnibench/cnibench/internal/report/plot"
	"github.com/cnibench/cnibench/internal/report/spreadsheet"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// DefaultResult is the result file that run writes and report reads when none is named.
const DefaultResult = "result.jsonl"

const allUsage = "with -f text: print every table, not the answer alone"

// reporting is one invocation of report.
type reporting struct {
	*program
	// file is the result file to read. output is the file to write, "" or "-" for stdout.
	file     string
	format   string
	output   string
	metrics  []string
	all      bool
	baseline string
	pictures string
	impact   string
	margin   float64
	// samples asks for the numbers of every trial, in the format csv.
	samples bool
	// budgets are the budgets of run --fail-on. The command report has none.
	budgets []compare.Budget
}

func reportCommand(p *program) *cobra.Command {
	a := reporting{program: p}
	cmd := &cobra.Command{
		Use:     "report [FILE]",
		Short:   "Print the report of a result file",
		Long:    "Print the report of a result file (" + DefaultResult + " if none is named) to stdout.\n\n" + inputs,
		Example: "  cnibench report -f markdown result.jsonl > report.md\n  cnibench report --baseline canal --pictures pictures result.jsonl",
		Args: func(cmd *cobra.Command, files []string) error {
			if len(files) > 1 {
				return usageError(advice.With(fmt.Errorf("want one result file, and there are %d", len(files)), "cnibench compare sets two side by side"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, files []string) error {
			a.file = append(files, DefaultResult)[0]
			return a.run(cmd)
		},
	}
	f := cmd.Flags()
	declareFormatFlag(cmd, &a.format, formatNames)
	f.StringVarP(&a.output, "output", "o", "", "write the report to `file`; with -f markdown, pictures into a directory beside it too")
	f.StringSliceVar(&a.metrics, "metrics", nil, "metrics to show instead of the headline ones (cnibench list metrics)")
	f.BoolVar(&a.all, "all", false, allUsage)
	f.StringVar(&a.baseline, "baseline", "", "`profile` to compare with instead of the plan's baseline")
	declareMarginFlag(cmd, &a.margin)
	f.StringVar(&a.pictures, "pictures", "", "write each picture to `directory` too, as SVG")
	f.StringVar(&a.impact, "impact", "", "what `work` of a job takes: transfer=SIZE, sync=SIZE (in parallel flows), requests=N, connections=N, each with /share=PERCENT of the job's time or all with network-share=PERCENT")
	f.BoolVar(&a.samples, "samples", false, "with -f csv: the numbers of every trial, which import reads back")
	for _, other := range []string{"metrics", "baseline", "impact", "pictures", "margin", "all"} {
		cmd.MarkFlagsMutuallyExclusive("samples", other) // every trial is written as it was measured
	}
	completeFlag(cmd, "metrics", metric.Names)
	completeFlag(cmd, "baseline", profile.Names)
	return cmd
}

func (a *reporting) run(cmd *cobra.Command) error {
	if a.samples && a.format != "csv" {
		return commandUsageError(cmd, fmt.Errorf("--samples needs -f csv, not -f %s", a.format))
	}
	works, err := a.parseImpact(cmd)
	if err != nil {
		return err
	}
	if err := checkOutputNotInput(a.output, a.file); err != nil {
		return err
	}
	if a.samples {
		return a.writeOutput(a.output, a.writeSamples)
	}
	if a.output != "" && a.output != stdoutName && a.format == "markdown" && a.pictures == "" {
		a.pictures = strings.TrimSuffix(a.output, filepath.Ext(a.output)) + "-pictures"
	}
	d, err := a.buildReport(works)
	if err != nil {
		return usageError(err)
	}
	if a.pictures != "" {
		if d.Pictures, err = writePictures(a.pictures, filepath.Dir(a.output), d); err != nil {
			return err
		}
		fmt.Fprintf(a.stderr, "cnibench: pictures in %s: %d\n", a.pictures, len(d.Pictures))
	}
	if a.format == "text" && (a.all || a.metrics != nil) {
		a.format = allText
	}
	var outcome error
	if len(a.budgets) > 0 {
		outcome = applyBudgets(&d, a.file, a.budgets)
	}
	return errors.Join(a.writeReport(d), outcome)
}

// writeReport writes d to the file of --output, or to stdout without it.
func (a *reporting) writeReport(d report.Document) error {
	return a.writeOutput(a.output, func(w io.Writer) error { return formats[a.format](w, d) })
}

// buildReport reads the result and builds its report. Details for pictures and stacks of samples take memory: it keeps them
// only if the report shows them.
func (a *reporting) buildReport(works []impact.Work) (report.Document, error) {
	s, err := a.openResult(a.file)
	if err != nil {
		return report.Document{}, err
	}
	o := report.Options{Metrics: a.metrics, File: a.file, Baseline: plan.VariantOf(a.baseline), Impact: works, Margin: a.margin}
	in := report.Collector{Stacks: slices.Contains(stackNames, a.format), Detailed: a.format == "html" || a.pictures != ""}
	plausible := check.New(s.Header)
	err = a.forEachRecord(s, in.Detailed, func(rec *result.Record) error {
		return errors.Join(in.Add(rec), plausible.Add(*rec))
	})
	if err == nil {
		o.Checked, err = plausible.Report(displayName(a.file), nil)
	}
	if err != nil {
		return report.Document{}, err
	}
	return in.Build(s.Header, o)
}

// writeSamples writes the trials of the result as numbers that import reads.
func (a *reporting) writeSamples(w io.Writer) error {
	s, err := a.openResult(a.file)
	if err != nil {
		return usageError(err)
	}
	out, err := spreadsheet.NewSamples(w, s.Header)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	var written error
	err = a.forEachRecord(s, false, func(rec *result.Record) error {
		written = out.Add(rec)
		return written
	})
	switch {
	case written != nil:
		return written
	case err != nil:
		return errors.Join(usageError(err), out.Close())
	}
	return out.Close()
}

// parseImpact returns the parsed --impact, nil without the flag. It fails if the format is not one of pageNames.
func (a *reporting) parseImpact(cmd *cobra.Command) ([]impact.Work, error) {
	if !cmd.Flags().Changed("impact") {
		return nil, nil
	}
	if !slices.Contains(pageNames, a.format) {
		return nil, commandUsageError(cmd, fmt.Errorf("--impact is for -f %s, and the format is %s", strings.Join(pageNames, ", "), a.format))
	}
	works, err := impact.Parse(a.impact)
	if err != nil {
		return nil, commandUsageError(cmd, fmt.Errorf("--impact %q:\n%w", a.impact, err))
	}
	return works, nil
}

// writePictures writes every figure of d as an SVG file into the directory dir, which it creates. It returns the pictures
// with addresses relative to the directory from, where the report is. File names begin with a number, in reading order.
func writePictures(dir, from string, d report.Document) ([]report.Picture, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("directory of pictures: %w", err)
	}
	var out []report.Picture
	for i, f := range figure.All(d) {
		name := filepath.Join(dir, fmt.Sprintf("%03d-%s.svg", i+1, figure.Name(f)))
		if err := writePicture(name, f.Drawing); err != nil {
			return out, err
		}
		address := name
		if near, err := filepath.Rel(from, name); err == nil {
			address = near
		}
		out = append(out, report.Picture{
			Name: figure.Name(f), File: (&url.URL{Path: filepath.ToSlash(address)}).EscapedPath(), Title: f.Drawing.Title, Apart: figure.Apart(f),
		})
	}
	return out, nil
}

func writePicture(name string, d plot.Drawing) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("picture: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return plot.WriteSVG(f, plot.Framed(d))
}
