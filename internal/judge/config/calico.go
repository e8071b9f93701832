package config

import (
	"fmt"
	"slices"
	"strings"
)

const calico = "calico"

// newInstallation returns an Installation's spec with the operator's defaults.
func newInstallation(of string) *values {
	return newValues(of, map[string]string{
		"calicoNetwork.linuxDataplane": "Iptables", "calicoNetwork.bgp": "Enabled", "calicoNetwork.kubeProxyManagement": "Disabled",
		"calicoNetwork.bpfNetworkBootstrap": "Disabled", "calicoNetwork.ipPools.0.encapsulation": "IPIP",
	})
}

// newFelix returns a FelixConfiguration's spec with Felix's defaults.
func newFelix() *values {
	return newValues("Felix", map[string]string{"bpfExternalServiceMode": "Tunnel", "bpfEnabled": "false", "nftablesMode": "Auto", "wireguardEnabled": "false"})
}

// newPool returns an IPPool's spec with Calico's defaults.
func newPool() *values {
	return newValues("Calico", map[string]string{"vxlanMode": "Never", "ipipMode": "Never"})
}

var installationSchema = schema{
	of: "Installation (operator 1.42)",
	below: map[string]string{
		// enabled is the chart's own.
		"": `azure calicoKubeControllersDeployment calicoLibHostPath calicoNetwork calicoNodeDaemonSet calicoNodeWindowsDaemonSet
calicoRunHostPath calicoWindowsUpgradeDaemonSet certificateManagement cni componentResources controlPlaneNodeSelector
controlPlaneReplicas controlPlaneTolerations csiNodeDriverDaemonSet enabled fipsMode flexVolumePath imagePath imagePrefix
imagePullPolicy imagePullSecrets kubeletVolumePluginPath kubernetesProvider logging networkPolicy nodeMetricsPort nodeUpdateStrategy
nonPrivileged proxy registry serviceCIDRs tlsCipherSuites typhaAffinity typhaDeployment typhaMetricsPort typhaPodDisruptionBudget
variant windowsNodes`,
		"calicoNetwork": `bgp bpfNetworkBootstrap clusterRoutingMode containerIPForwarding hostPorts ipPools kubeProxyManagement
linuxDataplane linuxPodInterfaceType linuxPolicySetupTimeoutSeconds mtu multiInterfaceMode nodeAddressAutodetectionV4
nodeAddressAutodetectionV6 sysctl windowsDataplane`,
		"calicoNetwork.ipPools": `allowedUses assignmentMode blockSize cidr disableBGPExport disableNewAllocations encapsulation name
natOutgoing nodeSelector`,
	},
	moved: []moved{
		{"calicoNetwork.bpfEnabled", "moved-key", "is not read: calicoNetwork.linuxDataplane: BPF is"},
		{"bpfEnabled", "moved-key", "is not read: calicoNetwork.linuxDataplane: BPF is"},
		{"calicoNetwork.encapsulation", "moved-key", "is not read: calicoNetwork.ipPools[].encapsulation is"},
	},
}

