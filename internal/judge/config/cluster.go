package config

import (
	"fmt"
	"slices"
	"strings"
)

// The defaults of the configurations of distributions.
var (
	rke2Defaults = values{reader: "RKE2", defaults: map[string]string{"cni": "canal", "disable-kube-proxy": "false", "cluster-cidr": "10.42.0.0/16"}}
	k3sDefaults  = values{reader: "K3s", defaults: map[string]string{"flannel-backend": "vxlan", "disable-kube-proxy": "false", "cluster-cidr": "10.42.0.0/16"}}
	kindDefaults = values{reader: "kind", defaults: map[string]string{
		"networking.disableDefaultCNI": "false", "networking.kubeProxyMode": "iptables", "networking.podSubnet": "10.244.0.0/16",
	}}
)

// k3sBackends are the backends of K3s since 1.26.
var k3sBackends = []string{"vxlan", "host-gw", "wireguard-native", "tailscale", "none"}

// podCIDR returns the cluster's CIDR of pods.
func (j *judge) podCIDR() value {
	switch {
	case j.rke2 != nil:
		return j.rke2.at("cluster-cidr")
	case j.k3s != nil:
		return j.k3s.at("cluster-cidr")
	case j.kind != nil:
		return j.kind.at("networking.podSubnet")
	case j.talos != nil:
		return j.talos.at("cluster.network.podSubnets")
	}
	return value{}
}

// hasOtherCNI reports whether a CNI is configured in addition to the distribution's own.
func (j *judge) hasOtherCNI() bool {
	for name := range j.settled {
		if name != kindnet {
			return true
		}
	}
	return j.agent != nil || len(j.options) > 0 || j.installation != nil || j.felix != nil || j.netconf != nil || len(j.pools) > 0
}

// judgeDistribution judges the distribution's configuration, and its settings of the CNI.
func (j *judge) judgeDistribution() {
	if j.rke2 != nil {
		j.showValues("rke2", j.rke2, "cni", "disable-kube-proxy", "cluster-cidr")
		cni := j.rke2.at("cni")
		chosen := strings.Split(cni.text, ", ")
		for _, c := range j.helm {
			if name, own := strings.CutPrefix(c.text, "rke2-"); own && !slices.Contains(chosen, name) {
				j.addFinding("chart-of-another", c, "values of chart %s, and cni is %s (%s)", c.text, cni.text, cni.sourceText())
			}
		}
		chosen = slices.DeleteFunc(chosen, func(name string) bool { return name == "multus" })
		switch own := strings.Join(chosen, ", "); {
		case j.hasOtherCNI() || len(j.helm) > 0 || len(j.conflists) > 0:
		case own == "none" || own == "":
			j.markUnjudged("it installs no CNI: give what does", documentsOf("config.yaml of RKE2", j.Documents)...)
		default:
			j.markUnjudged("chart rke2-"+own+" decides the rest: give its HelmChartConfig, or the chart with --chart", documentsOf("config.yaml of RKE2", j.Documents)...)
			if own == "canal" || own == flannel {
				j.judgeKubeProxyBeside(false, value{}, own)
			}
		}
	}
	if j.k3s != nil {
		j.showValues("k3s", j.k3s, "flannel-backend", "disable-kube-proxy", "cluster-cidr")
		switch g, file := j.k3s.at("flannel-backend"), j.k3s.at("flannel-conf"); {
		case file.isGiven():
			j.markUnjudged("flannel-conf: "+file.text+" decides: give that file", documentsOf("config.yaml of K3s", j.Documents)...)
		case g.is("none") && !j.hasOtherCNI() && len(j.conflists) == 0:
			j.markUnjudged("it installs no CNI: give what does", documentsOf("config.yaml of K3s", j.Documents)...)
		case g.is("none"):
		case j.hasOtherCNI():
			j.addFinding("two-cnis", g, "flannel-backend: %s (%s), and another CNI is configured", g.text, g.sourceText())
		case !slices.ContainsFunc(k3sBackends, g.is):
			j.addFinding("flannel-backend", g, "flannel-backend: %s, and K3s has %s", g.text, strings.Join(k3sBackends, ", "))
			j.addUnmatched("none: K3s has no backend " + g.text)
		case g.is("tailscale"):
			j.addWire("k3s", "wireguard", g, "wireguard", g)
			j.addUnmatched("flannel over Tailscale: no profile describes it")
		default:
			j.netconf = netconfDefaults.emptyCopy()
			g.path = "Backend.Type"
			j.netconf.leaves = []value{g}
		}
	}
	if j.kind == nil {
		return
	}
	j.showValues("kind", j.kind, "networking.disableDefaultCNI", "networking.kubeProxyMode", "networking.podSubnet")
	switch own := j.kind.at("networking.disableDefaultCNI"); {
	case own.isOn() && !j.hasOtherCNI() && len(j.conflists) == 0:
		j.markUnjudged("it installs no CNI: give what does", documentsOf("Cluster", j.Documents)...)
	case own.isOn():
	case j.hasOtherCNI():
		j.addFinding("two-cnis", own, "disableDefaultCNI is not true: kind installs its own CNI, and another is configured")
	case j.settled[kindnet] == nil:
		addProfile(j, "kindnetd", "kindnet of kind")
	}
	nodes := 0
	for len(j.kind.leavesBelow(fmt.Sprintf("nodes.%d", nodes))) > 0 {
		nodes++
	}
	if nodes > 1 {
		j.addFinding("one-machine", value{}, "kind runs %d nodes on one machine", nodes)
	}
}
