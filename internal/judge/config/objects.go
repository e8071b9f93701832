package config

import (
	"strings"

	"github.com/cnibench/cnibench/internal/plan/position"
)

// objects are what the documents configure; what they do not configure is nil.
type objects struct {
	// agent is the ConfigMap that Cilium's agents read. agentEnv is their environment, nil if their DaemonSet is not given.
	agent    *values
	agentEnv map[string]value
	// installation, felix and pools are Calico's objects. nodePool is calico-node's default pool.
	installation, felix *values
	pools               []*values
	nodePool            *values
	// endpoint is the ConfigMap kubernetes-services-endpoint.
	endpoint *values
	// netconf is flannel's net-conf.json. canal says that Calico enforces policies over flannel; podMTU is canal's.
	netconf *values
	canal   bool
	podMTU  value
	// plugins are those of a CNI configuration list.
	plugins []string
	// proxy is kube-proxy's own configuration.
	proxy           *values
	rke2, k3s, kind *values
	limits          []value
	// helm are the charts that HelmChartConfigs name.
	helm []value
}

// document reads one document. A document that does not configure the network is left out of the report.
func (j *judge) document(s source, n *position.Node) {
	kind, name := n.ScalarAt("kind"), n.ScalarAt("metadata", "name")
	doc := Document{File: s.name, Kind: strings.TrimSpace(kind + " " + name)}
	if !s.unlined {
		doc.Line = n.Line
	}
	if kind == "" || n.ScalarAt("apiVersion") == "" && kind != "Cluster" {
		j.bare(doc, s, n)
		return
	}
	read, ok := readers[kind]
	if !ok {
		return
	}
	if why, relevant := read(j, s, n); relevant {
		doc.NotJudged = why
		j.Documents = append(j.Documents, doc)
	}
}

// reader reads one object. It reports whether the object configures the network, and why it was not judged.
type reader func(j *judge, s source, n *position.Node) (notJudged string, relevant bool)

// readers are the Kubernetes objects that configure the network.
var readers map[string]reader

func init() {
	readers = map[string]reader{
		"HelmChartConfig": (*judge).helmChart,
		"HelmChart":       (*judge).helmChart,
		"Installation": func(j *judge, s source, n *position.Node) (string, bool) {
			return "", readInto(&j.installation, newInstallation, s, "spec", n.At("spec"))
		},
		"FelixConfiguration": func(j *judge, s source, n *position.Node) (string, bool) {
			return "", readInto(&j.felix, newFelix, s, "spec", n.At("spec"))
		},
		"IPPool": func(j *judge, s source, n *position.Node) (string, bool) {
			pool := newPool()
			pool.read(s, "spec", n.At("spec"))
			j.pools = append(j.pools, pool)
			return "", true
		},
		"KubeProxyConfiguration": func(j *judge, s source, n *position.Node) (string, bool) {
			return "", readInto(&j.proxy, newProxy, s, "", n)
		},
		"Cluster": func(j *judge, s source, n *position.Node) (string, bool) {
			return "", strings.HasPrefix(n.ScalarAt("apiVersion"), "kind.") && readInto(&j.kind, newKind, s, "", n)
		},
		"NetworkAttachmentDefinition": func(j *judge, s source, n *position.Node) (string, bool) {
			content := n.At("spec", "config")
			return "", content != nil && content.Kind == position.Scalar && j.within(s, "config", content, j.conflist)
		},
		"ConfigMap":   (*judge).configMap,
		"Deployment":  (*judge).workload,
		"DaemonSet":   (*judge).workload,
		"StatefulSet": (*judge).workload,
		"Job":         (*judge).workload,
		"Pod":         (*judge).workload,
	}
}

// readInto reads n, which is at the path root of its document, into *v, which fresh makes if nothing was read before.
func readInto(v **values, fresh func() *values, s source, root string, n *position.Node) bool {
	if *v == nil {
		*v = fresh()
	}
	(*v).read(s, root, n)
	return true
}

// within reads the YAML or JSON that the text of content holds.
func (j *judge) within(s source, key string, content *position.Node, read func(s source, n *position.Node) bool) bool {
	found := false
	for _, n := range position.Parse(position.Within(s.name, key, content), j.faults) {
		found = n.Kind == position.Mapping && read(s, n) || found
	}
	return found
}

// helmChart reads a HelmChartConfig, or a HelmChart: values of a chart as text.
func (j *judge) helmChart(s source, n *position.Node) (string, bool) {
	name := n.ScalarAt("metadata", "name")
	if !strings.HasPrefix(name, "rke2-") && !known(name) {
		return "", false
	}
	content := n.At("spec", "valuesContent")
	if content == nil || content.Kind != position.Scalar {
		if n.ScalarAt("kind") == "HelmChartConfig" {
			*j.faults = append(*j.faults, position.Fault{File: s.name, Line: n.Line, Field: "spec.valuesContent", Message: "want the values as a block (valuesContent: |-)"})
		}
		return "", false
	}
	j.helm = append(j.helm, value{path: name, text: name, origin: Given, by: s.by(n)})
	why := j.noChart(name)
	return why, j.within(s, "valuesContent", content, func(s source, n *position.Node) bool {
		if why == "" {
			j.given = append(j.given, layer{s, n})
		}
		return true
	})
}

