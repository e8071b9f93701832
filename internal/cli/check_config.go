package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/judge/config"
)

// configFormats write the report of check --config, by name.
var configFormats = map[string]func(io.Writer, config.Report) error{
	"text": config.Text, "markdown": config.Markdown, "json": config.JSON,
}

// configArgs are the flags of check that are about configurations.
type configArgs struct {
	on   bool
	as   string
	sets []string
}

func (a *configArgs) declare(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&a.on, "config", false, "the files configure a cluster's network: say what is in force with them (- is stdin)")
	f.StringVar(&a.as, "as", "", "with --config: what files without a kind are: `NAME` of "+strings.Join(config.Kinds, ", "))
	f.StringArrayVar(&a.sets, "set", nil, "with --config: `key=value` as helm --set takes it, after the files")
	complete(cmd, "as", func() []string { return config.Kinds })
}

// asked reports whether check is to judge a configuration; the flags that only matter then say so, too.
func (a *configArgs) asked(cmd *cobra.Command) bool {
	return a.on || cmd.Flags().Changed("as") || cmd.Flags().Changed("set")
}

// checkConfig judges the files together: they configure one cluster.
func (p *program) checkConfig(cmd *cobra.Command, files []string, a checkArgs) error {
	switch {
	case !a.config.on:
		return usageOf(cmd, errors.New("--as and --set go with --config"))
	case len(a.only) > 0:
		return usageOf(cmd, errors.New("--only names rules about results: leave it out with --config"))
	case a.list:
		return p.listConfigRules()
	case configFormats[a.format] == nil:
		return usageOf(cmd, unknownFormat(a.format, []string{"text", "markdown", "json"}))
	case len(files) == 0 && len(a.config.sets) == 0:
		return usageOf(cmd, errors.New("--config needs a file, or --as and --set"))
	}
	var inputs []config.Input
	var errs []error
	for _, name := range files {
		text, err := p.readConfig(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if name == "-" {
			name = "stdin"
		}
		inputs = append(inputs, config.Input{Name: name, Text: text})
	}
	if len(errs) > 0 {
		return usage(errors.Join(errs...))
	}
	r, err := config.Check(inputs, config.Options{As: a.config.as, Sets: a.config.sets})
	if err != nil {
		return usage(err)
	}
	if err := configFormats[a.format](p.stdout, r); err != nil {
		return err
	}
	if r.Alarm() {
		return failed(exitWorse)
	}
	return nil
}

// readConfig reads one file, or stdin for "-". One byte over the limit is enough to be refused.
func (p *program) readConfig(name string) (string, error) {
	in := p.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return "", err
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, config.MaxInput+1))
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return string(text), nil
}

// listConfigRules prints what each rule about configurations finds.
func (p *program) listConfigRules() error {
	var err error
	for _, r := range config.Rules() {
		if err == nil {
			_, err = fmt.Fprintf(p.stdout, "%-22s  %-10s  %s\n", r.ID, r.Severity, r.Title)
		}
	}
	return err
}
