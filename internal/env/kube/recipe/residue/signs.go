package residue

// conflistDir is the directory with CNI configuration. A runtime uses the first file in the order of names.
const conflistDir = "/etc/cni/net.d/"

// paths are directories on a node whose entries identify a CNI.
var paths = []string{
	conflistDir, "/run/flannel/", "/var/lib/cni/networks/", "/var/lib/calico/", "/run/calico/", "/run/cilium/",
	"/sys/fs/bpf/", "/sys/fs/bpf/tc/globals/", "/sys/fs/bpf/calico/", "/sys/fs/bpf/cilium/",
}

const (
	harmConflist = "a runtime takes the first file in the order of names: pods may be attached by this one"
	harmDevice   = "its addresses and routes compete with those of the next CNI, and a VXLAN device keeps its UDP port"
	harmChains   = "every packet that passes the node's stack walks them"
	harmRules    = "every search for a route walks them"
	harmBPF      = "its programs see packets before the next CNI does"
	harmState    = "the next CNI takes addresses and settings from it"
	rmFile       = "rm -rf %s"
	rmDevice     = "ip link delete %s"
	rmTable      = "nft delete table %s"
	rmDefinition = "kubectl delete crd %s"
)

var files = []sign{
	{[]string{conflistDir + "10-flannel.conflist"}, []string{Flannel}, harmConflist, rmFile},
	{[]string{conflistDir + "10-canal.conflist"}, []string{Canal}, harmConflist, rmFile},
	{[]string{conflistDir + "10-calico.conflist"}, []string{Calico}, harmConflist, rmFile},
	{[]string{conflistDir + "05-cilium.conflist"}, []string{Cilium}, harmConflist, rmFile},
	{[]string{conflistDir + "10-kindnet.conflist"}, []string{kindnet}, harmConflist, rmFile},
	{[]string{conflistDir + "10-weave.conflist"}, []string{weave}, harmConflist, rmFile},
	{[]string{conflistDir + "10-antrea.conflist"}, []string{antrea}, harmConflist, rmFile},
	{[]string{conflistDir + "00-multus*", conflistDir + "multus.d"}, []string{Multus}, harmConflist, rmFile},
	{[]string{conflistDir + "10-cnibench-*"}, []string{Plugins}, harmConflist, rmFile},
	{[]string{conflistDir + "calico-kubeconfig"}, []string{Calico, Canal}, "it holds a token of the cluster", rmFile},
	{[]string{"/run/flannel/subnet.env"}, []string{Flannel, Canal}, harmState, rmFile},
	{[]string{"/var/lib/cni/networks/cbr0"}, []string{Flannel}, harmState, rmFile},
	{[]string{"/var/lib/cni/networks/k8s-pod-network"}, []string{Canal, Calico}, harmState, rmFile},
	{[]string{"/var/lib/cni/networks/cnibench-*"}, []string{Plugins}, harmState, rmFile},
	{[]string{"/var/lib/calico/*", "/run/calico/*"}, []string{Calico, Canal}, harmState, rmFile},
	{[]string{"/run/cilium/cgroupv2"}, []string{Cilium}, "its mount keeps the node's cgroups in use", "umount %s; rmdir %s"},
	{[]string{"/run/cilium/*"}, []string{Cilium}, harmState, rmFile},
	{[]string{"/sys/fs/bpf/tc/globals/cilium_*", "/sys/fs/bpf/cilium/*"}, []string{Cilium}, harmBPF, rmFile},
	{[]string{"/sys/fs/bpf/tc/globals/cali_*", "/sys/fs/bpf/calico/*", "/sys/fs/bpf/calico_*"}, []string{Calico}, harmBPF, rmFile},
}

var devices = []sign{
	{[]string{"cni0"}, []string{Flannel, Plugins}, harmDevice, rmDevice},
	{[]string{"flannel.*", "flannel-*"}, []string{Flannel}, harmDevice, rmDevice},
	{[]string{"tunl0"}, []string{Calico}, harmDevice, "ip addr flush dev %s && ip link set %s down"},
	{[]string{"vxlan.calico", "wireguard.cali", "bpfin.cali", "bpfout.cali", "cali*"}, []string{Calico}, harmDevice, rmDevice},
	{[]string{"cilium_*", "lxc*"}, []string{Cilium}, harmDevice, rmDevice},
	{[]string{"kube-ipvs0"}, []string{KubeProxy}, "it holds the addresses of Services", rmDevice},
	{[]string{"weave"}, []string{weave}, harmDevice, rmDevice},
	{[]string{"antrea-gw0"}, []string{antrea}, harmDevice, rmDevice},
}

