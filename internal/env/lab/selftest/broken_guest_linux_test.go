package selftest

import "github.com/cnibench/cnibench/internal/plan"

// inIPVS is a lab whose kube-proxies are in ipvs mode.
var inIPVS = plan.Lab{ServiceProxy: "ipvs"}

// breakagesInGuest are things done to what few kernels of build machines have; that of make test-vm has it all.
var breakagesInGuest = []breakage{
	{
		name: "an encrypted tunnel without its device", profile: "flannel-wireguard",
		script:  `ip link del flannel-wg`,
		notices: []string{"tunnel.device", "tunnel.peers", "route.remote", "exchange" + cross},
		holds:   []string{"exchange@host-to-host/cross-node"},
	},
	{
		name: "packets that IPsec does not encrypt", profile: "cilium-native(encryption=ipsec)", at: bothNodes,
		script:  `/usr/sbin/ip xfrm policy flush`, // not that of busybox
		notices: []string{"tunnel.states", "wire" + cross, "wire.clear" + cross, "wire.addresses" + cross},
		holds:   []string{"exchange" + cross, "rules.encryption"},
	},
	{
		name: "a netkit device that is down", profile: "cilium-netkit",
		script:  `ip link set $VETH down`,
		notices: []string{"exchange" + same, "exchange" + cross},
		holds:   []string{"exchange@host-to-host/cross-node", "pod.device"},
	},
	{
		name: "no Service's address on a node in ipvs mode", profile: "flannel-vxlan", lab: inIPVS,
		script:  `ip addr flush dev kube-ipvs0`,
		notices: []string{"services.ipvs", "exchange@pod-to-service/remote"},
		holds:   []string{"exchange" + cross},
	},
	{
		name: "a rule translates in place of ipvs", profile: "host", lab: inIPVS,
		script:  `$IPTABLES -t nat -I OUTPUT -d $VIP -j DNAT --to-destination $REMOTE; $IPTABLES -t nat -I OUTPUT -d $VIP -j KUBE-MARK-MASQ`,
		notices: []string{"services.ipvs.counted"},
		holds:   []string{"services.ipvs", "exchange@pod-to-service/remote"},
	},
	{
		name: "nobody is masqueraded in ipvs mode", profile: "flannel-vxlan", lab: inIPVS,
		script:  `$IPTABLES -t nat -F KUBE-MARK-MASQ`,
		notices: []string{"source@host-to-service/local", "source@external-to-nodeport/local"},
		holds:   []string{"services.ipvs", "exchange@pod-to-service/remote"},
	},
}
