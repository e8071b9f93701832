package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/profile"
)

const calico = "calico"

// The defaults of Calico's objects. The operator has further defaults, which depend on the cloud (setOperatorDefaults).
var (
	installationDefaults = values{reader: "the operator", defaults: map[string]string{
		"calicoNetwork.linuxDataplane": "Iptables", "calicoNetwork.kubeProxyManagement": "Disabled", "calicoNetwork.bpfNetworkBootstrap": "Disabled",
	}}
	felixDefaults = values{reader: "Felix", defaults: map[string]string{
		"bpfExternalServiceMode": "Tunnel", "bpfEnabled": "false", "nftablesMode": "Auto", "wireguardEnabled": "false",
	}}
	poolDefaults = values{reader: "Calico", defaults: map[string]string{"vxlanMode": "Never", "ipipMode": "Never"}}
)

// readCalicoNode reads the environment of calico-node, through which manifests configure Calico: the first pool, and
// Felix's settings, which take precedence over any object.
func (j *judge) readCalicoNode(env map[string]value) {
	j.nodePool = poolDefaults.emptyCopy()
	j.felix = cmp.Or(j.felix, felixDefaults.emptyCopy())
	for _, name := range slices.Sorted(maps.Keys(env)) {
		g := env[name]
		if path := poolVariables[name]; path != "" {
			g.path = path
			j.nodePool.leaves = append(j.nodePool.leaves, g)
		} else if path := felixVariables[name]; path != "" {
			g.path = path
			j.felix.leaves = append(j.felix.leaves, g)
		}
	}
}

// poolVariables are the variables of calico-node that define its first pool, felixVariables those that set Felix.
var (
	poolVariables = map[string]string{
		"CALICO_IPV4POOL_IPIP": "ipipMode", "CALICO_IPV4POOL_VXLAN": "vxlanMode", "CALICO_IPV4POOL_CIDR": "cidr", "CALICO_NETWORKING_BACKEND": "backend",
	}
	felixVariables = map[string]string{
		"FELIX_BPFENABLED": "bpfEnabled", "FELIX_NFTABLESMODE": "nftablesMode", "FELIX_WIREGUARDENABLED": "wireguardEnabled",
		"FELIX_VXLANMTU": "vxlanMTU", "FELIX_IPINIPMTU": "ipipMTU", "FELIX_WIREGUARDMTU": "wireguardMTU",
		"FELIX_BPFEXTERNALSERVICEMODE": "bpfExternalServiceMode", "FELIX_FEATUREDETECTOVERRIDE": "featureDetectOverride",
	}
)

// setOperatorDefaults sets the defaults that the operator chooses by the cloud: the CNI plugin, the pool and BGP.
func setOperatorDefaults(v *values) {
	provider := v.at("kubernetesProvider")
	plugin := map[string]string{"EKS": "AmazonVPC", "AKS": "AzureVNET", "GKE": "GKE"}[provider.text]
	v.defaults["cni.type"] = cmp.Or(plugin, "Calico")
	if cni := v.at("cni.type"); !cni.is("Calico") {
		v.defaults["calicoNetwork.bgp"] = "Disabled"
		return
	}
	v.defaults["calicoNetwork.bgp"], v.defaults["calicoNetwork.ipPools.0.encapsulation"] = "Enabled", "IPIP"
	if provider.is("EKS") {
		v.defaults["calicoNetwork.bgp"] = "Disabled"
		if len(v.leavesBelow("calicoNetwork.ipPools")) == 0 {
			v.defaults["calicoNetwork.ipPools.0.encapsulation"] = "VXLAN"
		}
	}
}

// installationWords are the values that an Installation's schema allows, below calicoNetwork, in the schema's case.
var installationWords = map[string][]string{
	"linuxDataplane": {"Iptables", "BPF", "VPP", "Nftables"}, "bgp": {"Enabled", "Disabled"}, "linuxPodInterfaceType": {"Veth", "Netkit"},
	"encapsulation": {"IPIPCrossSubnet", "IPIP", "VXLAN", "VXLANCrossSubnet", "None"},
}

