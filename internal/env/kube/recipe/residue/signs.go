package residue

// conflistDir is where runtimes read CNI configuration; the first file in the order of names decides.
const conflistDir = "/etc/cni/net.d/"

// Paths are directories whose entries identify a CNI.
var Paths = []string{
	conflistDir, "/run/flannel/", "/var/lib/cni/networks/", "/var/lib/calico/", "/run/calico/", "/run/cilium/",
	"/sys/fs/bpf/", "/sys/fs/bpf/tc/globals/", "/sys/fs/bpf/calico/", "/sys/fs/bpf/cilium/",
}

const (
	harmConflist = "a runtime takes the first file in the order of names: pods may be attached by this one"
	harmDevice   = "its addresses and routes compete with those of the next CNI, and a VXLAN device keeps its UDP port"
	harmChains   = "every packet that passes the node's stack walks them"
	harmBPF      = "its programs see packets before the next CNI does"
	harmState    = "the next CNI takes addresses and settings from it"
	rmFile       = "rm -rf %s"
	rmDevice     = "ip link delete %s"
	rmPinned     = "rm -rf %s"
)

var files = []sign{
	{conflistDir + "10-flannel.conflist", []string{Flannel}, harmConflist, rmFile},
	{conflistDir + "10-canal.conflist", []string{Canal}, harmConflist, rmFile},
	{conflistDir + "10-calico.conflist", []string{Calico}, harmConflist, rmFile},
	{conflistDir + "calico-kubeconfig", []string{Calico, Canal}, "it holds a token of the cluster", rmFile},
	{conflistDir + "05-cilium.conflist", []string{Cilium}, harmConflist, rmFile},
	{conflistDir + "10-kindnet.conflist", []string{Kindnet}, harmConflist, rmFile},
	{conflistDir + "10-weave.conflist", []string{Weave}, harmConflist, rmFile},
	{conflistDir + "10-antrea.conflist", []string{Antrea}, harmConflist, rmFile},
	{conflistDir + "00-multus*", []string{Multus}, harmConflist, rmFile},
	{conflistDir + "multus.d", []string{Multus}, harmConflist, rmFile},
	{conflistDir + "10-cnibench-*", []string{Plugins}, harmConflist, rmFile},
	{"/run/flannel/subnet.env", []string{Flannel, Canal}, harmState, rmFile},
	{"/var/lib/cni/networks/cbr0", []string{Flannel}, harmState, rmFile},
	{"/var/lib/cni/networks/k8s-pod-network", []string{Canal, Calico}, harmState, rmFile},
	{"/var/lib/cni/networks/cnibench-*", []string{Plugins}, harmState, rmFile},
	{"/var/lib/calico/*", []string{Calico, Canal}, harmState, rmFile},
	{"/run/calico/*", []string{Calico, Canal}, harmState, rmFile},
	{"/run/cilium/*", []string{Cilium}, harmState, rmFile},
	{"/sys/fs/bpf/tc/globals/cilium_*", []string{Cilium}, harmBPF, rmPinned},
	{"/sys/fs/bpf/tc/globals/cali_*", []string{Calico}, harmBPF, rmPinned},
	{"/sys/fs/bpf/cilium/*", []string{Cilium}, harmBPF, rmPinned},
	{"/sys/fs/bpf/calico/*", []string{Calico}, harmBPF, rmPinned},
	{"/sys/fs/bpf/calico_*", []string{Calico}, harmBPF, rmPinned},
}

var devices = []sign{
	{"cni0", []string{Flannel, Plugins}, harmDevice, rmDevice},
	{"flannel.*", []string{Flannel}, harmDevice, rmDevice},
	{"flannel-*", []string{Flannel}, harmDevice, rmDevice},
	{"vxlan.calico", []string{Calico}, harmDevice, rmDevice},
	{"wireguard.cali", []string{Calico}, harmDevice, rmDevice},
	{"bpfin.cali", []string{Calico}, harmDevice, rmDevice},
	{"bpfout.cali", []string{Calico}, harmDevice, rmDevice},
	{"tunl0", []string{Calico}, harmDevice, "ip addr flush dev %s && ip link set %s down"},
	{"cali*", []string{Calico}, harmDevice, rmDevice},
	{"cilium_*", []string{Cilium}, harmDevice, rmDevice},
	{"lxc*", []string{Cilium}, harmDevice, rmDevice},
	{"kube-ipvs0", []string{KubeProxy}, "it holds the addresses of Services", rmDevice},
	{"weave", []string{Weave}, harmDevice, rmDevice},
	{"antrea-gw0", []string{Antrea}, harmDevice, rmDevice},
}

