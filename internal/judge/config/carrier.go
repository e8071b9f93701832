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
	// chart and version identify the chart as the object does; version may be "".
	chart, version string
	// values has the values as a mapping, or as a text. key is the field of that text.
	values *position.Node
	key    string
	// sets are mappings of single values that override values, as helm --set passes them.
	sets []*position.Node
	// from lists the objects that have further values. values overrides them.
	from *position.Node
	// elsewhere names the place of further values that the object lacks, "" if it has all.
	elsewhere string
	// required means that the object has no other purpose than its values.
	required bool
}

// carrierOf returns the values that an object carries. ok is false for other objects.
func carrierOf(kind string, n *position.Node) (c carrier, ok bool) {
	spec := n.At("spec")
	switch kind {
	case "HelmChartConfig", "HelmChart": // RKE2, K3s
		name := n.ScalarAt("metadata", "name")
		return carrier{chart: path.Base(cmp.Or(spec.ScalarAt("chart"), name)), version: spec.ScalarAt("version"), values: spec.At("valuesContent"),
			key: "valuesContent", sets: setsOf(spec.At("set")), required: kind == "HelmChartConfig"}, true
	case "CiliumConfig": // the operator of OLM
		return carrier{chart: cilium, values: spec}, true
	case "HelmRelease": // Flux
		at := spec.At("chart", "spec")
		c = carrier{chart: path.Base(at.ScalarAt("chart")), version: at.ScalarAt("version"), values: spec.At("values"), from: spec.At("valuesFrom")}
		if ref := spec.At("chartRef"); ref != nil { // an object with only the chart's address: usually its name, or the release's, is the chart's
			c.chart = cmp.Or(ref.ScalarAt("name"), c.chart)
			if !isCNIChart(c.chart) {
				c.chart = cmp.Or(spec.ScalarAt("releaseName"), n.ScalarAt("metadata", "name"))
			}
		}
		return c, true
	case "HelmChartProxy": // Cluster API
		c = carrier{chart: spec.ScalarAt("chartName"), version: spec.ScalarAt("version"), values: spec.At("valuesTemplate"), key: "valuesTemplate"}
		if strings.Contains(spec.ScalarAt("valuesTemplate"), "{{") {
			c.elsewhere = "the Cluster that the template reads"
		}
		return c, true
	case "Application": // Argo CD
		return argoCarrier(spec)
	case "ApplicationSet":
		return argoCarrier(spec.At("template", "spec"))
	case "Kustomization":
		return listCarrier(n.At("helmCharts"), func(item *position.Node) carrier {
			return carrier{chart: item.ScalarAt("name"), version: item.ScalarAt("version"), values: item.At("valuesInline"), elsewhere: item.ScalarAt("valuesFile")}
		})
	case "Bundle": // Fleet
		return fleetCarrier(spec.At("helm"))
	case "ClusterConfig": // eksctl
		return listCarrier(n.At("addons"), func(item *position.Node) carrier { return addonCarrier(item, "name") })
	}
	return carrier{}, false
}

// addonCarrier returns the settings of an EKS add-on, whose name is at key. The settings of vpc-cni are values of the chart
// aws-vpc-cni.
func addonCarrier(n *position.Node, key string) carrier {
	c := carrier{values: n.At("configurationValues"), key: "configurationValues"}
	if c.values != nil && n.ScalarAt(key) == "vpc-cni" {
		c.chart = "aws-vpc-cni"
	}
	return c
}

// bareCarrier returns the values of a chart in a document without a kind: a helmfile, a fleet.yaml or an EKS add-on. ok is
// false for other documents.
func bareCarrier(n *position.Node) (c carrier, ok bool) {
	if addon := n.At("addon"); addon != nil {
		c = addonCarrier(addon, "addonName")
		return c, c.chart != ""
	}
	if n.At("releases") != nil {
		return listCarrier(n.At("releases"), func(item *position.Node) carrier {
			c := carrier{chart: path.Base(item.ScalarAt("chart")), version: item.ScalarAt("version")}
			if values := item.At("values"); values != nil && values.Kind == position.List {
				for _, v := range values.Items {
					switch {
					case v.Kind == position.Scalar:
						c.elsewhere = v.Text
					case c.values == nil:
						c.values = v
					default:
						c.sets = append(c.sets, v)
					}
				}
			}
			return c
		})
	}
	if n.At("helm", "chart") == nil {
		return carrier{}, false
	}
	return fleetCarrier(n.At("helm"))
}

