package service

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/dataplane/ruleset"
	"github.com/cnibench/cnibench/internal/kernel/ipvs"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// IPVSDevice is the device that has the cluster addresses of all Services in ipvs mode, because IPVS serves only
// addresses of the node itself.
const IPVSDevice = "kube-ipvs0"

// Chains of kube-proxy's ipvs mode.
const (
	chainNodePort       = "KUBE-NODE-PORT"
	chainLoadBalancer   = "KUBE-LOAD-BALANCER"
	chainSourceRanges   = "KUBE-SOURCE-RANGES-FIREWALL"
	chainIPVSFilter     = "KUBE-IPVS-FILTER"
	chainIPVSOutFilter  = "KUBE-IPVS-OUT-FILTER"
	loopbackComment     = "Kubernetes endpoints dst ip:port, source ip for solving hairpin purpose"
	clusterIPComment    = "Kubernetes service cluster ip + port for masquerade purpose"
	healthComment       = "Kubernetes health check node port"
	nodePortComment     = "Kubernetes nodeport %s port for masquerade purpose"
	nodePortKeepComment = "Kubernetes nodeport %s port with externalTrafficPolicy=local"
)

// Sets of kube-proxy's ipvs mode. In IPv6 "KUBE-" is "KUBE-6-".
const (
	setLoopback    = "KUBE-LOOP-BACK"
	setClusterIP   = "KUBE-CLUSTER-IP"
	setAddresses   = "KUBE-IPVS-IPS"
	setHealth      = "KUBE-HEALTH-CHECK-NODE-PORT"
	setLB          = "KUBE-LOAD-BALANCER"
	setExternal    = "KUBE-EXTERNAL-IP"
	setExternalOwn = "KUBE-EXTERNAL-IP-LOCAL"
	// Each protocol has its own set of node ports.
	setNodePort     = "KUBE-NODE-PORT-"
	setNodePortKeep = "KUBE-NODE-PORT-LOCAL-"
)

// ipvsFilterJumps and ipvsChains are the jumps and chains of ipvs mode. Each jump is inserted at the top of its chain.
var (
	ipvsFilterJumps = []jump{
		{"FORWARD", "", "kubernetes forwarding rules", chainForward},
		{"INPUT", "", "kubernetes health check rules", chainNodePort},
		{"INPUT", "", "kube-proxy firewall rules", chainProxyFirewall},
		{"FORWARD", "", "kube-proxy firewall rules", chainProxyFirewall},
		{"INPUT", "", "kubernetes ipvs access filter", chainIPVSFilter},
		{"OUTPUT", "", "kubernetes ipvs access filter", chainIPVSOutFilter},
	}
	ipvsChains = []struct {
		table string
		names []string
	}{
		{ruleset.NAT, []string{chainServices, chainPostrouting, chainNodePort, chainLoadBalancer, chainMarkMasq}},
		{ruleset.Filter, []string{chainForward, chainNodePort, chainProxyFirewall, chainSourceRanges, chainIPVSFilter, chainIPVSOutFilter}},
	}
)

// AddIPVS adds the rules of kube-proxy in ipvs mode to node, and returns the sets that they use, as ipset restore
// input. It does not support load balancer addresses or sctp. The rules mark packets for masquerading and block other
// ports of the addresses on IPVSDevice. Their number does not depend on the number of Services: IPVSServers returns the
// backends.
func AddIPVS(node *ruleset.Ruleset, c Config) (sets string) {
	p := ipvsProxy{c: c, nat: node.Table(ruleset.NAT), filter: node.Table(ruleset.Filter), sets: c.ipvsSets()}
	for _, t := range ipvsChains {
		for _, name := range t.names {
			node.Table(t.table).Chain(name)
		}
	}
	insertJumps(p.nat, natJumps)
	insertJumps(p.filter, ipvsFilterJumps)
	p.writeServices()
	// Pods that reach themselves are masqueraded.
	if match, some := p.setMatch(setLoopback, "dst,dst,src"); some {
		p.nat.Chain(chainPostrouting).Append(commentMatch(loopbackComment) + match + "-j MASQUERADE")
	}
	writeMasqueradeRules(p.nat, p.filter)
	p.writeNodePorts()
	p.writeFilterRules()
	return p.ipsetRestoreInput()
}

