package selftest

import "github.com/cnibench/cnibench/internal/plan"

// breakagesOfDevices are things done to what devices do by themselves: merge what they receive, and hand it to other CPUs.
var breakagesOfDevices = []breakage{
	{
		name: "GRO off at the NIC", profile: "ptp", lab: plan.Lab{NIC: "wire", GRO: "on"}, at: bothNodes,
		script:  `ethtool -K eth0 gro off`,
		notices: []string{"offload", "merged" + cross},
		holds:   []string{"wire.limit" + cross},
	},
	{
		name: "merged frames cut before the pod", profile: "flannel-vxlan", lab: plan.Lab{NIC: "wire", GRO: "udp"}, at: bothNodes,
		script:  `for dev in $(ip -o link show type veth | grep -o 'veth[^@:]*'); do ethtool -K $dev tso off gso off; done`,
		notices: []string{"merged" + cross},
		holds:   []string{"wire.limit" + cross, "offload"},
	},
	{
		name: "GRO on by itself", profile: "flannel-vxlan", lab: plan.Lab{NIC: "wire"},
		script:  `ethtool -K flannel.1 gro on`,
		notices: []string{"offload"},
		holds:   []string{"exchange" + cross},
	},
	{
		name: "a device without BIG TCP", profile: "ptp", lab: plan.Lab{NIC: "ideal", BigTCP: "on"},
		script:  `ip link set eth0 gso_max_size 65536`,
		notices: []string{"big-tcp"},
		holds:   []string{"exchange" + cross},
	},
	{
		name: "pods without BIG TCP", profile: "ptp", lab: plan.Lab{NIC: "ideal", BigTCP: "on"}, at: []string{"node-1/pod-1"},
		script:  `ip link set eth0 gso_max_size 65536`,
		notices: []string{"big-tcp", "wire.limit" + cross},
		holds:   []string{"exchange" + cross},
	},
	{
		name: "steering on without RPS", profile: "ptp", lab: plan.Lab{CPU: "split", RPS: "off"},
		script:  `unshare -m sh -c "mount -t sysfs none /sys && echo 1 > /sys/class/net/$VETH/queues/rx-0/rps_cpus"`,
		notices: []string{"steering"},
		holds:   []string{"exchange" + cross},
	},
	{
		name: "steering to the other node's CPU", profile: "ptp", lab: plan.Lab{CPU: "split"},
		script:  `unshare -m sh -c "mount -t sysfs none /sys && echo 2 > /sys/class/net/eth0/queues/rx-0/rps_cpus"`,
		notices: []string{"steering"},
		holds:   []string{"exchange" + cross},
	},
}
