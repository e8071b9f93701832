package policy

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"net/netip"
	"strings"

	"github.com/cnibench/cnibench/internal/dataplane/ruleset"
)

// KubeRouterConfig is the input for kube-router's rules without its service proxy.
type KubeRouterConfig struct {
	IPv6 bool
	// Subnets are the pod ranges of all nodes, NodeAddrs the addresses of all nodes. Packets to both keep the pod's
	// address.
	Subnets   []netip.Prefix
	NodeAddrs []netip.Addr
	// ServiceCIDR is the range of Services.
	ServiceCIDR netip.Prefix
	// Pods are the pods of this node.
	Pods []LocalPod
	// Policies is the number of NetworkPolicies that select every pod, each in both directions. The last allows all ports
	// but DeniedPort, the others one unused address. PoliciesUnselected is the number of policies that select no pod.
	Policies, PoliciesUnselected int
}

// LocalPod is a pod of this node.
type LocalPod struct {
	Name string
	Addr netip.Addr
}

// routerAllowed is the mark of packets that a policy allows. routerPassed is the mark of packets that a pod's chain accepts.
const (
	routerAllowed = "0x10000/0x10000"
	routerPassed  = "0x20000/0x20000"
)

// RouterCommon is the chain that accepts packets of established connections.
const RouterCommon = "KUBE-NWPLCY-COMMON"

const (
	routerDefault = "KUBE-NWPLCY-DEFAULT"
	routerTail    = "KUBE-NWPLCY-TAIL"
)

// RouterPodChain returns the name of a pod's chain.
func RouterPodChain(pod string) string { return routerName("KUBE-POD-FW-", pod) }

func routerName(prefix, of string) string {
	sum := sha256.Sum256([]byte(namespace + of))
	return prefix + base32.StdEncoding.EncodeToString(sum[:])[:16]
}

func commentMatch(text string) string { return `-m comment --comment "` + text + `" ` }

// ipsetName returns the full name of a set: with the prefix inet6: for IPv6.
func (c KubeRouterConfig) ipsetName(name string) string {
	if c.IPv6 {
		return "inet6:" + name
	}
	return name
}

// addKubeRouter adds kube-router's rules to node and returns the sets that they use, as ipset restore input.
func addKubeRouter(node *ruleset.Ruleset, c KubeRouterConfig) string {
	filter := node.Table(ruleset.Filter)
	c.addCommon(filter)
	for _, p := range c.Pods {
		c.addPod(filter, p)
	}
	for i := range c.Policies + c.PoliciesUnselected {
		c.addPolicy(filter.Chain(routerPolicyChain(i)), i)
	}
	for _, name := range []string{"INPUT", "FORWARD", "OUTPUT"} {
		filter.Chain("KUBE-ROUTER-"+name).Append(
			commentMatch("rule to explicitly handle traffic for network policies ACCEPT/REJECT decision")+"-j "+routerTail,
			commentMatch("rule to explicitly ACCEPT traffic that comply to network policies")+"-m mark --mark "+routerPassed+" -j ACCEPT")
		filter.Chain(name).Insert(commentMatch("kube-router netpol") + "-j KUBE-ROUTER-" + name)
	}
	pods, nodes := c.ipsetName("kube-router-pod-subnets"), c.ipsetName("kube-router-node-ips")
	node.Table(ruleset.NAT).Chain("POSTROUTING").Append("-m set --match-set " + pods + " src -m set ! --match-set " + pods +
		" dst -m set ! --match-set " + nodes + " dst -j MASQUERADE --random-fully")
	return c.ipsetRestoreInput()
}

// addCommon writes the chains that all pods share.
func (c KubeRouterConfig) addCommon(filter *ruleset.Table) {
	for _, way := range []string{"-i kube-bridge", "-o kube-bridge", "-o eth0"} { // each is inserted above the one before
		filter.Chain("FORWARD").Insert(commentMatch("allow traffic of pods and the node") + way + " -j ACCEPT")
	}
	input := filter.Chain("KUBE-ROUTER-INPUT")
	input.Append(commentMatch("allow traffic to primary/secondary cluster IP range") + "-d " + c.ServiceCIDR.String() + " -j RETURN")
	for _, l4 := range []string{"tcp", "udp", "sctp"} {
		input.Append("-p " + l4 + " " + commentMatch("allow LOCAL "+strings.ToUpper(l4)+" traffic to node ports") + "-m addrtype --dst-type LOCAL -m multiport --dports 30000:32767 -j RETURN")
	}
	filter.Chain(RouterCommon).Append(
		commentMatch("rule to drop invalid state for pod")+"-m conntrack --ctstate INVALID -j DROP",
		commentMatch("rule for stateful firewall for pod")+"-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT")
	protocol, kind, types := "icmp", "icmp", []string{"echo-request", "destination-unreachable", "time-exceeded"}
	if c.IPv6 {
		protocol, kind = "ipv6-icmp", "icmpv6"
		types = append(types, "neighbor-solicitation", "neighbor-advertisement", "echo-reply")
	}
	for _, t := range types {
		filter.Chain(RouterCommon).Append(commentMatch("allow icmp "+t) + "-p " + protocol + " -m " + kind + " --" + kind + "-type " + t + " -j ACCEPT")
	}
	filter.Chain(routerDefault).Append(commentMatch("rule to mark traffic matching a network policy") + "-j MARK --set-xmark " + routerAllowed)
	filter.Chain(routerTail).Append(commentMatch("accept netpol-ok") + "-m mark --mark " + routerPassed + " -j ACCEPT")
}

