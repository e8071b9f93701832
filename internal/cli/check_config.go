package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"helm.sh/helm/v4/pkg/strvals"

	"github.com/cnibench/cnibench/internal/env/kube/recipe"
	"github.com/cnibench/cnibench/internal/judge/config"
	"github.com/cnibench/cnibench/internal/plan/position"
	"github.com/cnibench/cnibench/internal/report"
)

// configArgs are the flags of check that are about configurations.
type configArgs struct {
	on    bool
	chart string
	sets  []string
}

func (a *configArgs) declare(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&a.on, "config", false, "the files configure a cluster's network: show what is in force (- is stdin)")
	f.StringVar(&a.chart, "chart", "", "with --config: the `chart` that decides what values do: a directory, an archive, or the name of one that cni install uses")
	f.StringArrayVar(&a.sets, "set", nil, "with --config: a `key=value` of the chart as helm --set takes it, after the files")
}

// asked reports whether check judges a configuration. It does for the flags that require it too, to say so.
func (a *configArgs) asked(cmd *cobra.Command) bool {
	return a.on || cmd.Flags().Changed("chart") || cmd.Flags().Changed("set")
}

// checkConfig judges the files together: they configure one cluster.
func (p *program) checkConfig(cmd *cobra.Command, files []string, a checkArgs) error {
	switch {
	case !a.config.on:
		return usageOf(cmd, errors.New("--chart and --set require --config"))
	case len(a.only) > 0:
		return usageOf(cmd, errors.New("--only names rules about results: omit it with --config"))
	case a.list:
		return p.listRules(config.Rules())
	case len(files) == 0 && a.config.chart == "":
		return usageOf(cmd, errors.New("--config requires a file or --chart"))
	}
	inputs, unread := readAll(files, p.readConfig)
	sets, wrong := readAll(a.config.sets, setInput)
	inputs = append(inputs, sets...)
	source := a.config.chart
	for _, in := range inputs {
		source = cmp.Or(source, recipe.ShownChart(in.Text))
	}
	var c *config.Chart
	var missing error
	if source != "" {
		c, missing = recipe.ConfigChart(cmd.Context(), source)
		if missing != nil && a.config.chart == "" {
			p.say("the values are not judged: %s", missing)
			missing = nil
		}
	}
	if err := errors.Join(unread, wrong, missing); err != nil {
		return usage(err)
	}
	r, err := config.Check(inputs, c)
	if err != nil {
		return usage(err)
	}
	if err := p.write(a.format, report.BuildConfig(r)); err != nil {
		return err
	}
	switch {
	case r.Alarm():
		return failed(exitWorse)
	case r.Inconclusive():
		return failed(exitInconclusive)
	}
	return nil
}

// setInput returns the values that a --set gives.
func setInput(expression string) (config.Input, error) {
	in := config.Input{Name: "--set", Unlined: true}
	values, err := strvals.Parse(expression)
	if err != nil {
		return in, fmt.Errorf("--set %s: %w", expression, err)
	}
	text, err := json.Marshal(values)
	in.Text = string(text)
	return in, err
}

// readConfig reads one file, or stdin for "-". One byte over the limit is enough to be refused.
func (p *program) readConfig(name string) (config.Input, error) {
	in := p.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return config.Input{}, err
		}
		defer f.Close() // it was only read
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, position.MaxFile+1))
	if err != nil {
		return config.Input{}, fmt.Errorf("%s: %w", name, err)
	}
	return config.Input{Name: called(name), Text: string(text)}, nil
}