// podDevicePath is where the Installation says which kind of device pods get.
const podDevicePath = "calicoNetwork.linuxPodInterfaceType"

// calicoState is the effective state of a Calico configuration.
type calicoState struct {
	inst, felix *values
	// dataplane is Iptables, Nftables, BPF or VPP; at is the setting that decides it.
	dataplane string
	at        value
	// encapsulation is the first pool's, spelled as in the Installation, "" if there is no pool.
	encapsulation string
	pool          value
	// six means that a pool encapsulates IPv6 in IPv6. others are pools of IPv4 with another encapsulation.
	six    bool
	others []string
}

func (j *judge) judgeCalico() {
	c := calicoState{inst: j.installation, felix: cmp.Or(j.felix, felixDefaults.emptyCopy())}
	if c.inst != nil {
		setOperatorDefaults(c.inst)
	}
	for _, g := range c.inst.leavesBelow("calicoNetwork") {
		words := installationWords[g.path[strings.LastIndexByte(g.path, '.')+1:]]
		if g.isGiven() && words != nil && g.text != "" && !slices.Contains(words, g.text) {
			addRefusal(j, g, "is not one of "+strings.Join(words, ", "))
		}
	}
	if c.inst != nil {
		judgeInstallation(j, c.inst)
	}
	if len(j.pools) == 0 && j.nodePool != nil && c.inst == nil {
		j.pools = append(j.pools, j.nodePool)
	}
	j.setCalicoDataplane(&c)
	j.setCalicoEncapsulation(&c)
	j.showCalico(c)
	if plugin := c.inst.at("cni.type"); c.inst != nil && !plugin.is("Calico") {
		j.addUnmatched("Calico's policies ("+c.dataplane+") over the plugin "+plugin.text+", which connects the pods: no profile describes it", "cni.type is "+plugin.text+" ("+plugin.sourceText()+")")
		return
	}
	if c.dataplane == "BPF" {
		j.judgeCalicoBPF(c)
	} else {
		j.judgeUnusedBPF(c)
	}
	j.judgeKubeProxyBeside(c.dataplane == "BPF" && !j.operatorStopsKubeProxy(c), c.at, "dataplane "+c.dataplane)
	j.judgeCalicoNetwork(c)
	j.addCalicoProfile(c)
}

// providerOf maps the CNI plugins that an Installation may name to their clouds.
var providerOf = map[string]string{"Calico": "", "AmazonVPC": "EKS", "AzureVNET": "AKS", "GKE": "GKE"}

// judgeInstallation applies the operator's checks of an Installation.
func judgeInstallation(j *judge, inst *values) {
	plugin, provider, bgp := inst.at("cni.type"), inst.at("kubernetesProvider"), inst.at("calicoNetwork.bgp")
	of, known := providerOf[plugin.text]
	switch {
	case !known:
		addRefusal(j, plugin, "is not one of Calico, GKE, AmazonVPC, AzureVNET")
	case of != "" && provider.text != "" && provider.text != of:
		addRefusal(j, plugin, "with kubernetesProvider: "+provider.text)
	}
	calicos := plugin.is("Calico")
	for _, g := range inst.leavesBelow("calicoNetwork.ipPools") {
		pool, isEncapsulation := strings.CutSuffix(g.path, ".encapsulation")
		six := strings.Contains(inst.at(pool+".cidr").text, ":")
		switch {
		case !isEncapsulation || g.text == "":
		case !calicos && !g.is("None"):
			addRefusal(j, g, "with cni.type: "+plugin.text)
		case six && strings.HasPrefix(g.text, "IPIP"):
			addRefusal(j, g, "for a pool of IPv6")
		case inst.at("cni.ipam.type").is("HostLocal") && strings.HasPrefix(g.text, "VXLAN"):
			addRefusal(j, g, "with cni.ipam.type: HostLocal")
		}
	}
	if device := inst.at(podDevicePath); !calicos && device.isGiven() {
		addRefusal(j, device, "with cni.type: "+plugin.text)
	}
	switch vpp := inst.at("calicoNetwork.linuxDataplane"); {
	case !calicos && bgp.isGiven() && bgp.is("Enabled"):
		addRefusal(j, bgp, "with cni.type: "+plugin.text)
	case vpp.is("VPP") && !bgp.is("Enabled"):
		addRefusal(j, vpp, "without bgp: Enabled")
	}
}

