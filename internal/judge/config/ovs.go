package config

import (
	"strconv"
	"strings"
)

// CNIs that use Open vSwitch.
const (
	antrea = "antrea"
	ovn    = "ovn-kubernetes"
)

// antreaDialect reads antrea-agent.conf, and Antrea's chart, which passes it on.
var antreaDialect = dialect{
	defaults: values{reader: "antrea-agent", defaults: map[string]string{
		"trafficEncapMode": "encap", "tunnelType": "geneve", "tunnelPort": "0", "tunnelCsum": "false", "trafficEncryptionMode": "none", "noSNAT": "false",
		"defaultMTU": "0", "antreaProxy.enable": "true", "antreaProxy.proxyAll": "false", "antreaProxy.defaultLoadBalancerMode": "nat",
		"featureGates.LoadBalancerModeDSR": "false", "featureGates.AntreaPolicy": "true", "enableBridgingMode": "false", "disableTXChecksumOffload": "false",
	}},
	shown: []string{"trafficEncapMode", "trafficEncryptionMode", "antreaProxy.enable", "antreaProxy.proxyAll"},
	judge: judgeAntrea,
}

// antreaBytes are the bytes that Antrea subtracts from the MTU of the node's device for each tunnel over IPv4.
var antreaBytes = map[string]int{"geneve": vxlanBytes, "vxlan": vxlanBytes, "gre": 42, "stt": vxlanBytes}

const (
	antreaWG  = 60
	antreaESP = 38
)

func judgeAntrea(j *judge, v *values) {
	mode, tunnel, crypt := v.at("trafficEncapMode"), v.at("tunnelType"), v.at("trafficEncryptionMode")
	proxy, all := v.at("antreaProxy.enable"), v.at("antreaProxy.proxyAll")
	title := "Antrea, traffic mode " + mode.text + " (Open vSwitch)"
	if !isOneOf(j, v, mode.path, "encap", "noEncap", "hybrid", "networkPolicyOnly") || !isOneOf(j, v, tunnel.path, "geneve", "vxlan", "gre", "stt") ||
		!isOneOf(j, v, crypt.path, "none", "IPsec", "WireGuard") {
		j.addUnmatched("none: antrea-agent does not start")
		return
	}
	tunnels, encrypts := mode.is("encap") || mode.is("hybrid"), !crypt.is("none")
	judgeAntreaRefusals(j, v, encrypts)
	encapsulation := "none"
	var layers []layerOf
	if tunnels {
		j.showValues(antrea, v, tunnel.path)
		encapsulation = strings.ToLower(tunnel.text)
		layers = append(layers, layerOf{tunnel.text, antreaBytes[encapsulation]})
	} else {
		reportUnused(j, v, "with trafficEncapMode: "+mode.text, tunnel.path, "tunnelPort", "tunnelCsum")
	}
	switch {
	case crypt.is("WireGuard"): // in place of the tunnel
		encapsulation, layers = "none", []layerOf{{crypt.text, antreaWG}}
	case encrypts:
		layers = append(layers, layerOf{crypt.text, antreaESP})
	}
	if mode.is("hybrid") {
		if encapsulation != "none" {
			encapsulation += " between subnets"
		}
		j.addFinding("cross-subnet", mode, "trafficEncapMode: hybrid")
	}
	j.addWire(antrea, encapsulation, mode, strings.ToLower(crypt.text), crypt)
	mtu := v.at("defaultMTU")
	j.addWireMTU(antrea, mtu)
	j.judgePodMTU(antrea, mtu, layers)
	if base := j.known.Underlay; base > 0 && mtu.number() == 0 && len(layers) > 0 {
		pods, why := remainingMTU(base, layers)
		j.showSetting(antrea, RouteMTU, strconv.Itoa(pods), Forced, "the underlay's MTU less "+why)
	}
	if mode.is("networkPolicyOnly") {
		j.addUnmatched("Antrea's policies over another CNI, which connects the pods: no profile describes it")
		return
	}
	if all.isOn() {
		j.judgeKubeProxyBeside(true, all, all.path)
	} else {
		j.judgeKubeProxyBeside(false, value{}, "Antrea without antreaProxy.proxyAll")
	}
	if encrypts {
		title += " with " + crypt.text
	}
	name := antrea
	if !tunnels {
		name = "antrea-noencap"
	}
	if !proxy.isOn() || encrypts {
		name = "" // the lab's profiles use its proxy, and no encryption
	}
	addProfile(j, name, title)
}

