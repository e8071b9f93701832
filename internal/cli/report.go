package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/cnibench/cnibench/internal/metric"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/json"
	"github.com/cnibench/cnibench/internal/report/markdown"
	"github.com/cnibench/cnibench/internal/report/text"
	"github.com/cnibench/cnibench/internal/result"
)

// DefaultResult is the result file that run writes and report reads when none is named.
const DefaultResult = "result.jsonl"

// formats are the renderers by name.
var formats = map[string]func(io.Writer, report.Document) error{
	"text": func(w io.Writer, d report.Document) error { return text.Render(w, d, terminal(w)) },
	"markdown": func(w io.Writer, d report.Document) error {
		return markdown.Render(w, d)
	},
	"json": json.Render,
}

// formatNames are the names of formats in the order of help.
var formatNames = []string{"text", "markdown", "json"}

// terminal says what w can do, if it is a terminal.
func terminal(w io.Writer) text.Options {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return text.Options{}
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		width = 0
	}
	return text.Options{Width: width, Color: os.Getenv("NO_COLOR") == ""}
}

type reportArgs struct {
	format   string
	metrics  []string
	baseline string
}

func (p *program) reportCommand() *cobra.Command {
	var a reportArgs
	cmd := &cobra.Command{
		Use:     "report [FILE]",
		Short:   "Print the report of a result file",
		Long:    "Print the report of a result file (" + DefaultResult + " if none is named) to stdout.",
		Example: "  cnibench report\n  cnibench report -f markdown result.jsonl > report.md\n  cnibench report -f json r.jsonl | jq '.comparisons[] | select(.verdict == \"worse\")'\n  cnibench report --metrics rtt.p50,rtt.p99 --baseline host",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			name := DefaultResult
			if len(files) == 1 {
				name = files[0]
			}
			return p.report(cmd, name, a)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&a.format, "format", "f", "text", "`format`: "+strings.Join(formatNames, ", "))
	f.StringSliceVar(&a.metrics, "metrics", nil, "metrics to show instead of the headline ones (cnibench list metrics)")
	f.StringVar(&a.baseline, "baseline", "", "`profile` to compare with instead of the plan's baseline")
	complete(cmd, "format", func() []string { return formatNames })
	complete(cmd, "metrics", metricNames)
	complete(cmd, "baseline", profileNames)
	return cmd
}

func metricNames() []string {
	var names []string
	for _, m := range metric.All() {
		names = append(names, m.Name)
	}
	return names
}

func (p *program) report(cmd *cobra.Command, name string, a reportArgs) error {
	if err := knownFormat(cmd, a.format); err != nil {
		return err
	}
	c, err := result.Load(name)
	if err != nil {
		return usage(err)
	}
	if c.Warning != "" {
		fmt.Fprintf(p.stderr, "cnibench: %s\n", c.Warning)
	}
	d, err := report.Build(c.Header, c.Records, report.Options{Metrics: a.metrics, Baseline: a.baseline})
	if err != nil {
		return usage(err)
	}
	return formats[a.format](p.stdout, d)
}

func knownFormat(cmd *cobra.Command, name string) error {
	if slices.Contains(formatNames, name) {
		return nil
	}
	return usageOf(cmd, fmt.Errorf("unknown format %q: want %s", name, strings.Join(formatNames, ", ")))
}
