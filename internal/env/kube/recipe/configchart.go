package recipe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/env/kube/chart"
	"github.com/cnibench/cnibench/internal/judge/config"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// ConfigChart returns the chart to judge values by. source is a directory, an archive, or the name of a chart that recipes
// install, which is then downloaded in their version.
func ConfigChart(ctx context.Context, source string) (*config.Chart, error) {
	if _, err := os.Stat(source); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return rendering(chart.Load(source))
	}
	charts, err := installed()
	if err != nil {
		return nil, err
	}
	at, ok := charts[source]
	if !ok {
		names := slices.Sorted(maps.Keys(charts))
		return nil, fmt.Errorf("chart %q is neither a file nor one of %s%s", source, strings.Join(names, ", "), advice.DidYouMean(source, names))
	}
	return rendering(fetchChart(ctx, at))
}

var shownValues = pattern.New(`(?m)^# +helm install \S+ (\S+) .*--values THIS$`)

// ShownChart returns the name of the chart whose values are in a text of cni show, "" if there are none.
func ShownChart(text string) string {
	if m := shownValues.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// installed returns the charts that recipes install, by name. Charts of definitions alone have no values to judge.
func installed() (map[string]Chart, error) {
	recipes, err := All()
	if err != nil {
		return nil, err
	}
	all := map[string]Chart{}
	for _, r := range recipes {
		for _, c := range r.charts {
			if !strings.Contains(c.Chart, "crd") {
				all[c.Chart] = c
			}
		}
	}
	return all, nil
}

// rendering lets package config render a chart, unless reading it failed.
func rendering(c *chart.Chart, err error) (*config.Chart, error) {
	if err != nil {
		return nil, err
	}
	render := func(values map[string]any, skip map[string]bool) ([]config.Rendered, error) {
		text, err := json.Marshal(values) // charts expect numbers as JSON has them
		if err != nil {
			return nil, err
		}
		var given map[string]any
		if err := json.Unmarshal(text, &given); err != nil {
			return nil, err
		}
		objects, err := c.Without(skip).Render(given, chart.Release{Name: c.Metadata.Name, Namespace: "kube-system"})
		if err != nil {
			return nil, err
		}
		var list []config.Rendered
		for _, o := range objects {
			list = append(list, config.Rendered{Template: o.Template, Text: o.Text})
		}
		return list, nil
	}
	return &config.Chart{Name: c.Metadata.Name, Version: c.Metadata.Version, Values: c.Defaults(), Render: render}, nil
}