// judgeAntreaRefusals applies the checks that antrea-agent makes at its start.
func judgeAntreaRefusals(j *judge, v *values, encrypts bool) {
	mode, crypt, proxy := v.at("trafficEncapMode"), v.at("trafficEncryptionMode"), v.at("antreaProxy.enable")
	plain := "with trafficEncapMode: " + mode.text
	if encrypts && !mode.is("encap") {
		addRefusal(j, crypt, plain)
	}
	if !proxy.isOn() && !mode.is("encap") {
		addRefusal(j, proxy, plain)
	}
	if g := v.at("noSNAT"); g.isOn() && !mode.is("noEncap") && !mode.is("networkPolicyOnly") {
		addRefusal(j, g, plain)
	}
	if g := v.at("antreaProxy.defaultLoadBalancerMode"); g.is("dsr") {
		switch {
		case !v.at("featureGates.LoadBalancerModeDSR").isOn():
			addRefusal(j, g, "without featureGates.LoadBalancerModeDSR: true")
		case !mode.is("encap"):
			addRefusal(j, g, plain)
		default:
			j.addFinding("dsr-scope", g, "%s: dsr", g.path)
		}
	}
}

// ovnDialect reads ovnkube.conf, the chart, and OpenShift's Network of operator.openshift.io.
var ovnDialect = dialect{
	defaults: values{reader: ovn, defaults: map[string]string{
		"mtu": "1400", "encap-type": "geneve", "encap-port": "6081", "transport": "geneve", "gateway.mode": "shared", "ipsec": "Disabled",
		"enable-udp-aggregation": "false", "gateway.disable-pkt-mtu-check": "false", "networkType": "",
	}},
	shown: []string{"transport", "gateway.mode", "ipsec"},
	other: map[string]string{
		"genevePort": "encap-port", "encapPort": "encap-port", "gatewayMode": "gateway.mode", "gatewayConfig.routingViaHost": "gateway.mode", "ipsecConfig.mode": "ipsec",
		"enableIpsec": "ipsec", "enableNoOverlay": "transport", "OVN_GATEWAY_MODE": "gateway.mode", "disablePacketMtuCheck": "gateway.disable-pkt-mtu-check",
	},
	words: map[string]string{
		"gateway.mode=true": "local", "gateway.mode=false": "shared", "ipsec=true": "Full", "ipsec=false": "Disabled",
		"transport=true": "no-overlay", "transport=false": "geneve", "transport=NoOverlay": "no-overlay", "transport=": "geneve",
	},
	judge: judgeOVN,
}

// ovnBytes is Geneve with the options of OVN over IPv4. ovnESP is the room that OpenShift's operator leaves for IPsec.
const (
	ovnBytes   = 58
	ovnESP     = 46
	ovnLargest = 65000
)

func judgeOVN(j *judge, v *values) {
	mtu, transport, gateway, crypt := v.at("mtu"), v.at("transport"), v.at("gateway.mode"), v.at("ipsec")
	direct := transport.is("no-overlay")
	encapsulation, encryption := strings.ToLower(v.at("encap-type").text), "none"
	layers := []layerOf{{"Geneve", ovnBytes}}
	if direct {
		encapsulation, layers = "none", nil
		reportUnused(j, v, "without an overlay", "encap-port")
	}
	if crypt.is("Full") {
		encryption = "ipsec"
		layers = append(layers, layerOf{"IPsec", ovnESP})
	}
	j.addWire(ovn, encapsulation, transport, encryption, crypt)
	if n, err := strconv.Atoi(mtu.text); err != nil || n < 576 || n > ovnLargest {
		addRefusal(j, mtu, "is not from 576 to "+strconv.Itoa(ovnLargest))
	}
	j.addWireMTU(ovn, mtu)
	j.judgePodMTU(ovn, mtu, layers)
	var but []string
	if gateway.is("local") {
		j.addFinding("gateway-local", gateway, "%s: %s", gateway.path, gateway.text)
		but = append(but, "traffic of pods to the outside passes the node's stack")
	}
	if g := v.at("enable-udp-aggregation"); g.isOn() {
		j.addFinding("udp-aggregation", g, "%s: true", g.path)
	}
	j.judgeKubeProxyBeside(true, value{path: "OVN-Kubernetes"}, "OVN-Kubernetes")
	if encryption != "none" || direct {
		j.addUnmatched("OVN-Kubernetes (Open vSwitch), encapsulation "+encapsulation+", encryption "+encryption+": no profile describes it", but...)
		return
	}
	addProfile(j, ovn, "OVN-Kubernetes (Open vSwitch), Geneve", but...)
}
