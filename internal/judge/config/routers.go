package config

import (
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/profile"
)

// CNIs that route without an overlay of their own, or use one only between subnets.
const (
	kubeRouter = "kube-router"
	kindnet    = "kindnet"
	azure      = "azure-cni"
)

var kubeRouterDialect = dialect{
	daemon: true,
	defaults: values{reader: kubeRouter, defaults: map[string]string{
		"run-router": "true", "run-firewall": "true", "run-service-proxy": "true", "enable-overlay": "true", "overlay-type": "subnet", "overlay-encap": "ipip",
		"overlay-encap-port": "5555", "auto-mtu": "true", "enable-pod-egress": "true", "masquerade-all": "false", "hairpin-mode": "false",
		"enable-cni": "true", "enable-ibgp": "true", "enable-ipv4": "true", "enable-ipv6": "false", "peer-router-ips": "", "peer-router-asns": "", "use-nftables-for-netpol": "false", "plugins.0.mtu": "",
	}},
	shown: []string{"run-router", "run-firewall", "run-service-proxy", "enable-overlay", "overlay-type", "overlay-encap", "auto-mtu"},
	judge: judgeKubeRouter,
}

// judgeKubeRouter judges kube-router's flags.
func judgeKubeRouter(j *judge, v *values) {
	var but []string
	judgeKubeRouterRefusals(j, v)
	overlay, kind, encap := v.at("enable-overlay"), v.at("overlay-type"), v.at("overlay-encap")
	tunnel := map[string]string{"ipip": "ipip", "fou": "gue"}[strings.ToLower(encap.text)]
	switch {
	case !overlay.isOn():
		reportUnused(j, v, "with enable-overlay: false", kind.path, encap.path, "overlay-encap-port")
		j.addWire(kubeRouter, "none", overlay, "none", overlay)
		but = append(but, "the network must route pods' addresses between subnets")
	case !isOneOf(j, v, encap.path, "ipip", "fou"):
	case kind.is("full"):
		j.addWire(kubeRouter, tunnel, kind, "none", overlay)
		but = append(but, "a tunnel ("+tunnel+") for each other node, in its subnet, too")
		if mtu := v.at("auto-mtu"); mtu.isOn() {
			j.addFinding("tunnel-mtu", kind, "overlay-type: full, and auto-mtu gives pods the MTU of the NIC (%s)", mtu.sourceText())
		}
	case kind.is("subnet"):
		j.addWire(kubeRouter, tunnel+" between subnets", kind, "none", overlay)
		j.addFinding("cross-subnet", kind, "overlay-type: subnet (%s)", kind.sourceText())
	default:
		j.addFinding("no-tunnel", kind, "overlay-type: %s is neither subnet nor full", kind.text)
		j.addWire(kubeRouter, "none", kind, "none", overlay)
	}
	if encap.is("ipip") {
		reportUnused(j, v, "with overlay-encap: ipip", "overlay-encap-port")
	}
	j.addWireMTU(kubeRouter, v.at("plugins.0.mtu"))
	if v.at("run-firewall").isOn() {
		j.addFinding("pods-linear", v.at("run-firewall"), "run-firewall: kube-router has about four rules of FORWARD for each pod of the node")
		if g := v.at("use-nftables-for-netpol"); g.isOn() {
			but = append(but, "policies by nftables, which its document calls experimental")
		}
	} else {
		j.ignored = append(j.ignored, "kube-router with run-firewall: false")
		but = append(but, "no rules for policies")
	}
	proxy := v.at("run-service-proxy")
	j.judgeKubeProxyBeside(proxy.isOn(), proxy, "run-service-proxy")
	if proxy.isOn() {
		but = append(but, "it serves Services itself, by IPVS")
	} else {
		reportUnused(j, v, "with run-service-proxy: false", "masquerade-all", "hairpin-mode")
	}
	addProfile(j, kubeRouter, "kube-router", but...)
}

