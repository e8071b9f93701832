package config

// Severity orders findings.
type Severity int

// Severities, from the least.
const (
	// Note is worth knowing, no defect.
	Note Severity = iota
	// Ignored is given and has no effect.
	Ignored
	// Otherwise is in force in another form than was asked for.
	Otherwise
	// Refused makes the chart, the operator or the agent end with an error.
	Refused
)

var severityNames = [...]string{"note", "no effect", "otherwise", "refused"}

func (s Severity) String() string { return severityNames[s] }

// MarshalText makes JSON say the name.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Rule is one of the things that are looked for.
type Rule struct {
	ID       string
	Severity Severity
	// Title is what it finds; Why and Do are the same for all findings of the rule.
	Title, Why, Do string
	// Source is where that is read.
	Source string
}

// Rules returns all of them in the order of the documentation.
func Rules() []Rule { return append([]Rule(nil), rules...) }

// ruleCalled returns the rule with the id; that every id in the code has one is tested.
func ruleCalled(id string) Rule {
	for _, r := range rules {
		if r.ID == id {
			return r
		}
	}
	return Rule{ID: id, Severity: Note}
}

const (
	kprGo     = "cilium pkg/kpr/initializer/kube_proxy_replacement.go (1.20)"
	configMap = "cilium chart templates/cilium-configmap.yaml (1.19, 1.20)"
)

