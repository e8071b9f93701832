package detect

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/measure/netstate"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// conflist is a CNI configuration, as in a file of /etc/cni/net.d.
type conflist struct {
	// File and Node locate the conflist, "" if unknown.
	File, Node string
	Name       string
	Plugins    []plugin
	text       string
}

// plugin is one plugin of a chain.
type plugin struct {
	Type string
	// Mode and MTU are options of macvlan and ipvlan; a missing option is zero.
	Mode string
	MTU  int
	// DeviceType is an option of Calico's plugin: "netkit" in place of veth.
	DeviceType string `json:"device_type"`
	// ClusterNetwork is the conflist that Multus 4 calls, as a file or by its name.
	ClusterNetwork string
	// Delegates are the plugins that Multus calls. The first of them creates the pod's first device.
	Delegates []plugin
	// Plugins are the plugins of a delegate that is a chain.
	Plugins []plugin
}

// parseConflist reads a .conflist, or a .conf with a single plugin.
func parseConflist(text string) (conflist, error) {
	var f struct {
		Name string
		plugin
	}
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		return conflist{}, fmt.Errorf("CNI configuration: %w", err)
	}
	c := conflist{Name: f.Name, Plugins: f.Plugins, text: text}
	if len(c.Plugins) == 0 && f.Type != "" {
		c.Plugins = []plugin{f.plugin}
	}
	if len(c.Plugins) == 0 {
		return conflist{}, fmt.Errorf("CNI configuration %q: has no plugins", f.Name)
	}
	for i, p := range c.Plugins {
		if p.Type == "" {
			return conflist{}, fmt.Errorf("CNI configuration %q: plugin %d has no type", f.Name, i+1)
		}
	}
	return c, nil
}

// main returns the plugin that creates the pod's first device: the first plugin of the conflist, or if that is Multus, the
// first plugin that Multus calls.
func (c conflist) main() plugin {
	p := c.Plugins[0]
	if p.Type != "multus" || len(p.Delegates) == 0 {
		return p
	}
	first := p.Delegates[0]
	if len(first.Plugins) > 0 {
		first = first.Plugins[0]
	}
	if first.Type == "" {
		return p
	}
	return first
}

// pluginTypes lists the types of the chain's plugins.
func (c conflist) pluginTypes() string {
	return strings.Join(each.Of(c.Plugins, func(p plugin) string { return p.Type }), ", ")
}

// owner returns the name of the CNI that installs the conflist's main plugin, else the plugin's name. Canal uses
// Calico's plugin: owner tells them apart by the name of the conflist or of its file.
func (c conflist) owner() string {
	p := c.main()
	if p.Type == calico && (strings.Contains(c.Name, canal) || strings.Contains(c.File, canal)) {
		return canal
	}
	if owner, ok := profile.CNIOfPlugin(p.Type); ok {
		return owner.Name
	}
	return p.Type
}

// firstConflists returns the conflist in force of each inspected node: the first valid file by name. It adds a doubt for each
// invalid file before it.
func (d *detective) firstConflists() []conflist {
	var all []conflist
	for _, h := range d.hostObservations() {
		files := slices.Clone(h.Conflists)
		slices.SortFunc(files, func(a, b netstate.Conflist) int { return strings.Compare(a.File, b.File) })
		var valid []conflist
		for _, f := range files {
			c, err := parseConflist(f.Text)
			if err != nil {
				if len(valid) == 0 {
					d.addDoubt("%s of %s: %v", f.File, h.Node, err)
				}
				continue
			}
			c.File, c.Node = f.File, h.Node
			valid = append(valid, c)
		}
		if len(valid) > 0 {
			all = append(all, calledConflist(valid))
		}
	}
	return all
}

// calledConflist returns the first of a node's conflists, or the one that it calls if it is that of Multus 4, which names
// the file, or else takes the next.
func calledConflist(valid []conflist) conflist {
	first := valid[0].Plugins[0]
	if !strings.HasPrefix(first.Type, "multus") || len(first.Delegates) > 0 || len(valid) == 1 {
		return valid[0]
	}
	called, ok := each.First(valid[1:], func(c conflist) bool {
		return c.File == path.Base(first.ClusterNetwork) || c.Name == first.ClusterNetwork
	})
	if !ok {
		return valid[1]
	}
	return called
}

