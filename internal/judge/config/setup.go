package config

import (
	"fmt"
	"slices"
	"strings"
)

// Kinds are what Options.As can name: whose values, or whose configuration, a document without a kind is. A config.yaml
// beside the values of a chart is told by its keys all the same.
var Kinds = []string{"cilium", "rke2-cilium", "calico", "rke2-calico", "flannel", "rke2-flannel", "rke2-canal", "kube-proxy", "rke2", "k3s", "kind"}

// setup is what the documents configure; what none of them does is nil.
type setup struct {
	// cilium are values of its chart, agent the ConfigMap cilium-config under the names of the chart's values.
	cilium, agent *values
	// installation is the spec of Calico's Installation, from the object or from the values of a chart; felix that of
	// FelixConfiguration; pools those of IPPool objects.
	installation, felix *values
	pools               []*values
	// nodePool is the pool that calico-node makes where there is none, as its environment says.
	nodePool *values
	// flannel are values of its chart, netconf its net-conf.json.
	flannel, netconf *values
	canal            *values
	// proxy is kube-proxy's own configuration.
	proxy           *values
	rke2, k3s, kind *values
	// onRKE2 says that a chart of RKE2 is used; charts are those that a HelmChartConfig names, with where.
	onRKE2 bool
	charts []value
	limits []value
}

func newSetup() *setup { return &setup{} }

func (s *setup) empty() bool {
	return s.cilium == nil && s.agent == nil && s.installation == nil && s.felix == nil && len(s.pools) == 0 && s.flannel == nil &&
		s.netconf == nil && s.canal == nil && s.proxy == nil && s.rke2 == nil && s.k3s == nil && s.kind == nil && len(s.limits) == 0
}

// add takes one document for what it is. A document that configures no network is left out.
func (s *setup) add(file string, t *tree, as string, faults *Faults) (Document, bool) {
	kind, name := t.scalar("kind"), t.scalar("metadata", "name")
	doc := Document{File: file, Line: t.line, Kind: strings.TrimSpace(kind + " " + name)}
	if kind == "" || t.scalar("apiVersion") == "" && kind != "Cluster" {
		return s.addBare(doc, t, as, faults)
	}
	read, ok := objects[kind]
	if !ok {
		return Document{}, false
	}
	return doc, read(s, file, t, faults)
}

// objects read the Kubernetes objects that say something about the network. They report whether this one does.
var objects = map[string]func(s *setup, file string, t *tree, faults *Faults) bool{
	"HelmChartConfig": (*setup).helmChart,
	"HelmChart":       (*setup).helmChart,
	"Installation": func(s *setup, file string, t *tree, _ *Faults) bool {
		return s.spec(&s.installation, newInstallation("the operator"), file, t)
	},
	"FelixConfiguration": func(s *setup, file string, t *tree, _ *Faults) bool {
		return s.spec(&s.felix, newFelix(), file, t)
	},
	"IPPool": func(s *setup, file string, t *tree, _ *Faults) bool {
		var p *values
		ok := s.spec(&p, newPool(), file, t)
		s.pools = append(s.pools, p)
		return ok
	},
	"KubeProxyConfiguration": func(s *setup, file string, t *tree, _ *Faults) bool {
		s.into(&s.proxy, newProxy(), file, t)
		return true
	},
	"Cluster": func(s *setup, file string, t *tree, _ *Faults) bool {
		if !strings.HasPrefix(t.scalar("apiVersion"), "kind.") {
			return false
		}
		s.into(&s.kind, newKind(), file, t)
		return true
	},
	"ConfigMap":   (*setup).configMap,
	"Deployment":  (*setup).pod,
	"DaemonSet":   (*setup).pod,
	"StatefulSet": (*setup).pod,
	"Job":         (*setup).pod,
	"Pod":         (*setup).pod,
}

// into flattens t into *v, which is fresh if nothing was given before.
func (s *setup) into(v **values, fresh *values, file string, t *tree) {
	if *v == nil {
		*v = fresh
	}
	(*v).flatten(file, t, "")
}

