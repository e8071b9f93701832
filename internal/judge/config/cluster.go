package config

import (
	"fmt"
	"slices"
	"strings"
)

// answer is yes, no, or that the documents do not say.
type answer int

const (
	unsaid answer = iota
	yes
	no
)

// proxyState is whether kube-proxy runs.
type proxyState struct {
	runs answer
	mode string
	// why says so, at is what decides.
	why string
	at  value
}

func newRKE2() *values {
	return newValues("RKE2", map[string]string{"cni": "canal", "disable-kube-proxy": "false", "cluster-cidr": "10.42.0.0/16", "service-cidr": "10.43.0.0/16"})
}

func newK3s() *values {
	return newValues("K3s", map[string]string{"flannel-backend": "vxlan", "disable-kube-proxy": "false", "cluster-cidr": "10.42.0.0/16", "service-cidr": "10.43.0.0/16"})
}

func newKind() *values {
	return newValues("kind", map[string]string{"networking.disableDefaultCNI": "false", "networking.kubeProxyMode": "iptables", "networking.podSubnet": "10.244.0.0/16"})
}

var rke2Schema = schema{of: "RKE2's config.yaml", below: map[string]string{}, moved: []moved{
	{"flannel-backend", "moved-key", "is a setting of K3s; RKE2 takes cni and a HelmChartConfig"},
	{"disable-network-policy", "moved-key", "is a setting of K3s"},
	{"disable-kubeproxy", "moved-key", "is not read: disable-kube-proxy is"},
	{"disableKubeProxy", "moved-key", "is not read: disable-kube-proxy is"},
}}

var kindSchema = schema{of: "kind's Cluster (v1alpha4)", below: map[string]string{
	"":           "kind apiVersion name nodes networking featureGates runtimeConfig kubeadmConfigPatches kubeadmConfigPatchesJSON6902 containerdConfigPatches containerdConfigPatchesJSON6902",
	"networking": "ipFamily apiServerPort apiServerAddress podSubnet serviceSubnet disableDefaultCNI kubeProxyMode dnsSearch",
}}

// proxyState finds out from the documents whether kube-proxy runs beside the CNI.
func (j *judge) proxyState() proxyState {
	for _, d := range []*values{j.rke2, j.k3s} {
		if d == nil {
			continue
		}
		g := d.at("disable-kube-proxy")
		if g.on() {
			return proxyState{no, "", "disable-kube-proxy: true", g}
		}
		return proxyState{yes, proxyArg(d), "config.yaml does not disable it", g}
	}
	if j.kind != nil {
		g := j.kind.at("networking.kubeProxyMode")
		if g.is("none") {
			return proxyState{no, "", "kubeProxyMode: none", g}
		}
		return proxyState{yes, g.text, "kind starts it in mode " + g.text, g}
	}
	if j.proxy != nil {
		return proxyState{yes, or(j.proxy.at("mode").text, "iptables"), "its configuration is given", j.proxy.at("mode")}
	}
	return proxyState{}
}

// proxyArg returns the mode that kube-proxy-arg asks for.
func proxyArg(d *values) string {
	for arg := range strings.SplitSeq(d.at("kube-proxy-arg").text, ", ") {
		if mode, ok := strings.CutPrefix(strings.TrimLeft(arg, "-"), "proxy-mode="); ok {
			return mode
		}
	}
	return "iptables"
}

// podCIDR returns the cluster's CIDR of pods; its path names the setting.
func (j *judge) podCIDR() value {
	switch {
	case j.rke2 != nil:
		return j.rke2.at("cluster-cidr")
	case j.k3s != nil:
		return j.k3s.at("cluster-cidr")
	case j.kind != nil:
		return j.kind.at("networking.podSubnet")
	}
	return value{}
}

// distribution judges what the distribution's own configuration says, and what it says about the CNI.
func (j *judge) distribution() {
	if j.rke2 != nil {
		j.unknownKeys(j.rke2, rke2Schema)
		j.showAll("rke2", j.rke2, "cni", "disable-kube-proxy", "cluster-cidr")
		j.chartOfAnother()
	}
	if j.k3s != nil {
		j.showAll("k3s", j.k3s, "flannel-backend", "disable-kube-proxy", "cluster-cidr")
		if g := j.k3s.at("flannel-backend"); !g.is("none") && (j.cilium != nil || j.agent != nil || j.installation != nil) {
			j.find("two-cnis", g, "flannel-backend: %s, %s, and another CNI is configured", g.text, byWhom(g, "K3s"))
		}
	}
	if j.kind != nil {
		j.judgeKind()
	}
}

func (j *judge) showAll(component string, v *values, paths ...string) {
	for _, p := range paths {
		j.showGiven(component, v, p)
	}
}

// chartOfAnother finds charts that config.yaml does not choose, and takes the chosen ones at their defaults where no
// values are given for them.
func (j *judge) chartOfAnother() {
	cni := j.rke2.at("cni")
	chosen := strings.Split(cni.text, ", ")
	for _, c := range j.charts {
		name, ours := strings.CutPrefix(c.text, "rke2-")
		if !ours || slices.Contains(chosen, name) {
			continue
		}
		j.find("chart-of-another", c, "values of %s, and cni is %s, %s", c.text, cni.text, byWhom(cni, "the default of RKE2"))
		switch name {
		case cilium:
			j.cilium = nil
		case calico:
			j.installation, j.felix = nil, nil
		case flannel:
			j.flannel = nil
		case "canal":
			j.canal = nil
		}
	}
	for _, name := range chosen {
		if name == calico && j.installation != nil || name == cilium && j.cilium != nil {
			continue
		}
		j.chart("rke2-"+name, "", &tree{kind: mapping})
	}
}

func (j *judge) judgeKind() {
	j.unknownKeys(j.kind, kindSchema)
	j.showAll("kind", j.kind, "networking.disableDefaultCNI", "networking.kubeProxyMode", "networking.podSubnet")
	nodes := 0
	for j.kind.has(fmt.Sprintf("nodes.%d", nodes)) {
		nodes++
	}
	own := j.kind.at("networking.disableDefaultCNI")
	if !own.on() && (j.cilium != nil || j.agent != nil || j.installation != nil || j.flannel != nil || j.netconf != nil) {
		j.find("two-cnis", own, "kind brings its own CNI (disableDefaultCNI is not true), and another is configured")
	}
	if nodes > 1 {
		j.find("one-machine", value{}, "kind makes %d nodes on one machine", nodes)
	}
}

// judgePods tells of limits on what measures.
func (j *judge) judgePods() {
	for _, g := range j.limits {
		j.find("cpu-limit", g, "%s: limits.cpu: %s", g.path, g.text)
	}
}