var felixSchema = schema{
	of: "FelixConfiguration (calico 3.32)",
	below: map[string]string{"": `allowIPIPPacketsFromWorkloads allowVXLANPacketsFromWorkloads awsSrcDstCheck bpfAttachType bpfCTLBLogFilter
bpfConnectTimeLoadBalancing bpfConnectTimeLoadBalancingEnabled bpfConntrackLogLevel bpfConntrackMode bpfConntrackTimeouts
bpfDSROptoutCIDRs bpfDataIfacePattern bpfDisableGROForIfaces bpfDisableUnprivileged bpfEnabled bpfEnforceRPF bpfExcludeCIDRsFromNAT
bpfExportBufferSizeMB bpfExtToServiceConnmark bpfExternalServiceMode bpfForceTrackPacketsFromIfaces bpfHostConntrackBypass
bpfHostNetworkedNATWithoutCTLB bpfIPFragTimeout bpfIPFragmentReassemblyEnabled bpfJITHardening bpfKubeProxyHealthzPort
bpfKubeProxyIptablesCleanupEnabled bpfKubeProxyMinSyncPeriod bpfL3IfacePattern bpfLogFilters bpfLogLevel
bpfMaglevMaxEndpointsPerService bpfMaglevMaxServices bpfMapSizeConntrack bpfMapSizeConntrackCleanupQueue bpfMapSizeConntrackScaling
bpfMapSizeIPSets bpfMapSizeIfState bpfMapSizeNATAffinity bpfMapSizeNATBackend bpfMapSizeNATFrontend bpfMapSizePerCpuConntrack
bpfMapSizeRoute bpfOverlayHostSourceIP bpfPSNATPorts bpfPolicyDebugEnabled bpfProfiling bpfRedirectToPeer cgroupV2Path
chainInsertMode dataplaneDriver dataplaneWatchdogTimeout debugDisableLogDropping debugHost debugMemoryProfilePath debugPort
debugSimulateCalcGraphHangAfter debugSimulateDataplaneApplyDelay debugSimulateDataplaneHangAfter defaultEndpointToHostAction
deviceRouteProtocol deviceRouteSourceAddress deviceRouteSourceAddressIPv6 disableConntrackInvalidCheck enabled endpointReportingDelay
endpointReportingEnabled endpointStatusPathPrefix externalNodesList failsafeInboundHostPorts failsafeOutboundHostPorts
featureDetectOverride featureGates floatingIPs flowLogsCollectorDebugTrace flowLogsFlushInterval flowLogsGoldmaneServer
flowLogsLocalReporter flowLogsPolicyEvaluationMode genericXDPEnabled goGCThreshold goMaxProcs goMemoryLimitMB healthEnabled healthHost
healthPort healthTimeoutOverrides interfaceExclude interfacePrefix interfaceRefreshInterval ipForwarding ipipEnabled ipipMTU
ipsetsRefreshInterval iptablesBackend iptablesFilterAllowAction iptablesFilterDenyAction iptablesLockFilePath
iptablesLockProbeInterval iptablesLockTimeout iptablesMangleAllowAction iptablesMarkMask iptablesNATOutgoingInterfaceFilter
iptablesPostWriteCheckInterval iptablesRefreshInterval ipv4ElevatedRoutePriority ipv4NormalRoutePriority ipv6ElevatedRoutePriority
ipv6NormalRoutePriority ipv6Support istioAmbientMode istioDSCPMark kubeNodePortRanges liveMigrationRouteConvergenceTime
localSubnetL2Reachability localSubnetL2ReachabilityRefreshInterval logActionRateLimit logActionRateLimitBurst logDebugFilenameRegex
logFilePath logPrefix logSeverityFile logSeverityScreen logSeveritySys maxIpsetSize metadataAddr metadataPort mtuIfacePattern
natOutgoingAddress natOutgoingExclusions natPortRange netlinkTimeout nftablesFilterAllowAction nftablesFilterDenyAction
nftablesFlowTableDataIfacePattern nftablesFlowTableOffload nftablesMangleAllowAction nftablesMarkMask nftablesMode
nftablesRefreshInterval nodeSelector openstackRegion policySyncPathPrefix programClusterRoutes prometheusGoMetricsEnabled
prometheusMetricsCAFile prometheusMetricsCertFile prometheusMetricsClientAuth prometheusMetricsEnabled prometheusMetricsHost
prometheusMetricsKeyFile prometheusMetricsPort prometheusProcessMetricsEnabled prometheusWireGuardMetricsEnabled removeExternalRoutes
reportingInterval reportingTTL requireMTUFile routeRefreshInterval routeSource routeSyncDisabled routeTableRange routeTableRanges
serviceLoopPrevention sidecarAccelerationEnabled usageReportingEnabled usageReportingInitialDelay usageReportingInterval
useInternalDataplaneDriver vxlanEnabled vxlanMTU vxlanMTUV6 vxlanPort vxlanVNI windowsManageFirewallRules wireguardEnabled
wireguardEnabledV6 wireguardHostEncryptionEnabled wireguardInterfaceName wireguardInterfaceNameV6 wireguardKeepAlive
wireguardListeningPort wireguardListeningPortV6 wireguardMTU wireguardMTUV6 wireguardRoutingRulePriority wireguardThreadingEnabled
workloadSourceSpoofing xdpEnabled xdpRefreshInterval`},
	moved: []moved{{"bpfExternalServicesMode", "moved-key", "is not read: bpfExternalServiceMode is"}},
}

// calicoState is what a Calico configuration comes to.
type calicoState struct {
	inst, felix *values
	// dataplane is Iptables, Nftables, BPF or VPP; at is what says so.
	dataplane string
	at        value
	// encapsulation is that of the first pool, as the Installation spells it.
	encapsulation string
	pool          value
	dsr, wg       bool
}

func (j *judge) judgeCalico() {
	c := calicoState{inst: j.installation, felix: j.felix}
	if c.inst != nil {
		j.unknownKeys(c.inst, installationSchema)
	}
	if len(j.pools) == 0 && j.nodePool != nil {
		j.pools = append(j.pools, j.nodePool)
	}
	if c.felix == nil {
		c.felix = newFelix()
	}
	j.unknownKeys(c.felix, felixSchema)
	j.calicoDataplane(&c)
	j.calicoPools(&c)
	c.dsr = c.dataplane == "BPF" && c.felix.at("bpfExternalServiceMode").is("DSR")
	c.wg = c.felix.at("wireguardEnabled").on()
	j.showCalico(c)
	j.calicoBPF(c)
	j.calicoNetwork(c)
	j.Measured = append(j.Measured, c.measured(j.proxyState()))
}

