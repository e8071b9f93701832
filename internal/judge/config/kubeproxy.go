package config

import (
	"slices"
	"strings"
)

const kubeProxy = "kube-proxy"

func newProxy() *values { return newValues("kube-proxy", map[string]string{"mode": "iptables"}) }

var proxySchema = schema{
	of: "KubeProxyConfiguration (v1alpha1, 1.36)",
	below: map[string]string{
		"": `apiVersion bindAddress bindAddressHardFail clientConnection clusterCIDR configSyncPeriod conntrack detectLocal detectLocalMode
enableProfiling featureGates healthzBindAddress hostnameOverride iptables ipvs kind logging metricsBindAddress mode nftables
nodePortAddresses oomScoreAdj portRange showHiddenMetricsForVersion windowsRunAsService winkernel`,
		"iptables":  "localhostNodePorts masqueradeAll masqueradeBit minSyncPeriod snatNodeInternalIP syncPeriod",
		"ipvs":      "excludeCIDRs minSyncPeriod scheduler strictARP syncPeriod tcpFinTimeout tcpTimeout udpTimeout",
		"nftables":  "masqueradeAll masqueradeBit minSyncPeriod syncPeriod",
		"conntrack": "maxPerCore min tcpBeLiberal tcpCloseWaitTimeout tcpEstablishedTimeout udpStreamTimeout udpTimeout",
	},
	moved: []moved{{"strictARP", "moved-key", "is not read: ipvs.strictARP is"}},
}

// judgeKubeProxy judges kube-proxy's own configuration, and shows whether it runs.
func (j *judge) judgeKubeProxy() {
	state := j.proxyState()
	switch state.runs {
	case yes:
		j.show(kubeProxy, "runs", "yes, mode "+state.mode, or(state.at.origin, Default), state.why)
		j.modeNotes(state)
	case no:
		j.show(kubeProxy, "runs", "no", state.at.origin, state.why)
	}
	v := j.proxy
	if v == nil {
		return
	}
	j.unknownKeys(v, proxySchema)
	mode := strings.ToLower(or(v.at("mode").text, "iptables"))
	for _, section := range []string{"iptables", "ipvs", "nftables"} {
		if section == mode {
			continue
		}
		for _, g := range v.all() {
			borrowed := mode == "ipvs" && strings.HasPrefix(g.path, "iptables.masquerade") // ipvs mode has none of its own
			if strings.HasPrefix(g.path, section+".") && !empty(g.text) && !borrowed {
				j.find("proxy-mode-unused", g, "%s: %s in mode %s", g.path, g.text, mode)
			}
		}
	}
	if v.at("clusterCIDR").text == "" && (v.at("detectLocalMode").text == "" || v.at("detectLocalMode").is("ClusterCIDR")) {
		j.find("proxy-no-local", v.at("detectLocalMode"), "no clusterCIDR, and detectLocalMode is ClusterCIDR")
	}
	if len(j.Measured) == 0 && j.only(j.proxy) {
		j.Measured = append(j.Measured, Measured{Title: "kube-proxy in mode " + mode + " under a CNI that is not given here"})
	}
}

// empty reports whether a written value is the field's zero: kubeadm writes all fields out.
func empty(text string) bool {
	return slices.Contains([]string{"", "0", "0s", "false", "null"}, text)
}

// only reports whether v is all there is.
func (j *judge) only(v *values) bool {
	return v == j.proxy && j.cilium == nil && j.agent == nil && j.installation == nil && j.flannel == nil && j.netconf == nil && j.canal == nil
}

func (j *judge) modeNotes(state proxyState) {
	switch strings.ToLower(state.mode) {
	case "iptables":
	case "nftables":
		if j.proxy == nil || j.proxy.at("nodePortAddresses").text == "" {
			j.find("proxy-nodeports", state.at, "mode nftables")
		}
	case "ipvs":
		j.find("proxy-deprecated", state.at, "mode ipvs")
	default:
		j.find("proxy-mode", state.at, "mode %s", state.mode)
	}
}
