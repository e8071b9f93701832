package selftest

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/kernel/ipt"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/condition"
	"github.com/cnibench/cnibench/internal/profile"
)

// breakage is one thing done to a standing profile, and the assertions that have to notice.
type breakage struct {
	name, profile string
	// lab has the conditions; services adds those that only a self-test uses.
	lab      plan.Lab
	services bool
	// at names hosts; nil is node-1.
	at []string
	// script is for sh, with $LOCAL and $REMOTE the addresses of this node and the other, $SUBNET the pods of the
	// other, $NOBODY the address of the Service without endpoints, $SHARED that of the one with several and $GONE its last
	// backend, $SELF the first pod on node-1 and $VETH its device there, $NEAR the second pod, $VIP the address of the
	// remote Service, $IPTABLES the program of the lab's version of IP.
	script string
	// notices are the IDs that must fail.
	notices []string
	// holds are IDs that must not: the breakage is one that traffic alone does not show.
	holds []string
}

const (
	cross = "@pod-to-pod/cross-node"
	same  = "@pod-to-pod/same-node"
	bare  = "@host-to-host/cross-node"
	self  = "@pod-to-self"
	entry = "@external-to-nodeport/remote"
)

var bothNodes = []string{"node-1", "node-2"}

// rebuild puts a tunnel of another VNI in the place of flannel.1, complete with everything else.
const rebuild = `
	mac=$(ip -o link show flannel.1 | sed 's/.*ether \([^ ]*\).*/\1/')
	addr=$(ip -o -4 addr show flannel.1 | awk '{print $4}')
	set -- $(ip neigh show dev flannel.1 nud permanent)
	ip link del flannel.1
	ip link add flannel.1 address $mac mtu 1450 type vxlan id 7 dev eth0 local $LOCAL nolearning dstport 8472
	ip addr add $addr dev flannel.1
	ip link set flannel.1 up
	ip neigh add $1 lladdr $3 dev flannel.1 nud permanent
	bridge fdb add $3 dev flannel.1 dst $REMOTE self permanent
	ip route add $SUBNET via $1 dev flannel.1 onlink
`

