package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/plan/position"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// objects are the configured objects; an object that the documents do not configure is nil.
type objects struct {
	// agent is the ConfigMap of Cilium's agents. agentEnv is their environment, nil if their DaemonSet is not given.
	agent    *values
	agentEnv map[string]value
	// agentFiles are the indices of the ConfigMaps in the report. agentImage is the image of the agents, if known.
	agentFiles []int
	agentImage value
	// installation, felix and pools are Calico's objects. nodePool is calico-node's default pool.
	installation, felix *values
	pools               []*values
	nodePool            *values
	// endpoint is the ConfigMap kubernetes-services-endpoint.
	endpoint *values
	// netconf is flannel's net-conf.json. canal means that Calico enforces policies over flannel.
	// podMTU is veth_mtu in the ConfigMap of canal or of Calico's manifests.
	netconf *values
	canal   bool
	podMTU  value
	// plugins are the plugins of CNI configuration lists. conflists are the indices of these lists in the report.
	plugins   []string
	conflists []int
	// silent are CNIs of which objects were given, but not the objects that configure them.
	silent []profile.CNI
	// unread are the titles of CNIs that are configured but that no rule reads.
	unread []string
	// proxy is kube-proxy's own configuration.
	proxy                  *values
	rke2, k3s, kind, talos *values
	talosFiles             []int
	limits                 []value
	// helm are the charts that HelmChartConfigs name. options are values of Cilium's chart without the chart.
	helm    []value
	options []layer
}

// readDocument reads one document. It leaves a document that does not configure the network out of the report.
func (j *judge) readDocument(s source, n *position.Node) {
	kind, name := n.ScalarAt("kind"), n.ScalarAt("metadata", "name")
	doc := Document{File: s.name, Kind: strings.TrimSpace(kind + " " + name)}
	if !s.unlined {
		doc.Line = n.Line
	}
	if kind == "" || n.ScalarAt("apiVersion") == "" && kind != "Cluster" {
		j.readBareDocument(doc, s, n)
		return
	}
	if items := n.At("items"); strings.HasSuffix(kind, "List") && items != nil && items.Kind == position.List {
		j.readList(s, strings.TrimSuffix(kind, "List"), n, items)
		return
	}
	if why, relevant := j.readObject(kind, s, n); relevant {
		doc.NotJudged = why
		j.Documents = append(j.Documents, doc)
	} else if s.chart == "" {
		j.passed = append(j.passed, doc.Kind)
	}
}

// readList reads the items of a List as kubectl and calicoctl write it. Items of a typed list, such as an IPPoolList,
// need no kind.
func (j *judge) readList(s source, kind string, n, items *position.Node) {
	for _, item := range items.Items {
		if item.Kind != position.Mapping {
			continue
		}
		if item.At("kind") == nil && kind != "" {
			item = item.With("kind", kind).With("apiVersion", n.ScalarAt("apiVersion"))
		}
		j.readDocument(s, item)
	}
}