func fleetCarrier(helm *position.Node) (carrier, bool) {
	c := carrier{chart: path.Base(helm.ScalarAt("chart")), version: helm.ScalarAt("version"), values: helm.At("values")}
	c.elsewhere = cmp.Or(namesIn(helm.At("valuesFiles")), namesIn(helm.At("valuesFrom"), "configMapKeyRef", "name"))
	return c, isCNIChart(c.chart)
}

// listCarrier returns the first item of a list that installs the chart of a CNI.
func listCarrier(list *position.Node, read func(item *position.Node) carrier) (carrier, bool) {
	if list == nil || list.Kind != position.List {
		return carrier{}, false
	}
	for _, item := range list.Items {
		if c := read(item); isCNIChart(c.chart) {
			return c, true
		}
	}
	return carrier{}, false
}

// argoCarrier returns the first source of an Application of Argo CD with the chart of a CNI, recognized by its name or the
// name of its folder in git.
func argoCarrier(spec *position.Node) (carrier, bool) {
	sources := []*position.Node{spec.At("source")}
	if several := spec.At("sources"); several != nil && several.Kind == position.List {
		sources = append(sources, several.Items...)
	}
	for _, s := range sources {
		helm := s.At("helm")
		c := carrier{chart: path.Base(s.ScalarAt("chart")), version: s.ScalarAt("targetRevision"), values: helm.At("valuesObject"), sets: setsOf(helm.At("parameters")), elsewhere: namesIn(helm.At("valueFiles"))}
		if s.ScalarAt("chart") == "" {
			c.chart, c.version = path.Base(s.ScalarAt("path")), ""
			c.elsewhere = strings.TrimPrefix(c.elsewhere+", the chart in git: "+s.ScalarAt("path"), ", ")
		}
		if c.values == nil {
			c.values, c.key = helm.At("values"), "values"
		}
		if isCNIChart(c.chart) {
			return c, true
		}
	}
	return carrier{}, false
}

// namesIn returns the items of a list as one text. With keys, it returns the items' values at these keys instead.
func namesIn(list *position.Node, keys ...string) string {
	if list == nil || list.Kind != position.List {
		return ""
	}
	var names []string
	for _, item := range list.Items {
		name := item.Text
		for _, key := range keys {
			name = strings.TrimSpace(name + " " + item.ScalarAt(key))
		}
		names = append(names, name)
	}
	return fewNames(names)
}

// setsOf returns the values that n sets one by one, each as a nested mapping. n is a mapping of paths, or a list of
// names and values.
func setsOf(n *position.Node) (sets []*position.Node) {
	switch {
	case n == nil:
	case n.Kind == position.Mapping:
		for i, key := range n.Keys {
			sets = append(sets, nestedMapping(key.Name, n.Items[i]))
		}
	case n.Kind == position.List:
		for _, item := range n.Items {
			if v := item.At("value"); v != nil {
				sets = append(sets, nestedMapping(item.ScalarAt("name"), v))
			}
		}
	}
	return sets
}

// nestedMapping returns a mapping with a value at a dotted path.
func nestedMapping(at string, v *position.Node) *position.Node {
	keys := strings.Split(at, ".")
	for _, key := range slices.Backward(keys) {
		v = &position.Node{Kind: position.Mapping, Line: v.Line, Keys: []position.Key{{Name: key, Line: v.Line}}, Items: []*position.Node{v}}
	}
	return v
}