var breakages = []breakage{
	{
		name: "no forwarding entry", profile: "calico-vxlan",
		script:  `bridge fdb del $(bridge fdb show dev vxlan.calico | awk '/dst/ {print $1; exit}') dev vxlan.calico`,
		notices: []string{"tunnel.fdb", "exchange" + cross},
		holds:   []string{"exchange" + same},
	},
	{
		name: "packets past the encryption", profile: "calico-vxlan(encryption=wireguard)", at: bothNodes,
		script:  `ip rule del priority 99`,
		notices: []string{"rules.encryption", "wire" + cross, "wire.clear" + cross, "wire.addresses" + cross},
		holds:   []string{"exchange" + cross, "tunnel.peers", "tunnel.device"},
	},
	{
		name: "a route of one node past the encryption", profile: "calico-underlay(encryption=wireguard)", at: bothNodes,
		script:  `ip route del table 1 $(ip route show table 1 | grep 'dev wireguard.cali' | grep / | cut -d' ' -f1)`,
		notices: []string{"wire" + cross, "wire.clear" + cross, "wire.addresses" + cross},
		holds:   []string{"exchange" + cross, "tunnel.peers", "rules.encryption"},
	},
	{
		name: "another MTU of what is encrypted", profile: "cilium-native(encryption=wireguard)",
		script:  `ip link set cilium_wg0 mtu 1300`,
		notices: []string{"tunnel.device", "wire.frame" + cross},
		holds:   []string{"exchange" + same, "tunnel.peers", "rules.encryption"},
	},
	{
		name: "a tunnel that looks encrypted already", profile: "cilium-vxlan(encryption=wireguard)", at: bothNodes,
		script:  `$IPTABLES -t mangle -A OUTPUT -p udp --dport 8472 -j MARK --set-mark 0xe00`,
		notices: []string{"wire" + cross, "wire.clear" + cross, "wire.addresses" + cross},
		holds:   []string{"exchange" + cross, "tunnel.peers", "tunnel.device", "route.remote"},
	},
	{
		name: "an encrypted tunnel that is tracked", profile: "cilium-native(encryption=wireguard)",
		script:  `$IPTABLES -t raw -F CILIUM_OUTPUT_raw; $IPTABLES -t raw -F CILIUM_PRE_raw`,
		notices: []string{"conntrack.outer" + cross},
		holds:   []string{"exchange" + cross, "wire" + cross, "wire.clear" + cross},
	},
	{
		name: "a plain route past an encrypted tunnel", profile: "flannel-wireguard",
		script:  `ip route add $SUBNET via $REMOTE dev eth0`,
		notices: []string{"wire" + cross, "wire.clear" + cross, "wire.addresses" + cross, "conntrack.outer" + cross},
		holds:   []string{"exchange" + cross, "tunnel.peers"},
	},
	{
		name: "a neighbour that may expire", profile: "canal",
		script:  `set -- $(ip neigh show dev flannel.1 nud permanent); ip neigh replace $1 lladdr $3 dev flannel.1 nud reachable`,
		notices: []string{"tunnel.neighbour"},
		holds:   []string{"exchange" + cross},
	},
	{
		name: "another VNI", profile: "flannel-vxlan", at: bothNodes, script: rebuild,
		notices: []string{"wire" + cross, "tunnel.device"},
		holds:   []string{"exchange" + cross, "route.remote", "tunnel.fdb"},
	},
	{
		name: "a plain route past the tunnel", profile: "canal", at: bothNodes,
		script:  `ip route replace $SUBNET via $REMOTE dev eth0`,
		notices: []string{"wire" + cross, "wire.addresses" + cross, "wire.frame" + cross, "conntrack.outer" + cross, "route.remote"},
		holds:   []string{"exchange" + cross},
	},
	{
		name: "a pod without its routing rule", profile: "aws-vpc",
		script:  `ip rule del priority 512 to $SELF`,
		notices: []string{"rules.pods"},
		holds:   []string{"exchange" + cross, "exchange" + same},
	},
	{
		name: "connections from outside without a mark", profile: "aws-vpc",
		script:  `$IPTABLES -t mangle -F PREROUTING`,
		notices: []string{"conntrack.mark@external-to-nodeport/local", "conntrack.mark@external-to-nodeport/remote"},
		holds:   []string{"exchange@external-to-nodeport/local", "conntrack.mark@pod-to-external"},
	},
	{
		name: "connections to Services with the mark", profile: "aws-vpc",
		script:  `$IPTABLES -t mangle -I PREROUTING -d $VIP -j CONNMARK --set-xmark 0x80/0x80`,
		notices: []string{"conntrack.mark@pod-to-service/remote"},
		holds:   []string{"exchange@pod-to-service/remote", "conntrack.mark@pod-to-service/local"},
	},
	{
		name: "a gateway that may expire", profile: "aws-vpc", at: []string{"node-1/pod-1"},
		script:  `set -- $(ip neigh show 169.254.1.1); ip neigh replace 169.254.1.1 lladdr $5 dev eth0 nud reachable`,
		notices: []string{"gateway.mac"},
		holds:   []string{"exchange" + cross},
	},
	{
		name: "pods that leave the VPC under their own address", profile: "aws-vpc",
		script:  `$IPTABLES -t nat -F AWS-SNAT-CHAIN-0`,
		notices: []string{"exchange@pod-to-external"},
		holds:   []string{"exchange" + cross, "exchange@pod-to-host/cross-node"},
	},
	{
		name: "connections to Services marked before their translation", profile: "aws-vpc-eni2",
		script:  `$IPTABLES -t mangle -I PREROUTING -i eni+ -d $VIP -j CONNMARK --set-xmark 0x80/0x80`,
		notices: []string{"wire.device@pod-to-service/remote", "conntrack.mark@pod-to-service/remote"},
		holds:   []string{"exchange@pod-to-service/remote", "wire.device" + cross, "wire.device@pod-to-external"},
	},
	{
		name: "answers to clients from outside by the second interface", profile: "aws-vpc-eni2",
		script:  `$IPTABLES -t mangle -F PREROUTING`,
		notices: []string{"exchange@external-to-nodeport/local", "conntrack.mark@external-to-nodeport/local"},
		holds:   []string{"exchange" + cross, "wire.device@pod-to-service/remote", "rules.pods"},
	},
	{
		name: "a pod that sends by the first interface", profile: "aws-vpc-eni2",
		script:  `ip rule del priority 1536 from $SELF`,
		notices: []string{"rules.pods", "wire.device" + cross, "wire.device@pod-to-service/remote", "wire.mac" + cross},
		holds:   []string{"exchange" + cross, "exchange@pod-to-service/remote"},
	},
	{
		name: "connections that the policy agent would see again", profile: "kindnet",
		script:  `nft flush chain inet kindnet-network-policies postrouting`,
		notices: []string{"conntrack.label" + cross, "conntrack.label" + same},
		holds:   []string{"exchange" + cross, "exchange@pod-to-external"},
	},
	{
		name: "pods past the firewall", profile: "kube-router",
		script:  `$IPTABLES -F KUBE-ROUTER-FORWARD; ip rule del lookup 77`,
		notices: []string{"firewall.egress" + cross, "rules.tunnel"},
		holds:   []string{"exchange" + cross, "firewall.ingress" + cross},
	},
	{
		name: "pods past the firewall of the receiver", profile: "kube-router", at: []string{"node-2"},
		script:  `$IPTABLES -F KUBE-ROUTER-FORWARD`,
		notices: []string{"firewall.ingress" + cross},
		holds:   []string{"exchange" + cross, "firewall.egress" + cross},
	},
	{
		name: "another MAC address at the node's end", profile: "azure",
		script:  `ip link set $VETH address 02:00:00:00:00:99`,
		notices: []string{"device.mac"},
		holds:   []string{"gateway", "proxy_arp", "exchange" + same},
	},
	{
		name: "no rule masquerades", profile: "kindnet",
		script:  `nft delete table inet kindnet-ipmasq`,
		notices: []string{"exchange@pod-to-external", "source@pod-to-host/cross-node"},
		holds:   []string{"exchange" + cross, "conntrack.label" + cross},
	},
	{
		name: "no NAT rules", profile: "bridge",
		script:  `$IPTABLES -t nat -F`,
		notices: []string{"exchange@pod-to-service/remote", "dnat@pod-to-service/remote", "source@host-to-service/local"},
		holds:   []string{"exchange" + cross},
	},
	{
		name: "the Service is translated by the wrong node", profile: "ptp",
		script:  `$IPTABLES -t nat -F; ip route add $VIP via $REMOTE`,
		notices: []string{"vip@pod-to-service/remote", "dnat@pod-to-service/remote"},
		holds:   []string{"exchange@pod-to-service/remote", "source@pod-to-service/remote"},
	},
	{
		name: "segmentation on", profile: "raw", lab: plan.Lab{NIC: "wire"},
		script:  `ethtool -K eth0 tso on gso on`,
		notices: []string{"offload", "wire.limit" + bare},
		holds:   []string{"exchange" + bare},
	},
	{
		name: "segmentation off in ideal", profile: "raw", lab: plan.Lab{NIC: "ideal"}, at: bothNodes,
		script:  `ethtool -K eth0 tso off gso off`,
		notices: []string{"wire.limit" + bare},
	},
	{
		name: "outer packets tracked", profile: "calico-vxlan",
		script:  `$IPTABLES -t raw -F cali-PREROUTING; $IPTABLES -t raw -F cali-OUTPUT`,
		notices: []string{"conntrack.outer" + cross},
		holds:   []string{"exchange" + cross, "conntrack.inner" + cross},
	},
	{
		name: "outer packets untracked", profile: "canal", at: bothNodes,
		script: `$IPTABLES -t raw -I PREROUTING -p udp --dport 8472 -j NOTRACK
			$IPTABLES -t raw -I OUTPUT -p udp --dport 8472 -j NOTRACK`,
		notices: []string{"conntrack.outer" + cross},
		holds:   []string{"exchange" + cross},
	},
	{
		name: "inner packets untracked", profile: "calico-underlay",
		script:  `$IPTABLES -t raw -I PREROUTING -p tcp -j NOTRACK`,
		notices: []string{"conntrack.inner" + cross, "conntrack.inner" + same},
	},
	{
		name: "no proxy ARP", profile: "calico-underlay",
		script:  `echo 0 > /proc/sys/net/ipv4/conf/$VETH/proxy_arp`,
		notices: []string{"proxy_arp", "gateway.mac", "exchange" + cross},
	},
	{
		name: "no blackhole route", profile: "calico-underlay",
		script:  `ip route del $(ip route show type blackhole | head -n 1)`,
		notices: []string{"route.blackhole"},
		holds:   []string{"exchange" + cross},
	},
	{
		name: "a route of somebody else", profile: "calico-vxlan",
		script:  `set -- $(ip route show dev vxlan.calico); ip route del $1; ip route add $1 via $3 dev vxlan.calico onlink proto static mtu 1450`,
		notices: []string{"route.remote"},
		holds:   []string{"exchange" + cross},
	},
	{
		name: "everything masqueraded", profile: "ptp",
		script:  `$IPTABLES -t nat -A POSTROUTING -o eth0 -j MASQUERADE`,
		notices: []string{"source" + cross, "source@pod-to-host/cross-node", "wire.addresses" + cross},
		holds:   []string{"exchange" + cross},
	},
	{
		name: "iptables does not see the bridge", profile: "bridge",
		script:  `echo 0 > /proc/sys/net/bridge/bridge-nf-call-iptables`,
		notices: []string{"bridge.filtering", "conntrack.inner" + same},
		holds:   []string{"exchange" + same},
	},
	{
		name: "iptables sees the switch", profile: "raw", at: []string{"switch"},
		script:  `echo 1 > /proc/sys/net/bridge/bridge-nf-call-iptables`,
		notices: []string{"switch.filtering"},
	},
	{
		name: "a pod off its bridge", profile: "flannel-vxlan",
		script:  `ip link set $VETH nomaster`,
		notices: []string{"bridge", "exchange" + cross, "exchange" + same},
	},
	{
		name: "pods with the MTU of the underlay in place of their own", profile: "flannel-vxlan", lab: plan.Lab{PodMTU: 1400}, at: []string{"node-1/pod-1"},
		script:  `ip link set eth0 mtu 1500`,
		notices: []string{"mtu"},
		holds:   []string{"exchange" + cross},
	},
	{
		name: "a smaller MTU in a pod", profile: "flannel-vxlan", at: []string{"node-1/pod-1"},
		script: `ip link set eth0 mtu 1400`,
		// Nothing to see on the wire: the pod fragments, and conntrack on the node puts the parts together again.
		notices: []string{"mtu"},
		holds:   []string{"exchange" + cross},
	},
	{
		name: "another default route in a pod", profile: "bridge", at: []string{"node-1/pod-2"},
		script:  `ip route replace default dev eth0`,
		notices: []string{"gateway"},
		holds:   []string{"exchange" + same},
	},
	{
		name: "policy passed by at the sender", profile: "calico-vxlan",
		script:  `$IPTABLES -I FORWARD -j ACCEPT`,
		notices: []string{"policy.egress" + cross},
		holds:   []string{"exchange" + cross, "policy.ingress" + cross},
	},
	{
		name: "policy passed by at the receiver", profile: "canal", at: []string{"node-2"},
		script:  `$IPTABLES -I FORWARD -j ACCEPT`,
		notices: []string{"policy.ingress" + cross},
		holds:   []string{"exchange" + cross, "policy.egress" + cross},
	},
	{
		name: "one hop too many", profile: "ptp", at: []string{"node-1/pod-1"},
		script:  `echo 63 > /proc/sys/net/ipv4/ip_default_ttl`,
		notices: []string{"ttl" + cross, "ttl" + same},
		holds:   []string{"exchange" + cross},
	},
	{
		// The node sees these packets twice, and half of them only at the other node: kube-proxy would drop them.
		name: "a detour between pods of one node", profile: "ptp", at: bothNodes,
		script: `$IPTABLES -I FORWARD -j ACCEPT
			ip rule add iif $VETH to $NEAR lookup 100
			ip route add $NEAR via $REMOTE table 100`,
		notices: []string{"wire" + same, "ttl" + same},
		holds:   []string{"exchange" + same, "wire" + cross},
	},
	{
		name: "no hairpin", profile: "flannel-vxlan",
		script:  `bridge link set dev $VETH hairpin off`,
		notices: []string{"exchange" + self, "source" + self},
		holds:   []string{"exchange@pod-to-service/local"},
	},
	{
		name: "a hairpin", profile: "bridge",
		script:  `bridge link set dev $VETH hairpin on`,
		notices: []string{"refused" + self},
		holds:   []string{"exchange" + same},
	},
	{
		name: "a hairpin from another address", profile: "ptp",
		script:  `$IPTABLES -t nat -I POSTROUTING -s $SELF -d $SELF -j SNAT --to-source $LOCAL`,
		notices: []string{"source" + self},
		holds:   []string{"exchange" + self, "dnat" + self, "vip" + self},
	},
	{
		name: "a hairpin that nobody masquerades", profile: "calico-underlay",
		script:  `$IPTABLES -t nat -I POSTROUTING -s $SELF -d $SELF -j ACCEPT`,
		notices: []string{"exchange" + self},
		holds:   []string{"exchange@pod-to-service/local"},
	},
	{
		name: "no NAT rules for a host-network pod", profile: "host",
		script:  `$IPTABLES -t nat -F`,
		notices: []string{"exchange" + self, "dnat" + self, "source" + self},
		holds:   []string{"exchange" + bare},
	},
	{
		name: "the other node's pods sought on the link", profile: "flannel-host-gw",
		script:  `ip route replace $SUBNET dev eth0; ip neigh replace $(echo $SUBNET | sed 's,0/24,2,') lladdr 02:00:00:00:00:99 dev eth0`,
		notices: []string{"exchange" + cross, "wire" + cross, "ttl" + cross},
		holds:   []string{"exchange" + same, "exchange" + self},
	},
	{
		name: "a tunnel in place of the route", profile: "flannel-host-gw", at: bothNodes,
		script: `ip link add vx0 mtu 1450 up type vxlan id 1 dev eth0 local $LOCAL remote $REMOTE dstport 8472
			ip addr add 192.0.2.${LOCAL##*.}/24 dev vx0
			ip route replace $SUBNET via 192.0.2.${REMOTE##*.} dev vx0`,
		notices: []string{"wire" + cross, "wire.addresses" + cross, "wire.frame" + cross, "route.remote"},
		holds:   []string{"exchange" + same},
	},
	{
		name: "nothing tracked", profile: "flannel-host-gw", at: bothNodes,
		script:  `$IPTABLES -t raw -I PREROUTING -j NOTRACK`,
		notices: []string{"conntrack.inner" + cross, "conntrack.inner" + same},
		holds:   []string{"exchange" + cross, "ttl" + cross, "wire" + cross},
	},
	{
		name: "one hop too many without a tunnel", profile: "flannel-host-gw", at: []string{"node-1/pod-1"},
		script:  `echo 63 > /proc/sys/net/ipv4/ip_default_ttl`,
		notices: []string{"ttl" + cross, "ttl" + same},
		holds:   []string{"exchange" + cross},
	},
	{
		name: "a switch that keeps a pod from its node", profile: "sriov", at: []string{"switch"},
		script:  `for port in node-1 node-1-pod-1; do bridge link set dev $port isolated on; done`,
		notices: []string{"exchange@pod-to-host/same-node", "wire@pod-to-host/same-node"},
		holds:   []string{"exchange" + same, "exchange" + cross, "exchange@host-to-pod/same-node"},
	},
	{
		// The node sees one direction only, which kube-proxy would drop, and would tell the pod of the shorter way.
		name: "a detour by the node", profile: "sriov", at: []string{"node-1", "node-1/pod-1"},
		script: `for setting in send_redirects accept_redirects; do
				for device in all eth0; do echo 0 > /proc/sys/net/ipv4/conf/$device/$setting; done
			done
			$IPTABLES -I FORWARD -j ACCEPT
			ip route add $NEAR via $LOCAL || true`,
		notices: []string{"untouched" + same, "ttl" + same},
		holds:   []string{"exchange" + same, "untouched" + cross, "ttl" + cross},
	},
	{
		name: "a pod that knows Services", profile: "sriov", at: []string{"node-1/pod-1"},
		script:  `$IPTABLES -t nat -A OUTPUT -d $VIP -p tcp -j DNAT --to-destination $(echo $REMOTE | sed 's,0[.]12$,2.2,'); ip route add $VIP dev eth0`,
		notices: []string{"refused@pod-to-service/remote"},
		holds:   []string{"refused@pod-to-service/local"},
	},
	{
		name: "outer packets tracked by nftables", profile: "calico-nftables",
		script:  `nft flush chain ip calico raw-cali-PREROUTING; nft flush chain ip calico raw-cali-OUTPUT`,
		notices: []string{"conntrack.outer" + cross},
		holds:   []string{"exchange" + cross, "conntrack.inner" + cross},
	},
	{
		name: "nftables policy passed by at the sender", profile: "calico-nftables",
		script:  `nft insert rule ip calico filter-FORWARD accept`,
		notices: []string{"policy.egress" + cross},
		holds:   []string{"exchange" + cross, "policy.ingress" + cross},
	},
	{
		name: "nftables policy passed by at the receiver", profile: "calico-nftables", at: []string{"node-2"},
		script:  `nft insert rule ip calico filter-FORWARD accept`,
		notices: []string{"policy.ingress" + cross},
		holds:   []string{"exchange" + cross, "policy.egress" + cross},
	},
	{
		name: "no way to a pod in the verdict map", profile: "calico-nftables",
		script:  `nft flush map ip calico filter-cali-from-wl-dispatch`,
		notices: []string{"exchange" + cross, "exchange" + same, "policy.egress" + cross},
		holds:   []string{"exchange@host-to-pod/cross-node", "services.nft"},
	},
	{
		name: "no cluster address in the map", profile: "calico-nftables",
		script:  `nft flush map ip kube-proxy service-ips`,
		notices: []string{"services.nft", "exchange@pod-to-service/remote", "dnat@pod-to-service/remote"},
		holds:   []string{"exchange" + cross, "exchange@external-to-nodeport/remote"},
	},
	{
		name: "no load balancer's address in the map", profile: "calico-nftables",
		script:  `nft delete element ip kube-proxy service-ips '{ 172.18.1.1 . tcp . 5201 }'`,
		notices: []string{"services.nft", "exchange@external-to-loadbalancer", "dnat@external-to-loadbalancer"},
		holds:   []string{"exchange@external-to-nodeport/remote", "exchange@pod-to-service/remote"},
	},
	{
		name: "no rule for a load balancer's address", profile: "flannel-vxlan",
		script:  `$IPTABLES -t nat -D KUBE-SERVICES $($IPTABLES -t nat -S KUBE-SERVICES | grep -n -m 1 -e '-d 172.18.1.1/32 -p tcp' | cut -d: -f1 | awk '{print $1 - 1}')`,
		notices: []string{"exchange@external-to-loadbalancer", "dnat@external-to-loadbalancer"},
		holds:   []string{"exchange@external-to-nodeport/remote", "exchange@pod-to-service/remote"},
	},
	{
		name: "node ports at no address", profile: "calico-nftables",
		script:  `nft flush set ip kube-proxy nodeport-ips`,
		notices: []string{"exchange@external-to-nodeport/local", "exchange@external-to-nodeport/remote"},
		holds:   []string{"services.nft", "exchange@pod-to-service/remote"},
	},
	{
		name: "nftables masquerades nothing", profile: "calico-nftables",
		script:  `nft flush chain ip kube-proxy masquerading`,
		notices: []string{"source@external-to-nodeport/local", "exchange" + self},
		holds:   []string{"exchange@external-to-nodeport/local", "source@pod-to-service/remote"},
	},
	{
		name: "a kube-proxy of the other mode besides", profile: "calico-nftables",
		script:  `$IPTABLES -t nat -N KUBE-SVC-LEFTOVER`,
		notices: []string{"services.nft"},
		holds:   []string{"exchange@pod-to-service/remote"},
	},
	{
		name: "a pod that speaks with another's address", profile: "cilium-native", at: []string{"node-1/pod-1"},
		script:  `ip addr add 192.0.2.9/32 dev eth0; ip route replace $(ip route show default) src 192.0.2.9`,
		notices: []string{"drops", "exchange" + cross},
		holds:   []string{"exchange@host-to-pod/cross-node", "exchange@external-to-nodeport/remote"},
	},
	{
		name: "a pod that speaks with another's address at Calico", profile: "calico-ebpf", at: []string{"node-1/pod-1"},
		script:  `ip addr add 192.0.2.9/32 dev eth0; ip route replace $(ip route show default) src 192.0.2.9`,
		notices: []string{"drops", "exchange" + cross},
		holds:   []string{"exchange@host-to-pod/cross-node", "exchange@external-to-nodeport/remote"},
	},
	{
		name: "a route with the MTU of the device", profile: "cilium-vxlan", at: []string{"node-1/pod-1"},
		script:  `ip route replace $(ip route show default | sed 's/ mtu .*//')`,
		notices: []string{"mtu.route"},
		holds:   []string{"exchange" + cross, "mtu"},
	},
	{
		// Nothing to notice: the programs at eth0 are asked first.
		name: "a node port in iptables too", profile: "cilium-native",
		script: `$IPTABLES -t nat -I PREROUTING -i eth0 -p tcp --dport 30201 -j DNAT --to-destination $NEAR:5201`,
		holds:  []string{"dnat@external-to-nodeport/local", "source@external-to-nodeport/local"},
	},
	{
		name: "a neighbour on Cilium's tunnel", profile: "cilium-vxlan",
		script:  `ip neigh add 192.0.2.1 lladdr 02:00:00:00:00:99 dev cilium_vxlan nud permanent; bridge fdb add 02:00:00:00:00:99 dev cilium_vxlan dst $REMOTE self permanent`,
		notices: []string{"tunnel.fdb", "tunnel.neighbour"},
		holds:   []string{"exchange" + cross},
	},
	{
		name: "a plain route past tunl0", profile: "calico-ipip", at: bothNodes,
		script:  `ip route replace $SUBNET via $REMOTE dev eth0 proto bird; for block in $(ip route show dev tunl0 | cut -d' ' -f1); do ip route del $block dev tunl0; done`,
		notices: []string{"wire" + cross, "wire.addresses" + cross, "wire.frame" + cross, "route.remote"},
		holds:   []string{"exchange" + cross, "tunnel.device"},
	},
	{
		name: "a node that does not forward", profile: "ptp", at: []string{"node-2"},
		script:  `echo 0 > /proc/sys/net/ipv4/ip_forward`,
		notices: []string{"forwarding", "exchange" + cross},
		holds:   []string{"exchange" + same},
	},
}

