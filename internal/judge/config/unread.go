package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/plan/position"
	"github.com/cnibench/cnibench/internal/profile"
)

// unreadReason returns a text for a CNI that no rule reads. It says what the user can do instead.
func unreadReason(c profile.CNI) string {
	return fmt.Sprintf("it configures %s, and no rule reads that; cnibench run --env kubernetes measures the cluster as %s", c.Title, c.Name)
}

// readCNIObject reads an object of a CNI with a dialect. For an object of a CNI that no rule reads, or of another tool,
// why is the reason that it is not judged. relevant is false for all other objects.
func (j *judge) readCNIObject(kind string, s source, n *position.Node) (why string, relevant bool) {
	c, ok := profile.CNIOfObject(kind, nameOf(n), n.ScalarAt("apiVersion"))
	if network := cmp.Or(n.ScalarAt("spec", "defaultNetwork", "type"), n.ScalarAt("spec", "networkType")); network != "" && kind == "Network" {
		if c, ok = cniOfNetwork(network); !ok {
			return "its network is " + network + ", which no rule reads: give the CNI's own configuration", true
		}
	}
	switch {
	case kind == "CiliumNodeConfig":
		return "it changes options of the agents on some nodes (spec.defaults): to judge those nodes, give the options within the ConfigMap cilium-config", true
	case !ok:
		return foreignReason(kind, n)
	case c.Name == gkeV2 && kind == "DaemonSet":
		return "", false
	case c.Name == kubeRouter && filtersOnly(n):
		j.enforced = true
		return "", false
	case dialects[c.Name].judge != nil && storeSettings(j, c.Name, kind == "DaemonSet" && dialects[c.Name].daemon || kind == "Network", objectSettings(j, kind, s, n)) > 0:
		return "", true
	case s.chart == "" && (dialects[c.Name].judge != nil || kind == "Network" && c.Family != ""):
		j.silent = append(j.silent, c)
		return "", true
	case c.Family != "" || s.chart != "" && dialects[c.Name].judge != nil:
		return "", false
	}
	j.addUnread(c)
	return unreadReason(c), true
}

// cniOfNetwork returns the CNI for a network type of OpenShift.
func cniOfNetwork(network string) (profile.CNI, bool) {
	for _, c := range profile.CNIs() {
		if strings.EqualFold(strings.ReplaceAll(c.Name, "-", ""), network) {
			return c, true
		}
	}
	return profile.CNI{}, false
}

// chainers are DaemonSets that install a chained plugin. enforcers enforce policies in addition to a CNI.
var (
	chainers  = []string{"istio-cni-node", "linkerd-cni", "node-local-dns"}
	enforcers = []string{"azure-npm", "kube-network-policies", "calico-node"}
)

// Enforces reports whether a DaemonSet of this name enforces policies in addition to any CNI.
func Enforces(daemonSet string) bool { return slices.Contains(enforcers, daemonSet) }

// installsPlugin reports whether a DaemonSet writes to the nodes' directories of CNI plugins.
func installsPlugin(kind string, n *position.Node) bool {
	volumes := n.At("spec", "template", "spec", "volumes")
	if kind != "DaemonSet" || volumes == nil || slices.Contains(chainers, n.ScalarAt("metadata", "name")) {
		return false
	}
	return slices.ContainsFunc(volumes.Items, func(v *position.Node) bool {
		at := v.ScalarAt("hostPath", "path")
		return strings.HasPrefix(at, "/etc/cni/") || strings.HasPrefix(at, "/opt/cni/")
	})
}

// filtersOnly reports whether a kube-router connects no pods.
func filtersOnly(n *position.Node) bool {
	return slices.ContainsFunc(leavesOf(n.At("spec"), ""), func(l leaf) bool { return strings.Contains(l.text, "--run-router=false") })
}

const openshiftInstaller = "the installer of OpenShift"

