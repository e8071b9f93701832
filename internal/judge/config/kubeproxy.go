package config

import (
	"cmp"
	"strings"

	"github.com/cnibench/cnibench/internal/plan/position"
	"github.com/cnibench/cnibench/internal/profile"
)

const kubeProxy = "kube-proxy"

var proxyDefaults = values{reader: kubeProxy, defaults: map[string]string{"mode": "iptables"}}

// proxyKeys are the keys of kube-proxy's configuration in its ConfigMaps; kubeadm's is the first.
var proxyKeys = []string{"config.conf", "config", "kube-proxy.yaml", "config.yaml"}

// ProxyConfig returns the mode and the clusterCIDR in the data of kube-proxy's ConfigMap. ok is false if the data has
// no KubeProxyConfiguration. It fails if the text is not YAML.
func ProxyConfig(data map[string]string) (mode, clusterCIDR string, ok bool, err error) {
	for _, key := range proxyKeys {
		var faults position.Faults
		for _, n := range position.Parse(position.Source{Name: key, Text: data[key]}, &faults) {
			if n.ScalarAt("kind") == "KubeProxyConfiguration" {
				return cmp.Or(n.ScalarAt("mode"), "iptables"), n.ScalarAt("clusterCIDR"), true, nil
			}
		}
		if len(faults) > 0 {
			err = faults
		}
	}
	return "", "", false, err
}

// answer is what the documents say about a question: yes, no, or nothing (unsaid).
type answer int

const (
	unsaid answer = iota
	yes
	no
)

// proxyState says whether kube-proxy runs, and in which mode.
type proxyState struct {
	runs answer
	mode string
	// why is the reason, in words. at is the setting that decides.
	why string
	at  value
}

