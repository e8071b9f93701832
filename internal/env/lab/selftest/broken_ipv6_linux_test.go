package selftest

import (
	"testing"

	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/plan"
)

// breakagesIn6 are things done to profiles of IPv6, where what is to be noticed is another thing than in IPv4, or the way
// to it is.
var breakagesIn6 = []breakage{
	{
		name: "a node that does not forward IPv6", profile: "ptp", lab: ipv6, at: []string{"node-2"},
		script:  `echo 0 > /proc/sys/net/ipv6/conf/all/forwarding`,
		notices: []string{"forwarding", "exchange" + cross},
		holds:   []string{"exchange" + same},
	},
	{
		name: "no NAT rules for IPv6", profile: "bridge", lab: ipv6,
		script:  `$IPTABLES -t nat -F`,
		notices: []string{"exchange@pod-to-service/remote", "dnat@pod-to-service/remote", "source@host-to-service/local"},
		holds:   []string{"exchange" + cross},
	},
	{
		name: "ip6tables does not see the bridge", profile: "flannel-vxlan", lab: ipv6,
		script:  `echo 0 > /proc/sys/net/bridge/bridge-nf-call-ip6tables`,
		notices: []string{"bridge.filtering", "conntrack.inner" + same},
		holds:   []string{"exchange" + same},
	},
	{
		name: "ip6tables sees the switch", profile: "raw", lab: ipv6, at: []string{"switch"},
		script:  `echo 1 > /proc/sys/net/bridge/bridge-nf-call-ip6tables`,
		notices: []string{"switch.filtering"},
	},
	{
		name: "a plain route past the tunnel of IPv6", profile: "canal", lab: ipv6, at: bothNodes,
		script:  `ip -6 route replace $SUBNET via $REMOTE dev eth0`,
		notices: []string{"wire" + cross, "wire.addresses" + cross, "wire.frame" + cross, "conntrack.outer" + cross, "route.remote"},
		holds:   []string{"exchange" + cross},
	},
	{
		name: "no forwarding entry for an outer IPv6 address", profile: "calico-vxlan", lab: ipv6,
		script:  `bridge fdb del $(bridge fdb show dev vxlan-v6.calico | awk '/dst/ {print $1; exit}') dev vxlan-v6.calico`,
		notices: []string{"tunnel.fdb", "exchange" + cross},
		holds:   []string{"exchange" + same},
	},
	{
		name: "outer packets of IPv6 tracked", profile: "calico-vxlan", lab: ipv6,
		script:  `$IPTABLES -t raw -F cali-PREROUTING; $IPTABLES -t raw -F cali-OUTPUT`,
		notices: []string{"conntrack.outer" + cross},
		holds:   []string{"exchange" + cross, "conntrack.inner" + cross},
	},
	{
		// A pod finds its gateway by asking it, and the answer must not be filtered away.
		name: "neighbour solicitations not let in", profile: "calico-underlay", lab: ipv6,
		script:  `$IPTABLES -I INPUT -p ipv6-icmp --icmpv6-type 135 -j DROP`,
		notices: []string{"exchange" + cross, "exchange@pod-to-host/same-node"},
		holds:   []string{"gateway"},
	},
	{
		name: "no proxy for neighbours", profile: "calico-underlay", lab: ipv6,
		script:  `echo 0 > /proc/sys/net/ipv6/conf/$VETH/proxy_ndp`,
		notices: []string{"proxy_arp"},
		// The gateway's address is the node's own, so nothing is to be answered on behalf of others.
		holds: []string{"gateway.mac", "exchange" + cross},
	},
	{
		name: "a tunnel whose address is not chosen", profile: "calico-vxlan", lab: ipv6,
		script:  `ip addr change $(ip -o -6 addr show dev vxlan-v6.calico scope global | awk '{print $4}') dev vxlan-v6.calico preferred_lft 0`,
		notices: []string{"source@host-to-pod/same-node", "source@host-to-service/local"},
		holds:   []string{"exchange@host-to-pod/same-node", "source" + cross},
	},
	{
		name: "policy of IPv6 passed by at the sender", profile: "canal", lab: ipv6,
		script:  `$IPTABLES -I FORWARD -j ACCEPT`,
		notices: []string{"policy.egress" + cross},
		holds:   []string{"exchange" + cross, "policy.ingress" + cross},
	},
	{
		name: "nftables policy of IPv6 passed by at the receiver", profile: "calico-nftables", lab: ipv6, at: []string{"node-2"},
		script:  `nft insert rule ip6 calico filter-FORWARD accept`,
		notices: []string{"policy.ingress" + cross},
		holds:   []string{"exchange" + cross, "policy.egress" + cross},
	},
	{
		name: "nftables masquerades no IPv6", profile: "calico-nftables", lab: ipv6,
		script:  `nft flush chain ip6 kube-proxy masquerading`,
		notices: []string{"source@external-to-nodeport/local", "exchange" + self},
		holds:   []string{"exchange@external-to-nodeport/local", "source@pod-to-service/remote"},
	},
	{
		name: "no IPv6 Service in the map", profile: "calico-nftables", lab: ipv6,
		script:  `nft flush map ip6 kube-proxy service-ips`,
		notices: []string{"services.nft", "exchange@pod-to-service/remote", "dnat@pod-to-service/remote"},
		holds:   []string{"exchange" + cross, "exchange@external-to-nodeport/remote"},
	},
	{
		name: "everything masqueraded in IPv6", profile: "flannel-host-gw", lab: ipv6,
		script:  `$IPTABLES -t nat -I POSTROUTING -o eth0 -j MASQUERADE`,
		notices: []string{"source" + cross, "wire.addresses" + cross},
		holds:   []string{"exchange" + cross},
	},
	{
		name: "a pod that speaks with another's IPv6 address", profile: "cilium-native", lab: ipv6, at: []string{"node-1/pod-1"},
		script:  `ip addr add 2001:db8::9/128 dev eth0 nodad; ip -6 route replace $(ip -6 route show default | sed 's/ pref .*//') src 2001:db8::9`,
		notices: []string{"drops", "exchange" + cross},
		holds:   []string{"exchange@host-to-pod/cross-node", "exchange@external-to-nodeport/remote"},
	},
	{
		name: "a pod that speaks with another's IPv6 address at Calico", profile: "calico-ebpf", lab: ipv6, at: []string{"node-1/pod-1"},
		script:  `ip addr add 2001:db8::9/128 dev eth0 nodad; ip -6 route replace $(ip -6 route show default | sed 's/ pref .*//') src 2001:db8::9`,
		notices: []string{"drops", "exchange" + cross},
		holds:   []string{"exchange@host-to-pod/cross-node", "exchange@external-to-nodeport/remote"},
	},
	{
		name: "a route with the MTU of the device in IPv6", profile: "cilium-vxlan", lab: ipv6, at: []string{"node-1/pod-1"},
		script:  `ip -6 route replace $(ip -6 route show default | sed 's/ mtu .*//')`,
		notices: []string{"mtu.route"},
		holds:   []string{"exchange" + cross, "mtu"},
	},
	{
		name: "a smaller MTU than IPv6's tunnel leaves", profile: "flannel-vxlan", lab: ipv6, at: []string{"node-1/pod-1"},
		script:  `ip link set eth0 mtu 1400`,
		notices: []string{"mtu"},
		holds:   []string{"exchange" + same},
	},
}

// ipv6 is a lab of IPv6.
var ipv6 = plan.Lab{Family: lab.IPv6}

// TestIPv4IsNotIPv6: a profile of one version of IP is not taken for that of the other. Rules are read by the programs that
// wrote them, so those of policies hold.
func TestIPv4IsNotIPv6(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		family  int
		want    expectation
		notices []string
	}{
		{lab.IPv6, table("canal"), []string{"tunnel.device", "route.remote", "forwarding", "proxy_arp"}},
		{4, table("canal").withIPv6(), []string{"tunnel.device", "route.remote", "forwarding", "proxy_arp", "source@host-to-pod/same-node"}},
	} {
		inst := raised(t, plan.Lab{Family: tc.family}, "canal")
		hold(t, testInstance(t.Context(), inst, tc.want), tc.notices, []string{"exchange" + cross, "gateway"})
	}
}