// foreigners are files of tools and distributions with network settings that no rule reads.
var foreigners = []struct {
	// kind and group are the object's; kind is "" for a document without one. of is the tool that reads the file. path
	// must exist in the document.
	kind, group, of string
	path            []string
	// name is the object's, "" for any.
	name string
}{
	{"ClusterConfiguration", "kubeadm.k8s.io", "kubeadm", []string{"networking", "podSubnet"}, ""},
	{"ClusterConfig", "k0s.k0sproject.io", "k0s", []string{"spec", "network", "provider"}, ""},
	{"Cluster", "k0sctl.k0sproject.io", "k0sctl", []string{"spec", "k0s", "config", "spec", "network", "provider"}, ""},
	{"Cluster", "kops.k8s.io", "kOps", []string{"spec", "networking"}, ""},
	{"ClusterConfig", "eksctl.io", "eksctl", []string{"metadata", "name"}, ""},
	{"Shoot", "core.gardener.cloud", "Gardener", []string{"spec", "networking", "type"}, ""},
	{"Simple", "k3d.io", "k3d", []string{"options"}, ""},
	{"Cluster", "provisioning.cattle.io", "Rancher", []string{"spec", "rkeConfig"}, ""},
	{"", "", "RKE", []string{"network", "plugin"}, ""},
	{"", "", "kubespray", []string{"kube_network_plugin"}, ""},
	{"", "", openshiftInstaller, []string{"networking", "networkType"}, ""},
	{"", "", "AKS (az aks show)", []string{"networkProfile", "networkPlugin"}, ""},
	{"", "", "GKE (gcloud container clusters describe)", []string{"networkConfig", "datapathProvider"}, ""},
	{"", "", "EKS (aws eks describe-addon)", []string{"addon", "addonName"}, ""},
	{"", "", "Cilium (cilium-dbg status -o json)", []string{"kube-proxy-replacement", "mode"}, ""},
	{"SpiderMultusConfig", "spiderpool.spidernet.io", "Spiderpool", []string{"spec", "cniType"}, ""},
	{"ConfigMap", "v1", "netd of GKE", []string{"data"}, "netd-config"},
	{"ConfigMap", "v1", "the agent that masquerades", []string{"data"}, "ip-masq-agent"},
	{"ConfigMap", "v1", "the agent that masquerades", []string{"data"}, "azure-ip-masq-agent-config"},
}

// foreignReason returns why a document is not judged, and whether it is one of foreigners.
func foreignReason(kind string, n *position.Node) (why string, is bool) {
	group, _, _ := strings.Cut(n.ScalarAt("apiVersion"), "/")
	for _, f := range foreigners {
		if at := n.At(f.path...); f.kind == kind && (f.group == group || kind == "") && (f.name == "" || f.name == nameOf(n)) && at != nil {
			if _, known := cniOfNetwork(at.Text); f.of == openshiftInstaller && !known {
				continue // values of a chart may have the same key
			}
			says := strings.Join(f.path, ".")
			if at.Kind == position.Scalar {
				says += ": " + at.Text
			}
			return fmt.Sprintf("it is a file of %s (%s), and no rule reads what it says about the network; give the CNI's own configuration", f.of, says), true
		}
	}
	return "", false
}

func (j *judge) addUnread(c profile.CNI) {
	if !slices.Contains(j.unread, c.Title) {
		j.unread = append(j.unread, c.Title)
	}
}

// judgeUnread adds the CNIs that are configured but not read. It marks a chart as not judged if no object of it
// configures the network.
func (j *judge) judgeUnread() {
	for _, title := range j.unread {
		j.addUnmatched(title + ": no rule reads its configuration, and no profile describes it")
	}
	if j.chart != nil && len(j.Documents) == 0 {
		j.Documents = append(j.Documents, Document{File: j.chart.String(), Kind: "chart", NotJudged: "none of its objects configures a cluster's network in a form that is read"})
	}
}

// judgeSilence marks all documents as not judged if there is no setting, finding or profile.
func (j *judge) judgeSilence() {
	if len(j.Settings)+len(j.Findings)+len(j.Measured) > 0 {
		return
	}
	why := "nothing follows from it alone: give the CNI's own configuration"
	if len(j.silent) > 0 {
		c := j.silent[0]
		if why = "it connects no pods (--run-router=false): give the configuration of the CNI that does"; c.Name != kubeRouter || !j.enforced {
			why = fmt.Sprintf("it does not say the mode of %s: give the objects that do (%s)", c.Title, configObjectNames(c))
		}
	}
	for i, d := range j.Documents {
		if d.NotJudged == "" {
			j.markUnjudged(why, i)
		}
	}
}