// setCalicoDataplane sets the dataplane and the setting that decides it. It reports an Installation and a
// FelixConfiguration that disagree.
func (j *judge) setCalicoDataplane(c *calicoState) {
	bpf, nft := c.felix.at("bpfEnabled"), c.felix.at("nftablesMode")
	c.dataplane, c.at = "Iptables", bpf
	switch {
	case bpf.isOn():
		c.dataplane = "BPF"
	case nft.is("Enabled"), nft.is("Auto") && strings.EqualFold(j.proxyState().mode, "nftables"):
		c.dataplane, c.at = "Nftables", nft
	}
	if c.inst == nil {
		return
	}
	wish := c.inst.at("calicoNetwork.linuxDataplane")
	c.dataplane, c.at = canonicalName(wish.text, "Iptables", "Nftables", "BPF", "VPP"), wish
	if bpf.isGiven() && bpf.isOn() != (c.dataplane == "BPF") {
		j.addFinding("dataplane-disagree", bpf, "bpfEnabled: %s, and linuxDataplane is %s (%s)", bpf.text, c.dataplane, wish.sourceText())
	}
}

// canonicalName returns the name in names that equals text, ignoring case; text itself if none does.
func canonicalName(text string, names ...string) string {
	if i := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(text, n) }); i >= 0 {
		return names[i]
	}
	return text
}

// setCalicoEncapsulation sets the encapsulation from the IPPool objects, or from the Installation if there are no
// enabled pools. It reports pools with two encapsulations.
func (j *judge) setCalicoEncapsulation(c *calicoState) {
	off := func(v value) bool { return v.is("Never") || v.is("Off") || v.text == "" }
	for _, p := range j.pools {
		if vxlan, ipip := p.at("vxlanMode"), p.at("ipipMode"); !off(vxlan) && !off(ipip) {
			j.addFinding("both-encapsulations", vxlan, "vxlanMode: %s and ipipMode: %s", vxlan.text, ipip.text)
		}
	}
	// Pods get addresses from pools that are not disabled. IPv6 pools are judged only if there are no others.
	active := slices.DeleteFunc(slices.Clone(j.pools), func(p *values) bool { return p.at("disabled").isOn() })
	slices.SortStableFunc(active, func(a, b *values) int {
		return cmp.Compare(strings.Count(a.at("cidr").text, ":"), strings.Count(b.at("cidr").text, ":"))
	})
	for i, p := range active {
		encapsulation, at := encapsulationOf(p)
		six := strings.Contains(p.at("cidr").text, ":")
		c.six = c.six || six && strings.HasPrefix(encapsulation, "VXLAN")
		switch {
		case i == 0:
			c.encapsulation, c.pool = encapsulation, at
		case encapsulation != c.encapsulation && !six:
			c.others = append(c.others, "pool "+p.at("cidr").text+" has encapsulation "+encapsulation)
		}
	}
	if len(active) == 0 && c.inst != nil {
		c.pool = c.inst.at(c.encapsulationPath())
		c.encapsulation = canonicalName(c.pool.text, "None", "IPIP", "VXLAN", "IPIPCrossSubnet", "VXLANCrossSubnet")
	}
}

// encapsulationPath returns the path at which the Installation sets the encapsulation of its first IPv4 pool, or of its
// first pool if no pool is for IPv4. It sets c.six.
func (c *calicoState) encapsulationPath() string {
	at := func(i int, field string) string { return fmt.Sprintf("calicoNetwork.ipPools.%d.%s", i, field) }
	four := -1
	for i := 0; c.inst.at(at(i, "cidr")).text != ""; i++ {
		switch six := strings.Contains(c.inst.at(at(i, "cidr")).text, ":"); {
		case six:
			c.six = c.six || strings.HasPrefix(c.inst.at(at(i, "encapsulation")).text, "VXLAN")
		case four < 0:
			four = i
		}
	}
	return at(max(four, 0), "encapsulation")
}