// isPluginProfile reports whether name is a profile of a CNI plugin without a daemon.
func isPluginProfile(name string) bool {
	p, ok := profile.Lookup(name)
	return ok && (p.Family == "plugins" || p.Family == "sriov")
}

// detectStandalone finds the CNI of a cluster in which no CNI has a DaemonSet. It uses the nodes' conflists and annotations.
// It recognizes a flannel that is built into the distribution, and plugins without a daemon.
func (d *detective) detectStandalone() {
	lists := d.firstConflists()
	types := map[string]string{}
	for _, c := range lists {
		types[c.Node] = c.owner()
	}
	groups, distinct := groupNodes(types)
	switch {
	case len(distinct) > 1:
		d.addDoubt("the nodes have conflists of different CNIs: %s", strings.Join(groups, "; "))
		d.Title = "several CNIs at once"
	case len(distinct) == 1 && distinct[0] == flannel, len(distinct) == 0 && d.backendOnNodes() != "":
		d.CNI, d.Source = flannel, "annotation "+flannelBackend+" of the nodes; no DaemonSet of flannel's was found: it runs outside of pods, as in K3s"
		d.detectFlannel(cniNamed(flannel), workloadSpec{Namespace: "kube-system"})
	case len(distinct) == 1:
		d.detectPlugin(lists[0], groups[0])
	case d.detectPlanted():
	default:
		d.Title = "unknown CNI"
		if !d.mayReadDaemonSets() {
			d.Title = "CNI not determined"
		}
		d.addUnproven("the CNI: no known DaemonSet was found, and /etc/cni/net.d was not read on any node")
	}
}

// PlanterSpace is the prefix of the namespace in which this program installs a plugin by a DaemonSet called
// PlanterName.
const (
	PlanterSpace = "cnibench-cni-"
	PlanterName  = "planter"
)

// detectPlanted looks for a plugin that cnibench installed by its DaemonSet PlanterName. If there is one, detectPlanted sets
// the CNI and the profile to this plugin and returns true. It needs no conflist.
func (d *detective) detectPlanted() bool {
	for _, w := range d.Workloads {
		name, ours := strings.CutPrefix(w.Namespace, PlanterSpace)
		if w.Kind != daemonSetKind || w.Name != PlanterName || !ours || !isPluginProfile(name) {
			continue
		}
		d.CNI, d.Profile, d.Source = name, name, w.String()+", by which cnibench installed it"
		d.setNoTunnel()
		return true
	}
	return false
}

// setNoTunnel sets encapsulation and encryption to "none".
func (d *detective) setNoTunnel() {
	d.Encapsulation, d.Encryption = configClaim{"none", "the plugin has none"}, configClaim{"none", "the plugin has none"}
}

// detectPlugin sets the CNI, the profile and the settings from the conflist c, which all inspected nodes have. where names
// these nodes.
func (d *detective) detectPlugin(c conflist, where string) {
	p := c.main()
	d.CNI, d.Source = c.owner(), "/etc/cni/net.d/"+c.File+": "+where
	if known, ok := profile.LookupCNI(d.CNI); ok {
		d.addDoubt("the nodes' conflist is %s's, and its DaemonSet was not found", known.Title)
		d.Title = known.Title + " in a mode that could not be read"
		return
	}
	d.addSetting(d.CNI, "plugins", configClaim{c.pluginTypes(), d.Source}, configClaim{})
	if p.Mode != "" {
		d.addSetting(d.CNI, "mode", configClaim{p.Mode, d.Source}, configClaim{})
	}
	if p.MTU > 0 {
		d.MTU = configClaim{fmt.Sprint(p.MTU), d.Source}
	}
	name := p.Type
	if !isPluginProfile(name) {
		d.Title = "plugin " + p.Type + ": no profile describes it"
		return
	}
	d.Profile = name
	d.setNoTunnel()
	if usual := map[string]string{"macvlan": "bridge", "ipvlan": "l2"}[name]; usual != "" && p.Mode != "" && p.Mode != usual {
		d.But = append(d.But, "mode "+p.Mode+" in place of "+usual)
	}
}