// configMap reads the ConfigMaps of Cilium, Calico, flannel, canal and kube-proxy.
func (j *judge) configMap(s source, n *position.Node) (string, bool) {
	name, data := n.ScalarAt("metadata", "name"), n.At("data")
	switch name {
	case "cilium-config":
		return "", readInto(&j.agent, newAgent, s, "data", data)
	case "kubernetes-services-endpoint":
		return "", readInto(&j.endpoint, func() *values { return &values{reader: "calico"} }, s, "data", data)
	}
	found := false
	for _, key := range append([]string{"net-conf.json"}, ProxyKeys...) {
		content := data.At(key)
		if content == nil || content.Kind != position.Scalar || key != "net-conf.json" && !strings.Contains(name, "kube-proxy") {
			continue
		}
		found = j.within(s, key, content, func(s source, inner *position.Node) bool {
			switch {
			case key == "net-conf.json":
				readInto(&j.netconf, newNetconf, s, "data."+key, inner)
			case inner.ScalarAt("kind") == "KubeProxyConfiguration":
				readInto(&j.proxy, newProxy, s, "data."+key, inner)
			default:
				return false
			}
			return true
		}) || found
	}
	if j.netconf != nil && strings.Contains(name, "canal") {
		j.canal = true
		if m := data.At("veth_mtu"); m != nil && m.Text != "0" {
			j.podMTU = s.value("data.veth_mtu", m, m.Text)
		}
	}
	return "", found
}

// workload reads what an agent's DaemonSet says, and limits of CPU: a benchmark under one measures the quota.
func (j *judge) workload(s source, n *position.Node) (string, bool) {
	root, spec := "spec.template.spec", n.At("spec", "template", "spec")
	if spec == nil {
		root, spec = "spec", n.At("spec")
	}
	containers := spec.At("containers")
	if containers == nil || containers.Kind != position.List {
		return "", false
	}
	kind, name := n.ScalarAt("kind"), n.ScalarAt("metadata", "name")
	v := &values{}
	v.read(s, root+".containers", containers)
	switch {
	case kind == "DaemonSet" && name == "calico-node":
		j.calicoNode(environment(v))
		return "", true
	case kind == "DaemonSet" && name == "cilium":
		j.agentEnv = environment(v)
		return "", true
	case s.chart != "":
		return "", false
	}
	found := false
	for i, c := range containers.Items {
		if cpu := c.At("resources", "limits", "cpu"); cpu != nil && cpu.Kind == position.Scalar {
			found = true
			g := s.value("", cpu, cpu.Text)
			g.path = strings.TrimSpace(kind+" "+name) + ", container " + containers.Items[i].ScalarAt("name")
			j.limits = append(j.limits, g)
		}
	}
	return "", found
}

// environment returns the variables of all containers by name.
func environment(containers *values) map[string]value {
	env := map[string]value{}
	for _, g := range containers.leaves {
		item, isName := strings.CutSuffix(g.path, ".name")
		if !isName || !strings.Contains(item, "env.") {
			continue
		}
		v := containers.at(item + ".value")
		if v.text == "" && len(containers.below(item+".valueFrom")) > 0 {
			v = containers.below(item + ".valueFrom")[0]
		}
		if _, first := env[g.text]; v.text != "" && !first {
			env[g.text] = v
		}
	}
	return env
}

// conflist reads a CNI configuration list.
func (j *judge) conflist(_ source, n *position.Node) bool {
	if n.At("cniVersion") == nil {
		return false
	}
	types := []string{}
	if list := n.At("plugins"); list != nil {
		for _, p := range list.Items {
			types = append(types, p.ScalarAt("type"))
		}
	} else {
		types = append(types, n.ScalarAt("type"))
	}
	j.plugins = append(j.plugins, types...)
	return true
}

// bare reads a document without a kind: its keys tell what it is. What they do not tell are values of a chart.
func (j *judge) bare(doc Document, s source, n *position.Node) {
	has := func(keys ...string) bool {
		for _, k := range keys {
			if n.At(k) != nil {
				return true
			}
		}
		return false
	}
	cni := n.At("cni")
	switch {
	case has("cniVersion"):
		doc.Kind = "CNI configuration list"
		j.conflist(s, n)
	case has("Backend", "Network"):
		doc.Kind = "net-conf.json of flannel"
		readInto(&j.netconf, newNetconf, s, "", n)
	case has("flannel-backend", "disable-network-policy", "flannel-iface"):
		doc.Kind = "config.yaml of K3s"
		readInto(&j.k3s, newK3s, s, "", n)
	case cni != nil && cni.Kind != position.Mapping, has("disable-kube-proxy", "write-kubeconfig-mode", "cluster-cidr", "kube-proxy-arg"):
		doc.Kind = "config.yaml of RKE2"
		readInto(&j.rke2, newRKE2, s, "", n)
	case j.chart == nil:
		doc.Kind, doc.NotJudged = "values of a chart", "the chart decides what they do: give it with --chart"
	default:
		doc.Kind = "values of " + j.chart.String()
		j.given = append(j.given, layer{s, n})
	}
	j.Documents = append(j.Documents, doc)
}
