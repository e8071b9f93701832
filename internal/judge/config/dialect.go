package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/plan/position"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// others has what the documents contain about CNIs with a dialect, and about policies.
type others struct {
	// settled has the settings of each CNI with a dialect, by its name. chainedTo is the CNI that another CNI is chained to.
	settled   map[string]*values
	chainedTo string
	// policies are NetworkPolicies. enforced means that a component other than the CNI enforces them. ignored names configured
	// components that enforce no policies.
	policies []value
	enforced bool
	// gke is the DaemonSet of GKE Dataplane V2, or an option that only Google's build of Cilium's agent has.
	gke     value
	ignored []string
	// proxyDaemon is the DaemonSet of kube-proxy; its text is the mode that its flags set.
	// noProxy is the setting that disables kube-proxy.
	// podSubnet is the range of pods in a file of kubeadm, from which kubeadm sets kube-proxy's clusterCIDR.
	proxyDaemon, noProxy, podSubnet value
	// pluginBut lists how the plugins of a configuration list differ from the profile.
	pluginBut []string
	// bgp is the BGPConfiguration called default, peers counts the BGPPeers.
	bgp   *values
	peers int
}

// dialect describes how a CNI is configured: by variables, flags, values of its chart or its own file.
type dialect struct {
	// defaults are its settings by the names that rules use.
	defaults values
	// daemon means that its DaemonSet has all settings, so that missing ones have their defaults.
	daemon bool
	// shown are the settings that are shown with their defaults, too.
	shown []string
	// other are names of the same settings in other places: in its chart, in an operator's object.
	other map[string]string
	// words maps other spellings of a text, as name=text, to the text that rules use.
	words map[string]string
	judge func(j *judge, v *values)
}

// dialects has the dialect of each CNI that needs no other code here, by the names in profile.CNIs.
var dialects = map[string]dialect{
	awsVPC: awsDialect, kubeRouter: kubeRouterDialect, kindnet: kindnetDialect, antrea: antreaDialect, ovn: ovnDialect, azure: azureDialect,
}

// prefixes are prefixes of settings' names in charts and objects.
var prefixes = []string{"env.", "init.env.", "global.", "default.", "defaultNetwork.ovnKubernetesConfig."}

// storeSettings stores those of the given settings that the CNI's dialect has, and returns their number. If daemon is true,
// the defaults are in force without any such setting, and it returns at least 1. Without a dialect it returns 0.
func storeSettings(j *judge, name string, daemon bool, given []value) int {
	d, read := dialects[name]
	if !read {
		return 0
	}
	v := cmp.Or(j.settled[name], d.defaults.emptyCopy())
	before := len(v.leaves)
	for _, g := range given {
		for _, prefix := range append(prefixes, "") {
			name, cut := strings.CutPrefix(g.path, prefix)
			if known := d.other[name]; known != "" {
				name = known
			}
			if _, is := d.defaults.defaults[name]; is && cut {
				g.path, g.text = name, cmp.Or(d.words[name+"="+g.text], g.text)
				v.leaves = append(v.leaves, g)
				break
			}
		}
	}
	if found := len(v.leaves) - before; found > 0 || daemon {
		if j.settled == nil {
			j.settled = map[string]*values{}
		}
		j.settled[name] = v
		return max(found, 1)
	}
	return 0
}

// objectSettings returns the settings that an object of a CNI has.
func objectSettings(j *judge, kind string, s source, n *position.Node) []value {
	switch kind {
	case "DaemonSet":
		return programSettings(s, n.At("spec", "template", "spec"))
	case "ConfigMap":
		return fileSettings(j, s, n.At("data"))
	}
	v := &values{}
	v.addLeaves(s, "spec", n.At("spec"))
	return v.leaves
}