// TestBreakageIsNoticed breaks one thing at a time and asks for the assertion that is about it: an assertion that
// cannot fail proves nothing.
func TestBreakageIsNoticed(t *testing.T) {
	t.Parallel()
	program := iptables(t)
	var crew sync.WaitGroup
	defer crew.Wait()
	slots := make(chan struct{}, atOnce)
	for _, b := range slices.Concat(breakages, breakagesIn6, breakagesOfServices, breakagesOfDevices, breakagesInGuest) {
		crew.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			t.Run(b.name, func(t *testing.T) { b.test(t, program) })
		})
	}
}

// atOnce is how many profiles are broken at the same time: most of the time goes by waiting for what does not come.
const atOnce = 8

func (b breakage) test(t *testing.T, program string) {
	if b.lab.Family == lab.IPv6 {
		program = strings.Replace(program, "iptables", "ip6tables", 1)
	}
	if _, err := exec.LookPath("nft"); err != nil && strings.Contains(b.script, "nft ") {
		t.Skipf("cannot break nftables on purpose: %v", err)
	}
	inst := raisedWith(t, lab.Options{Lab: b.lab, TestServices: b.services}, b.profile)
	if b.at == nil {
		b.at = []string{"node-1"}
	}
	for _, name := range b.at {
		shell(t, inst, inst.Host(name), program, b.script)
	}
	hold(t, Run(context.Background(), inst), b.notices, b.holds)
}