// ipvsSet is one set with its members.
type ipvsSet struct {
	name, kind string
	members    []string
}

// ipvsSets returns all sets in kube-proxy's order, including sets without members.
func (c Config) ipvsSets() []ipvsSet {
	family, prefix := "inet", "KUBE-"
	if c.IPv6 {
		family, prefix = "inet6", "KUBE-6-"
	}
	addrPort := "hash:ip,port family " + family + " hashsize 1024 maxelem 65536"
	addrPortAddr := "hash:ip,port,ip family " + family + " hashsize 1024 maxelem 65536"
	const ports = "bitmap:port range 0-65535"
	list := []ipvsSet{
		{setLoopback, addrPortAddr, nil}, {setClusterIP, addrPort, nil}, {setExternal, addrPort, nil}, {setExternalOwn, addrPort, nil},
		{setLB, addrPort, nil}, {setHealth, ports, nil}, {setNodePort + "TCP", ports, nil}, {setNodePortKeep + "TCP", ports, nil},
		{setNodePort + "UDP", ports, nil}, {setNodePortKeep + "UDP", ports, nil},
		{setAddresses, "hash:ip family " + family + " hashsize 1024 maxelem 65536", nil},
	}
	seen := map[[2]string]bool{}
	add := func(name, member string) {
		if id := [2]string{name, member}; !seen[id] {
			seen[id] = true
			i := slices.IndexFunc(list, func(s ipvsSet) bool { return s.name == name })
			list[i].members = append(list[i].members, member)
		}
	}
	for _, s := range c.Services {
		add(setClusterIP, fmt.Sprintf("%s,%s:%d", s.VIP, s.Protocol, s.Port))
		add(setAddresses, s.VIP.String())
		for _, e := range s.Endpoints {
			if e.Local {
				a := e.Addr.Addr()
				add(setLoopback, fmt.Sprintf("%s,%s:%d,%s", a, s.Protocol, e.Addr.Port(), a))
			}
		}
		if s.NodePort == 0 {
			continue
		}
		protocol := strings.ToUpper(s.Protocol)
		add(setNodePort+protocol, formatPort(s.NodePort))
		if s.ExternalTrafficPolicyLocal {
			add(setNodePortKeep+protocol, formatPort(s.NodePort))
		}
	}
	for i := range list {
		list[i].name = prefix + strings.TrimPrefix(list[i].name, "KUBE-")
	}
	return list
}

// ipvsProxy writes the rules and sets of one configuration in ipvs mode.
type ipvsProxy struct {
	c           Config
	nat, filter *ruleset.Table
	sets        []ipvsSet
}

// setMatch returns the match of packets by a set. side names the fields of the packet that are looked up. ok is false
// if the set is empty: kube-proxy omits most such rules.
func (p *ipvsProxy) setMatch(name, side string) (match string, ok bool) {
	if p.c.IPv6 {
		name = "KUBE-6-" + strings.TrimPrefix(name, "KUBE-")
	}
	i := slices.IndexFunc(p.sets, func(s ipvsSet) bool { return s.name == name })
	return "-m set --match-set " + name + " " + side + " ", len(p.sets[i].members) > 0
}

// writeServices writes the chain KUBE-SERVICES of table nat: clients outside the pod range that use a cluster address are
// masqueraded.
func (p *ipvsProxy) writeServices() {
	chain := p.nat.Chain(chainServices)
	chain.Append("-s " + p.c.family().localhost.String() + " -j RETURN")
	match, some := p.setMatch(setClusterIP, "dst,dst")
	if some && p.c.ClusterCIDR.IsValid() {
		chain.Append("! -s " + p.c.ClusterCIDR.Masked().String() + " " + commentMatch(clusterIPComment) + match + "-j " + chainMarkMasq)
	}
	chain.Append("-m addrtype --dst-type LOCAL -j " + chainNodePort)
	if some {
		chain.Append(match + "-j ACCEPT")
	}
	p.nat.Chain(chainLoadBalancer).Append("-j " + chainMarkMasq)
}