// readObject reads one object of Kubernetes. It reports whether the object configures the network, and why it was not
// judged.
func (j *judge) readObject(kind string, s source, n *position.Node) (notJudged string, relevant bool) {
	name := nameOf(n)
	if kind == "NetworkPolicy" {
		g := s.newValue("spec", n, "NetworkPolicy "+name)
		j.policies = append(j.policies, g)
	}
	j.enforced = j.enforced || kind == "DaemonSet" && Enforces(name)
	carried, carries := carrierOf(kind, n)
	if carries && kind == "ClusterConfig" { // of eksctl, whose other files are not relevant
		return j.readCarrier(carried, s, n)
	}
	if disablesProxy(j, kind, s, n) && kind == "InitConfiguration" {
		return "", true
	}
	if why, unread := j.readCNIObject(kind, s, n); unread {
		return why, true
	}
	if carries {
		return j.readCarrier(carried, s, n)
	}
	c, of := profile.CNIOfObject(kind, name, n.ScalarAt("apiVersion"))
	switch { // a CPU limit of these does not affect the pods
	case kind == "DaemonSet" && slices.Contains(profile.Multus, name):
		return "it is Multus, which calls other CNIs: give the configuration of the one that makes pods' first device", true
	case !of && installsPlugin(kind, n):
		return "it installs a CNI plugin on the nodes, and no rule reads it", true
	}
	switch kind {
	case "Installation":
		addSecondFault(j, "Installation", s, n, n.At("spec"))
		relevant = readInto(&j.installation, installationDefaults, s, "spec", n.At("spec"))
	case "FelixConfiguration":
		if strings.HasPrefix(name, "node.") {
			return "it is of one node (" + strings.TrimPrefix(name, "node.") + "): give the one called default, or this one alone as default", true
		}
		addSecondFault(j, "FelixConfiguration", s, n, n.At("spec"))
		relevant = readInto(&j.felix, felixDefaults, s, "spec", n.At("spec"))
	case "BGPConfiguration":
		if name == "default" {
			readInto(&j.bgp, values{}, s, "spec", n.At("spec"))
		}
	case "BGPPeer":
		j.peers++
	case "IPPool":
		if group := n.ScalarAt("apiVersion"); group != "" && !strings.Contains(group, "projectcalico.org") {
			break // of whereabouts, Antrea or Kube-OVN
		}
		var pool *values
		relevant = readInto(&pool, poolDefaults, s, "spec", n.At("spec"))
		j.pools = append(j.pools, pool)
	case "KubeProxyConfiguration":
		relevant = readInto(&j.proxy, proxyDefaults, s, "", n)
	case "Cluster":
		relevant = strings.HasPrefix(n.ScalarAt("apiVersion"), "kind.") && readInto(&j.kind, kindDefaults, s, "", n)
	case "NetworkAttachmentDefinition":
		content := n.At("spec", "config")
		relevant = content != nil && content.Kind == position.Scalar && j.readEmbedded(s, "config", content, j.readConflist)
		if further := "it is a further network of pods, whose first device another CNI makes"; !slices.Contains(j.pluginBut, further) {
			j.pluginBut = append(j.pluginBut, further)
		}
	case "ConfigMap":
		relevant = j.readConfigMap(s, n)
	case "Deployment", "DaemonSet", "StatefulSet", "Job", "Pod":
		relevant = j.readWorkload(kind, s, n)
	}
	switch {
	case relevant:
	case of && s.chart == "":
		j.silent = append(j.silent, c)
		return "", true
	}
	return "", relevant
}

// readInto adds the leaves of n, which is at the path root of its document, to *v. If *v is nil, it starts with the
// defaults. It always returns true.
func readInto(v **values, defaults values, s source, root string, n *position.Node) bool {
	*v = cmp.Or(*v, defaults.emptyCopy())
	(*v).addLeaves(s, root, n)
	return true
}

// hashed matches the suffix that Kustomize adds to the name of a ConfigMap.
var hashed = pattern.New(`-[245-9bcdfghkmt]{10}$`)

// nameOf returns the name of an object. It removes the suffix that Kustomize adds to the name of a ConfigMap.
func nameOf(n *position.Node) string {
	name := n.ScalarAt("metadata", "name")
	if n.ScalarAt("kind") == "ConfigMap" {
		name = hashed.ReplaceAllString(name, "")
	}
	return name
}

// first is the place and the content of an object of a kind that exists only once in a cluster.
type first struct {
	name string
	line int
	says []leaf
}

// addSecondFault adds a fault for a second object of a kind that exists once in a cluster, in the same input and with other
// content. A later input may be a patch.
func addSecondFault(j *judge, what string, s source, n, says *position.Node) {
	if s.chart != "" || s.unlined {
		return
	}
	before, again := j.firsts[what]
	now := first{s.name, n.Line, leavesOf(says, "")}
	if j.firsts == nil {
		j.firsts = map[string]first{}
	}
	j.firsts[what] = now
	same := func(a, b leaf) bool { return a.path == b.path && a.text == b.text }
	if again && before.name == s.name && !slices.EqualFunc(before.says, now.says, same) {
		*j.faults = append(*j.faults, position.Fault{File: s.name, Line: n.Line,
			Message: fmt.Sprintf("a second %s, which differs from that of line %d: give the configuration of one cluster", what, before.line)})
	}
}

// readEmbedded calls read for each YAML or JSON mapping in the text of content. It reports whether read accepted one.
func (j *judge) readEmbedded(s source, key string, content *position.Node, read func(s source, n *position.Node) bool) bool {
	found := false
	for _, n := range position.Parse(position.Within(s.name, key, content), j.faults) {
		found = n.Kind == position.Mapping && read(s, n) || found
	}
	return found
}