// judgeKubeRouterRefusals applies the checks that kube-router makes at its start.
func judgeKubeRouterRefusals(j *judge, v *values) {
	if four := v.at("enable-ipv4"); !four.isOn() && !v.at("enable-ipv6").isOn() {
		addRefusal(j, four, "without enable-ipv6: true")
	}
	if port, is := v.changedSetting("overlay-encap-port"); is && (port.number() < 1024 || port.number() > 65535) {
		addRefusal(j, port, "is not from 1024 to 65535")
	}
	ips, numbers := v.at("peer-router-ips"), v.at("peer-router-asns")
	if count := func(g value) int { return len(strings.FieldsFunc(g.text, func(r rune) bool { return r == ',' })) }; count(ips) != count(numbers) {
		addRefusal(j, ips, fmt.Sprintf("with peer-router-asns: %s: there must be as many", numbers.text))
	}
}

// kindnetDialect reads kindnet. The DaemonSet of kind has its name and none of its flags.
var kindnetDialect = dialect{
	defaults: values{reader: kindnet, defaults: map[string]string{
		"disable-cni": "false", "network-policy": "true", "masquerading": "true", "fastpath-threshold": "20", "ipsec-overlay": "false",
		"dns-caching": "false", "no-masquerade-cidr": "", "kindnet-cni.image": "",
	}},
	shown: []string{"network-policy", "masquerading"},
	judge: judgeKindnet,
}

func judgeKindnet(j *judge, v *values) {
	j.addFinding("policy-queue", v.at("network-policy"), "network-policy: %s (%s)", v.at("network-policy").text, v.at("network-policy").sourceText())
	encryption, how := "none", v.at("ipsec-overlay")
	if how.isOn() {
		encryption = "ipsec"
	}
	j.addWire(kindnet, "none", value{origin: Default, by: "kindnetd makes routes alone"}, encryption, how)
	if strings.Contains(v.at("kindnet-cni.image").text, "kindest/kindnetd") {
		addProfile(j, "kindnetd", "kindnet of kind")
		return
	}
	var but []string
	fast := v.at("fastpath-threshold")
	if _, shown := v.changedSetting(fast.path); !shown {
		j.showValues(kindnet, v, fast.path)
	}
	if says := profile.ByFlowtable(fast.text); says != "" {
		but = append(but, says)
		j.addFinding("fast-path", fast, "fastpath-threshold: %s (%s)", fast.text, fast.sourceText())
	}
	if !v.at("network-policy").isOn() {
		j.ignored = append(j.ignored, "kindnet with network-policy: false")
	}
	switch {
	case how.isOn():
		j.addUnmatched("kindnet with IPsec: no profile encrypts its traffic", but...)
	case v.at("disable-cni").isOn():
		j.addUnmatched("kindnet without its CNI plugin: another CNI connects the pods", but...)
	default:
		addProfile(j, kindnet, "kindnet", but...)
	}
}

// azureDialect reads the plugin's configuration list, and the daemon that writes it.
var azureDialect = dialect{
	defaults: values{reader: "azure-vnet", defaults: map[string]string{
		"mode": "", "ipam.type": "", "ipam.mode": "", "executionMode": "", "CNIConflistScenario": "", "ProgramSNATIPTables": "", "EnableSwiftV2": "",
	}},
	shown: []string{"mode", "ipam.type", "ipam.mode"},
	judge: judgeAzure,
}

// azureLists are the scenarios of the configuration lists that azure-cns writes, by name; the value is what forwards
// the packets.
var azureLists = map[string]string{"v4overlay": azure, "overlay": azure, "dualStackOverlay": azure, "cilium": cilium, "azurecni-chained-cilium": cilium, "swift": azure}

func judgeAzure(j *judge, v *values) {
	mode, list := v.at("mode"), v.at("CNIConflistScenario")
	none := value{origin: Default, by: "the nodes send plain addresses of pods; the VNet carries them"}
	switch {
	case j.chainedTo == azure, azureLists[list.text] == cilium:
		if j.agent == nil {
			j.addUnmatched("Azure CNI powered by Cilium: ConfigMap cilium-config says the rest")
		}
	case mode.is("transparent"), azureLists[list.text] == azure:
		j.addWire(azure, "none", none, "none", none)
		j.judgeKubeProxyBeside(false, value{}, "Azure CNI")
		addProfile(j, "azure", "Azure CNI (transparent)")
	case mode.text != "":
		j.addUnmatched(fmt.Sprintf("Azure CNI in mode %s: no profile describes it", mode.text))
	}
}