// calicoDataplane decides between the Installation and the FelixConfiguration.
func (j *judge) calicoDataplane(c *calicoState) {
	bpf, nft := c.felix.at("bpfEnabled"), c.felix.at("nftablesMode")
	fromFelix := "Iptables"
	c.at = bpf
	switch {
	case bpf.on():
		fromFelix = "BPF"
	case nft.is("Enabled") || nft.is("Auto") && strings.EqualFold(j.proxyState().mode, "nftables"):
		fromFelix, c.at = "Nftables", nft
	}
	if c.inst == nil {
		c.dataplane = fromFelix
		return
	}
	wish := c.inst.at("calicoNetwork.linuxDataplane")
	c.dataplane, c.at = canonical(wish.text, "Iptables", "Nftables", "BPF", "VPP"), wish
	if bpf.given() && bpf.on() != (c.dataplane == "BPF") {
		j.find("dataplane-disagree", bpf, "bpfEnabled: %s, and linuxDataplane is %s, %s", bpf.text, c.dataplane, byWhom(wish, c.inst.defaultOf))
	}
}

// canonical spells text as one of the names.
func canonical(text string, names ...string) string {
	for _, n := range names {
		if strings.EqualFold(text, n) {
			return n
		}
	}
	return text
}

// calicoPools finds the encapsulation: IPPool objects are what is in force, the Installation's what the operator makes.
func (j *judge) calicoPools(c *calicoState) {
	for i, p := range j.pools {
		vx, ip := p.at("vxlanMode"), p.at("ipipMode")
		off := func(v value) bool { return v.is("Never") || v.is("Off") || v.text == "" }
		if !off(vx) && !off(ip) {
			j.find("both-encapsulations", vx, "vxlanMode: %s and ipipMode: %s", vx.text, ip.text)
		}
		if i > 0 {
			continue
		}
		c.encapsulation, c.pool = "None", either(vx, ip)
		for _, m := range []struct {
			name string
			mode value
		}{{"VXLAN", vx}, {"IPIP", ip}} {
			switch {
			case m.mode.is("Always"):
				c.encapsulation, c.pool = m.name, m.mode
			case m.mode.is("CrossSubnet"):
				c.encapsulation, c.pool = m.name+"CrossSubnet", m.mode
			}
		}
	}
	if len(j.pools) == 0 && c.inst != nil {
		c.pool = c.inst.at("calicoNetwork.ipPools.0.encapsulation")
		c.encapsulation = canonical(c.pool.text, "None", "IPIP", "VXLAN", "IPIPCrossSubnet", "VXLANCrossSubnet")
	}
}

func (j *judge) showCalico(c calicoState) {
	by := func(v value, of string) string { return or(v.where(), of) }
	of := "Felix"
	if c.inst != nil {
		of = c.inst.defaultOf
	}
	j.show(calico, "linuxDataplane", c.dataplane, or(c.at.origin, Default), by(c.at, of))
	if c.encapsulation != "" {
		j.show(calico, "encapsulation", c.encapsulation, or(c.pool.origin, Default), by(c.pool, of))
	}
	if c.inst != nil {
		for _, p := range []string{"calicoNetwork.bgp", "calicoNetwork.mtu", "calicoNetwork.kubeProxyManagement", "calicoNetwork.bpfNetworkBootstrap"} {
			if g := c.inst.at(p); g.given() || p == "calicoNetwork.bgp" || c.dataplane == "BPF" && g.text != "" {
				j.showGiven(calico, c.inst, p)
			}
		}
	}
	if c.dataplane == "BPF" {
		j.showGiven(calico, c.felix, "bpfExternalServiceMode")
	}
	for _, p := range []string{"wireguardEnabled", "featureDetectOverride", "nftablesMode"} {
		if c.felix.at(p).given() {
			j.showGiven(calico, c.felix, p)
		}
	}
}

// notBPF are keys of Felix that begin with bpf and are not about its eBPF dataplane's packets.
var notBPF = []string{"bpfEnabled", "bpfLogLevel", "bpfDisableUnprivileged"}

