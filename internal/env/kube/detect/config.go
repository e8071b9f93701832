package detect

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/config"
	"github.com/cnibench/cnibench/internal/vocab/finding"
)

// objectInput returns an object of the cluster as an input of package config. name is its name in messages, body its decoded
// JSON.
func objectInput(name string, body map[string]any) config.Input {
	text, err := json.Marshal(body)
	if err != nil { // values of JSON only
		text = []byte("{}")
	}
	return config.Input{Name: name, Text: string(text), Unlined: true}
}

// judgeObjects judges objects with package config, together with kube-proxy's mode and the policies. If that fails, it adds a
// doubt and returns false.
func (d *detective) judgeObjects(objects ...config.Input) (config.Report, bool) {
	if d.KubeProxy.Mode != "" && d.KubeProxy.Runs == Yes {
		objects = append(objects, objectInput("kube-proxy", map[string]any{
			"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": d.KubeProxy.Mode, "clusterCIDR": "0.0.0.0/0",
		}))
	}
	objects = append(objects, d.policyObjects()...)
	known := config.Known{}
	if d.CNI == cilium { // the agent's options depend on it
		known.Version = d.Version
	}
	r, err := config.Check(objects, known)
	if err != nil {
		d.addDoubt("the configuration of %s cannot be judged: %s", d.CNI, strings.ReplaceAll(err.Error(), "\n", "; "))
		return config.Report{}, false
	}
	return r, true
}

// adoptReport adds the settings of a report as configured values, sets the profile as setProfile does, and adds the report's
// serious findings as doubts.
func (d *detective) adoptReport(r config.Report) {
	for _, s := range r.Settings {
		if s.Component == kubeProxy || s.Name == config.RequiredMTU || s.Name == config.RouteMTU {
			continue // Verdict.KubeProxy has this setting, or the nodes show it
		}
		by := s.By
		if s.Origin == config.Default {
			by = "default of " + by
		}
		d.Settings = append(d.Settings, setting{Component: s.Component, Name: s.Name, Asked: s.Value, AskedBy: by})
	}
	d.setProfile(r)
	// A rule refuses the configuration, but the cluster runs, for an unknown reason: that is a doubt.
	for _, f := range r.Findings {
		if f.Severity.Rank() >= finding.Otherwise.Rank() || f.ID == "policy-ignored" {
			d.addDoubt("%s (rule %s)", f.Saw, f.ID)
		}
	}
}

// setProfile sets the profile, the encapsulation, the encryption and the MTU from a report. It does nothing unless the
// report has exactly one profile.
func (d *detective) setProfile(r config.Report) {
	if len(r.Measured) != 1 {
		return
	}
	m := r.Measured[0]
	d.Profile, d.Title = m.Profile, m.Title
	for _, s := range r.Wire {
		claim := configClaim{s.Value, s.By}
		if s.Origin == config.Default {
			claim.Source = "default of " + s.By
		}
		*map[string]*configClaim{config.Encapsulation: &d.Encapsulation, config.Encryption: &d.Encryption, config.MTU: &d.MTU}[s.Name] = claim
	}
	d.But = append(slices.Clone(d.But[:d.own]), m.But...)
}

// findSetting returns the setting called name of a component, or nil if there is none.
func (d *detective) findSetting(component, name string) *setting {
	for i := range d.Settings {
		if s := &d.Settings[i]; s.Component == component && s.Name == name {
			return s
		}
	}
	return nil
}

// setInForce records the value in force of a setting, and adds a doubt if the configured value differs. It does nothing for
// the value "".
func (d *detective) setInForce(component, name string, seen configClaim) {
	if seen.Value == "" {
		return
	}
	s := d.findSetting(component, name)
	if s == nil {
		d.addSetting(component, name, configClaim{}, seen)
		return
	}
	s.InForce, s.SeenBy = seen.Value, seen.Source
	if s.Asked != "" && !strings.EqualFold(s.Asked, s.InForce) {
		d.addDoubt("%s: %s is asked for (%s), %s is in force (%s)", name, s.Asked, s.AskedBy, s.InForce, s.SeenBy)
	}
}

// configInput returns the ConfigMap as an input of package config.
func (c configMap) configInput() config.Input {
	return objectInput(c.String(), map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": c.Name, "namespace": c.Namespace}, "data": c.Data,
	})
}
