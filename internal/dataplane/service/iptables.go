package service

import (
	"net/netip"
	"strconv"

	"github.com/cnibench/cnibench/internal/dataplane/ruleset"
)

// AddKubelet adds kubelet's rules to node. kubelet starts before kube-proxy, so call it before Add.
//
// No rule jumps to the canary chains: kubelet and kube-proxy watch them to detect that the tables were flushed. The
// hint chain shows programs in containers which flavour of iptables the node uses. With ipv6 the rules are for
// ip6tables. In IPv6 kubelet blocks no packets, because none can enter or leave the loopback network.
func AddKubelet(node *ruleset.Ruleset, ipv6 bool) {
	node.Table(ruleset.Mangle).Chain(chainHint)
	addCanary(node, chainKubeletCanary)
	if ipv6 {
		return
	}
	filter := node.Table(ruleset.Filter)
	filter.Chain("OUTPUT").Insert("-j " + chainFirewall)
	filter.Chain("INPUT").Insert("-j " + chainFirewall)
	filter.Chain(chainFirewall).Append(`! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment "block incoming localnet connections" -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP`)
}

func addCanary(node *ruleset.Ruleset, chain string) {
	for _, table := range []string{ruleset.Mangle, ruleset.NAT, ruleset.Filter} {
		node.Table(table).Chain(chain)
	}
}

// Add adds the rules of kube-proxy in iptables mode to node.
func Add(node *ruleset.Ruleset, c Config) {
	addCanary(node, chainProxyCanary)
	p := proxy{c: c, nat: node.Table(ruleset.NAT), filter: node.Table(ruleset.Filter)}
	endpoints := 0
	for _, s := range c.Services {
		endpoints += len(s.Endpoints)
	}
	p.terse = endpoints > terseAbove
	p.writeFixedRules()
	for _, s := range c.Services {
		p.writeService(s)
	}
	p.appendNodePortJump()
}

// terseAbove is the number of endpoints above which kube-proxy omits the comments of rules for single endpoints.
const terseAbove = 1000

// proxy writes the rules of one configuration in iptables mode.
type proxy struct {
	c           Config
	nat, filter *ruleset.Table
	// terse means that rules for single endpoints have no comments, because there are more endpoints than terseAbove.
	terse bool
}

// endpointComment returns the comment of a rule for one endpoint, "" if kube-proxy omits such comments.
func (p *proxy) endpointComment(text string) string {
	if p.terse {
		return ""
	}
	return commentMatch(text)
}

// jump is a rule in a built-in chain that leads into kube-proxy's chains.
type jump struct{ from, match, comment, to string }

// The jumps of kube-proxy in the tables filter and nat. Each is inserted at the top, so a built-in chain has them in reverse
// order.
var (
	filterJumps = []jump{
		{"INPUT", "-m conntrack --ctstate NEW ", "kubernetes externally-visible service portals", ChainExternalServices},
		{"FORWARD", "-m conntrack --ctstate NEW ", "kubernetes externally-visible service portals", ChainExternalServices},
		{"INPUT", "", "kubernetes health check service ports", chainNodePorts},
		{"FORWARD", "-m conntrack --ctstate NEW ", "kubernetes service portals", chainServices},
		{"OUTPUT", "-m conntrack --ctstate NEW ", "kubernetes service portals", chainServices},
		{"FORWARD", "", "kubernetes forwarding rules", chainForward},
		{"INPUT", "-m conntrack --ctstate NEW ", "kubernetes load balancer firewall", chainProxyFirewall},
		{"OUTPUT", "-m conntrack --ctstate NEW ", "kubernetes load balancer firewall", chainProxyFirewall},
		{"FORWARD", "-m conntrack --ctstate NEW ", "kubernetes load balancer firewall", chainProxyFirewall},
	}
	natJumps = []jump{
		{"OUTPUT", "", "kubernetes service portals", chainServices},
		{"PREROUTING", "", "kubernetes service portals", chainServices},
		{"POSTROUTING", "", "kubernetes postrouting rules", chainPostrouting},
	}
)

// writeFixedRules writes the chains and rules that do not depend on Services.
func (p *proxy) writeFixedRules() {
	for _, chain := range []string{chainServices, ChainExternalServices, chainForward, chainNodePorts, chainProxyFirewall} {
		p.filter.Chain(chain)
	}
	for _, chain := range []string{chainServices, chainNodePorts, chainPostrouting, chainMarkMasq} {
		p.nat.Chain(chain)
	}
	insertJumps(p.filter, filterJumps)
	insertJumps(p.nat, natJumps)
	p.filter.Chain(chainForward).Append(`-m conntrack --ctstate INVALID -j DROP`)
	writeMasqueradeRules(p.nat, p.filter)
}

// writeMasqueradeRules writes the rules that mark packets for masquerading, and the rules that forward and masquerade
// marked packets.
func writeMasqueradeRules(nat, filter *ruleset.Table) {
	nat.Chain(chainMarkMasq).Append("-j MARK --or-mark " + MasqueradeMark)
	nat.Chain(chainPostrouting).Append(
		"-m mark ! --mark "+MasqueradeMark+"/"+MasqueradeMark+" -j RETURN",
		// The mark is cleared before the packet is encapsulated. Otherwise the outer packet would inherit it and be
		// masqueraded too.
		"-j MARK --xor-mark "+MasqueradeMark,
		commentMatch("kubernetes service traffic requiring SNAT")+"-j MASQUERADE --random-fully",
	)
	filter.Chain(chainForward).Append(
		commentMatch("kubernetes forwarding rules")+"-m mark --mark "+MasqueradeMark+"/"+MasqueradeMark+" -j ACCEPT",
		commentMatch("kubernetes forwarding conntrack rule")+"-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
	)
}