// encapsulationOf returns the encapsulation of a pool, spelled as in the Installation, and the setting that decides it.
func encapsulationOf(p *values) (string, value) {
	vxlan, ipip := p.at("vxlanMode"), p.at("ipipMode")
	encapsulation, at := "None", vxlan
	for _, m := range []struct {
		name string
		mode value
	}{{"VXLAN", vxlan}, {"IPIP", ipip}} {
		switch {
		case m.mode.is("Always"):
			encapsulation, at = m.name, m.mode
		case m.mode.is("CrossSubnet") && encapsulation == "None":
			encapsulation, at = m.name+"CrossSubnet", m.mode
		}
	}
	return encapsulation, at
}

func (j *judge) showCalico(c calicoState) {
	j.showSetting(calico, "linuxDataplane", c.dataplane, cmp.Or(c.at.origin, Default), c.at.by)
	if c.encapsulation != "" {
		j.showSetting(calico, "encapsulation", c.encapsulation, cmp.Or(c.pool.origin, Default), c.pool.by)
	}
	j.showValues(calico, c.inst, "cni.type", "calicoNetwork.bgp", "calicoNetwork.mtu")
	j.showGiven(calico, c.inst, podDevicePath)
	spelled, cross := strings.CutSuffix(strings.ToLower(c.encapsulation), "crosssubnet")
	if cross {
		spelled += " between subnets"
	}
	encryption, how := "none", c.felix.at("wireguardEnabled")
	if how.isOn() {
		encryption = "wireguard"
	}
	j.addWire(calico, spelled, c.pool, encryption, how)
	j.addWireMTU(calico, c.inst.at("calicoNetwork.mtu"))
	if c.dataplane == "BPF" {
		j.showValues(calico, c.inst, "calicoNetwork.kubeProxyManagement", "calicoNetwork.bpfNetworkBootstrap")
		j.showValues(calico, c.felix, "bpfExternalServiceMode")
	}
	j.showGiven(calico, c.felix, "wireguardEnabled", "featureDetectOverride", "nftablesMode", "bpfAttachType")
}

// felixWrites are the defaults of settings of the eBPF dataplane. Felix and the operator write some of them into the
// object, so they are not a user's request. Two defaults of different versions are separated by a space.
var felixWrites = map[string]string{
	"bpfConnectTimeLoadBalancing": "TCP", "bpfHostNetworkedNATWithoutCTLB": "Enabled", "bpfExternalServiceMode": "Tunnel",
	"bpfKubeProxyIptablesCleanupEnabled": "true", "bpfKubeProxyEndpointSlicesEnabled": "true", "bpfKubeProxyMinSyncPeriod": "1s", "bpfEnforceRPF": "Loose",
	"bpfHostConntrackBypass": "true", "bpfPolicyDebugEnabled": "true", "bpfExtToServiceConnmark": "0", "bpfRedirectToPeer": "Enabled", "bpfProfiling": "Disabled",
	"bpfAttachType": "TCX Netkit", "bpfConntrackCleanupMode": "Auto", "bpfConntrackLogLevel": "Off", "bpfJITHardening": "Auto", "bpfExportBufferSizeMB": "1",
	"bpfMapSizeNATFrontend": "65536", "bpfMapSizeNATBackend": "262144", "bpfMapSizeNATAffinity": "65536", "bpfMapSizeRoute": "262144", "bpfMapSizeConntrack": "512000",
	"bpfMapSizeIPSets": "1048576", "bpfMapSizeIfState": "1000", "bpfPSNATPorts": "20000:29999",
}

// isUnaskedBPF reports whether a setting of the eBPF dataplane is a default, or is also read by another dataplane.
func isUnaskedBPF(g value) bool {
	return slices.Contains([]string{"bpfEnabled", "bpfLogLevel", "bpfDisableUnprivileged"}, g.path) || g.text == "" || slices.ContainsFunc(strings.Fields(felixWrites[g.path]), g.is)
}