// spec does so with the spec of an object.
func (s *setup) spec(v **values, fresh *values, file string, t *tree) bool {
	spec := t.get("spec")
	if spec == nil {
		spec = &tree{kind: mapping, line: t.line}
	}
	s.into(v, fresh, file, spec)
	return true
}

// chart adds the values t of a chart, whose name says what they are. It reports whether the chart is known.
func (s *setup) chart(name, file string, t *tree) bool {
	s.onRKE2 = s.onRKE2 || strings.HasPrefix(name, "rke2-")
	switch name {
	case "cilium", "rke2-cilium":
		s.into(&s.cilium, newCilium(name), file, t)
	case "calico", "tigera-operator", "rke2-calico":
		s.operator(name, file, t)
	case "flannel", "rke2-flannel":
		s.into(&s.flannel, newFlannel(name), file, t)
	case "rke2-canal":
		s.into(&s.canal, newCanal(), file, t)
	default:
		return false
	}
	return true
}

// operator takes the values of the operator's chart apart: the Installation and, in RKE2's, the FelixConfiguration.
func (s *setup) operator(name, file string, t *tree) {
	of := "chart " + name
	empty := &tree{kind: mapping, line: t.line}
	inst := t.get("installation")
	if inst == nil || inst.kind != mapping {
		inst = empty
	}
	fresh := newInstallation(of)
	if name == "rke2-calico" {
		fresh.defaults["calicoNetwork.bgp"] = "Disabled"
		fresh.defaults["calicoNetwork.ipPools.0.encapsulation"] = "VXLAN"
	}
	s.into(&s.installation, fresh, file, inst)
	for _, key := range []string{"felixConfiguration", "defaultFelixConfiguration"} {
		if f := t.get(key); f != nil && f.kind == mapping {
			s.into(&s.felix, newFelix(), file, f)
		}
	}
}

// helmChart reads a HelmChartConfig, or the HelmChart itself: the values are YAML inside of YAML.
func (s *setup) helmChart(file string, t *tree, faults *Faults) bool {
	name := t.scalar("metadata", "name")
	content := t.get("spec", "valuesContent")
	if !slices.Contains(Kinds, name) && name != "tigera-operator" {
		return false
	}
	s.charts = append(s.charts, value{path: "metadata.name", text: name, origin: Given, file: file, line: t.line})
	if content == nil || content.kind != scalar {
		if t.scalar("kind") == "HelmChartConfig" {
			faults.add(file, t.line, "HelmChartConfig %s has no text in spec.valuesContent: want the values as a block (valuesContent: |-)", name)
		}
		return s.chart(name, file, &tree{kind: mapping, line: t.line})
	}
	docs := parse(inside(file, "valuesContent", content), faults)
	if len(docs) > 1 {
		faults.add(file, docs[1].line, "valuesContent has more than one document: Helm reads the first alone")
	}
	if len(docs) == 0 {
		docs = []*tree{{kind: mapping, line: content.line}}
	}
	return s.chart(name, file, docs[0])
}

// configMap reads those of Cilium, flannel and kube-proxy.
func (s *setup) configMap(file string, t *tree, faults *Faults) bool {
	if t.scalar("metadata", "name") == "cilium-config" {
		data := t.get("data")
		if data == nil {
			data = &tree{kind: mapping, line: t.line}
		}
		s.into(&s.agent, newAgent(), file, agentNames(data))
		return true
	}
	for _, key := range []string{"net-conf.json", "config.conf"} {
		content := t.get("data", key)
		if content == nil || content.kind != scalar {
			continue
		}
		docs := parse(inside(file, key, content), faults)
		for _, d := range docs {
			switch {
			case key == "net-conf.json" && strings.Contains(t.scalar("metadata", "name"), "canal"):
				s.canalMap(file, t, d)
			case key == "net-conf.json":
				s.into(&s.netconf, newNetconf(), file, d)
			case d.scalar("kind") == "KubeProxyConfiguration":
				s.into(&s.proxy, newProxy(), file, d)
			}
		}
		return len(docs) > 0
	}
	return false
}