func insertJumps(t *ruleset.Table, jumps []jump) {
	for _, j := range jumps {
		t.Chain(j.from).Insert(j.match + commentMatch(j.comment) + "-j " + j.to)
	}
}

func commentMatch(text string) string { return `-m comment --comment "` + text + `" ` }

// writeService writes the rules of s: for its cluster address, for external traffic and for its endpoints, or
// rejections if it has no endpoints.
func (p *proxy) writeService(s Service) {
	if len(s.Endpoints) == 0 {
		p.writeRejects(s)
		return
	}
	name := s.portName()
	to := commentMatch(name+" cluster IP") + s.addressMatch(s.VIP)
	p.nat.Chain(chainServices).Append(to + "-j " + s.ServiceChain())
	chain := p.nat.Chain(s.ServiceChain())
	if p.c.ClusterCIDR.IsValid() {
		chain.Append("! -s " + p.c.ClusterCIDR.Masked().String() + " " + to + "-j " + chainMarkMasq)
	}
	p.writeEndpointChoice(chain, s, s.Endpoints)
	if s.NodePort != 0 || len(s.LoadBalancerIPs) > 0 {
		p.writeExternalRules(s)
	}
	for _, e := range s.Endpoints {
		p.writeEndpoint(s, e)
	}
}

// addressMatch returns the match of packets to the Service's port at addr.
func (s Service) addressMatch(addr netip.Addr) string {
	return "-d " + singlePrefix(addr) + " -p " + s.Protocol + " -m " + s.Protocol + " --dport " + formatPort(s.Port) + " "
}

// nodePortMatch returns the match of packets to the Service's node port.
func (s Service) nodePortMatch() string {
	return "-p " + s.Protocol + " -m " + s.Protocol + " --dport " + formatPort(s.NodePort) + " "
}

func formatPort(n uint16) string { return strconv.Itoa(int(n)) }

// writeEndpointChoice appends the rules that choose among endpoints to a chain: each rule takes an even part of the
// remaining connections. With session affinity, rules for known clients come first.
func (p *proxy) writeEndpointChoice(chain *ruleset.Chain, s Service, endpoints []Endpoint) {
	name := s.portName()
	if s.SessionAffinity {
		for _, e := range endpoints {
			sep := s.EndpointChain(e)
			chain.Append(p.endpointComment(name+" -> "+e.Addr.String()) + "-m recent --rcheck --seconds " + affinitySeconds + " --reap --name " + sep + " --rsource -j " + sep)
		}
	}
	for i, e := range endpoints {
		rule := p.endpointComment(name + " -> " + e.Addr.String())
		if left := len(endpoints) - i; left > 1 {
			rule += "-m statistic --mode random --probability " + strconv.FormatFloat(1/float64(left), 'f', 10, 64) + " "
		}
		chain.Append(rule + "-j " + s.EndpointChain(e))
	}
}

// writeEndpoint writes the chain of an endpoint, KUBE-SEP-y. It masquerades a pod that reaches itself through the Service.
// Otherwise the reply would come from an address to which the pod did not connect.
func (p *proxy) writeEndpoint(s Service, e Endpoint) {
	chain := p.nat.Chain(s.EndpointChain(e))
	chain.Append("-s " + singlePrefix(e.Addr.Addr()) + " " + p.endpointComment(s.portName()) + "-j " + chainMarkMasq)
	rule := p.endpointComment(s.portName())
	if s.SessionAffinity {
		rule += "-m recent --set --name " + chain.Name + " --rsource "
	}
	chain.Append("-p " + s.Protocol + " " + rule + "-m " + s.Protocol + " -j DNAT --to-destination " + e.Addr.String())
}

// writeRejects writes the rules that reject connections to a Service without endpoints.
func (p *proxy) writeRejects(s Service) {
	why := commentMatch(s.portName() + " has no endpoints")
	p.filter.Chain(chainServices).Append(why + s.addressMatch(s.VIP) + "-j REJECT")
	p.blockExternal(s, why, "REJECT")
}

// blockExternal writes the rules that reject or drop external traffic to a Service that this node does not serve.
// target is REJECT or DROP.
func (p *proxy) blockExternal(s Service, why, target string) {
	chain := p.filter.Chain(ChainExternalServices)
	for _, ip := range s.LoadBalancerIPs {
		chain.Append(why + s.addressMatch(ip) + "-j " + target)
	}
	if s.NodePort != 0 {
		chain.Append(why + "-m addrtype --dst-type LOCAL " + s.nodePortMatch() + "-j " + target)
	}
}

// appendNodePortJump appends the jump for node ports to KUBE-SERVICES. It must be the last rule, so a packet to a node
// port walks the rules of all cluster addresses first.
func (p *proxy) appendNodePortJump() {
	match := "-m addrtype --dst-type LOCAL "
	// In IPv6 a node port is never served at ::1.
	if p.c.NoLocalhostNodePorts || p.c.IPv6 {
		match = "! -d " + p.c.family().localhost.String() + " " + match
	}
	p.nat.Chain(chainServices).Append(commentMatch("kubernetes service nodeports; NOTE: this must be the last rule in this chain") + match + "-j " + chainNodePorts)
}