// mistaken are profiles that claim to be others.
var mistaken = []struct {
	raised, table string
	notices       []string
}{
	{"host", "raw", []string{"conntrack.inner" + bare}},
	{"raw", "host", []string{"conntrack.inner" + bare, "exchange@host-to-service/remote"}},
	{"ptp", "macvlan", []string{"untouched" + cross, "wire.mac" + cross, "refused@pod-to-host/same-node", "refused@pod-to-service/remote", "ttl" + same}},
	{"ptp", "bridge", []string{"bridge", "gateway.mac", "ttl" + same}},
	{"ptp", "aws-vpc", []string{"gateway", "gateway.mac", "rules.pods", "exchange@pod-to-external", "conntrack.mark@external-to-nodeport/local"}},
	{"ptp", "kindnetd", []string{"conntrack.label" + cross, "exchange@pod-to-external"}},
	{"kindnetd", "kindnet", []string{"gateway", "source" + self}},
	{"kindnet", "kindnetd", []string{"gateway", "source" + self}},
	{"bridge", "kube-router", []string{"bridge", "firewall.egress" + cross, "route.remote", "rules.tunnel", "exchange" + self}},
	{"azure", "aws-vpc", []string{"gateway.mac", "rules.pods", "conntrack.mark@pod-to-external"}},
	{"aws-vpc", "aws-vpc-eni2", []string{"rules.pods", "wire.device" + cross, "wire.device@pod-to-service/remote"}},
	{"aws-vpc-eni2", "aws-vpc", []string{"rules.pods", "wire.mac" + cross}},
	{"aws-vpc", "ptp", []string{"gateway", "source@pod-to-self"}},
	{"bridge", "calico-underlay", []string{"gateway", "proxy_arp", "policy.egress" + cross, "route.blackhole", "source@host-to-pod/same-node"}},
	{"calico-vxlan", "calico-nftables", []string{"services.nft", "policy.egress" + cross, "policy.ingress" + cross}},
	{"calico-nftables", "calico-vxlan", []string{"policy.egress" + cross, "policy.ingress" + cross}},
	{"cilium-native-legacy", "cilium-native", []string{"doorstep" + same, "doorstep" + cross, "forward" + cross, "ttl" + cross, "conntrack.inner" + cross, "untouched" + cross}},
	{"cilium-native", "cilium-netkit", []string{"pod.device", "doorstep" + same}},
	{"cilium-native", "cilium-native-legacy", []string{"doorstep" + same, "forward" + cross, "conntrack.inner" + cross}},
	{"cilium-native", "cilium-native-dsr", []string{"way" + entry, "option" + entry, "source" + entry}},
	{"cilium-native-dsr", "cilium-native", []string{"way" + entry, "option" + entry, "source" + entry}},
	{"cilium-native", "cilium-vxlan", []string{"wire" + cross, "tunnel.device", "mtu.route", "route.remote", "way" + entry, "source@host-to-pod/cross-node"}},
	{"calico-ebpf", "calico-ebpf-dsr", []string{"way" + entry}},
	{"calico-ebpf-dsr", "calico-ebpf", []string{"way" + entry}},
	{"calico-ebpf", "calico-ebpf-underlay", []string{"wire" + cross, "ttl" + cross, "route.remote", "source@host-to-pod/cross-node"}},
	{"calico-vxlan", "calico-ebpf", []string{"doorstep" + same, "doorstep" + cross, "forward" + cross, "tunnel.device", "tunnel.fdb", "conntrack.inner" + cross, "dnat@pod-to-service/remote", "vip@pod-to-service/remote", "source" + entry}},
	{"calico-vxlan", "calico-ipip", []string{"wire" + cross, "tunnel.device", "route.remote"}},
	{"canal", "calico-vxlan", []string{"wire" + cross, "route.blackhole", "tunnel.device"}},
	{"flannel-vxlan", "flannel-host-gw", []string{"wire" + cross, "route.remote", "source@external-to-nodeport/remote", "source@host-to-pod/cross-node"}},
	{"flannel-host-gw", "flannel-vxlan", []string{"wire" + cross, "tunnel.device", "conntrack.outer" + cross, "route.remote"}},
	{"flannel-host-gw", "flannel-wireguard", []string{"wire" + cross, "wire.clear" + cross, "wire.addresses" + cross, "tunnel.device", "tunnel.peers", "conntrack.outer" + cross, "route.remote"}},
	{"flannel-vxlan", "flannel-wireguard", []string{"wire" + cross, "wire.clear" + cross, "wire.frame" + cross, "tunnel.device", "tunnel.peers"}},
	{"bridge", "flannel-host-gw", []string{"exchange" + self, "source@pod-to-host/cross-node", "exchange@pod-to-external"}},
	{"ptp", "sriov", []string{"untouched" + same, "untouched" + cross, "wire" + same, "wire@pod-to-host/same-node", "wire@host-to-pod/same-node", "wire.mac" + cross, "refused" + self}},
	{"macvlan", "sriov", []string{"wire" + same, "exchange@pod-to-host/same-node", "exchange@host-to-service/local"}},
	{"sriov", "macvlan", []string{"wire" + same, "refused@pod-to-host/same-node", "refused@host-to-pod/same-node"}},
	{"sriov", "ipvlan", []string{"wire" + same, "refused@pod-to-host/same-node", "wire.mac" + cross}},
	{"ipvlan", "macvlan", []string{"wire.mac" + cross}},
	{"calico-vxlan", "calico-underlay", []string{"wire" + cross, "source@external-to-nodeport/remote", "source@host-to-pod/cross-node"}},
}

