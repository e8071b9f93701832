package detect

import (
	"github.com/cnibench/cnibench/internal/judge/config"
	"github.com/cnibench/cnibench/internal/profile"
)

// detectByConfig sets the profile and settings of a CNI that has no method of its own. Package config judges the CNI's
// DaemonSet, its ConfigMaps, a node's first conflist and OpenShift's Network. If these do not show the mode, detectByConfig
// chooses the profile that describes the CNI with any settings, if there is one.
func (d *detective) detectByConfig(p present) {
	d.Title = p.Title + ": no profile describes it"
	if of, described := profile.OfCNI(p.Name); described {
		d.Profile, d.Title = of.Name, of.Title
	}
	objects := []config.Input{p.daemon.configInput()}
	for _, name := range p.ConfigMaps {
		if c, ok := d.configMap(p.daemon.Namespace, name); ok {
			objects = append(objects, c.configInput())
		}
	}
	for _, o := range d.objects("Network") {
		objects = append(objects, objectInput("Network "+stringField(o, "metadata", "name"), o))
	}
	if lists := d.firstConflists(); len(lists) > 0 && lists[0].owner() == p.Name {
		objects = append(objects, config.Input{Name: lists[0].File + " of " + lists[0].Node, Text: lists[0].text, Unlined: true})
	}
	if r, ok := d.judgeObjects(objects...); ok {
		d.adoptReport(r)
		if len(r.Measured) == 0 {
			d.addUnproven("the mode of %s: neither its objects nor a node's conflist says it", p.Title)
		}
	}
}

// policyObjects returns the objects from which package config judges whether policies are enforced. These are the
// NetworkPolicies in the snapshot, and the DaemonSets that enforce policies in addition to the CNI. For K3s it returns nil.
func (d *detective) policyObjects() []config.Input {
	if d.Distribution == "K3s" { // K3s enforces them without a pod
		return nil
	}
	var all []config.Input
	for _, o := range d.objects("NetworkPolicy") {
		all = append(all, objectInput("NetworkPolicy "+stringField(o, "metadata", "namespace")+"/"+stringField(o, "metadata", "name"), o))
	}
	for _, w := range d.Workloads {
		if len(all) > 0 && config.Enforces(w.Name) || w.Name == kubeRouter && w.flagValue("run-router") == "false" {
			all = append(all, w.configInput())
		}
	}
	return all
}

// configInput returns the workload as an input of package config: a DaemonSet with its containers.
func (w workloadSpec) configInput() config.Input {
	return objectInput(w.String(), map[string]any{
		"apiVersion": "apps/v1", "kind": daemonSetKind, "metadata": map[string]any{"name": w.Name},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": w.Containers}}},
	})
}