// judgeUnusedBPF reports settings of the eBPF dataplane that the configured dataplane does not read. For dataplane
// Nftables, it also reports a kube-proxy in another mode.
func (j *judge) judgeUnusedBPF(c calicoState) {
	for _, g := range c.felix.leaves {
		if strings.HasPrefix(g.path, "bpf") && g.isGiven() && !isUnaskedBPF(g) {
			j.addFinding("not-used", g, "%s: %s with dataplane %s", g.path, g.text, c.dataplane)
		}
	}
	if g := c.inst.at("calicoNetwork.bpfNetworkBootstrap"); g.isGiven() && g.is("Enabled") {
		j.addFinding("bootstrap", g, "bpfNetworkBootstrap: Enabled with linuxDataplane %s", c.dataplane)
	}
	if proxy := j.proxyState(); c.dataplane == "Nftables" && proxy.runs == yes && proxy.mode != "" && !strings.EqualFold(proxy.mode, "nftables") {
		j.addFinding("two-rule-engines", c.at, "dataplane Nftables, and kube-proxy runs in mode %s: %s", proxy.mode, proxy.why)
	}
}

// operatorStopsKubeProxy reports whether the operator stops kube-proxy. It cannot do so in RKE2 and K3s, where kube-proxy
// is not a DaemonSet.
func (j *judge) operatorStopsKubeProxy(c calicoState) bool {
	return c.inst.at("calicoNetwork.kubeProxyManagement").is("Enabled") && j.rke2 == nil && j.k3s == nil
}

func (j *judge) judgeCalicoBPF(c calicoState) {
	proxy := j.proxyState()
	told := c.inst.at("calicoNetwork.bpfNetworkBootstrap").is("Enabled") || j.endpoint.at("KUBERNETES_SERVICE_HOST").text != ""
	if proxy.runs == no && !told {
		j.addFinding("api-server", proxy.at, "kube-proxy does not run (%s), and ConfigMap kubernetes-services-endpoint is not given", proxy.why)
	}
	if g := c.felix.at("bpfAttachType"); c.inst.at(podDevicePath).is("Netkit") && (g.is("TCX") || g.is("TC")) {
		j.addFinding("netkit-attach", g, "bpfAttachType: %s, and linuxPodInterfaceType is Netkit", g.text)
	}
	if g := c.felix.at("bpfExternalServiceMode"); g.is("DSR") {
		j.addFinding("dsr-scope", g, "bpfExternalServiceMode: DSR")
	}
}

func (j *judge) judgeCalicoNetwork(c calicoState) {
	bgp := c.inst.at("calicoNetwork.bgp")
	if bgp.is("Disabled") && c.encapsulation != "" && !strings.HasPrefix(c.encapsulation, "VXLAN") && !strings.HasPrefix(c.inst.at("calicoNetwork.clusterRoutingMode").text, "Felix") {
		at := c.pool
		if !at.isGiven() {
			at = bgp
		}
		j.addFinding("bgp-needed", at, "encapsulation %s (%s) with bgp: Disabled (%s)", c.encapsulation, c.pool.sourceText(), bgp.sourceText())
	}
	if mesh := j.bgp.at("nodeToNodeMeshEnabled"); mesh.is("false") && j.peers == 0 && c.encapsulation != "" && !strings.HasPrefix(c.encapsulation, "VXLAN") {
		j.addFinding("bgp-mesh", mesh, "nodeToNodeMeshEnabled: false, encapsulation %s, and no BGPPeer is given", c.encapsulation)
	}
	if g := c.inst.at(podDevicePath); g.is("Netkit") {
		j.addFinding("netkit-fallback", g, "linuxPodInterfaceType: %s", g.text)
	}
	if strings.HasSuffix(c.encapsulation, "CrossSubnet") {
		j.addFinding("cross-subnet", c.pool, "encapsulation %s", c.encapsulation)
	}
	if g := c.felix.at("featureDetectOverride"); strings.Contains(g.text, "ChecksumOffloadBroken=true") {
		j.addFinding("checksum-software", g, "featureDetectOverride: %s", g.text)
	}
	j.judgePodMTU(calico, c.inst.at("calicoNetwork.mtu"), c.encapsulationLayers())
	if !j.canal { // calico-config of the manifests
		j.addWireMTU(calico, j.podMTU)
		j.judgePodMTU(calico, j.podMTU, c.encapsulationLayers())
	}
	for _, l := range c.encapsulationLayers() { // Felix's defaults are the overhead of its devices
		j.judgePodMTU(calico, c.felix.at(map[string]string{"VXLAN": "vxlanMTU", "IPIP": "ipipMTU", "WireGuard": "wireguardMTU"}[l.name]), []layerOf{l})
	}
}

