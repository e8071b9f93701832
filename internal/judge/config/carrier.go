package config

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/plan/position"
	"github.com/cnibench/cnibench/internal/profile"
)

// carrier is an object that carries values of a chart.
type carrier struct {
	// chart and version are the chart's as the object names them; version may be "".
	chart, version string
	// values are a mapping, or a text that holds one under key.
	values *position.Node
	key    string
	// required says that the object has no other purpose than its values.
	required bool
}

// carrierOf returns the values that an object carries. ok is false for other objects.
func carrierOf(kind string, n *position.Node) (c carrier, ok bool) {
	spec := n.At("spec")
	switch kind {
	case "HelmChartConfig", "HelmChart": // RKE2, K3s
		name := n.ScalarAt("metadata", "name")
		return carrier{path.Base(cmp.Or(spec.ScalarAt("chart"), name)), spec.ScalarAt("version"), spec.At("valuesContent"), "valuesContent", kind == "HelmChartConfig"}, true
	case "CiliumConfig": // the operator of OLM
		return carrier{chart: cilium, values: spec}, true
	case "HelmRelease": // Flux
		at := spec.At("chart", "spec")
		return carrier{chart: path.Base(cmp.Or(at.ScalarAt("chart"), spec.ScalarAt("chartRef", "name"))), version: at.ScalarAt("version"), values: spec.At("values")}, true
	case "HelmChartProxy": // Cluster API
		return carrier{spec.ScalarAt("chartName"), spec.ScalarAt("version"), spec.At("valuesTemplate"), "valuesTemplate", false}, true
	case "Application": // Argo CD
		return ofArgo(spec)
	case "ApplicationSet":
		return ofArgo(spec.At("template", "spec"))
	}
	return carrier{}, false
}

// ofArgo returns the first source of an Application of Argo CD that is a chart.
func ofArgo(spec *position.Node) (carrier, bool) {
	sources := []*position.Node{spec.At("source")}
	if several := spec.At("sources"); several != nil && several.Kind == position.List {
		sources = append(sources, several.Items...)
	}
	for _, s := range sources {
		if s.ScalarAt("chart") == "" {
			continue
		}
		c := carrier{chart: path.Base(s.ScalarAt("chart")), version: s.ScalarAt("targetRevision"), values: s.At("helm", "valuesObject")}
		if c.values == nil {
			c.values, c.key = s.At("helm", "values"), "values"
		}
		return c, true
	}
	return carrier{}, false
}

// configures reports whether a chart is that of a CNI.
func configures(chart string) bool {
	if strings.HasPrefix(chart, "rke2-") || known(chart) {
		return true
	}
	_, ok := cniOfChart(chart)
	return ok
}

func cniOfChart(chart string) (profile.CNI, bool) {
	all := profile.CNIs()
	i := slices.IndexFunc(all, func(c profile.CNI) bool { return slices.Contains(c.Charts, chart) })
	if i < 0 {
		return profile.CNI{}, false
	}
	return all[i], true
}

// carried reads the values that an object carries. It reports whether they configure the network, and why they are not judged.
func (j *judge) carried(c carrier, s source, n *position.Node) (string, bool) {
	if !configures(c.chart) {
		return "", false
	}
	of, _ := cniOfChart(c.chart)
	if of.Name != "" && of.Family == "" && dialects[of.Name].judge == nil {
		j.addUnread(of)
		return unreadWhy(of), true
	}
	if c.values == nil || c.key != "" && c.values.Kind != position.Scalar {
		if c.required {
			*j.faults = append(*j.faults, position.Fault{File: s.name, Line: n.Line, Field: "spec." + c.key, Message: "want the values as a block (" + c.key + ": |-)"})
		}
		return "", false
	}
	if strings.HasPrefix(n.ScalarAt("kind"), "HelmChart") && c.key == "valuesContent" {
		j.helm = append(j.helm, value{path: c.chart, text: c.chart, origin: Given, by: s.by(n)})
	}
	version := c.version
	if version == "" && c.key == "" {
		version = versionShown(c.chart, layer{s, c.values})
	}
	why := j.noChart(c.chart, version)
	if dialects[of.Name].judge != nil && j.chart == nil {
		why = ""
	}
	take := func(s source, n *position.Node) bool {
		if valuesOfDialect(j, of, s, n) {
			return true
		}
		if why == "" {
			j.given = append(j.given, layer{s, n})
		} else if j.chart == nil {
			j.withoutChart(c.chart, c.version, s, n)
		}
		return true
	}
	if c.key == "" {
		return why, c.values.Kind == position.Mapping && take(s, c.values)
	}
	return why, j.within(s, c.key, c.values, take)
}

// noChart returns why the values of the chart called name cannot be judged, "" if the chart is at hand. version is the chart's,
// or the versions that its values show, or "".
func (j *judge) noChart(name, version string) string {
	switch {
	case j.chart == nil && version == "":
		return fmt.Sprintf("chart %s decides what they do: give it with --chart %s-VERSION.tgz, in the version that you install", name, name)
	case j.chart == nil:
		return fmt.Sprintf("chart %s decides what they do: give it with --chart (%s)", name, version)
	case j.chart.Name != name:
		return fmt.Sprintf("they are of chart %s, and --chart is %s", name, j.chart.Name)
	}
	return ""
}

// valuesOf takes values of the chart, or those that the values of a parent chart have under the chart's name. It returns what the
// document is.
func (j *judge) valuesOf(c *Chart, s source, n *position.Node) string {
	kind := "values of " + c.String()
	own := n
	if under, key := j.subchart(c, n); under != nil {
		kind = fmt.Sprintf("values of a parent chart: those under %s are for %s", key, c)
		own = under
	}
	j.given = append(j.given, layer{s, own})
	return kind
}

// subchart returns the values of the chart that those of a parent chart hold, and their key: the chart's name, or an alias under
// which most keys are the chart's.
func (j *judge) subchart(c *Chart, n *position.Node) (*position.Node, string) {
	if _, own := c.Values[c.Name]; own {
		return nil, ""
	}
	hit := func(n *position.Node) int {
		hits := 0
		for _, k := range n.Keys {
			if _, own := c.Values[k.Name]; own {
				hits++
			}
		}
		return hits
	}
	if under := n.At(c.Name); under != nil && under.Kind == position.Mapping && hit(under) >= hit(n) {
		return under, c.Name
	}
	if hit(n) > 0 {
		return nil, ""
	}
	for i, k := range n.Keys {
		if inner := n.Items[i]; inner.Kind == position.Mapping && len(inner.Keys) > 1 && 2*hit(inner) > len(inner.Keys) {
			return inner, k.Name
		}
	}
	return nil, ""
}