// isCNIChart reports whether a chart is the chart of a CNI.
func isCNIChart(chart string) bool {
	if strings.HasPrefix(chart, "rke2-") || isProfile(chart) {
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

// readCarrier reads the values that an object carries. The text is the reason why they are not judged, or "". The bool
// is true if the object configures the network. It adds a fault if a HelmChartConfig has no values.
func (j *judge) readCarrier(c carrier, s source, n *position.Node) (string, bool) {
	if !isCNIChart(c.chart) {
		return "", false
	}
	of, _ := cniOfChart(c.chart)
	if of.Name != "" && of.Family == "" && dialects[of.Name].judge == nil {
		j.addUnread(of)
		return unreadReason(of), true
	}
	text := c.key != "" && c.values != nil && c.values.Kind == position.Scalar
	if c.required && !text && len(c.sets) == 0 {
		*j.faults = append(*j.faults, position.Fault{File: s.name, Line: n.Line, Field: "spec." + c.key, Message: "want the values as a block (" + c.key + ": |-)"})
		return "", false
	}
	if strings.HasPrefix(n.ScalarAt("kind"), "HelmChart") && c.key == "valuesContent" {
		j.helm = append(j.helm, value{path: c.chart, text: c.chart, origin: Given, by: s.placeOf(n)})
	}
	if strings.Contains(c.version, "{{") || strings.Contains(c.version, "$") { // a template's
		c.version = ""
	}
	c.version = strings.TrimRight(strings.TrimLeft(c.version, "~^>= "), ".x*")
	version := c.version
	if version == "" && c.key == "" && c.values != nil {
		shown := versionShown(c.chart, layer{s, c.values})
		c.version, version = shown.newest(), shown.shownRange()
	}
	why := j.missingChartReason(c.chart, version)
	if dialects[of.Name].judge != nil && j.chart == nil {
		why = ""
	}
	take := func(s source, n *position.Node) bool {
		if readDialectValues(j, of, s, n) {
			return true
		}
		if why == "" {
			j.given = append(j.given, layer{s, n})
		} else if j.chart == nil {
			j.judgeWithoutChart(c.chart, c.version, s, n)
		}
		return true
	}
	from, known := referencedValues(c.from, j.documents)
	if !known {
		c.elsewhere = namesIn(c.from, "kind", "name")
	}
	switch {
	case c.elsewhere != "": // a missing value may be set there
		return strings.TrimPrefix(why+"; ", "; ") + "further values are elsewhere (" + c.elsewhere + "): give them all as one file", true
	case len(c.sets)+len(from) == 0 && c.values == nil && why != "":
		return "it has no values of its own, so that those of the chart are in force: give it with --chart " + c.chart + "-VERSION.tgz", true
	}
	for _, r := range from {
		if r.at == "" {
			j.readEmbedded(s, r.key, r.value, take)
		} else {
			take(s, nestedMapping(r.at, r.value))
		}
	}
	switch {
	case text:
		j.readEmbedded(s, c.key, c.values, take)
	case c.values != nil && c.values.Kind == position.Mapping:
		take(s, c.values)
	}
	for _, set := range c.sets {
		take(s, set)
	}
	return why, true
}

// reference is the text of a key of a ConfigMap or Secret: a file of values, or one value at a path.
type reference struct {
	key, at string
	value   *position.Node
}

// referencedValues returns the contents of the objects that valuesFrom of a HelmRelease lists. ok is false if documents
// lacks one of them.
func referencedValues(list *position.Node, documents []*position.Node) (found []reference, ok bool) {
	if list == nil {
		return nil, true
	}
	for _, item := range list.Items {
		r := reference{key: cmp.Or(item.ScalarAt("valuesKey"), "values.yaml"), at: item.ScalarAt("targetPath")}
		for _, n := range documents {
			if n.ScalarAt("kind") == item.ScalarAt("kind") && n.ScalarAt("metadata", "name") == item.ScalarAt("name") {
				r.value = cmp.Or(n.At("data", r.key), r.value)
				if item.ScalarAt("kind") == "Secret" { // its data is in base64
					r.value = n.At("stringData", r.key)
				}
			}
		}
		if r.value == nil || r.value.Kind != position.Scalar {
			return nil, false
		}
		found = append(found, r)
	}
	return found, true
}

// missingChartReason returns why the values of the chart called name cannot be judged, "" if the chart is available.
// version is the chart's, or the versions that its values suggest, or "".
func (j *judge) missingChartReason(name, version string) string {
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

// addChartValues adds n to the values of chart c. If n has the values of a parent chart, it adds only those for c. It
// returns the kind of the document.
func (j *judge) addChartValues(c *Chart, s source, n *position.Node) string {
	kind := "values of " + c.String()
	own := n
	if under, key := j.subchartValues(c, n); under != nil {
		kind = fmt.Sprintf("values of a parent chart: those under %s are for %s", key, c)
		own = under
	}
	j.given = append(j.given, layer{s, own})
	return kind
}

// subchartValues returns the values of the chart within a parent chart's, and their key: the chart's name, or an alias
// under which most keys are the chart's. It returns nil if n has none.
func (j *judge) subchartValues(c *Chart, n *position.Node) (*position.Node, string) {
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