// TestEveryKindOfAssertionIsSeenToFail: no kind is left out of the tests in this file.
func TestEveryKindOfAssertionIsSeenToFail(t *testing.T) {
	failing := map[string]bool{}
	note := func(ids []string) {
		for _, id := range ids {
			kind, _, _ := strings.Cut(id, "@")
			failing[kind] = true
		}
	}
	for _, b := range slices.Concat(breakages, breakagesOfServices, breakagesOfDevices, breakagesInGuest) {
		note(b.notices)
	}
	for _, m := range mistaken {
		note(m.notices)
	}
	note([]string{"maglev"}) // by TestNodesThatChooseForThemselves
	for _, name := range profile.Names() {
		x := table(name)
		x.policies, x.testServices, x.engine, x.merges, x.long, x.flowtable = 1, true, condition.ProxyIPVS, true, true, 20
		for _, c := range allChecks(x) {
			if !failing[c.kind] {
				t.Errorf("%s of %s: no test makes an assertion of its kind fail", c.id(), name)
			}
		}
	}
}

// TestAnotherProfileIsNoticed holds a profile against the table of another: the assertions that tell the two apart
// must fail.
func TestAnotherProfileIsNoticed(t *testing.T) {
	t.Parallel()
	for _, tc := range mistaken {
		t.Run(tc.raised+" as "+tc.table, func(t *testing.T) {
			t.Parallel()
			inst := raised(t, plan.Lab{}, tc.raised)
			hold(t, testInstance(context.Background(), inst, table(tc.table)), tc.notices, nil)
		})
	}
}