func (p *ipvsProxy) writeNodePorts() {
	chain := p.nat.Chain(chainNodePort)
	for _, protocol := range []string{"tcp", "udp"} {
		name := strings.ToUpper(protocol)
		if match, some := p.setMatch(setNodePortKeep+name, "dst"); some {
			chain.Append("-p " + protocol + " " + commentMatch(fmt.Sprintf(nodePortKeepComment, name)) + match + "-j RETURN")
		}
		if match, some := p.setMatch(setNodePort+name, "dst"); some {
			chain.Append("-p " + protocol + " " + commentMatch(fmt.Sprintf(nodePortComment, name)) + match + "-j " + chainMarkMasq)
		}
	}
}

// writeFilterRules writes the rules of table filter. At the addresses on IPVSDevice, they leave only the ports of
// Services open.
func (p *ipvsProxy) writeFilterRules() {
	p.filter.Chain(chainSourceRanges).Append("-j DROP")
	health, _ := p.setMatch(setHealth, "dst")
	p.filter.Chain(chainNodePort).Append(commentMatch(healthComment) + health + "-j ACCEPT")
	chain := p.filter.Chain(chainIPVSFilter)
	for _, name := range []string{setLB, setClusterIP, setExternal, setExternalOwn} {
		match, _ := p.setMatch(name, "dst,dst")
		chain.Append(match + "-j RETURN")
	}
	own, _ := p.setMatch(setAddresses, "dst")
	chain.Append(health+"-j RETURN", "-m conntrack --ctstate NEW "+own+"-j REJECT")
}

func (p *ipvsProxy) ipsetRestoreInput() string {
	var b strings.Builder
	for _, s := range p.sets {
		fmt.Fprintf(&b, "create %s %s\n", s.name, s.kind)
	}
	for _, s := range p.sets {
		for _, m := range s.members {
			fmt.Fprintf(&b, "add %s %s\n", s.name, m)
		}
	}
	return b.String()
}

// protocols are the protocols of Services.
var protocols = map[string]ipvs.Protocol{"tcp": ipvs.TCP, "udp": ipvs.UDP, "sctp": ipvs.SCTP}

// IPVSServers returns the virtual servers of a node in ipvs mode: one for each Service at its cluster address, and for
// each node port one at every address of the node.
func IPVSServers(c Config, node []netip.Addr) []ipvs.Server {
	var list []ipvs.Server
	for _, s := range c.Services {
		server := ipvs.Server{Protocol: protocols[s.Protocol], Addr: netip.AddrPortFrom(s.VIP, s.Port)}
		if s.SessionAffinity {
			server.Affinity = affinityTime
		}
		server.Backends = endpointAddrs(s.Endpoints)
		list = append(list, server)
		if s.NodePort == 0 {
			continue
		}
		if s.ExternalTrafficPolicyLocal {
			server.Backends = endpointAddrs(s.localEndpoints())
		}
		for _, a := range node {
			server.Addr = netip.AddrPortFrom(a, s.NodePort)
			list = append(list, server)
		}
	}
	return list
}

// IPVSAddresses returns the addresses of IPVSDevice, each once.
func IPVSAddresses(c Config) []netip.Prefix {
	list := each.Of(c.Services, func(s Service) netip.Prefix { return netip.PrefixFrom(s.VIP, s.VIP.BitLen()) })
	return slices.Compact(list) // the protocols of a Service follow each other
}

func endpointAddrs(list []Endpoint) []netip.AddrPort {
	return each.Of(list, func(e Endpoint) netip.AddrPort { return e.Addr })
}

// IPVSSysctls returns the settings of ipvs mode in addition to Sysctls. Like kube-proxy since Linux 5.9, it does not
// set the reuse mode of connections.
func IPVSSysctls() map[string]string {
	return map[string]string{
		"net/ipv4/vs/conntrack": "1", "net/ipv4/vs/expire_nodest_conn": "1", "net/ipv4/vs/expire_quiescent_template": "1",
	}
}
