// Package profile is the catalogue of CNI dataplanes: what each one is, as data. How the lab imitates one is said in
// lab/dataplane; which one a cluster runs is found by kube/detect.
package profile

// Profile describes a CNI dataplane with its settings.
type Profile struct {
	// Name is the identifier, for example "calico-vxlan".
	Name string
	// Title is the name for people; Summary one line on what moves the packets.
	Title, Summary string
	// Encapsulation is "none", "vxlan", "ipip" or "wireguard"; Overhead its bytes per packet on IPv4.
	Encapsulation string
	Overhead      int
	// NoIPv6 says why it has no IPv6 form, "" if it has one.
	NoIPv6 string
	// PodMTU is that of the pod's device or route over a 1500 byte underlay.
	PodMTU int
	// Services is the engine behind a ClusterIP: "kube-proxy", "ebpf", "none".
	Services string
	// Policy is the engine that would enforce a NetworkPolicy: "calico-iptables", "ebpf", "none".
	Policy string
	// Needs are kernel features and programs without which it cannot be raised, as package kernel/probe names them.
	Needs []string
	// Model says what the lab only imitates, "" if it uses what the product uses.
	Model string
	// Lab is false for profiles that this version cannot raise in the lab yet.
	Lab bool
}

// Names of the profiles that code refers to.
const (
	Raw  = "raw"
	Host = "host"
)

