package probe

import (
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Outcome is the answer of a probe.
type Outcome int

// The three outcomes. The zero value claims nothing.
const (
	Unknown Outcome = iota
	Yes
	No
)

func (o Outcome) String() string {
	switch o {
	case Yes:
		return "yes"
	case No:
		return "no"
	}
	return "could not tell"
}

// Finding is the result for one feature.
type Finding struct {
	// Feature is its name, as in the Needs of profiles. About describes its purpose.
	Feature, About string
	Outcome        Outcome
	// Missing is what is missing, or why that is unknown; "" for Yes.
	Missing string
	// WayOut is how to get it: a module, a kernel option, a package; "" for Yes.
	WayOut string
}

// requirement describes a feature and what it requires.
type requirement struct {
	name, about string
	// option names the configuration options of the kernel, and module the arguments of modprobe. program must be
	// installed. "" means that none is required.
	option, module, program string
}

// requirements are in the order of display. tries (try_linux.go) has the probe of each.
var requirements = []requirement{
	{name: "netns", about: "network namespaces: nodes and pods of the lab", option: "CONFIG_NET_NS"},
	{name: "cgroup2", about: "a cgroup v2 subtree for each node", option: "CONFIG_CGROUPS"},
	{name: "veth", about: "links between namespaces", option: "CONFIG_VETH", module: "veth"},
	{name: "bridge", about: "the switch, and bridges on nodes", option: "CONFIG_BRIDGE", module: "bridge"},
	{name: "br_netfilter", about: "iptables on bridged packets, as kube-proxy asks for", option: "CONFIG_BRIDGE_NETFILTER", module: "br_netfilter"},
	{name: "vxlan", about: "VXLAN tunnels", option: "CONFIG_VXLAN", module: "vxlan"},
	{name: "ipip", about: "IPIP tunnels", option: "CONFIG_NET_IPIP", module: "ipip"},
	{name: "wireguard", about: "WireGuard tunnels, by the kernel or in user space", option: "CONFIG_WIREGUARD", module: "wireguard"},
	{name: "ipsec", about: "IPsec between nodes: ESP with AES-GCM", option: "CONFIG_INET_ESP, CONFIG_XFRM_USER and CONFIG_CRYPTO_GCM", module: "-a esp4 xfrm_user"},
	{name: "macvlan", about: "pod devices on the node's NIC", option: "CONFIG_MACVLAN", module: "macvlan"},
	{name: "ipvlan", about: "pod devices that share the node's MAC", option: "CONFIG_IPVLAN", module: "ipvlan"},
	{name: "vlan", about: "pod interfaces on a trunk: VLAN devices (802.1Q)", option: "CONFIG_VLAN_8021Q", module: "8021q"},
	{name: "netkit", about: "BPF-programmable pod devices", option: "CONFIG_NETKIT", module: "netkit"},
	{name: "iptables", about: "the iptables programs and their filter table", option: "CONFIG_NF_TABLES and CONFIG_NFT_COMPAT, or CONFIG_IP_NF_IPTABLES", module: "nft_compat", program: "iptables-restore"},
	{name: "nat", about: "address translation: Services and masquerading", option: "CONFIG_NF_NAT and CONFIG_NETFILTER_XT_TARGET_MASQUERADE", module: "xt_MASQUERADE", program: "iptables-restore"},
	{name: "conntrack", about: "reading the table of connections", option: "CONFIG_NF_CT_NETLINK", module: "nf_conntrack_netlink"},
	{name: "nftables", about: "rules as nftables", option: "CONFIG_NF_TABLES", module: "nf_tables"},
	{name: "flowtable", about: "connections that pass a node's rules (condition flowtable)", option: "CONFIG_NF_FLOW_TABLE_INET and CONFIG_NFT_FLOW_OFFLOAD", module: "-a nf_flow_table_inet nft_flow_offload"},
	{name: "ipset", about: "sets of addresses in rules", option: "CONFIG_IP_SET_HASH_NET", module: "ip_set_hash_net", program: "ipset"},
	{name: "ipvs", about: "kube-proxy in ipvs mode", option: "CONFIG_IP_VS, CONFIG_IP_VS_RR, CONFIG_IP_VS_NFCT and CONFIG_DUMMY", module: "-a ip_vs_rr dummy"},
	{name: "bpf", about: "BPF programs on devices", option: "CONFIG_BPF_SYSCALL"},
	{name: "bpf-tc", about: "BPF programs at both ends of a device, by tcx or by clsact and a filter", option: "CONFIG_NET_CLS_ACT, CONFIG_NET_SCH_INGRESS and CONFIG_NET_CLS_BPF", module: "cls_bpf"},
	{name: "bpf-cgroup", about: "Services translated in the sockets of a cgroup v2", option: "CONFIG_CGROUP_BPF"},
	{name: "ipip-tunnel", about: "IPIP, by the kernel's device or by BPF programs in its place", option: "CONFIG_NET_IPIP or CONFIG_BPF_SYSCALL", module: "ipip"},
	{name: "htb", about: "line rates above some Gbit/s", option: "CONFIG_NET_SCH_HTB", module: "sch_htb"},
	{name: "tbf", about: "line rates", option: "CONFIG_NET_SCH_TBF", module: "sch_tbf"},
	{name: "tcpdump", about: "a look at packets by hand", program: "tcpdump"},
	{name: "iperf3", about: "stream by another program (--tool), and the comparison of load engines", program: "iperf3"},
	{name: "netperf", about: "stream, rr and crr by another program, and the comparison of load engines", program: "netperf"},
	{name: "wrk", about: "http by another program, and the comparison of load engines", program: "wrk"},
	{name: "hey", about: "http by another program", program: "hey"},
	{name: "ping", about: "ping by another program", program: "ping"},
	{name: "neper", about: "stream, rr and crr by another program", program: "tcp_rr"},
	{name: "sockperf", about: "rr by another program", program: "sockperf"},
}

// Features returns the names of all features that Check knows, in the order of display.
func Features() []string {
	return each.Of(requirements, func(r requirement) string { return r.name })
}

// machine is the distribution (family) and the kernel release that Finding.WayOut depends on.
type machine struct{ family, release string }

// refusedFinding returns the finding that the kernel refuses r. said is the kernel's reason.
func (r requirement) refusedFinding(m machine, said string) Finding {
	var ways []string
	if r.module != "" {
		ways = append(ways, "modprobe "+r.module)
		if more := modulesAdvice(m.family, m.release); more != "" {
			ways = append(ways, more)
		}
	}
	if r.option != "" {
		ways = append(ways, "a kernel with "+r.option)
	}
	return Finding{Feature: r.name, About: r.about, Outcome: No, Missing: "the kernel refuses it: " + strings.ReplaceAll(said, "\n", "; "), WayOut: strings.Join(ways, "; or ")}
}

// unknownFinding returns the finding that r could not be tried.
func (r requirement) unknownFinding(why, wayOut string) Finding {
	return Finding{Feature: r.name, About: r.about, Missing: why, WayOut: wayOut}
}
