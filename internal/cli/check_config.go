package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"helm.sh/helm/v4/pkg/strvals"

	"github.com/cnibench/cnibench/internal/env/kube/recipe"
	"github.com/cnibench/cnibench/internal/judge/config"
	"github.com/cnibench/cnibench/internal/plan/position"
	"github.com/cnibench/cnibench/internal/report"
)

// declareConfigFlags declares the flags of check that are about configurations.
func (a *checking) declareConfigFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&a.config, "config", false, "the files configure a cluster's network: show what is in force (- is stdin)")
	f.StringVar(&a.chart, "chart", "", "with --config: the `chart` that decides what values do: a directory, an archive, or the name of one that cni install uses")
	f.StringVar(&a.version, "cni-version", "", "with --config: the `version` of Cilium's agent, as 1.16 (default what chart, image or options show)")
	f.IntVar(&a.underlay, "underlay-mtu", 0, "with --config: the MTU of the nodes' NICs in `bytes` (default 1500 is assumed)")
	f.StringArrayVar(&a.sets, "set", nil, "with --config: a `key=value` of the chart as helm --set takes it, after the files")
}

// configFlags are the flags that require --config. Without --config, check fails if one of them is given.
var configFlags = []string{"chart", "set", "cni-version", "underlay-mtu"}

// parseKnown returns the values of --cni-version and --underlay-mtu. It fails if one of them is invalid.
func (a *checking) parseKnown(cmd *cobra.Command) (config.Known, error) {
	known := config.Known{Version: a.version, Underlay: a.underlay}
	_, ok := config.Minor(a.version)
	switch {
	case a.version != "" && !ok:
		return known, fmt.Errorf("--cni-version %q: want a version of Cilium, as 1.16 or v1.16.5", a.version)
	case cmd.Flags().Changed("underlay-mtu") && (a.underlay < 576 || a.underlay > 65535):
		return known, fmt.Errorf("--underlay-mtu %d: want 576 to 65535 bytes", a.underlay)
	}
	return known, nil
}

// checkConfig judges the files and the --set values together, as the configuration of one cluster, and prints the report.
// It fails with exitWorse if the report has an alarm, else with exitInconclusive if the report is inconclusive. With --list
// it only prints the rules.
func (a *checking) checkConfig(cmd *cobra.Command, files []string) error {
	switch {
	case !a.config:
		return commandUsageError(cmd, errors.New("--chart, --set, --cni-version and --underlay-mtu require --config"))
	case len(a.only) > 0:
		return commandUsageError(cmd, errors.New("--only names rules about results: omit it with --config"))
	case a.list:
		return a.printRules(config.Rules())
	case len(files) == 0 && a.chart == "":
		return commandUsageError(cmd, errors.New("--config requires a file or --chart"))
	}
	known, mistaken := a.parseKnown(cmd)
	inputs, unread := readAll(files, a.readConfig)
	sets, wrong := readAll(a.sets, parseSet)
	inputs = append(inputs, sets...)
	source := a.chart
	for _, in := range inputs {
		source = cmp.Or(source, recipe.ShownChart(in.Text))
	}
	var missing error
	if source != "" {
		known.Chart, missing = recipe.ConfigChart(cmd.Context(), source)
		if missing != nil && a.chart == "" {
			a.say("the values are not judged: %s", missing)
			missing = nil
		}
	}
	if err := errors.Join(mistaken, unread, wrong, missing); err != nil {
		return usageError(err)
	}
	r, err := config.Check(inputs, known)
	if err == nil && source == "" && len(r.Needs) > 0 {
		if known.Chart = a.downloadNeededChart(cmd.Context(), r.Needs[0]); known.Chart != nil {
			r, err = config.Check(inputs, known)
		}
	}
	if err != nil {
		return usageError(err)
	}
	if err := a.writeDocument(a.format, report.BuildConfig(r)); err != nil {
		return err
	}
	switch {
	case r.Alarm():
		return quietError(exitWorse)
	case r.Inconclusive():
		return quietError(exitInconclusive)
	}
	return nil
}

// downloadTime limits the download of a chart that the user did not ask for.
const downloadTime = 20 * time.Second

// downloadNeededChart downloads the chart that the values require, and prints to stderr which version judges them. If it
// cannot, it prints the reason and returns nil. For a chart without a recipe it prints nothing: the report names that chart.
func (a *checking) downloadNeededChart(ctx context.Context, of config.Needed) *config.Chart {
	ctx, stop := context.WithTimeout(ctx, downloadTime)
	defer stop()
	c, err := recipe.DownloadChart(ctx, of.Name, of.Version)
	switch {
	case errors.Is(err, recipe.ErrNoChart): // the report says that the values require it
		return nil
	case err != nil:
		a.say("values of chart %s require the chart: %s", of.Name, err)
		return nil
	}
	whose := "the version that cni install uses"
	if of.Version != "" {
		whose = "the version that the file names or shows"
	}
	a.say("the values are judged by %s, %s; --chart gives another", c, whose)
	return c
}

// parseSet parses one --set, a key=value of Helm, into an input with these values.
func parseSet(expression string) (config.Input, error) {
	in := config.Input{Name: "--set", Unlined: true}
	values, err := strvals.Parse(expression)
	if err != nil {
		return in, fmt.Errorf("--set %s: %w", expression, err)
	}
	text, err := json.Marshal(values)
	in.Text = string(text)
	return in, err
}

// readConfig reads one file, or stdin for "-". It reads at most one byte more than position.MaxFile; config.Check then
// refuses the text as too large.
func (a *checking) readConfig(name string) (config.Input, error) {
	in := a.stdin
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
	return config.Input{Name: displayName(name), Text: string(text)}, nil
}