// addPod writes the chain of a pod, and the rules in the chains KUBE-ROUTER-* that lead to it.
func (c KubeRouterConfig) addPod(filter *ruleset.Table, p LocalPod) {
	addr, chain := p.Addr.String(), RouterPodChain(p.Name)
	id := namespace + "/" + strings.ReplaceAll(p.Name, "/", "-")
	own := filter.Chain(chain)
	own.Append(commentMatch("common netpol rules")+"-j "+RouterCommon, commentMatch("from local node")+"-m addrtype --src-type LOCAL -d "+addr+" -j ACCEPT")
	if c.Policies == 0 {
		own.Append(commentMatch("default egress")+"-s "+addr+" -j "+routerDefault, commentMatch("default ingress")+"-d "+addr+" -j "+routerDefault)
	}
	for i := c.Policies - 1; i >= 0; i-- { // each is inserted above the one before
		own.Append(commentMatch(fmt.Sprintf("%s/p%d policy", namespace, i)) + "-j " + routerPolicyChain(i))
	}
	own.Append(
		commentMatch(id+" log-drop")+"-m mark ! --mark "+routerAllowed+" -m limit --limit 10/minute --limit-burst 10 -j NFLOG --nflog-group 100",
		commentMatch(id+" reject")+"-m mark ! --mark "+routerAllowed+" -j REJECT",
		"-j MARK --set-xmark 0x0/0x10000",
		commentMatch("set netpol-ok mark")+"-j MARK --set-xmark "+routerPassed)
	forward, bridged := filter.Chain("KUBE-ROUTER-FORWARD"), "-m physdev --physdev-is-bridged "
	to, from := commentMatch(id+" in")+"-d "+addr+" -j "+chain, commentMatch(id+" out")+"-s "+addr+" -j "+chain
	forward.Append(to, bridged+to)
	filter.Chain("KUBE-ROUTER-OUTPUT").Append(to, from)
	filter.Chain("KUBE-ROUTER-INPUT").Append(from)
	forward.Append(from, bridged+from)
}

func routerPolicyChain(i int) string { return routerName("KUBE-NWPLCY-", fmt.Sprintf("p%d", i)) }

// peerSetName returns the name of the set with the peers that policy i allows.
func (c KubeRouterConfig) peerSetName(i int) string {
	return c.ipsetName(routerName("KUBE-SRC-", fmt.Sprintf("peers%d", i)))
}

// targetSetName returns the name of the set with the pods of this node that policy i selects.
func (c KubeRouterConfig) targetSetName(i int) string {
	return c.ipsetName(routerName("KUBE-DST-", fmt.Sprintf("targets%d", i)))
}

// addPolicy writes the chain of policy i: two rules for each kind of packet that it allows, in each direction.
func (c KubeRouterConfig) addPolicy(chain *ruleset.Chain, i int) {
	allowed := []string{"-p tcp -m tcp --dport 1024:65535"}
	peer := func(way string) string { return "-m set --match-set " + c.peerSetName(i) + " " + way + " " }
	if i == c.Policies-1 { // all but the port
		allowed = []string{fmt.Sprintf("-p tcp -m tcp --dport 1:%d", DeniedPort-1), fmt.Sprintf("-p tcp -m tcp --dport %d:65535", DeniedPort+1), "-p udp -m udp --dport 1:65535"}
		peer = func(string) string { return "" }
	}
	target := func(way string) string { return "-m set --match-set " + c.targetSetName(i) + " " + way + " " }
	for _, way := range []string{peer("src") + target("dst"), target("src") + peer("dst")} {
		for _, packets := range allowed {
			match := commentMatch(fmt.Sprintf("%s/p%d", namespace, i)) + way + packets
			chain.Append(match+" -j MARK --set-xmark "+routerAllowed, match+" -m mark --mark "+routerAllowed+" -j RETURN")
		}
	}
}

// ipsetRestoreInput returns the sets as ipset restore input.
func (c KubeRouterConfig) ipsetRestoreInput() string {
	var b strings.Builder
	family := "inet"
	if c.IPv6 {
		family = "inet6"
	}
	create := func(name, kind string) {
		fmt.Fprintf(&b, "create %s hash:%s family %s maxelem 65536 timeout 0\n", name, kind, family)
	}
	pods, nodes := c.ipsetName("kube-router-pod-subnets"), c.ipsetName("kube-router-node-ips")
	create(pods, "net")
	for _, p := range c.Subnets {
		fmt.Fprintf(&b, "add %s %s timeout 0\n", pods, p)
	}
	create(nodes, "ip")
	for _, a := range c.NodeAddrs {
		fmt.Fprintf(&b, "add %s %s timeout 0\n", nodes, a)
	}
	for i := range c.Policies + c.PoliciesUnselected {
		if i != c.Policies-1 {
			create(c.peerSetName(i), "ip")
			fmt.Fprintf(&b, "add %s %s timeout 0\n", c.peerSetName(i), unusedAddr(c.IPv6, i))
		}
		create(c.targetSetName(i), "ip")
		for _, p := range c.Pods {
			if i < c.Policies {
				fmt.Fprintf(&b, "add %s %s timeout 0\n", c.targetSetName(i), p.Addr)
			}
		}
	}
	return b.String()
}