// readConfigMap reads the ConfigMaps of Cilium, Calico, flannel, canal and kube-proxy. It returns false for any other.
func (j *judge) readConfigMap(s source, n *position.Node) bool {
	name, data := nameOf(n), n.At("data")
	switch name {
	case "cilium-config":
		addSecondFault(j, "ConfigMap cilium-config", s, n, data)
		j.agentFiles = append(j.agentFiles, len(j.Documents))
		return readInto(&j.agent, agentDefaults, s, "data", data)
	case "kubernetes-services-endpoint":
		return readInto(&j.endpoint, values{reader: calico}, s, "data", data)
	}
	found := false
	for _, key := range append([]string{"net-conf.json"}, proxyKeys...) {
		content := data.At(key)
		if content == nil || content.Kind != position.Scalar || key != "net-conf.json" && !strings.Contains(name, "kube-proxy") {
			continue
		}
		found = j.readEmbedded(s, key, content, func(s source, inner *position.Node) bool {
			switch {
			case key == "net-conf.json":
				addSecondFault(j, "net-conf.json", s, n, inner)
				readInto(&j.netconf, netconfDefaults, s, "data."+key, inner)
			case inner.ScalarAt("kind") == "KubeProxyConfiguration":
				addSecondFault(j, "KubeProxyConfiguration", s, n, inner)
				readInto(&j.proxy, proxyDefaults, s, "data."+key, inner)
			default:
				return false
			}
			return true
		}) || found
	}
	j.canal = j.canal || j.netconf != nil && strings.Contains(name, "canal")
	if m := data.At("veth_mtu"); m != nil && m.Text != "0" && (j.canal || name == "calico-config") {
		j.podMTU = s.newValue("data.veth_mtu", m, m.Text)
	}
	return found
}

// readWorkload reads the settings in an agent's DaemonSet, and CPU limits: a benchmark with a limit measures the quota.
// It returns false if there is neither.
func (j *judge) readWorkload(kind string, s source, n *position.Node) bool {
	root, spec := "spec.template.spec", n.At("spec", "template", "spec")
	if spec == nil {
		root, spec = "spec", n.At("spec")
	}
	containers := spec.At("containers")
	if containers == nil || containers.Kind != position.List {
		return false
	}
	name, v := n.ScalarAt("metadata", "name"), &values{}
	v.addLeaves(s, root+".containers", containers)
	switch {
	case kind == "DaemonSet" && name == "calico-node":
		j.readCalicoNode(containerEnv(v))
		return true
	case kind == "DaemonSet" && name == kubeProxy && s.chart == "":
		readProxyDaemon(j, s, root, n, spec)
		return true
	case kind == "DaemonSet" && (name == "cilium" || name == "anetd"):
		if name == "anetd" {
			j.enforced = true
			j.gke = s.newValue(root, n, "DaemonSet anetd")
		}
		j.agentEnv = containerEnv(v)
		for _, c := range containers.Items {
			if image := c.At("image"); c.ScalarAt("name") == "cilium-agent" && image != nil {
				j.agentImage = s.newValue(root+".containers.image", image, image.Text)
			}
		}
		return true
	case s.chart != "":
		return false
	}
	found := false
	for i, c := range containers.Items {
		if cpu := c.At("resources", "limits", "cpu"); cpu != nil && cpu.Kind == position.Scalar {
			found = true
			g := s.newValue("", cpu, cpu.Text)
			g.path = strings.TrimSpace(kind+" "+name) + ", container " + containers.Items[i].ScalarAt("name")
			j.limits = append(j.limits, g)
		}
	}
	return found
}

// containerEnv returns the variables of all containers by name.
func containerEnv(containers *values) map[string]value {
	env := map[string]value{}
	for _, g := range containers.leaves {
		item, isName := strings.CutSuffix(g.path, ".name")
		if !isName || !strings.Contains(item, "env.") {
			continue
		}
		v := containers.at(item + ".value")
		if v.text == "" && len(containers.leavesBelow(item+".valueFrom")) > 0 {
			v = containers.leavesBelow(item + ".valueFrom")[0]
		}
		if _, first := env[g.text]; v.text != "" && !first {
			env[g.text] = v
		}
	}
	return env
}