// gateways identifies veth devices that have an address of the node's pod range. The plugin ptp creates such a device on the
// node for each pod; a leftover belongs to a pod that was never detached.
var gateways = []sign{{[]string{"*"}, []string{Plugins}, harmDevice, rmDevice}}

// clearChainsCommand returns the command that removes all iptables rules and chains whose lines contain word. It saves,
// filters and restores whole tables.
func clearChainsCommand(word string) string {
	return "for t in iptables ip6tables; do $t-save | grep -v " + word + " | $t-restore; done"
}

// chains identifies iptables chains by the prefixes of their names. The kubelet creates its own KUBE- chains again.
var chains = []sign{
	{[]string{"KUBE-"}, []string{KubeProxy}, harmChains,
		clearChainsCommand("KUBE-")},
	{[]string{"cali-", "cali:"}, []string{Calico}, harmChains, clearChainsCommand("cali")},
	{[]string{"CILIUM_"}, []string{Cilium}, harmChains, clearChainsCommand("CILIUM_")},
	{[]string{"FLANNEL-"}, []string{Flannel}, harmChains, clearChainsCommand("FLANNEL-")},
	{[]string{"CNI-"}, []string{Plugins, Flannel, Calico, Cilium, kindnet}, harmChains, clearChainsCommand("CNI-")},
	{[]string{"WEAVE-"}, []string{weave}, harmChains, clearChainsCommand("WEAVE-")},
	{[]string{"ANTREA-"}, []string{antrea}, harmChains, clearChainsCommand("ANTREA-")},
}

var tables = []sign{
	{[]string{"ip flannel-ipv4", "ip6 flannel-ipv6"}, []string{Flannel}, harmChains, rmTable},
	{[]string{"ip calico", "ip6 calico"}, []string{Calico}, harmChains, rmTable},
	{[]string{"ip kube-proxy", "ip6 kube-proxy"}, []string{KubeProxy}, harmChains, rmTable},
	{[]string{"inet kindnet*"}, []string{kindnet}, harmChains, rmTable},
}

var programs = []sign{
	{[]string{"cil_*"}, []string{Cilium}, harmBPF, ""},
	{[]string{"cali_*"}, []string{Calico}, harmBPF, ""},
}

// rules identifies routing rules by their text. Cilium moves the rule of the local table, so that its own rules come first.
var rules = []sign{
	{[]string{"fwmark 0x200/0xf00 lookup 2004", "fwmark 0xa00/0xf00 lookup 2005"}, []string{Cilium}, harmRules, "ip%6 rule del %s"},
	{[]string{"lookup local"}, []string{Cilium}, harmRules, "ip%6 rule add pref 0 %s && ip%6 rule del pref %p %s"},
}

// definitions identifies CustomResourceDefinitions by their API group.
var definitions = []sign{
	{[]string{"*.cilium.io"}, []string{Cilium}, harmState, rmDefinition},
	{[]string{"*.crd.projectcalico.org", "*.projectcalico.org"}, []string{Calico, Canal}, harmState, rmDefinition},
	{[]string{"*.operator.tigera.io"}, []string{Calico}, harmState, rmDefinition},
	{[]string{"*.k8s.cni.cncf.io"}, []string{Multus}, harmState, rmDefinition},
	{[]string{"*.crd.antrea.io"}, []string{antrea}, harmState, rmDefinition},
}

// annotations identifies annotations of nodes. Those of one sign are removed together; see judge.addAnnotations.
var annotations = []sign{
	{[]string{"flannel.alpha.coreos.com/*"}, []string{Flannel}, "flannel takes the address and the MAC of its device from it", ""},
	{[]string{"projectcalico.org/*"}, []string{Calico}, "Calico takes the node's address and that of its tunnel from it", ""},
	{[]string{"network.cilium.io/*"}, []string{Cilium}, harmState, ""},
	{[]string{"io.cilium.network.*"}, []string{Cilium}, harmState, ""},
}

func taintSigns(node string) []sign {
	return []sign{{[]string{"node.cilium.io/agent-not-ready"}, []string{Cilium},
		"no pod is scheduled to the node", "kubectl taint node " + node + " %s-"}}
}