// proxyState returns whether kube-proxy runs, and its mode, as far as the documents show it. runs is unsaid if they do
// not.
func (j *judge) proxyState() proxyState {
	if j.noProxy.isGiven() {
		return proxyState{no, "", j.noProxy.text, j.noProxy}
	}
	if d := cmp.Or(j.rke2, j.k3s); d != nil {
		g := d.at("disable-kube-proxy")
		if g.isOn() {
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
	if g := j.talos.at("cluster.proxy.disabled"); g.isOn() {
		return proxyState{no, "", "cluster.proxy.disabled: true", g}
	}
	if j.proxy != nil {
		g := j.proxy.at("mode")
		return proxyState{yes, cmp.Or(g.text, "iptables"), "its configuration is given", g}
	}
	if g := j.proxyDaemon; g.isGiven() {
		return proxyState{yes, g.text, "its DaemonSet is given", g}
	}
	return proxyState{}
}

// readProxyDaemon reads the DaemonSet of kube-proxy. It ignores a DaemonSet that runs on no node.
func readProxyDaemon(j *judge, s source, root string, n, spec *position.Node) {
	if n.ScalarAt("status", "desiredNumberScheduled") == "0" || spec.At("nodeSelector", "non-calico") != nil {
		return // stopped by a selector that no node has, as in Calico's documentation
	}
	j.proxyDaemon = s.newValue(root, n, "")
	for _, g := range programSettings(s, spec) {
		if g.path == "proxy-mode" {
			j.proxyDaemon.text = g.text
		}
	}
}

// disablesProxy reports whether a file of kubeadm disables kube-proxy. It stores the setting that disables it, and the
// podSubnet if the file has one.
func disablesProxy(j *judge, kind string, s source, n *position.Node) bool {
	if at := n.At("networking", "podSubnet"); kind == "ClusterConfiguration" && at != nil {
		j.podSubnet = s.newValue("networking.podSubnet", at, at.Text)
	}
	switch skipped := leavesOf(n.At("skipPhases"), ""); {
	case kind == "ClusterConfiguration" && n.ScalarAt("proxy", "disabled") == "true":
		j.noProxy = s.newValue("proxy.disabled", n.At("proxy", "disabled"), "proxy.disabled: true")
	case kind == "InitConfiguration" && len(skipped) > 0 && strings.Contains(skipped[0].text, "addon/kube-proxy"):
		j.noProxy = s.newValue("skipPhases", n.At("skipPhases"), "skipPhases: addon/kube-proxy")
	default:
		return false
	}
	return true
}

// proxyArg returns the mode in kube-proxy-arg, "iptables" without one.
func proxyArg(d *values) string {
	for arg := range strings.SplitSeq(d.at("kube-proxy-arg").text, ", ") {
		if mode, ok := strings.CutPrefix(strings.TrimLeft(arg, "-"), "proxy-mode="); ok {
			return mode
		}
	}
	return "iptables"
}

// judgeKubeProxyBeside reports a kube-proxy in addition to a CNI that replaces it, and a cluster in which neither serves
// Services. at is the setting that decides whether the CNI replaces kube-proxy. what names the CNI or that setting.
func (j *judge) judgeKubeProxyBeside(replaces bool, at value, what string) {
	switch proxy := j.proxyState(); {
	case replaces && proxy.runs == yes:
		j.addFinding("kube-proxy-beside", at, "%s, and kube-proxy runs: %s", strings.TrimSpace(what+" "+at.text), proxy.why)
	case !replaces && proxy.runs == no && !strings.HasSuffix(what, "BPF"):
		j.addFinding("no-service-engine", proxy.at, "kube-proxy does not run (%s), and %s does not replace it", proxy.why, what)
	}
}

// judgeKubeProxy judges kube-proxy's own configuration, and shows whether it runs.
func (j *judge) judgeKubeProxy() {
	state := j.proxyState()
	switch state.runs {
	case yes:
		j.showSetting(kubeProxy, "runs", strings.TrimSuffix("yes, mode "+state.mode, ", mode "), cmp.Or(state.at.origin, Default), state.why)
		j.judgeProxyMode(state)
	case no:
		j.showSetting(kubeProxy, "runs", "no", state.at.origin, state.why)
	}
	v := j.proxy
	if v == nil {
		if j.proxyDaemon.isGiven() && len(j.Measured) == 0 {
			j.addUnmatched("kube-proxy; the CNI is not given")
		}
		return
	}
	mode := strings.ToLower(cmp.Or(v.at("mode").text, "iptables"))
	for _, section := range []string{"iptables", "ipvs", "nftables"} {
		for _, g := range v.leavesBelow(section) {
			borrowed := mode == "ipvs" && strings.HasPrefix(g.path, "iptables.masquerade") // ipvs mode reads these
			if section != mode && g.isSet() && !borrowed {
				j.addFinding("not-used", g, "%s: %s in mode %s", g.path, g.text, mode)
			}
		}
	}
	if local := v.at("detectLocalMode"); v.at("clusterCIDR").text == "" && !j.podSubnet.isGiven() && (local.text == "" || local.is("ClusterCIDR")) {
		j.addFinding("proxy-no-local", local, "no clusterCIDR, and detectLocalMode is ClusterCIDR")
	}
	if len(j.Measured) == 0 && j.agent == nil && j.installation == nil && state.runs == yes {
		j.addUnmatched("kube-proxy in mode " + mode + "; the CNI is not given")
	}
}

func (j *judge) judgeProxyMode(state proxyState) {
	switch strings.ToLower(state.mode) {
	case "", "iptables": // a DaemonSet alone does not show the mode
	case "nftables":
		if j.proxy.at("nodePortAddresses").text == "" {
			j.addFinding("proxy-nodeports", state.at, "mode nftables")
		}
	case "ipvs":
		j.addFinding("proxy-deprecated", state.at, "mode ipvs")
	default:
		j.addFinding("proxy-mode", state.at, "mode %s", state.mode)
	}
}

// isProfile reports whether a profile has the name.
func isProfile(name string) bool {
	_, ok := profile.Lookup(name)
	return ok
}