// readConflist reads a CNI configuration list. It returns false if n is not one.
func (j *judge) readConflist(s source, n *position.Node) bool {
	if n.At("cniVersion") == nil {
		return false
	}
	types := []string{}
	plugins := []*position.Node{n}
	if list := n.At("plugins"); list != nil {
		plugins = list.Items
	}
	for _, p := range plugins {
		types = append(types, p.ScalarAt("type"))
		readPluginSettings(j, s, p)
		if c, _ := profile.CNIOfPlugin(p.ScalarAt("type")); c.Name == azure {
			v := &values{}
			v.addLeaves(s, "", p)
			storeSettings(j, azure, false, v.leaves)
		}
	}
	j.plugins = append(j.plugins, types...)
	j.conflists = append(j.conflists, len(j.Documents))
	return true
}

// modesOf are the mode values of plugins; the first is the profile's.
var modesOf = map[string][]string{"macvlan": {"bridge", "private", "vepa", "passthru"}, "ipvlan": {"l2", "l3", "l3s"}}

// readPluginSettings reads the settings of a plugin that change what is measured, or that it refuses.
func readPluginSettings(j *judge, s source, p *position.Node) {
	v := &values{}
	v.addLeaves(s, "", p)
	modes, mode := modesOf[p.ScalarAt("type")], v.at("mode")
	switch {
	case modes == nil || mode.text == "" || mode.text == modes[0]:
	case slices.Contains(modes, mode.text):
		j.pluginBut = append(j.pluginBut, "mode "+mode.text+" in place of "+modes[0])
	default:
		addRefusal(j, mode, "is not one of "+strings.Join(modes, ", "))
	}
	for _, way := range []string{"ingress", "egress"} {
		rate, burst := v.at(way+"Rate"), v.at(way+"Burst")
		switch {
		case p.ScalarAt("type") != "bandwidth":
		case rate.number() > 0 && burst.number() == 0:
			addRefusal(j, rate, "without "+burst.path)
		case rate.number() > 0:
			j.pluginBut = append(j.pluginBut, "bandwidth holds each pod to "+rate.path+": "+rate.text+" bit/s, which is what a benchmark then measures")
		case burst.number() > 0:
			addRefusal(j, burst, "without "+rate.path)
		}
	}
}

// readBareDocument reads a document without a kind, which it identifies by its keys. A document that it does not
// recognize may be values of a chart.
func (j *judge) readBareDocument(doc Document, s source, n *position.Node) {
	has := func(keys ...string) bool {
		return slices.ContainsFunc(keys, func(k string) bool { return n.At(k) != nil })
	}
	cni := n.At("cni")
	why, isForeign := foreignReason("", n)
	carried, carries := bareCarrier(n)
	switch {
	case has("cniVersion"):
		doc.Kind = "CNI configuration list"
		j.readConflist(s, n)
	case has("Backend", "Network"):
		doc.Kind = "net-conf.json of flannel"
		readInto(&j.netconf, netconfDefaults, s, "", n)
	case has("flannel-backend", "disable-network-policy", "flannel-iface"):
		doc.Kind = "config.yaml of K3s"
		readInto(&j.k3s, k3sDefaults, s, "", n)
	case cni != nil && cni.Kind != position.Mapping, has("disable-kube-proxy", "write-kubeconfig-mode", "cluster-cidr", "kube-proxy-arg"):
		doc.Kind = "config.yaml of RKE2"
		readInto(&j.rke2, rke2Defaults, s, "", n)
	case isTalos(n):
		doc.Kind = "machine configuration of Talos"
		j.talosFiles = append(j.talosFiles, len(j.Documents))
		readInto(&j.talos, talosDefaults, s, "", n)
	case carries:
		doc.Kind = "a file that installs chart " + carried.chart
		doc.NotJudged, _ = j.readCarrier(carried, s, n)
	case isForeign:
		doc.Kind, doc.NotJudged = "a document without a kind", why
	case j.chart != nil:
		doc.Kind = j.addChartValues(j.chart, s, n)
	default:
		doc.Kind, doc.NotJudged = j.judgeChartless(s, n)
	}
	j.Documents = append(j.Documents, doc)
}
