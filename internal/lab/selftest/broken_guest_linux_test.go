package selftest

import "github.com/cnibench/cnibench/internal/plan"

// breakagesInGuest are things done to what few kernels of build machines have; that of make test-vm has it all.
var breakagesInGuest = []breakage{
	{
		name: "a plain route past an encrypted tunnel", profile: "flannel-wireguard",
		script:  `ip route add $SUBNET via $REMOTE dev eth0`,
		notices: []string{"wire" + cross, "wire.clear" + cross},
		holds:   []string{"exchange" + cross, "tunnel.peers", "conntrack.outer" + cross},
	},
	{
		name: "an encrypted tunnel without its device", profile: "flannel-wireguard",
		script:  `ip link del flannel-wg`,
		notices: []string{"tunnel.device", "tunnel.peers", "route.remote", "exchange" + cross},
		holds:   []string{"exchange" + same},
	},
	{
		name: "a netkit device that is down", profile: "cilium-netkit",
		script:  `ip link set $VETH down`,
		notices: []string{"exchange" + same, "exchange" + cross},
		holds:   []string{"exchange@host-to-host/cross-node", "pod.device"},
	},
	{
		name: "no Service's address on a node in ipvs mode", profile: "host", lab: plan.Lab{ServiceProxy: "ipvs"},
		script:  `ip addr flush dev kube-ipvs0`,
		notices: []string{"services.ipvs", "services.ipvs.counted", "exchange@pod-to-service/remote"},
		holds:   []string{"exchange@external-to-nodeport/remote", "exchange" + cross},
	},
	{
		name: "nobody is masqueraded in ipvs mode", profile: "flannel-vxlan", lab: plan.Lab{ServiceProxy: "ipvs"},
		script:  `$IPTABLES -t nat -F KUBE-MARK-MASQ`,
		notices: []string{"exchange@external-to-nodeport/remote"},
		holds:   []string{"services.ipvs", "exchange@pod-to-service/remote"},
	},
}