// programSettings returns the variables, the images and the flags of a pod's containers.
func programSettings(s source, spec *position.Node) []value {
	const root = "spec.template.spec."
	var all []value
	for _, section := range []string{"initContainers", "containers"} {
		list := spec.At(section)
		if list == nil {
			continue
		}
		v := &values{}
		v.addLeaves(s, root+section, list)
		env := containerEnv(v)
		for _, name := range slices.Sorted(maps.Keys(env)) {
			g := env[name]
			g.path = name
			all = append(all, g)
		}
		for i, c := range list.Items {
			if image := c.At("image"); image != nil {
				g := s.newValue(fmt.Sprintf("%s%s.%d.image", root, section, i), image, image.Text)
				g.path = c.ScalarAt("name") + ".image"
				all = append(all, g)
			}
			for _, key := range []string{"command", "args"} {
				all = append(all, flagSettings(s, fmt.Sprintf("%s%s.%d.%s", root, section, i, key), c.At(key))...)
			}
		}
	}
	return all
}

// flagSettings returns the flags of a list of arguments. A flag without a value is true, unless the next argument is its
// value.
func flagSettings(s source, path string, list *position.Node) []value {
	if list == nil || list.Kind != position.List {
		return nil
	}
	var all []value
	for i, item := range list.Items {
		name, text, given := strings.Cut(strings.TrimLeft(item.Text, "-"), "=")
		if !strings.HasPrefix(item.Text, "-") || name == "" {
			continue
		}
		if !given {
			text = "true"
			if i+1 < len(list.Items) && !strings.HasPrefix(list.Items[i+1].Text, "-") {
				text = list.Items[i+1].Text
			}
		}
		g := s.newValue(path, item, text)
		g.path = name
		all = append(all, g)
	}
	return all
}

// sectionHead matches the head of a section of keys. It must be alone on its line, because YAML may have brackets in
// comments.
var sectionHead = pattern.New(`(?m)^\s*\[\w[\w-]*\]\s*$`)

// fileSettings returns the entries of a ConfigMap, and the settings in the files among them: YAML, JSON or sections of
// keys.
func fileSettings(j *judge, s source, data *position.Node) []value {
	v := &values{}
	v.addLeaves(s, "data", data)
	for _, g := range leavesOf(data, "") {
		switch {
		case strings.HasSuffix(g.path, ".conf") && sectionHead.MatchString(g.text):
			v.leaves = append(v.leaves, sectionSettings(s, g)...)
		case g.path == "kubeconfig": // access to the API, in manifests with placeholders
		case strings.ContainsAny(g.text, "{\n"):
			j.readEmbedded(s, "data."+g.path, g.node, func(s source, n *position.Node) bool {
				v.addLeaves(s, "data."+g.path, n)
				return true
			})
		}
	}
	return v.leaves
}

// sectionSettings returns the keys of a file of sections, as section.key.
func sectionSettings(s source, file leaf) []value {
	var all []value
	section, at := "", *file.node
	if at.Block {
		at.Line++
	}
	for i, line := range strings.Split(file.text, "\n") {
		place := at
		place.Line += i
		line = strings.TrimSpace(line)
		if name, is := strings.CutPrefix(line, "["); is {
			section = strings.TrimSuffix(name, "]")
		} else if key, text, is := strings.Cut(line, "="); is && !strings.HasPrefix(line, "#") {
			all = append(all, s.newValue(joinPath(section, strings.TrimSpace(key)), &place, strings.Trim(strings.TrimSpace(text), `"`)))
		}
	}
	return all
}

// changedSetting returns a setting and reports whether it is given with a value other than the default. A default that a
// manifest repeats does not count.
func (v *values) changedSetting(path string) (value, bool) {
	g := v.at(path)
	return g, g.isSet() && !g.is(v.defaults[path]) || g.isGiven() && g.text != "" && !g.is(v.defaults[path]) && v.defaults[path] != ""
}

// reportUnused adds a finding for each given setting that is not read. It ignores a setting whose value is the default.
// why is the reason for the finding.
func reportUnused(j *judge, v *values, why string, paths ...string) {
	for _, p := range paths {
		if g, is := v.changedSetting(p); is {
			j.addFinding("not-used", g, "%s: %s %s", p, g.text, why)
		}
	}
}