// canalMap reads the ConfigMap of canal: flannel's backend, and the MTU of the pods' devices.
func (s *setup) canalMap(file string, t, netconf *tree) {
	s.canal = newValues("canal", map[string]string{"flannel.backend": "vxlan"})
	if b := netconf.get("Backend", "Type"); b != nil {
		s.canal.put(value{path: "flannel.backend", text: b.text, file: file, line: b.line}, false)
	}
	if m := t.get("data", "veth_mtu"); m != nil && m.text != "0" {
		s.canal.put(value{path: "calico.vethuMTU", text: m.text, file: file, line: m.line}, false)
	}
}

// calicoNode reads the environment of calico-node, by which manifests configure Calico: the pool that it makes, and
// Felix's settings, which the environment decides before any object.
func (s *setup) calicoNode(file string, containers *tree) {
	s.nodePool = newPool()
	if s.felix == nil {
		s.felix = newFelix()
	}
	for _, c := range containers.items {
		env := c.get("env")
		if env == nil {
			continue
		}
		for _, e := range env.items {
			name, text := e.scalar("name"), e.scalar("value")
			g := value{text: text, file: file, line: e.line}
			switch g.path = poolVariables[name]; {
			case text == "":
			case g.path != "":
				s.nodePool.put(g, false)
			case felixKey(name) != "":
				g.path = felixKey(name)
				s.felix.put(g, false)
			}
		}
	}
}

// poolVariables are the variables of calico-node that the first pool is made of.
var poolVariables = map[string]string{
	"CALICO_IPV4POOL_IPIP": "ipipMode", "CALICO_IPV4POOL_VXLAN": "vxlanMode", "CALICO_IPV4POOL_CIDR": "cidr",
}

// felixKey returns the key of a FelixConfiguration that a variable stands for, "" if there is none.
func felixKey(variable string) string {
	name, ok := strings.CutPrefix(variable, "FELIX_")
	if !ok {
		return ""
	}
	for _, key := range strings.Fields(felixSchema.below[""]) {
		if strings.EqualFold(key, name) {
			return key
		}
	}
	return ""
}

// pod remembers limits of CPU: a benchmark under one measures the quota.
func (s *setup) pod(file string, t *tree, _ *Faults) bool {
	spec := t.get("spec", "template", "spec")
	if spec == nil {
		spec = t.get("spec")
	}
	containers := spec.get("containers")
	if containers == nil || containers.kind != list {
		return false
	}
	if t.scalar("kind") == "DaemonSet" && t.scalar("metadata", "name") == "calico-node" {
		s.calicoNode(file, containers)
		return true
	}
	found := false
	for _, c := range containers.items {
		if cpu := c.get("resources", "limits", "cpu"); cpu != nil && cpu.kind == scalar {
			found = true
			name := strings.TrimSpace(t.scalar("kind") + " " + t.scalar("metadata", "name"))
			s.limits = append(s.limits, value{path: name + ", container " + c.scalar("name"), text: cpu.text, origin: Given, file: file, line: cpu.line})
		}
	}
	return found
}

// addBare takes a document without a kind for what Options.As says, or what its keys say.
func (s *setup) addBare(doc Document, t *tree, as string, faults *Faults) (Document, bool) {
	if told := s.tell(t); as == "" || slices.Contains(configs, told) && !slices.Contains(configs, as) {
		as = told // a config.yaml beside the values of a chart
	}
	if as == "" {
		faults.add(doc.File, doc.Line, "has no kind, and its keys do not say what it is: say it with --as %s", strings.Join(Kinds, "|"))
		return Document{}, false
	}
	doc.Kind = "values of chart " + as
	switch {
	case s.chart(as, doc.File, t):
	case as == "kube-proxy":
		doc.Kind = "configuration of kube-proxy"
		s.into(&s.proxy, newProxy(), doc.File, t)
	case as == "kind":
		doc.Kind = "configuration of kind"
		s.into(&s.kind, newKind(), doc.File, t)
	case as == "rke2":
		doc.Kind, s.onRKE2 = "config.yaml of RKE2", true
		s.into(&s.rke2, newRKE2(), doc.File, t)
	case as == "k3s":
		doc.Kind = "config.yaml of K3s"
		s.into(&s.k3s, newK3s(), doc.File, t)
	case as == "net-conf":
		doc.Kind = "net-conf.json of flannel"
		s.into(&s.netconf, newNetconf(), doc.File, t)
	}
	return doc, true
}