var rules = []Rule{
	{"unknown-key", Ignored, "a key that nobody reads",
		"Helm hands every value to the templates and templates read those that they know: a key of another version or product is dropped without a word, unless the chart has a schema that forbids it; the API server prunes unknown fields",
		"take it out or use the key that is meant, and read back what is in force",
		"the charts' values and the objects' schemas: cilium 1.19, calico 3.32, flannel 0.28, kube-proxy 1.36"},
	{"moved-key", Ignored, "a key that is now another",
		"the chart reads the other key alone",
		"use the key that is named",
		"cilium chart 1.19 values; renames: cilium issue 22077 (hostServices, 1.12)"},
	{"part-of-kpr", Ignored, "a switch that kube-proxy replacement includes",
		"kubeProxyReplacement is all or nothing: true has NodePort, HostPort and external IPs whatever these say, in every version; the chart of 1.19 has no such keys any more, and only older ones read them where it is false or partial",
		"take them out; say kubeProxyReplacement alone",
		"cilium chart 1.19 values; cilium pull request 36856 (what older charts read); " + kprGo},
	{"deprecated-key", Note, "a deprecated key that still works",
		"it is read in this version and will not be in a later one",
		"use the key that is named",
		"cilium chart 1.19 values"},
	{"placeholder", Refused, "a placeholder that was not filled in",
		"an address in angle brackets is that of no API server: the agent cannot reach it and stays unready",
		"fill it in; on RKE2 with a server on each node, 127.0.0.1 and 6443",
		"cilium chart values k8sServiceHost"},
	{"host-routing-legacy", Otherwise, "packets go through the node's stack after all",
		"eBPF host routing needs kubeProxyReplacement=true, masquerading that is not by iptables, no IPsec, and no CNI chaining unless bpf.hostLegacyRouting is set: else the agent falls back to legacy host routing, with a line in its log; with native routing FORWARD rules and Linux conntrack then see every packet between nodes",
		"set bpf.masquerade=true, kubeProxyReplacement=true and cni.chainingMode=none, or ask for bpf.hostLegacyRouting=true and call it that; cilium-dbg status --verbose must say Host: BPF",
		kprGo + "; " + configMap},
	{"host-routing-default", Note, "legacy host routing",
		"with kube-proxy in place packets need the node's stack, and the agent takes legacy host routing: the chart's default",
		"for eBPF host routing set kubeProxyReplacement=true and bpf.masquerade=true",
		kprGo},
	{"kpr-value", Refused, "kubeProxyReplacement that is neither true nor false",
		"strict, partial, probe and disabled are of versions before; the chart ends with an error",
		"say true or false",
		configMap},
	{"native-cidr", Refused, "native routing without its CIDR",
		"with routingMode native and masquerading the chart wants to know which destinations are not masqueraded",
		"set ipv4NativeRoutingCIDR to the pods' CIDR",
		configMap},
	{"native-routes", Note, "native routing, and nobody makes the routes",
		"without autoDirectNodeRoutes the agent adds no routes to the other nodes' pods: the network or BGP must have them",
		"set autoDirectNodeRoutes=true where the nodes share a segment",
		"cilium pkg/datapath/linux/node.go (1.20)"},
	{"direct-routes-tunnel", Refused, "direct routes with a tunnel",
		"the agent ends with an error: packets go through the tunnel device",
		"set routingMode=native, or take autoDirectNodeRoutes out",
		"cilium daemon/cmd/daemon_main.go"},
	{"tunnel-unused", Ignored, "a tunnel protocol that nothing uses",
		"with routingMode native there is no tunnel device for pod traffic; only DSR with Geneve dispatch uses the protocol",
		"take it out, or set routingMode=tunnel",
		"cilium chart values tunnelProtocol"},
	{"needs-kpr", Ignored, "a load balancer setting without the load balancer",
		"with kubeProxyReplacement=false NodePort, external IPs and node traffic are kube-proxy's; Cilium's modes of NodePort have nothing to work on",
		"set kubeProxyReplacement=true, and stop kube-proxy",
		kprGo},
	{"dsr-refused", Refused, "DSR in a combination that the agent refuses",
		"over VXLAN the original address has no place; tunnel routing needs Geneve dispatch, and Geneve dispatch needs tunnelProtocol=geneve",
		"use routingMode=native with dsrDispatch=opt, or tunnelProtocol=geneve with dsrDispatch=geneve",
		kprGo},
	{"dsr-scope", Note, "direct server return is for clients outside",
		"the way back that it spares is that of NodePort, external and LoadBalancer addresses entered at another node: pods among themselves never take it; the fabric must pass replies from an address that is not the sender's, with IP options where dispatch is opt",
		"measure an external client against a NodePort with its endpoint on another node",
		"cilium bpf/lib/nodeport.h (1.20); calico felix/bpf-gpl (3.32)"},
	{"maglev-scope", Note, "Maglev is for traffic from outside",
		"backends are picked by Maglev for external traffic alone; a pod's connect() to a ClusterIP picks at random",
		"do not expect it to change pod-to-pod or pod-to-service numbers",
		"cilium bpf/lib/nodeport.h, bpf/bpf_sock.c (1.20)"},
	{"xdp-device", Note, "XDP acceleration depends on the NIC",
		"native needs XDP in the driver of every device in use; best-effort leaves such a device without it, silently; it serves NodePort traffic from outside only",
		"look at XDP Acceleration in cilium-dbg status --verbose on each node, before and after, above all on virtual NICs",
		"cilium chart values loadBalancer.acceleration"},
	{"socket-lb-forced", Otherwise, "socket load balancing is on all the same",
		"kubeProxyReplacement=true turns it on whatever socketLB.enabled says",
		"use socketLB.hostNamespaceOnly=true to keep it out of pods",
		"cilium issue 26758; cilium pkg/kpr (1.19)"},
	{"kube-proxy-beside", Otherwise, "kube-proxy runs beside its replacement",
		"both programme every Service; kube-proxy's rules stay in the path of every packet that passes the node's stack, and conntrack with them",
		"stop it where it is started: disable-kube-proxy: true (RKE2, K3s), kubeProxyMode: none (kind), or delete the DaemonSet and flush its rules",
		"RKE2 and kind documentation; cilium documentation, kube-proxy free"},
	{"kube-proxy-unsaid", Note, "whether kube-proxy runs is not said here",
		"Cilium's replacement and Calico's eBPF dataplane start beside a running kube-proxy without a word, and its rules stay in the path",
		"give the distribution's configuration as well (config.yaml of RKE2 or K3s, kind's Cluster), or look for its pods",
		"RKE2, K3s and kind documentation"},
	{"no-service-engine", Refused, "nobody serves Services",
		"kube-proxy is off, and the CNI does not replace it: a ClusterIP leads nowhere",
		"set kubeProxyReplacement=true (or Calico's linuxDataplane BPF), or leave kube-proxy on",
		kprGo},
	{"api-server", Refused, "no kube-proxy and no address of the API server",
		"before Cilium serves it, the kubernetes Service's address leads nowhere: the agent must be told the real one",
		"set k8sServiceHost and k8sServicePort",
		"cilium documentation, kube-proxy free; RKE2 documentation"},
	{"netkit", Refused, "netkit without what it needs",
		"netkit devices need eBPF host routing, TCX and a kernel of 6.8 or later, and cannot be had with bpf.tproxy",
		"turn eBPF host routing on (see host-routing-legacy), leave bpf.enableTCX on and bpf.tproxy off",
		"cilium pkg/datapath/loader/netkit.go (1.20)"},
	{"bbr", Refused, "BBR without what it needs",
		"BBR for pods needs the bandwidth manager and eBPF host routing: over the node's stack a packet's departure time is lost",
		"set bandwidthManager.enabled=true and see host-routing-legacy",
		"cilium pkg/datapath/linux/bandwidth (1.20)"},
	{"switch-off", Ignored, "settings of something that is switched off",
		"they are read only where it is enabled",
		"enable it, or take them out",
		configMap},
	{"no-conntrack-forced", Otherwise, "the rules against conntrack are forced off",
		"with CNI chaining, on ENI, Azure or GKE the chart writes false whatever installNoConntrackIptablesRules says",
		"set cni.chainingMode=none",
		configMap},
	{"no-conntrack-refused", Refused, "rules against conntrack without what they need",
		"the agent refuses them unless kube-proxy is replaced and masquerading is by eBPF",
		"set kubeProxyReplacement=true and bpf.masquerade=true",
		kprGo},
	{"endpoint-routes-legacy", Note, "endpoint routes send same-node packets through the stack",
		"with endpoint routes and legacy host routing a packet to a pod of the same node is handed to the node's stack and comes back by a route: FORWARD rules and conntrack are met there too",
		"turn one of the two off to measure Cilium's short path",
		"cilium bpf/bpf_lxc.c (1.20)"},
	{"mtu-is-underlay", Note, "MTU is that of the underlay",
		"Cilium's MTU value is the network's: what the encapsulation needs is taken from it for the pods' routes (50 bytes for VXLAN, 95 for WireGuard in 1.20)",
		"give the NIC's MTU, or leave it out",
		"cilium chart values MTU; cilium pkg/mtu (1.20)"},
	{"observability", Note, "flow events are on",
		"each new flow, and each packet that the monitor's aggregation lets through, becomes an event that the agent reads: CPU that the other side of a comparison may not spend",
		"have it on both sides or neither",
		"cilium chart values hubble, bpf.monitorAggregation"},
	{"encrypted", Note, "traffic between nodes is encrypted",
		"a comparison with a CNI that sends plain text compares ciphers",
		"encrypt on both sides or neither",
		"cilium pkg/wireguard (1.20); calico felix/wireguard (3.32)"},
	{"pod-cidr", Otherwise, "pods are not in the CIDR that the cluster was made with",
		"the CNI hands out addresses of its own range: kube-proxy's idea of what is a pod, and rules that name the cluster's CIDR, miss them",
		"give both the same CIDR, or ipam.mode=kubernetes",
		"cilium chart values ipam; kube-proxy pkg/proxy/iptables (1.36)"},
	{"chart-of-another", Ignored, "values of a CNI that is not the one chosen",
		"config.yaml names the CNI; a HelmChartConfig for another has no chart to configure",
		"set cni: in config.yaml to the CNI that is meant",
		"RKE2 documentation, networking"},
	{"bgp-needed", Refused, "an encapsulation whose routes nobody makes",
		"the routes of IPIP and unencapsulated pools come from BIRD, by BGP, unless clusterRoutingMode is Felix",
		"set bgp Enabled, or encapsulation VXLAN, or clusterRoutingMode Felix (3.32 and later)",
		"calico felix/dataplane/linux, confd (3.32)"},
	{"both-encapsulations", Refused, "a pool with two encapsulations",
		"vxlanMode and ipipMode exclude one another",
		"set one of them to Never",
		"calico IPPool (3.32)"},
	{"bpf-off", Ignored, "eBPF settings without the eBPF dataplane",
		"Felix reads them when linuxDataplane is BPF (bpfEnabled) only",
		"set linuxDataplane: BPF, or bpfEnabled: true where no operator is",
		"calico felix/config/config_params.go (3.32)"},
	{"dataplane-disagree", Otherwise, "two objects name two dataplanes",
		"the operator writes Felix's dataplane settings from its Installation",
		"change linuxDataplane in the Installation alone",
		"tigera operator pkg/controller/installation"},
	{"bpf-kube-proxy", Otherwise, "eBPF dataplane and kube-proxy both on",
		"Calico's eBPF serves Services itself and wants kube-proxy off; kubeProxyManagement patches a DaemonSet, which RKE2 and K3s do not have",
		"set kubeProxyManagement: Enabled where kube-proxy is a DaemonSet, else disable-kube-proxy: true",
		"calico Installation schema (operator 1.42); calico felix/dataplane/linux (3.32)"},
	{"bootstrap", Refused, "bpfNetworkBootstrap without BPF",
		"it must be left out or Disabled with another dataplane",
		"set linuxDataplane: BPF, or take it out",
		"calico Installation schema (operator 1.42)"},
	{"checksum-software", Note, "checksums of the tunnel in software",
		"ChecksumOffloadBroken=true turns checksum offload of the tunnel device off: every byte is summed by the CPU; RKE2's chart sets it, upstream does only on kernels of 5.7 and before",
		"set featureDetectOverride to ChecksumOffloadBroken=false on current kernels, or say it with the numbers",
		"rke2-charts packages/rke2-calico; calico felix/dataplane/linux/route_mgr.go (3.32)"},
	{"mtu-too-large", Otherwise, "a pod MTU that does not leave room for the encapsulation",
		"over an underlay of 1500 bytes packets of that size are dropped or fragmented: path MTU discovery per connection at best",
		"leave the MTU to be found out, or take the encapsulation off the underlay's",
		"calico felix/dataplane/linux/int_dataplane.go (3.32); flannel pkg/backend (0.28)"},
	{"cross-subnet", Note, "encapsulated between subnets only",
		"nodes of one subnet reach one another without encapsulation: in a small lab nothing is ever encapsulated",
		"say where the nodes stand, and capture the packets",
		"calico felix/dataplane/linux/vxlan_mgr.go (3.32); flannel pkg/backend/vxlan (0.28)"},
	{"proxy-mode-unused", Ignored, "settings of a kube-proxy mode that is not used",
		"each mode reads its own section",
		"set mode, or take them out",
		"kubernetes pkg/proxy (1.36)"},
	{"proxy-mode", Refused, "a kube-proxy mode that does not exist",
		"on Linux there are iptables, nftables and ipvs",
		"say one of them",
		"kubernetes pkg/proxy (1.36)"},
	{"proxy-deprecated", Note, "ipvs mode is deprecated",
		"kube-proxy of 1.36 warns at start; nftables is as independent of the number of Services",
		"measure nftables mode",
		"kubernetes pkg/proxy/ipvs/proxier.go (1.36)"},
	{"proxy-nodeports", Note, "node ports on one address",
		"nftables mode answers node ports on the primary address of the node alone and never on localhost, unlike iptables mode",
		"set nodePortAddresses where clients use others",
		"kubernetes pkg/proxy/nftables (1.36)"},
	{"proxy-no-local", Note, "kube-proxy does not know which addresses are pods",
		"without clusterCIDR (or another detectLocalMode) it leaves out the rule that masquerades what reaches a ClusterIP from outside",
		"set clusterCIDR to the pods' CIDR",
		"kubernetes pkg/proxy/iptables/proxier.go (1.36)"},
	{"two-cnis", Otherwise, "two CNIs",
		"the distribution brings its own, and its devices, rules and configuration are there beside the other's",
		"turn it off: disableDefaultCNI: true (kind), flannel-backend: none and disable-network-policy: true (K3s)",
		"kind and K3s documentation"},
	{"one-machine", Note, "all nodes are containers of one machine",
		"there is no wire: nodes share CPUs, caches and memory, and packets between them never leave the kernel",
		"speak of the cost of software; use two machines for a network",
		"kind documentation"},
	{"cpu-limit", Note, "a CPU limit on pods",
		"a pod that reaches it is stopped for the rest of each 100 ms: throughput is then the quota's and latency that of the stops",
		"take the limit away for measuring, or show nr_throttled",
		"Linux CFS bandwidth control"},
	{"flannel-backend", Refused, "a backend that flannel does not have",
		"flannel ends with an error",
		"use vxlan, host-gw, wireguard, ipip or udp",
		"flannel pkg/backend (0.28)"},
	{"backend-unused", Ignored, "options of another backend",
		"each backend reads its own",
		"take them out",
		"flannel pkg/backend (0.28)"},
	{"tunnel-number", Note, "a tunnel with other numbers",
		"RKE2's chart has flannel use UDP port 4789 and VNI 4096 where flannel itself has 8472 and 1: the same cost, another packet filter",
		"open the port that is in force",
		"rke2-charts packages/rke2-flannel"},
}
