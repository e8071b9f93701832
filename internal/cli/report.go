package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/benchfmt"
	"github.com/cnibench/cnibench/internal/report/csv"
	"github.com/cnibench/cnibench/internal/report/html"
	"github.com/cnibench/cnibench/internal/report/json"
	"github.com/cnibench/cnibench/internal/report/junit"
	"github.com/cnibench/cnibench/internal/report/markdown"
	"github.com/cnibench/cnibench/internal/report/openmetrics"
	"github.com/cnibench/cnibench/internal/report/text"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// DefaultResult is the result file that run writes and report reads when none is named.
const DefaultResult = "result.jsonl"

// formats are the renderers by name.
var formats = map[string]func(io.Writer, report.Document) error{
	"text": func(w io.Writer, d report.Document) error { return text.Render(w, d, terminal(w)) },
	"markdown": func(w io.Writer, d report.Document) error {
		return markdown.Render(w, d)
	},
	"json":        json.Render,
	"html":        html.Render,
	"csv":         csv.Render,
	"openmetrics": openmetrics.Render,
	"benchfmt":    benchfmt.Render,
	"junit": func(w io.Writer, d report.Document) error {
		return junit.Render(w, d, junit.Options{})
	},
}

// formatNames are the names of formats in the order of help.
var formatNames = []string{"text", "markdown", "json", "html", "csv", "openmetrics", "benchfmt", "junit"}

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
	charts   string
	impact   string
	// samples is csv's, worseFails junit's.
	samples, worseFails bool
}

func (p *program) reportCommand() *cobra.Command {
	var a reportArgs
	cmd := &cobra.Command{
		Use:     "report [FILE]",
		Short:   "Print the report of a result file",
		Long:    "Print the report of a result file (" + DefaultResult + " if none is named) to stdout.\n\n" + inputs,
		Example: "  cnibench report\n  cnibench report -f markdown result.jsonl > report.md\n  cnibench report -f html result.jsonl > report.html\n  cnibench report --charts charts result.jsonl\n  cnibench report -f csv --samples result.jsonl > trials.csv\n  cnibench report -f benchfmt result.jsonl > r.txt && benchstat -col /profile r.txt\n  cnibench report -f junit --worse-fails result.jsonl > junit.xml\n  cnibench report -f json r.jsonl | jq '.comparisons[] | select(.verdict == \"worse\")'\n  cnibench report --metrics rtt.p50,rtt.p99 --baseline host\n  cnibench report --baseline canal --impact transfer=100GB/share=30%,requests=1M",
		Args:    atMostOne("cnibench compare sets two side by side"),
		RunE: func(cmd *cobra.Command, files []string) error {
			return p.report(cmd, fileOf(files), a)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&a.format, "format", "f", "text", "`format`: "+strings.Join(formatNames, ", "))
	f.StringSliceVar(&a.metrics, "metrics", nil, "metrics to show instead of the headline ones (cnibench list metrics)")
	f.StringVar(&a.baseline, "baseline", "", "`profile` to compare with instead of the plan's baseline")
	f.StringVar(&a.charts, "charts", "", "write each chart to `directory` too, as SVG and PNG")
	f.StringVar(&a.impact, "impact", "", "what `work` of a job takes: transfer=SIZE, sync=SIZE (in parallel flows), requests=N, connections=N, each with /share=PERCENT of the job's time or all with network-share=PERCENT")
	f.BoolVar(&a.samples, "samples", false, "with -f csv: the numbers of every trial, which import reads back")
	f.BoolVar(&a.worseFails, "worse-fails", false, "with -f junit: a case with the verdict worse is a failed one")
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
	if err := a.fits(cmd); err != nil {
		return err
	}
	works, err := a.works(cmd)
	if err != nil {
		return err
	}
	if a.samples {
		return p.samples(name)
	}
	d, err := p.document(name, report.Options{Metrics: a.metrics, Baseline: a.baseline, Impact: works}, a.format == "html" || a.charts != "")
	if err != nil {
		return usage(err)
	}
	if a.charts != "" {
		n, err := writeCharts(a.charts, d)
		if err != nil {
			return err
		}
		fmt.Fprintf(p.stderr, "cnibench: %d charts are in %s, each as SVG and PNG\n", n, a.charts)
	}
	if a.worseFails {
		return junit.Render(p.stdout, d, junit.Options{Worse: true})
	}
	return formats[a.format](p.stdout, d)
}

// document reads the result called name once, with the details that pictures need if detailed.
func (p *program) document(name string, o report.Options, detailed bool) (report.Document, error) {
	s, err := p.open(name)
	if err != nil {
		return report.Document{}, err
	}
	var in report.Collector
	var more report.Gather
	err = p.each(s, detailed, func(rec *result.Record) error {
		if detailed {
			more.Add(*rec)
		}
		return in.Add(rec)
	})
	if err != nil {
		return report.Document{}, err
	}
	d, err := in.Build(s.Header(), o)
	if err == nil && detailed {
		d.Details = more.Details()
	}
	return d, err
}

func knownFormat(cmd *cobra.Command, name string) error {
	if slices.Contains(formatNames, name) {
		return nil
	}
	return usageOf(cmd, fmt.Errorf("unknown format %q: want %s", name, strings.Join(formatNames, ", ")))
}