// chainedPlugins change what another plugin of the list creates.
var chainedPlugins = []string{"portmap", "bandwidth", "tuning", "firewall", "sbr", "vrf", "loopback", "dummy", "istio-cni", "linkerd-cni"}

// conflistReason returns why the plugins of a configuration list are not judged, "" if they are.
func (j *judge) conflistReason() string {
	main := ""
	for _, p := range j.plugins {
		if isProfile(p) {
			return ""
		}
		if main == "" && !slices.Contains(chainedPlugins, p) {
			main = p
		}
	}
	c, owned := profile.CNIOfPlugin(main)
	switch {
	case j.settled[c.Name] != nil:
		return ""
	case !owned:
		return fmt.Sprintf("no rule reads plugin %q", main)
	case c.Family == "":
		j.addUnread(c)
		return unreadReason(c)
	case j.hasOtherCNI():
		return ""
	}
	return fmt.Sprintf("the plugin is %s's, whose mode is in other objects: give those (%s)", c.Title, configObjectNames(c))
}

// configObjectNames names the objects that configure a CNI.
func configObjectNames(c profile.CNI) string {
	switch {
	case dialects[c.Name].daemon:
		return "DaemonSet " + c.Daemons[0]
	case len(c.ConfigMaps) == 0, c.Name == azure:
		return "the conflist in /etc/cni/net.d"
	case c.Name == calico:
		return "Installation, FelixConfiguration, IPPool, DaemonSet calico-node"
	}
	return "ConfigMap " + strings.Join(c.ConfigMaps, " or ")
}

// talosDefaults are the defaults of the configuration of a machine of Talos.
var talosDefaults = values{reader: "Talos", defaults: map[string]string{
	"cluster.network.cni.name": flannel, "cluster.proxy.disabled": "false", "cluster.network.podSubnets": "10.244.0.0/16", "cluster.proxy.mode": "nftables",
}}

// isTalos reports whether a document without a kind configures a machine of Talos, or is a patch of such a
// configuration.
func isTalos(n *position.Node) bool {
	sections := map[string][]string{
		"machine": {"network", "type", "token", "kubelet", "install", "sysctls", "features", "certSANs", "registries", "nodeLabels", "kernel", "files"},
		"cluster": {"network", "proxy", "controlPlane", "apiServer", "controllerManager", "scheduler", "discovery", "etcd", "inlineManifests", "extraManifests", "allowSchedulingOnControlPlanes"},
	}
	for i, key := range n.Keys {
		inner := n.Items[i]
		switch known := sections[key.Name]; {
		case slices.Contains([]string{"version", "debug", "persist"}, key.Name):
		case known == nil || inner.Kind != position.Mapping:
			return false
		case slices.ContainsFunc(inner.Keys, func(k position.Key) bool { return slices.Contains(known, k.Name) }):
			return true
		}
	}
	return false
}

// judgeTalos judges a machine's configuration of the CNI.
func (j *judge) judgeTalos() {
	if j.talos == nil {
		return
	}
	j.showValues("talos", j.talos, "cluster.network.cni.name", "cluster.proxy.disabled", "cluster.network.podSubnets")
	switch g := j.talos.at("cluster.network.cni.name"); {
	case g.is(flannel) && j.hasOtherCNI():
		j.addFinding("two-cnis", g, "cluster.network.cni.name: %s (%s), and another CNI is configured", g.text, g.sourceText())
	case j.hasOtherCNI():
	case g.is(flannel) && g.isGiven():
		j.netconf = netconfDefaults.emptyCopy()
		j.netconf.leaves = []value{{path: "Backend.Port", text: "4789", origin: Default, by: "Talos"}}
	case g.is(flannel):
		j.markUnjudged("it says nothing about the CNI: Talos then installs flannel, unless another patch says otherwise", j.talosFiles...)
	default:
		j.markUnjudged("the CNI is "+g.text+": whatever installs it is not given", j.talosFiles...)
	}
}