// encapsulationLayers returns the encapsulations of a packet between nodes, WireGuard included.
func (c calicoState) encapsulationLayers() []layerOf {
	var layers []layerOf
	switch strings.TrimSuffix(c.encapsulation, "CrossSubnet") {
	case "VXLAN":
		bytes := vxlanBytes
		if c.six {
			bytes += longerIPv6
		}
		layers = append(layers, layerOf{"VXLAN", bytes})
	case "IPIP":
		layers = append(layers, layerOf{"IPIP", ipipBytes})
	}
	if c.felix.at("wireguardEnabled").isOn() { // packets that WireGuard encrypts are not encapsulated as well
		layers = []layerOf{{"WireGuard", calicoWG}}
	}
	return layers
}

// addCalicoProfile adds the profile that the configuration amounts to.
func (j *judge) addCalicoProfile(c calicoState) {
	name := ""
	switch c.dataplane {
	case "BPF":
		name = "calico-ebpf"
		if c.felix.at("bpfExternalServiceMode").is("DSR") {
			name = "calico-ebpf-dsr"
		} else if c.encapsulation == "None" || strings.HasSuffix(c.encapsulation, "CrossSubnet") {
			name = "calico-ebpf-underlay"
		}
	case "Nftables":
		name = "calico-nftables"
	case "Iptables":
		name = map[string]string{"None": "calico-underlay", "IPIP": "calico-ipip", "VXLAN": "calico-vxlan", "IPIPCrossSubnet": "calico-ipip", "VXLANCrossSubnet": "calico-vxlan"}[c.encapsulation]
	}
	switch {
	case c.felix.at("wireguardEnabled").isOn():
		text := "no profile encrypts its traffic"
		if p, ok := profile.Lookup(name); ok && len(p.Encrypted) > 0 {
			text = "in the lab " + name + "(encryption=wireguard)"
		}
		j.addUnmatched("Calico with WireGuard: " + text)
		return
	case c.encapsulation == "":
		j.addUnmatched("Calico, dataplane " + c.dataplane + ": the encapsulation is not known, because no pool is given")
		return
	case name == "":
		j.addUnmatched("Calico, dataplane " + c.dataplane + ", encapsulation " + c.encapsulation + ": no profile describes it")
		return
	}
	but := c.others
	if c.inst.at(podDevicePath).is("Netkit") {
		but = append(but, "pods have netkit devices where the kernel makes them, veth in the lab")
	}
	if c.dataplane == "BPF" && j.proxyState().runs == yes && !j.operatorStopsKubeProxy(c) {
		but = append(but, "kube-proxy runs beside it")
	}
	if c.dataplane != "Iptables" && c.encapsulation != "VXLAN" && name != "calico-ebpf-underlay" {
		but = append(but, "encapsulation "+c.encapsulation+" in place of VXLAN")
	}
	if name == "calico-ebpf-underlay" && c.encapsulation == "None" {
		but = append(but, "no encapsulation between subnets either")
	}
	if j.nodePool.at("backend").is("none") {
		but = append(but, "another component makes the routes between nodes (CALICO_NETWORKING_BACKEND: none)")
	}
	if c.dataplane == "Iptables" && strings.HasSuffix(c.encapsulation, "CrossSubnet") {
		but = append(but, "between nodes of one subnet it is calico-underlay")
	}
	j.addMeasured(name, but...)
}