// gateways are veths with an address of the pods' range: ends of the ptp plugin's pods that were not detached.
var gateways = []sign{{"*", []string{Plugins}, harmDevice, rmDevice}}

// clearChains returns the command that removes all rules and chains whose lines have a word: iptables-restore replaces
// whole tables.
func clearChains(word string) string {
	return "for t in iptables ip6tables; do $t-save | grep -v " + word + " | $t-restore; done"
}

// chains are known by prefix.
var chains = []sign{
	{"KUBE-", []string{KubeProxy}, harmChains, "kube-proxy --cleanup, or " + clearChains("KUBE-") + " (kubelet makes its own again)"},
	{"cali-", []string{Calico}, harmChains, clearChains("cali")},
	{"cali:", []string{Calico}, harmChains, clearChains("cali")},
	{"CILIUM_", []string{Cilium}, harmChains, clearChains("CILIUM_")},
	{"FLANNEL-", []string{Flannel}, harmChains, clearChains("FLANNEL-")},
	{"CNI-", []string{Plugins, Flannel, Calico, Cilium, Kindnet}, harmChains, clearChains("CNI-")},
	{"WEAVE-", []string{Weave}, harmChains, clearChains("WEAVE-")},
	{"ANTREA-", []string{Antrea}, harmChains, clearChains("ANTREA-")},
}

var tables = []sign{
	{"ip flannel-ipv4", []string{Flannel}, harmChains, "nft delete table %s"},
	{"ip6 flannel-ipv6", []string{Flannel}, harmChains, "nft delete table %s"},
	{"ip calico", []string{Calico}, harmChains, "nft delete table %s"},
	{"ip6 calico", []string{Calico}, harmChains, "nft delete table %s"},
	{"ip kube-proxy", []string{KubeProxy}, harmChains, "nft delete table %s"},
	{"ip6 kube-proxy", []string{KubeProxy}, harmChains, "nft delete table %s"},
	{"inet kindnet*", []string{Kindnet}, harmChains, "nft delete table %s"},
}

var programs = []sign{
	{"cil_*", []string{Cilium}, harmBPF, ""},
	{"cali_*", []string{Calico}, harmBPF, ""},
}

// definitions are known by the end of their name, the API's group.
var definitions = []sign{
	{".cilium.io", []string{Cilium}, harmState, "kubectl delete crd %s"},
	{".crd.projectcalico.org", []string{Calico, Canal}, harmState, "kubectl delete crd %s"},
	{".operator.tigera.io", []string{Calico}, harmState, "kubectl delete crd %s"},
	{".projectcalico.org", []string{Calico, Canal}, harmState, "kubectl delete crd %s"},
	{".k8s.cni.cncf.io", []string{Multus}, harmState, "kubectl delete crd %s"},
	{".crd.antrea.io", []string{Antrea}, harmState, "kubectl delete crd %s"},
}

// annotations are removed together; the command is made where the node is known.
var annotations = []sign{
	{"flannel.alpha.coreos.com/*", []string{Flannel}, "flannel takes the address and the MAC of its device from it", ""},
	{"projectcalico.org/*", []string{Calico}, "Calico takes the node's address and that of its tunnel from it", ""},
	{"network.cilium.io/*", []string{Cilium}, harmState, ""},
	{"io.cilium.network.*", []string{Cilium}, harmState, ""},
}

func taints(node string) []sign {
	return []sign{
		{"node.cilium.io/agent-not-ready", []string{Cilium}, "no pod is scheduled to the node", "kubectl taint node " + node + " %s-"},
	}
}
