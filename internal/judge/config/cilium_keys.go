package config

import "strings"

// ciliumDefaults are those of chart cilium (1.19) that decide about the dataplane.
func ciliumDefaults() map[string]string {
	return map[string]string{
		"MTU": "0", "autoDirectNodeRoutes": "false", "bandwidthManager.bbr": "false", "bandwidthManager.enabled": "false",
		"bpf.datapathMode": "veth", "bpf.enableTCX": "true", "bpf.masquerade": "false", "bpf.tproxy": "false",
		"cni.chainingMode": "none", "enableIPv4Masquerade": "true", "encryption.enabled": "false", "encryption.type": "ipsec",
		"encryption.nodeEncryption": "false", "endpointRoutes.enabled": "false", "hubble.enabled": "true",
		"installNoConntrackIptablesRules": "false", "ipMasqAgent.enabled": "false", "ipam.mode": "cluster-pool", "ipv4.enabled": "true",
		"ipam.operator.clusterPoolIPv4PodCIDRList": "10.0.0.0/8", "kubeProxyReplacement": "false",
		"loadBalancer.acceleration": "disabled", "loadBalancer.algorithm": "random", "loadBalancer.dsrDispatch": "opt",
		"loadBalancer.mode": "snat", "routingMode": "tunnel", "tunnelProtocol": "vxlan",
	}
}

// newCilium returns the values of chart cilium or rke2-cilium with its defaults.
func newCilium(chart string) *values {
	v := newValues("chart "+chart, ciliumDefaults())
	if chart == "rke2-cilium" {
		v.defaults["cni.chainingMode"] = "portmap"
		v.defaults["ipam.mode"] = "kubernetes"
		v.defaults["hubble.enabled"] = "false"
	}
	return v
}

// newAgent returns the configuration of an agent: what its ConfigMap leaves out has the agent's defaults.
func newAgent() *values {
	v := newValues("the agent", ciliumDefaults())
	v.defaults["hubble.enabled"] = "false"
	return v
}

// agentOptions are keys of the ConfigMap cilium-config and the values of the chart that set them.
var agentOptions = map[string]string{
	"auto-direct-node-routes": "autoDirectNodeRoutes", "bpf-lb-acceleration": "loadBalancer.acceleration",
	"bpf-lb-algorithm": "loadBalancer.algorithm", "bpf-lb-dsr-dispatch": "loadBalancer.dsrDispatch", "bpf-lb-mode": "loadBalancer.mode",
	"bpf-lb-sock": "socketLB.enabled", "bpf-lb-sock-hostns-only": "socketLB.hostNamespaceOnly", "cni-chaining-mode": "cni.chainingMode",
	"datapath-mode": "bpf.datapathMode", "enable-bandwidth-manager": "bandwidthManager.enabled", "enable-bbr": "bandwidthManager.bbr",
	"enable-bpf-masquerade": "bpf.masquerade", "enable-bpf-tproxy": "bpf.tproxy", "enable-endpoint-routes": "endpointRoutes.enabled",
	"enable-host-legacy-routing": "bpf.hostLegacyRouting", "enable-hubble": "hubble.enabled", "enable-ipv4": "ipv4.enabled",
	"enable-ipv4-masquerade": "enableIPv4Masquerade", "enable-tcx": "bpf.enableTCX", "encrypt-node": "encryption.nodeEncryption",
	"install-no-conntrack-iptables-rules": "installNoConntrackIptablesRules", "ipam": "ipam.mode",
	"ipv4-native-routing-cidr": "ipv4NativeRoutingCIDR", "kube-proxy-replacement": "kubeProxyReplacement", "mtu": "MTU",
	"routing-mode": "routingMode", "tunnel-protocol": "tunnelProtocol", "cluster-pool-ipv4-cidr": "ipam.operator.clusterPoolIPv4PodCIDRList",
}

// agentNames renames the options of the ConfigMap that decide about the dataplane and leaves out the others.
func agentNames(data *tree) *tree {
	t := &tree{kind: mapping, line: data.line}
	add := func(path string, item *tree) { t.keys, t.items = append(t.keys, path), append(t.items, item) }
	for i, key := range data.keys {
		item := data.items[i]
		switch {
		case agentOptions[key] != "":
			add(agentOptions[key], item)
		case (key == "enable-wireguard" || key == "enable-ipsec") && strings.EqualFold(item.text, "true"):
			add("encryption.enabled", item)
			add("encryption.type", &tree{kind: scalar, text: strings.TrimPrefix(key, "enable-"), line: item.line})
		}
	}
	return t
}