var catalogue = []Profile{
	{Name: Raw, Title: "two empty namespaces", Summary: "veth to the switch; no netfilter, no BPF: the zero of every comparison", Encapsulation: "none", PodMTU: 1500, Services: "none", Policy: "none", Needs: []string{"veth", "bridge"}, Lab: true},
	{Name: Host, Title: "bare Kubernetes node", Summary: "host-network pods; kube-proxy's and kubelet's rules in force", Encapsulation: "none", PodMTU: 1500, Services: "kube-proxy", Policy: "none", Needs: []string{"veth", "bridge", "iptables", "nat"}, Lab: true},
	{Name: "bridge", Title: "bridge plugin, static routes", Summary: "veth into a node bridge, routed between nodes", Encapsulation: "none", PodMTU: 1500, Services: "kube-proxy", Policy: "none", Needs: []string{"veth", "bridge", "iptables", "nat", "br_netfilter"}, Lab: true},
	{Name: "ptp", Title: "ptp plugin, static routes", Summary: "routed veth with the gateway address on the host side", Encapsulation: "none", PodMTU: 1500, Services: "kube-proxy", Policy: "none", Needs: []string{"veth", "bridge", "iptables", "nat"}, Lab: true},
	{Name: "flannel-vxlan", Title: "flannel, vxlan", Summary: "cni0 bridge, flannel.1 VXLAN VNI 1 port 8472", Encapsulation: "vxlan", Overhead: 50, PodMTU: 1450, Services: "kube-proxy", Policy: "none", Needs: []string{"veth", "bridge", "vxlan", "iptables", "nat", "br_netfilter"}, Lab: true},
	{Name: "canal", Title: "canal (Calico policy, flannel vxlan)", Summary: "routed cali veth with Calico's chains, flannel.1 VXLAN VNI 1 port 8472", Encapsulation: "vxlan", Overhead: 50, PodMTU: 1450, Services: "kube-proxy", Policy: "calico-iptables", Needs: []string{"veth", "bridge", "vxlan", "iptables", "nat", "ipset"}, Lab: true},
	{Name: "calico-vxlan", Title: "Calico, vxlan, iptables", Summary: "routed cali veth with Calico's chains, vxlan.calico VNI 4096 port 4789, outer packets untracked", Encapsulation: "vxlan", Overhead: 50, PodMTU: 1450, Services: "kube-proxy", Policy: "calico-iptables", Needs: []string{"veth", "bridge", "vxlan", "iptables", "nat", "ipset"}, Lab: true},
	{Name: "calico-underlay", Title: "Calico, no encapsulation, iptables", Summary: "routed cali veth with Calico's chains, pod addresses routed on the underlay", Encapsulation: "none", PodMTU: 1500, Services: "kube-proxy", Policy: "calico-iptables", Needs: []string{"veth", "bridge", "iptables", "nat", "ipset"}, Lab: true},
	{Name: "macvlan", Title: "macvlan, bridge mode", Summary: "pod device on the node's NIC, the node's stack bypassed", Encapsulation: "none", PodMTU: 1500, Services: "none", Policy: "none", Needs: []string{"veth", "bridge", "macvlan", "iptables", "nat"}, Lab: true},
	{Name: "flannel-host-gw", Title: "flannel, host-gw", Summary: "cni0 bridge, routes to the other nodes", Encapsulation: "none", PodMTU: 1500, Services: "kube-proxy", Policy: "none", Needs: []string{"veth", "bridge", "iptables", "nat", "br_netfilter"}, Lab: true},
	{Name: "flannel-wireguard", Title: "flannel, wireguard", Summary: "cni0 bridge, flannel-wg port 51820", Encapsulation: "wireguard", Overhead: 80, PodMTU: 1420, Services: "kube-proxy", Policy: "none", Needs: []string{"veth", "bridge", "wireguard", "iptables", "nat", "br_netfilter"}, Lab: true},
	{Name: "calico-ipip", Title: "Calico, IPIP, iptables", Summary: "routed cali veth with Calico's chains, tunl0", Encapsulation: "ipip", Overhead: 20, PodMTU: 1480, NoIPv6: "Calico has no IPIP for IPv6", Services: "kube-proxy", Policy: "calico-iptables", Needs: []string{"veth", "bridge", "ipip-tunnel", "iptables", "nat", "ipset"}, Lab: true},
	{Name: "calico-nftables", Title: "Calico, nftables", Summary: "as calico-vxlan with Calico's chains and kube-proxy's in nftables, dispatch by verdict maps", Encapsulation: "vxlan", Overhead: 50, PodMTU: 1450, Services: "kube-proxy", Policy: "calico-nftables", Needs: []string{"veth", "bridge", "vxlan", "iptables", "nftables", "nat"}, Lab: true},
	{Name: "calico-ebpf", Title: "Calico, eBPF", Summary: "TC programs, NodePort by tunnel", Encapsulation: "vxlan", Overhead: 50, PodMTU: 1450, Services: "ebpf", Policy: "ebpf", Needs: []string{"veth", "bridge", "vxlan", "iptables", "nat", "bpf", "bpf-tc", "bpf-cgroup"}, Lab: true},
	{Name: "calico-ebpf-dsr", Title: "Calico, eBPF, DSR", Summary: "TC programs, NodePort replies go straight to the client", Encapsulation: "vxlan", Overhead: 50, PodMTU: 1450, Services: "ebpf", Policy: "ebpf", Needs: []string{"veth", "bridge", "vxlan", "iptables", "nat", "bpf", "bpf-tc", "bpf-cgroup"}, Lab: true},
	{Name: "cilium-vxlan", Title: "Cilium, vxlan", Summary: "TC programs, cilium_vxlan with the identity as VNI", Encapsulation: "vxlan", Overhead: 50, PodMTU: 1450, Services: "ebpf", Policy: "ebpf", Needs: []string{"veth", "bridge", "vxlan", "iptables", "nat", "bpf", "bpf-tc", "bpf-cgroup"}, Lab: true},
	{Name: "cilium-native", Title: "Cilium, native routing, eBPF host routing", Summary: "TC programs, redirects past the node's stack", Encapsulation: "none", PodMTU: 1500, Services: "ebpf", Policy: "ebpf", Needs: []string{"veth", "bridge", "iptables", "nat", "bpf", "bpf-tc", "bpf-cgroup"}, Lab: true},
	{Name: "cilium-native-legacy", Title: "Cilium, native routing, legacy host routing", Summary: "TC programs, through the node's stack", Encapsulation: "none", PodMTU: 1500, Services: "ebpf", Policy: "ebpf", Needs: []string{"veth", "bridge", "iptables", "nat", "bpf", "bpf-tc", "bpf-cgroup"}, Lab: true},
	{Name: "cilium-netkit", Title: "Cilium, netkit devices", Summary: "a netkit pair for each pod, its program run as the pod sends; redirects past the node's stack", Encapsulation: "none", PodMTU: 1500, Services: "ebpf", Policy: "ebpf", Needs: []string{"veth", "bridge", "netkit", "iptables", "nat", "bpf", "bpf-tc", "bpf-cgroup"}, Lab: true},
	{Name: "cilium-native-dsr", Title: "Cilium, native routing, DSR", Summary: "NodePort with the client's address kept and direct replies", Encapsulation: "none", PodMTU: 1500, Services: "ebpf", Policy: "ebpf", Needs: []string{"veth", "bridge", "iptables", "nat", "bpf", "bpf-tc", "bpf-cgroup"}, Lab: true},
	{Name: "ipvlan", Title: "ipvlan, l2", Summary: "pod device on the node's NIC with the node's MAC", Encapsulation: "none", PodMTU: 1500, Services: "none", Policy: "none", Needs: []string{"veth", "bridge", "ipvlan", "iptables", "nat"}, Lab: true},
	{Name: "sriov", Title: "SR-IOV (model)", Summary: "a device of its own on the switch", Encapsulation: "none", PodMTU: 1500, Services: "none", Policy: "none", Model: "model, no hardware: a veth straight to the switch stands for the virtual function", Needs: []string{"veth", "bridge", "iptables", "nat"}, Lab: true},
}

// ipv6Longer is what an IPv6 header is longer than one of IPv4, in bytes.
const ipv6Longer = 20

// OverheadOn returns the bytes per packet over an underlay of the given version of IP, 4 or 6. WireGuard's are what flannel
// sets aside for either.
func (p Profile) OverheadOn(family int) int {
	if family == 6 && p.Overhead > 0 && p.Encapsulation != "wireguard" {
		return p.Overhead + ipv6Longer
	}
	return p.Overhead
}

// All returns the catalogue in report order.
func All() []Profile { return append([]Profile(nil), catalogue...) }

// Lookup returns the profile called name.
func Lookup(name string) (Profile, bool) {
	for _, p := range catalogue {
		if p.Name == name {
			return p, true
		}
	}
	return Profile{}, false
}

// InLab returns the names of the profiles that the lab of this version can raise, in report order.
func InLab() []string {
	var names []string
	for _, p := range catalogue {
		if p.Lab {
			names = append(names, p.Name)
		}
	}
	return names
}
