package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

const flannel = "flannel"

// netconfDefaults are the defaults of net-conf.json.
var netconfDefaults = values{reader: flannel, defaults: map[string]string{"Backend.Type": "vxlan"}}

// backend describes how a backend of flannel carries packets between nodes.
type backend struct {
	// profile is the profile with the backend, "" without one. encapsulation is "" if unknown.
	profile, encapsulation string
	// mtu is the MTU of pods over an underlay of 1500 bytes; 0 if unknown.
	mtu int
	// reads are the options that the backend reads.
	reads []string
}

// backends are the backends of flannel 0.28.
var backends = map[string]backend{
	"vxlan":       {"flannel-vxlan", "vxlan", 1450, []string{"VNI", "Port", "MTU", "GBP", "Learning", "DirectRouting", "MacPrefix"}},
	"host-gw":     {"flannel-host-gw", "none", 1500, nil},
	"wireguard":   {"flannel-wireguard", "wireguard", 1420, []string{"ListenPort", "ListenPortV6", "MTU", "PSK", "PersistentKeepaliveInterval", "KeepaliveInterval", "Mode"}},
	"ipip":        {"", "ipip", 1480, []string{"DirectRouting"}},
	"udp":         {"", "udp", 1472, []string{"Port"}},
	"ipsec":       {"", "ipsec", 0, []string{"UDPEncap", "ESPProposal", "PSK"}},
	"extension":   {"", "", 0, []string{"PreStartupCommand", "PostStartupCommand", "ShutdownCommand", "SubnetAddCommand", "SubnetRemoveCommand"}},
	"alloc":       {"", "none", 0, nil},
	"tencent-vpc": {"", "none", 0, nil},
}

func (j *judge) judgeFlannel() {
	component := flannel
	if j.canal {
		component = "canal"
	}
	kind := j.netconf.at("Backend.Type")
	b, ok := backends[strings.TrimSuffix(strings.ToLower(kind.text), "-native")] // K3s calls it wireguard-native
	j.showValues(component, j.netconf, "Backend.Type", "Backend.DirectRouting", "Backend.VNI", "Backend.Port", "Backend.MTU", "EnableNFTables")
	if !ok {
		j.addFinding("flannel-backend", kind, "Backend.Type: %s", kind.text)
		j.addUnmatched("none: flannel has no backend " + kind.text)
		return
	}
	for _, g := range j.netconf.leavesBelow("Backend") {
		option := strings.TrimPrefix(g.path, "Backend.")
		if g.isSet() && option != "Type" && option != "Name" && !slices.Contains(b.reads, option) {
			j.addFinding("not-used", g, "%s: %s with backend %s", g.path, g.text, kind.text)
		}
	}
	judgeFlannelRefusals(j)
	j.addFlannelWire(component, b, kind)
	var but []string
	if g := j.netconf.at("Backend.DirectRouting"); g.isOn() && (kind.is("vxlan") || kind.is("ipip")) {
		j.addFinding("cross-subnet", g, "Backend.DirectRouting: true")
		but = append(but, "between nodes of one subnet it is flannel-host-gw")
	}
	if port := j.netconf.at("Backend.Port"); kind.is("vxlan") && port.text == "4789" {
		but = append(but, "UDP port 4789 in place of 8472")
	}
	j.judgeKubeProxyBeside(false, value{}, component)
	switch {
	case j.canal:
		if b.mtu > 0 {
			j.judgePodMTU(component, j.podMTU, []layerOf{{kind.text, usualMTU - b.mtu}})
		}
		if !kind.is("vxlan") {
			but = append(but, "flannel's backend is "+kind.text+" in place of vxlan")
		}
		j.addMeasured("canal", but...)
	case b.profile == "":
		j.addUnmatched("flannel with backend "+kind.text+": no profile describes it", but...)
	default:
		j.addMeasured(b.profile, but...)
	}
}

// judgeFlannelRefusals applies flannel's checks of its networks: each node takes a subnet, and four must fit.
func judgeFlannelRefusals(j *judge) {
	for _, family := range []struct {
		enable, network, length string
		longest                 int
	}{{"EnableIPv4", "Network", "SubnetLen", 30}, {"EnableIPv6", "IPv6Network", "IPv6SubnetLen", 126}} {
		on, network, length := j.netconf.at(family.enable), j.netconf.at(family.network), j.netconf.at(family.length)
		p, err := netip.ParsePrefix(network.text)
		switch n := length.number(); {
		case on.isOn() && network.text == "":
			addRefusal(j, on, "without "+family.network)
		case on.isGiven() && !on.isOn(), network.text == "", n == 0:
		case n > family.longest:
			addRefusal(j, length, fmt.Sprintf("is longer than %d", family.longest))
		case err == nil && n < p.Bits()+2:
			addRefusal(j, length, "does not fit four times into "+network.text)
		}
	}
}

// addFlannelWire adds to Wire how packets travel between nodes.
func (j *judge) addFlannelWire(component string, b backend, kind value) {
	encapsulation, encryption := b.encapsulation, "none"
	if direct := j.netconf.at("Backend.DirectRouting"); direct.isOn() && slices.Contains(b.reads, "DirectRouting") {
		encapsulation += " between subnets"
	}
	if encapsulation == "wireguard" || encapsulation == "ipsec" {
		encryption = encapsulation
	}
	j.addWire(component, encapsulation, kind, encryption, kind)
	if g := j.netconf.at("Backend.MTU"); g.number() > 0 && b.mtu > 0 {
		layers := []layerOf{{encapsulation, usualMTU - b.mtu}}
		pods, why := remainingMTU(g.number(), layers)
		g.by = fmt.Sprintf("%s: %d less %s", g.by, g.number(), why)
		g.text = fmt.Sprint(pods)
		j.addWireMTU(component, g)
	}
	if slices.Contains(b.reads, "MTU") {
		j.judgeUnderlayMTU(j.netconf.at("Backend.MTU"))
	}
	j.addWireMTU(component, j.podMTU)
}

// judgePlugin judges the plugins of a CNI configuration list, and adds the profile of a plugin without a daemon.
func (j *judge) judgePlugin() {
	for _, p := range j.plugins {
		if isProfile(p) && len(j.Measured) == 0 {
			j.addMeasured(p, j.pluginBut...)
		}
	}
	if len(j.plugins) > 0 {
		j.markUnjudged(j.conflistReason(), j.conflists...)
		j.showSetting(j.plugins[0], "plugins", strings.Join(j.plugins, ", "), Given, "the CNI configuration list")
	}
}