// ciliumSchema is what chart cilium of 1.19 reads, and what RKE2 adds. Groups that do not decide about the dataplane
// are not looked into.
var ciliumSchema = schema{
	of: "the chart (cilium 1.19)",
	below: map[string]string{
		"": `MTU affinity agent agentNotReadyTaintKey aksbyocni alibabacloud annotateK8sNode annotations apiRateLimit authentication
autoDirectNodeRoutes azure bandwidthManager bgpControlPlane bpf bpfClockProbe certgen cgroup ciliumEndpointSlice cleanBpfState cleanState
cluster clusterHealthPort clustermesh cni commonLabels connectivityProbeFrequencyRatio conntrackGCInterval conntrackGCMaxInterval
crdWaitTimeout daemon dashboards debug defaultLBServiceIPAM devices directRoutingSkipUnreachable disableEndpointCRD
disableEnvoyVersionCheck dnsPolicy dnsProxy egressGateway egressMasqueradeInterfaces enableCriticalPriorityClass enableIPv4BIGTCP
enableIPv4Masquerade enableIPv6BIGTCP enableIPv6Masquerade enableIdentityMark enableInternalTrafficPolicy enableLBIPAM
enableMasqueradeRouteSource enableNoServiceEndpointsRoutable enableNonDefaultDenyPolicies enableTunnelBIGTCP enableXTSocketFallback
encryption endpointHealthChecking endpointLockdownOnMapOverflow endpointRoutes eni envoy envoyConfig etcd extraArgs extraConfig
extraContainers extraEnv extraHostPathMounts extraInitContainers extraVolumeMounts extraVolumes forceDeviceDetection fragmentTracking
gatewayAPI gke global healthCheckICMPFailureThreshold healthChecking healthPort hostFirewall hubble identityAllocationMode
identityChangeGracePeriod identityManagementMode image imagePullSecrets ingressController initResources
installNoConntrackIptablesRules ipMasqAgent ipam iptablesLockTimeout iptablesRandomFully ipv4 ipv4NativeRoutingCIDR ipv6
ipv6NativeRoutingCIDR k8s k8sClientExponentialBackoff k8sClientRateLimit k8sClusterNetworkPolicy k8sNetworkPolicy k8sServiceHost
k8sServiceHostRef k8sServiceLookupConfigMapName k8sServiceLookupNamespace k8sServicePort keepDeprecatedLabels keepDeprecatedProbes
kubeConfigPath kubeProxyReplacement kubeProxyReplacementHealthzBindAddr l2NeighDiscovery l2announcements l2podAnnouncements l7Proxy
labels livenessProbe loadBalancer localRedirectPolicies localRedirectPolicy logOptions logSystemLoad maglev monitor name
namespaceOverride nat nat46x64Gateway nodeIPAM nodeLabels nodePort nodeSelector nodeSelectorLabels nodeinit operator pmtuDiscovery
podAnnotations podLabels podSecurityContext policyAuditMode policyCIDRMatchMode policyDenyResponse policyEnforcementMode portmapPlugin
pprof preflight priorityClassName prometheus rbac readinessProbe resourceQuotas resources rollOutCiliumPods routingMode scheduling sctp
secretsNamespaceAnnotations secretsNamespaceLabels securityContext serviceAccounts serviceNoBackendResponse sleepAfterInit socketLB
standaloneDnsProxy startupProbe synchronizeK8sNodes sysctlfix terminationGracePeriodSeconds tls tolerations tunnelPort tunnelProtocol
tunnelSourcePortRange underlayProtocol updateStrategy upgradeCompatibility vtep waitForKubeProxy wellKnownIdentities`,
		"bandwidthManager": "bbr bbrHostNamespaceOnly enabled",
		"bpf": `authMapMax autoMount ctAccounting ctAnyMax ctTcpMax datapathMode disableExternalIPMitigation distributedLRU enableTCX events
hostLegacyRouting lbAlgorithmAnnotation lbExternalClusterIP lbMapMax lbModeAnnotation lbSourceRangeAllTypes mapDynamicSizeRatio
masquerade monitorAggregation monitorFlags monitorInterval monitorTraceIPOption natMax neighMax nodeMapMax policyMapMax
policyMapPressureMetricsThreshold policyStatsMapMax preallocateMaps root tproxy vlanBypass`,
		"cni": `binPath chainingMode chainingTarget confFileMountPath confPath configMap configMapKey customConf
enableRouteMTUForCNIChaining exclusive externalRouting hostConfDirMountPath install iptablesRemoveAWSRules logFile readCniConf
resources uninstall`,
		"encryption":           "enabled ipsec nodeEncryption strictMode type wireguard",
		"encryption.wireguard": "persistentKeepalive",
		"endpointRoutes":       "enabled",
		"ipMasqAgent":          "config enabled",
		"ipam":                 "ciliumNodeUpdateRate installUplinkRoutesForDelegatedIPAM mode multiPoolPreAllocation nodeSpec operator",
		"ipv4":                 "enabled",
		"ipv6":                 "enabled",
		"loadBalancer":         "acceleration algorithm dsrDispatch experimental l7 mode serviceTopology standalone",
		"maglev":               "hashSeed tableSize",
		"nodePort":             "addresses autoProtectPortRange bindProtection directRoutingDevice enableHealthCheck enableHealthCheckLoadBalancerIP range",
		"socketLB":             "enabled hostNamespaceOnly terminatePodConnections tracing",
	},
	moved: []moved{
		{"enableBPFMasquerade", "moved-key", "is not read: bpf.masquerade is (enable-bpf-masquerade is the agent's option)"},
		{"enableIPMasqAgent", "moved-key", "is not read: ipMasqAgent.enabled is"},
		{"hostServices", "moved-key", "is not read: socketLB is since 1.12, and kubeProxyReplacement=true turns it on anyway"},
		{"tunnel", "moved-key", "is not read: routingMode (native, tunnel) and tunnelProtocol (vxlan, geneve) are"},
		{"nativeRoutingCIDR", "moved-key", "is not read: ipv4NativeRoutingCIDR is"},
		{"bpf.hostRouting", "moved-key", "is not read: bpf.hostLegacyRouting is, with the opposite meaning"},
		{"nodePort.enabled", "part-of-kpr", "changes nothing: NodePort is on with kubeProxyReplacement=true, and off with false since charts have no such key"},
		{"hostPort", "part-of-kpr", "changes nothing: HostPort is on with kubeProxyReplacement=true, and off with false since charts have no such key"},
		{"externalIPs", "part-of-kpr", "changes nothing: external IPs are on with kubeProxyReplacement=true, and off with false since charts have no such key"},
		{"localRedirectPolicy", "deprecated-key", "still works; localRedirectPolicies.enabled is its successor"},
	},
}