func (j *judge) calicoBPF(c calicoState) {
	proxy := j.proxyState()
	if c.dataplane != "BPF" {
		for _, g := range c.felix.all() {
			if strings.HasPrefix(g.path, "bpf") && !slices.Contains(notBPF, g.path) {
				j.find("bpf-off", g, "%s: %s with dataplane %s", g.path, g.text, c.dataplane)
			}
		}
		if g := c.inst.at("calicoNetwork.bpfNetworkBootstrap"); g.given() && g.is("Enabled") {
			j.find("bootstrap", g, "bpfNetworkBootstrap: Enabled with linuxDataplane %s", c.dataplane)
		}
		if proxy.runs == no {
			j.find("no-service-engine", proxy.at, "kube-proxy does not run (%s), and the dataplane is %s", proxy.why, c.dataplane)
		}
		return
	}
	managed := c.inst.at("calicoNetwork.kubeProxyManagement").is("Enabled")
	daemonSet := j.rke2 == nil && j.k3s == nil && !j.onRKE2
	if proxy.runs == yes && (!managed || !daemonSet) {
		j.find("bpf-kube-proxy", c.at, "dataplane BPF, and kube-proxy runs: %s", proxy.why)
	}
	if proxy.runs == unsaid && (!managed || !daemonSet) {
		j.find("kube-proxy-unsaid", c.at, "dataplane BPF")
	}
	if c.dsr {
		j.find("dsr-scope", c.felix.at("bpfExternalServiceMode"), "bpfExternalServiceMode: DSR")
	}
}

func (j *judge) calicoNetwork(c calicoState) {
	if bgp := c.inst.at("calicoNetwork.bgp"); bgp.is("Disabled") && !strings.HasPrefix(c.encapsulation, "VXLAN") && c.encapsulation != "" {
		if !strings.HasPrefix(c.inst.at("calicoNetwork.clusterRoutingMode").text, "Felix") {
			j.find("bgp-needed", either(c.pool, bgp), "encapsulation %s (%s) with bgp: Disabled (%s)", c.encapsulation, byWhom(c.pool, c.inst.defaultOf), byWhom(bgp, c.inst.defaultOf))
		}
	}
	if strings.HasSuffix(c.encapsulation, "CrossSubnet") {
		j.find("cross-subnet", c.pool, "encapsulation %s", c.encapsulation)
	}
	if c.wg {
		j.find("encrypted", c.felix.at("wireguardEnabled"), "wireguardEnabled: true")
	}
	if g := c.felix.at("featureDetectOverride"); strings.Contains(g.text, "ChecksumOffloadBroken=true") {
		j.find("checksum-software", g, "featureDetectOverride: %s", g.text)
	} else if c.inst != nil && strings.Contains(c.inst.defaultOf, "rke2-calico") && !g.given() && strings.HasPrefix(c.encapsulation, "VXLAN") {
		j.find("checksum-software", value{}, "featureDetectOverride: ChecksumOffloadBroken=true is the default of chart rke2-calico")
	}
	if g := c.inst.at("calicoNetwork.mtu"); g.given() {
		j.room(g, c.encapsulation, map[string]int{"VXLAN": 1450, "IPIP": 1480}[c.encapsulation])
	}
}

// room finds a pod MTU that is more than what an encapsulation leaves of 1500 bytes, and not that of a larger underlay.
func (j *judge) room(g value, encapsulation string, most int) {
	var mtu int
	if _, err := fmt.Sscanf(g.text, "%d", &mtu); err == nil && most > 0 && mtu > most && mtu <= 1500 {
		j.find("mtu-too-large", g, "%s: %d, and %s leaves %d of 1500 bytes", g.path, mtu, encapsulation, most)
	}
}

func either(a, b value) value {
	if a.given() {
		return a
	}
	return b
}

func (c calicoState) measured(proxy proxyState) Measured {
	var but []string
	if c.wg {
		return Measured{Title: "Calico with WireGuard: none of our profiles encrypts Calico's traffic"}
	}
	if c.encapsulation == "" {
		return Measured{Title: "Calico, dataplane " + c.dataplane + ": the pools' encapsulation is not given here"}
	}
	name := ""
	switch c.dataplane {
	case "BPF":
		name = "calico-ebpf"
		if c.dsr {
			name = "calico-ebpf-dsr"
		}
		if proxy.runs == yes && !c.inst.at("calicoNetwork.kubeProxyManagement").is("Enabled") {
			but = append(but, "kube-proxy runs beside it")
		}
	case "Nftables":
		name = "calico-nftables"
	case "Iptables":
		name = map[string]string{"None": "calico-underlay", "IPIP": "calico-ipip", "VXLAN": "calico-vxlan", "IPIPCrossSubnet": "calico-ipip", "VXLANCrossSubnet": "calico-vxlan"}[c.encapsulation]
	}
	if name == "" {
		return Measured{Title: "Calico, dataplane " + c.dataplane + ", encapsulation " + c.encapsulation + ": not among our profiles"}
	}
	if c.dataplane != "Iptables" && c.encapsulation != "VXLAN" {
		but = append(but, "encapsulation "+c.encapsulation+" in place of VXLAN")
	}
	if c.dataplane == "Iptables" && strings.HasSuffix(c.encapsulation, "CrossSubnet") {
		but = append(but, "between nodes of one subnet it is calico-underlay")
	}
	return known(name, but)
}
