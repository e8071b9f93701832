package detect

import (
	"regexp"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/config"
)

// document is one object of the cluster for configcheck.
type document struct {
	name string
	body map[string]any
}

// position is what configcheck adds to the name of an input; the line is of a text that nobody sees.
var position = regexp.MustCompile(`:\d+$`)

// configured asks configcheck what the documents come to. What it says about where a value stands becomes the name of
// the object.
func (d *detective) configured(docs []document) (config.Report, bool) {
	if p := d.proxyDocument(); p != nil {
		docs = append(docs, document{"kube-proxy", p})
	}
	var inputs []config.Input
	for _, doc := range docs {
		inputs = append(inputs, config.Input{Name: doc.name, Text: marshal(doc.body)})
	}
	r, err := config.Check(inputs, config.Options{})
	if err != nil {
		d.doubt("the configuration of %s cannot be judged: %s", d.CNI, strings.ReplaceAll(err.Error(), "\n", "; "))
		return config.Report{}, false
	}
	for i := range r.Settings {
		r.Settings[i].By = position.ReplaceAllString(r.Settings[i].By, "")
	}
	return r, true
}

// adopt takes what configcheck measured for the profile, and its settings for what was asked.
func (d *detective) adopt(r config.Report) {
	for _, s := range r.Settings {
		if s.Component == kubeProxy {
			continue // said by KubeProxy
		}
		d.Settings = append(d.Settings, Setting{Component: s.Component, Name: s.Name, Asked: s.Value, AskedBy: s.By})
	}
	d.measured(r)
	// On a cluster that runs, what a rule would refuse has a reason that we do not see: it is worth a doubt. Keys that
	// nobody reads are not: API servers have taken them out, and nothing of what is in force hangs on them.
	for _, f := range r.Findings {
		if f.Severity >= config.Otherwise {
			d.doubt("%s (rule %s)", f.Saw, f.Rule)
		}
	}
}

// measured takes the profile that a report measured. What an earlier report said is not true beside it.
func (d *detective) measured(r config.Report) {
	if len(r.Measured) != 1 {
		return
	}
	m := r.Measured[0]
	d.Profile, d.Title = m.Profile, m.Title
	d.But = append(slices.Clone(d.But[:d.own]), m.But...)
}

// asked returns the setting of a component, and whether there is one.
func (d *detective) asked(component, name string) (*Setting, bool) {
	for i := range d.Settings {
		if s := &d.Settings[i]; s.Component == component && s.Name == name {
			return s, true
		}
	}
	return nil, false
}

// inForce fills in what was seen of a setting, and doubts the configuration where it differs.
func (d *detective) inForce(component, name string, seen Claim) {
	if seen.Value == "" {
		return
	}
	s, ok := d.asked(component, name)
	if !ok {
		d.set(component, name, Claim{}, seen)
		return
	}
	s.InForce, s.SeenBy = seen.Value, seen.Source
	if s.Asked != "" && !strings.EqualFold(s.Asked, s.InForce) {
		d.doubt("%s: %s is asked for (%s), %s is in force (%s)", name, s.Asked, s.AskedBy, s.InForce, s.SeenBy)
	}
}

// configMapDocument is a ConfigMap as an object.
func configMapDocument(c ConfigMap) document {
	data := map[string]any{}
	for k, v := range c.Data {
		data[k] = v
	}
	return document{c.String(), map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": c.Name, "namespace": c.Namespace}, "data": data,
	}}
}
