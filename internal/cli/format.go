package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/benchfmt"
	"github.com/cnibench/cnibench/internal/report/figure"
	"github.com/cnibench/cnibench/internal/report/html"
	"github.com/cnibench/cnibench/internal/report/json"
	"github.com/cnibench/cnibench/internal/report/markdown"
	"github.com/cnibench/cnibench/internal/report/openmetrics"
	"github.com/cnibench/cnibench/internal/report/pprof"
	"github.com/cnibench/cnibench/internal/report/spreadsheet"
	"github.com/cnibench/cnibench/internal/report/text"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// formats are the renderers by name.
var formats = map[string]func(io.Writer, report.Document) error{
	"text":   func(w io.Writer, d report.Document) error { return text.Render(w, d, terminalOptions(w)) },
	noFormat: func(io.Writer, report.Document) error { return nil },
	allText: func(w io.Writer, d report.Document) error {
		o := terminalOptions(w)
		o.All = true
		return text.Render(w, d, o)
	},
	"markdown":    markdown.Render,
	"github":      markdown.GitHub,
	"json":        json.Render,
	"html":        html.Render,
	"card":        figure.RenderCard,
	"csv":         spreadsheet.Render,
	"openmetrics": openmetrics.Render,
	"benchfmt":    benchfmt.Render,
	"pprof":       pprof.Render,
	"folded":      pprof.Folded,
}

// noFormat is the format that prints nothing.
const noFormat = "none"

// allText is the format text with every table, instead of the summary alone. --all selects it; --format does not accept it.
const allText = "text, all"

// pageNames are the formats for people. documentNames are the formats that can show any document. formatNames are all
// formats of report, as help lists them. The formats that are not in documentNames show the cells of one result.
var (
	pageNames     = []string{"text", "markdown", "html"}
	documentNames = append(slices.Clone(pageNames), "github", "json")
	formatNames   = append(slices.Clone(documentNames), "card", "csv", "openmetrics", "benchfmt", "pprof", "folded")
)

// declareFormatFlag declares the flag -f, which takes one of names. The first of names is the default.
func declareFormatFlag(cmd *cobra.Command, format *string, names []string) {
	*format = names[0]
	var value pflag.Value = choice{format, "format", names}
	if cmd.Flags().Lookup("file") != nil {
		value = formatOrPlan{choice{format, "format", names}, cmd}
	}
	cmd.Flags().VarP(value, "format", "f", "`format`: "+strings.Join(names, ", "))
	completeFlag(cmd, "format", fixedWords(names...))
}

// formatOrPlan is the value of -f of a command that also takes a plan: a format, or the name of a plan file.
type formatOrPlan struct {
	choice
	cmd *cobra.Command
}

// Set sets the format. If s is not a format but a file, or ends in .yaml or .yml, it sets --file instead.
func (v formatOrPlan) Set(s string) error {
	err := v.choice.Set(s)
	if _, missing := os.Stat(s); err == nil || missing != nil && !strings.HasSuffix(s, ".yaml") && !strings.HasSuffix(s, ".yml") {
		return err
	}
	return v.cmd.Flags().Set("file", s)
}

// declareChoiceFlag declares a flag called name that takes one of words. *at is the default, and gets the value.
func declareChoiceFlag(cmd *cobra.Command, at *string, name, help string, words []string) {
	cmd.Flags().Var(choice{at, name, words}, name, help+": "+strings.Join(words, ", "))
	completeFlag(cmd, name, fixedWords(words...))
}

// choice is the value of a flag that takes one of words. at points to the chosen word, and name is the name of the
// flag.
type choice struct {
	at    *string
	name  string
	words []string
}

func (c choice) String() string { return *c.at }

// Type returns the word for the value in help.
func (c choice) Type() string { return "string" }

// Set stores s as the chosen word. It fails if s is not one of words.
func (c choice) Set(s string) error {
	if !slices.Contains(c.words, s) {
		meant := ""
		if near := advice.Slip(s, c.words); near != "" {
			meant = fmt.Sprintf(", did you mean %q", near)
		}
		return fmt.Errorf("unknown %s %q%s: want %s", c.name, s, meant, strings.Join(c.words, ", "))
	}
	*c.at = s
	return nil
}

// writeDocument writes d to stdout in a format, which must be a key of formats.
func (p *program) writeDocument(format string, d report.Document) error {
	return formats[format](p.stdout, d)
}

// terminalOptions returns the options for w. The width is that of the terminal w, or else the number in the variable
// COLUMNS. Color and characters beyond ASCII are used only on a terminal that supports them.
func terminalOptions(w io.Writer) text.Options {
	o := text.Options{ASCII: true}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		o.ASCII = !isUTF8Locale()
		o.Width, _, _ = term.GetSize(int(f.Fd())) // 0 if the terminal does not know
		o.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
	if o.Width == 0 {
		o.Width, _ = strconv.Atoi(os.Getenv("COLUMNS")) // 0 if unset
	}
	return o
}

// isUTF8Locale reports whether the environment's locale uses UTF-8. The first locale variable that is set decides.
func isUTF8Locale() bool {
	locale := cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_CTYPE"), os.Getenv("LANG"))
	return strings.Contains(strings.ToLower(strings.ReplaceAll(locale, "-", "")), "utf8")
}