func hold(t *testing.T, all []Assertion, notices, holds []string) {
	t.Helper()
	found := map[string]Assertion{}
	for _, a := range all {
		found[a.ID] = a
	}
	for _, id := range notices {
		if a, ok := found[id]; !ok {
			t.Errorf("nothing asserts %s", id)
		} else if a.OK {
			t.Errorf("not noticed: %+v", a)
		}
	}
	for _, id := range holds {
		if a, ok := found[id]; !ok || !a.OK {
			t.Errorf("must hold: %s: %+v", id, a)
		}
	}
	if t.Failed() {
		for _, a := range Failed(all) {
			t.Log(a)
		}
	}
}

// iptables is the name of the program that shares its rules with the lab's.
func iptables(t *testing.T) string {
	t.Helper()
	tool, err := ipt.Find(context.Background(), ipt.Auto, false)
	if err != nil {
		t.Skipf("cannot break the lab on purpose: %v", err)
	}
	name := "iptables-" + string(tool.Flavor)
	for _, program := range []string{"ip", "bridge", "ethtool", "awk", "sed", name} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("cannot break the lab on purpose: %v", err)
		}
	}
	return name
}

// shell runs a script inside a host.
func shell(t *testing.T, inst *lab.Instance, host *lab.Host, iptables, script string) {
	t.Helper()
	here, other := inst.Nodes[0], inst.Nodes[1]
	if host.Name == other.Name {
		here, other = other, here
	}
	cmd := exec.Command("sh", "-euc", script)
	cmd.Env = append(cmd.Environ(), "IPTABLES="+iptables, "LOCAL="+here.Addr.String(), "REMOTE="+other.Addr.String())
	if pods := inst.Nodes[0].Pods; len(pods) > 1 {
		cmd.Env = append(cmd.Env, "SELF="+pods[0].Addr.String(), "VETH="+pods[0].HostDevice, "NEAR="+pods[1].Addr.String())
	}
	if other.PodCIDR.IsValid() {
		cmd.Env = append(cmd.Env, "SUBNET="+other.PodCIDR.String())
	}
	if svc := inst.Service(lab.RemoteService); svc != nil {
		cmd.Env = append(cmd.Env, "VIP="+svc.VIP.String())
	}
	if svc := inst.Service(lab.SharedService); svc != nil {
		cmd.Env = append(cmd.Env, "NOBODY="+inst.Service(lab.NoneService).VIP.String(), "SHARED="+svc.VIP.String(),
			"GONE="+svc.Backends[len(svc.Backends)-1].Addr.String())
	}
	var out []byte
	err := host.NS.Do(func() (err error) {
		out, err = cmd.CombinedOutput()
		return err
	})
	if err != nil {
		t.Fatalf("on %s: %v\n%s", host.Name, err, out)
	}
}