// judgeSettled judges the CNIs whose settings were read.
func judgeSettled(j *judge) {
	names := slices.Sorted(maps.Keys(j.settled))
	for _, name := range names {
		v, d := j.settled[name], dialects[name]
		j.showValues(name, v, d.shown...)
		for _, p := range slices.Sorted(maps.Keys(d.defaults.defaults)) {
			g, is := v.changedSetting(p)
			switch {
			case !is || slices.Contains(d.shown, p):
			case strings.HasSuffix(p, ".image"):
				j.showSetting(name, "version", imageTag(g.text), g.origin, g.by)
			default:
				j.showValues(name, v, p)
			}
		}
		d.judge(j, v)
	}
	var apart []string
	for _, name := range names {
		if c, _ := profile.LookupCNI(name); name != j.chainedTo {
			apart = append(apart, c.Title)
		}
	}
	// Cilium may be chained to another CNI, and Calico's policies may be enforced over flannel.
	ours := map[string]bool{
		"Cilium": j.agent != nil, "Calico": j.installation != nil && !j.canal,
		"flannel": j.netconf != nil && !j.canal && j.k3s == nil && j.talos == nil && j.agent != nil && j.agent.at("cni-chaining-mode").is("none"),
	}
	for title, is := range ours {
		if is && (len(apart) > 0 || ours["flannel"]) {
			apart = append(apart, title)
		}
	}
	if len(apart) > 1 {
		slices.Sort(apart)
		j.addFinding("two-cnis", value{}, "%s are configured, and none is chained to another", strings.Join(apart, " and "))
	}
}

// setChainedTo sets chainedTo: the CNI that connects the pods if another CNI is chained to it.
func setChainedTo(j *judge) {
	mode := j.agent.at("cni-chaining-mode")
	switch {
	case mode.is("aws-cni"):
		j.chainedTo = awsVPC
	case j.settled[azure] != nil && (mode.is("generic-veth") || j.agent.at("ipam").is("delegated-plugin")):
		j.chainedTo = azure
	case j.installation != nil:
		setOperatorDefaults(j.installation)
		j.chainedTo = map[string]string{"AmazonVPC": awsVPC, "AzureVNET": azure}[j.installation.at("cni.type").text]
	case j.settled[antrea].at("trafficEncapMode").is("networkPolicyOnly"):
		j.chainedTo = antrea
	}
}

// judgePolicies reports policies that no component enforces.
func judgePolicies(j *judge) {
	if len(j.policies) == 0 || j.enforced || j.agent != nil || j.installation != nil || j.felix != nil || len(j.pools) > 0 {
		return
	}
	if j.k3s != nil && !j.k3s.at("disable-network-policy").isOn() {
		return
	}
	for _, m := range j.Measured {
		if p, ok := profile.Lookup(m.Profile); ok && p.Policy == "none" && len(j.settled) == 0 {
			j.ignored = append(j.ignored, m.Profile)
		}
	}
	if len(j.ignored) > 0 {
		names := each.Of(j.policies, func(p value) string { return p.text })
		j.addFinding("policy-ignored", j.policies[0], "%s: %s enforces none", fewNames(names), j.ignored[0])
	}
}

// addProfile adds the profile called name to Measured. If there is no such profile, it adds title instead.
func addProfile(j *judge, name, title string, but ...string) {
	if isProfile(name) {
		j.addMeasured(name, but...)
		return
	}
	j.addUnmatched(title+": no profile describes it", but...)
}

// addRefusal adds the finding that the agent of a CNI exits because of a setting.
func addRefusal(j *judge, g value, saw string) {
	j.addFinding("agent-refuses", g, "%s: %s %s", g.path, g.text, saw)
}

// isOneOf reports whether a setting is one of words. It adds a finding for any other value.
func isOneOf(j *judge, v *values, path string, words ...string) bool {
	g := v.at(path)
	if slices.ContainsFunc(words, g.is) {
		return true
	}
	addRefusal(j, g, "is not one of "+strings.Join(words, ", "))
	return false
}