// signs are keys that no other of the bare documents has.
var signs = []struct {
	as   string
	keys []string
}{
	{"k3s", []string{"flannel-backend", "disable-network-policy", "flannel-iface"}},
	{"net-conf", []string{"Backend", "Network"}},
	{"cilium", []string{"kubeProxyReplacement", "routingMode", "tunnelProtocol", "bpf", "k8sServiceHost", "autoDirectNodeRoutes", "ipv4NativeRoutingCIDR", "hubble", "ipam", "tunnel", "socketLB", "loadBalancer", "bandwidthManager"}},
	{"calico", []string{"installation", "tigeraOperator"}},
	{"rke2-canal", []string{"calico"}},
	{"flannel", []string{"flannel", "podCidr"}},
}

// distributionKeys are those that the config.yaml of RKE2 and of K3s have in common.
var distributionKeys = []string{"disable-kube-proxy", "write-kubeconfig-mode", "cluster-cidr", "service-cidr", "server", "tls-san", "kube-proxy-arg"}

// configs are documents that are values of no chart, and that their keys tell from any.
var configs = []string{"rke2", "k3s", "kind", "kube-proxy", "net-conf"}

// tell says what a document without a kind is, "" if that could be several. That something else of RKE2 is there
// decides between its charts and those that they were made from, which have other defaults.
func (s *setup) tell(t *tree) string {
	has := func(keys []string) bool {
		return slices.ContainsFunc(keys, func(k string) bool { return t.get(k) != nil })
	}
	if cni := t.get("cni"); cni != nil && cni.kind != mapping { // Cilium's chart has a mapping of this name
		return "rke2"
	}
	for _, sign := range signs {
		if !has(sign.keys) {
			continue
		}
		if s.onRKE2 && slices.Contains(Kinds, "rke2-"+sign.as) {
			return "rke2-" + sign.as
		}
		return sign.as
	}
	if s.onRKE2 && has(distributionKeys) {
		return "rke2"
	}
	return ""
}

// scan looks for anything of RKE2's before the documents are told apart.
func (s *setup) scan(t *tree) {
	helm := strings.HasPrefix(t.scalar("kind"), "HelmChart") && strings.HasPrefix(t.scalar("metadata", "name"), "rke2-")
	s.onRKE2 = s.onRKE2 || helm || t.scalar("kind") == "" && s.tell(t) == "rke2"
}

// addSets applies --set, which means the values of one chart.
func (s *setup) addSets(o Options, faults *Faults) {
	if len(o.Sets) == 0 {
		return
	}
	v := s.setsTarget(o.As)
	if v == nil {
		faults.add("", 0, "--set is for the values of one chart: name it with --as cilium or --as rke2-cilium, flannel, rke2-canal")
		return
	}
	for _, expression := range o.Sets {
		list, err := parseSet(expression)
		if err != nil {
			faults.add("", 0, "%v", err)
			continue
		}
		for _, a := range list {
			v.put(value{path: a.path, text: a.text, file: fmt.Sprintf("--set %s", a.path)}, a.null)
		}
	}
}

// setsTarget returns the values that --set means: those of the chart called as, or the only ones there are.
func (s *setup) setsTarget(as string) *values {
	empty := &tree{kind: mapping}
	if as != "" && as != "calico" && as != "rke2-calico" {
		if !s.chart(as, "--set", empty) {
			return nil
		}
	}
	var all []*values
	for _, v := range []*values{s.cilium, s.flannel, s.canal} {
		if v != nil {
			all = append(all, v)
		}
	}
	if len(all) != 1 {
		return nil
	}
	return all[0]
}
