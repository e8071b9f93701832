package service

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/nft"
)

// TableNFT is the name of kube-proxy's table in nftables mode.
const TableNFT = "kube-proxy"

// Names in kube-proxy's nftables table that do not depend on a Service.
const (
	MapServiceIPs       = "service-ips"
	MapServiceNodePorts = "service-nodeports"
	setNodePortIPs      = "nodeport-ips"
	SetClusterIPs       = "cluster-ips"
	setHairpin          = "hairpin-connections"
	mapNoEndpoints      = "no-endpoint-services"
	mapNoEndpointPorts  = "no-endpoint-nodeports"
	mapFirewall         = "firewall-ips"

	nftServices      = "services"
	nftMasquerading  = "masquerading"
	nftServiceCheck  = "service-endpoints-check"
	nftNodePortCheck = "nodeport-endpoints-check"
	nftClusterCheck  = "cluster-ips-check"
	nftFirewallCheck = "firewall-check"
	nftReject        = "reject-chain"
)

// affinityTime is affinitySeconds as a duration, for the timeout of sets.
const affinityTime = 10800 * time.Second

// masqueradeBit is MasqueradeMark as a number.
const masqueradeBit = 0x4000

// nftBase are the base chains in the order in which kube-proxy declares them.
var nftBase = []struct {
	name string
	hook nft.Hook
}{
	{"filter-prerouting-pre-dnat", nft.Hook{Type: "filter", Hook: "prerouting", Priority: nft.DNATPriority - 10}},
	{"filter-output-pre-dnat", nft.Hook{Type: "filter", Hook: "output", Priority: nft.DNATPriority - 10}},
	{"filter-input", nft.Hook{Type: "filter", Hook: "input", Priority: nft.FilterPriority}},
	{"filter-forward", nft.Hook{Type: "filter", Hook: "forward", Priority: nft.FilterPriority}},
	{"filter-output", nft.Hook{Type: "filter", Hook: "output", Priority: nft.FilterPriority}},
	{"nat-prerouting", nft.Hook{Type: "nat", Hook: "prerouting", Priority: nft.DNATPriority}},
	{"nat-output", nft.Hook{Type: "nat", Hook: "output", Priority: nft.DNATPriority}},
	{"nat-postrouting", nft.Hook{Type: "nat", Hook: "postrouting", Priority: nft.SNATPriority}},
}

// nftJumps are the jumps from base chains to other chains. Jumps from filter chains are for new connections only.
var nftJumps = []struct{ from, to string }{
	{"filter-input", nftNodePortCheck},
	{"filter-input", nftServiceCheck},
	{"filter-forward", nftServiceCheck},
	{"filter-output", nftServiceCheck},
	{"filter-prerouting-pre-dnat", nftFirewallCheck},
	{"filter-output-pre-dnat", nftFirewallCheck},
	{"nat-output", nftServices},
	{"nat-prerouting", nftServices},
	{"nat-postrouting", nftMasquerading},
	{"filter-forward", nftClusterCheck},
	{"filter-output", nftClusterCheck},
}

// NFTables returns the table of kube-proxy in nftables mode for one node. kubelet's rules are in iptables, see AddKubelet.
func NFTables(c Config) *nft.Table {
	p := nftProxy{c: c, t: nft.NewTable(nft.FamilyOf(c.IPv6), TableNFT), seen: map[string]bool{}}
	p.t.Comment = "rules for kube-proxy"
	p.declareSets()
	p.writeFixedRules()
	for _, s := range c.Services {
		p.writeService(s)
	}
	return p.t
}

// nftProxy writes the table of one configuration in nftables mode.
type nftProxy struct {
	c Config
	t *nft.Table
	// seen has the keys that are already in a set (see insertOnce): the ports of a Service share an address, and Services
	// may share an endpoint.
	seen map[string]bool
}

// insertOnce inserts a key into a set, unless the set already has it.
func (p *nftProxy) insertOnce(set string, key ...nft.Value) {
	id := fmt.Sprint(set, key)
	if !p.seen[id] {
		p.seen[id] = true
		p.t.Lookup(set).Insert(key...)
	}
}

// byAddr and byPort are the fields by which packets are looked up in maps. atNode matches packets to the address at which
// node ports are served.
var (
	byAddr = []nft.Field{nft.DestAddr, nft.L4Proto, nft.DestPort}
	byPort = []nft.Field{nft.L4Proto, nft.DestPort}
	atNode = nft.In(setNodePortIPs, nft.DestAddr)
)

func (p *nftProxy) declareSets() {
	t := p.t
	t.Set(SetClusterIPs, nft.Addr).Comment = "Active ClusterIPs"
	ips := t.Set(setNodePortIPs, nft.Addr)
	ips.Comment = "IPs that accept NodePort traffic"
	ips.Insert(p.c.NodePortAddr)
	t.Map(mapNoEndpoints, nft.Addr, nft.Proto, nft.Port).Comment = "vmap to drop or reject packets to services with no endpoints"
	t.Map(mapNoEndpointPorts, nft.Proto, nft.Port).Comment = "vmap to drop or reject packets to service nodeports with no endpoints"
	t.Map(mapFirewall, nft.Addr, nft.Proto, nft.Port).Comment = "destinations that are subject to LoadBalancerSourceRanges"
	t.Map(MapServiceIPs, nft.Addr, nft.Proto, nft.Port).Comment = "ClusterIP, ExternalIP and LoadBalancer IP traffic"
	t.Map(MapServiceNodePorts, nft.Proto, nft.Port).Comment = "NodePort traffic"
	t.Set(setHairpin, nft.Addr, nft.Addr, nft.Proto, nft.Port).Comment = "service hairpin connections"
}

// writeFixedRules writes the chains and rules that do not depend on Services.
func (p *nftProxy) writeFixedRules() {
	t := p.t
	for _, b := range nftBase {
		t.Base(b.name, b.hook)
	}
	for _, j := range nftJumps {
		t.Chain(j.to)
		rule := nft.Rule{nft.State(nft.New), nft.Jump(j.to)}
		if strings.HasPrefix(j.from, "nat-") {
			rule = rule[1:]
		}
		t.Chain(j.from).Add(rule...)
	}
	t.Chain(nftMasquerading).
		Add(nft.MarkSet(masqueradeBit), nft.FlipMark(masqueradeBit), nft.Masquerade).
		// Without this rule a pod that reaches itself would get the reply from an address that it did not dial.
		Add(nft.Translated, nft.In(setHairpin, nft.SourceAddr, nft.DestAddr, nft.L4Proto, nft.DestPort), nft.Masquerade)
	t.Chain(nftReject).Add(nft.Reject)
	t.Chain(nftFirewallCheck).Add(nft.VMap(mapFirewall, byAddr...))
	t.Chain(nftServiceCheck).Add(nft.VMap(mapNoEndpoints, byAddr...))
	t.Chain(nftNodePortCheck).Add(atNode, nft.VMap(mapNoEndpointPorts, byPort...))
	// Packets to a cluster address were not translated.
	t.Chain(nftClusterCheck).
		Add(nft.In(SetClusterIPs, nft.DestAddr), nft.Reject, nft.Comment("Reject traffic to invalid ports of ClusterIPs")).
		Add(nft.Is(nft.DestAddr, p.c.ServiceCIDR), nft.Drop, nft.Comment("Drop traffic to unallocated ClusterIPs"))
	// This chain looks up every new connection.
	services := t.Chain(nftServices)
	if p.c.ClusterCIDR.IsValid() {
		services.Add(nft.In(SetClusterIPs, nft.DestAddr), nft.Not(nft.SourceAddr, p.c.ClusterCIDR), nft.SetMark(masqueradeBit),
			nft.Comment("masquerade clusterIP traffic from outside cluster"))
	}
	services.
		Add(nft.VMap(MapServiceIPs, byAddr...)).
		Add(atNode, nft.VMap(MapServiceNodePorts, byPort...))
}

// writeService writes the entries and chains of s, or the rejection of connections if it has no endpoints.
func (p *nftProxy) writeService(s Service) {
	p.insertOnce(SetClusterIPs, s.VIP)
	if len(s.Endpoints) == 0 {
		p.t.Lookup(mapNoEndpoints).Put(nft.Goto(nftReject), s.keyAt(s.VIP)...)
		p.blockExternalTraffic(s, nft.Goto(nftReject))
		return
	}
	for _, e := range s.Endpoints {
		if e.Local {
			a := e.Addr.Addr()
			p.insertOnce(setHairpin, a, a, nft.L4(s.Protocol), e.Addr.Port())
		}
	}
	ips := p.t.Lookup(MapServiceIPs)
	ips.Put(nft.Goto(s.nftChainName("service")), s.keyAt(s.VIP)...)
	p.writeChoiceChain(s, "service", s.Endpoints)
	if s.NodePort == 0 && len(s.LoadBalancerIPs) == 0 {
		return
	}
	external := nft.Goto(s.nftChainName("external"))
	for _, ip := range s.LoadBalancerIPs {
		ips.Put(external, s.keyAt(ip)...)
	}
	if s.NodePort != 0 {
		p.t.Lookup(MapServiceNodePorts).Put(external, nft.L4(s.Protocol), s.NodePort)
	}
	p.writeExternalChain(s)
}

func (s Service) keyAt(a netip.Addr) []nft.Value { return []nft.Value{a, nft.L4(s.Protocol), s.Port} }

// writeExternalChain writes the chain for external traffic.
func (p *nftProxy) writeExternalChain(s Service) {
	chain := p.t.Chain(s.nftChainName("external"))
	all := nft.Goto(s.nftChainName("service"))
	if !s.ExternalTrafficPolicyLocal {
		chain.Add(nft.SetMark(masqueradeBit), nft.Comment("masquerade")).Add(all)
		return
	}
	if p.c.ClusterCIDR.IsValid() {
		chain.Add(nft.Is(nft.SourceAddr, p.c.ClusterCIDR), all, nft.Comment("short-circuit pod traffic"))
	}
	chain.
		Add(nft.SourceLocal, nft.SetMark(masqueradeBit), nft.Comment("masquerade local traffic")).
		Add(nft.SourceLocal, all, nft.Comment("short-circuit local traffic"))
	local := s.localEndpoints()
	if len(local) == 0 {
		p.blockExternalTraffic(s, nft.Drop)
		return
	}
	chain.Add(nft.Goto(s.nftChainName("local")))
	p.writeChoiceChain(s, "local", local)
}

// writeChoiceChain writes a chain that chooses among endpoints. With session affinity each endpoint has a chain and a
// set of its clients. Otherwise one rule chooses and translates.
func (p *nftProxy) writeChoiceChain(s Service, kind string, endpoints []Endpoint) {
	chain := p.t.Chain(s.nftChainName(kind))
	tcp := nft.Is(nft.L4Proto, nft.L4(s.Protocol))
	if !s.SessionAffinity {
		choice := nft.DNATRandom
		if s.Shared {
			choice = nft.DNATShared
		}
		chain.Add(tcp, choice(endpointAddrs(endpoints)...))
		return
	}
	var names []string
	for _, e := range endpoints {
		name, set := s.nftEndpointName("endpoint", e), s.nftEndpointName("affinity", e)
		names = append(names, name)
		if own := p.t.Chain(name); len(own.Rules) == 0 {
			p.t.Set(set, nft.Addr).Timeout = affinityTime
			own.Add(nft.Update(set, nft.SourceAddr)).Add(tcp, nft.DNAT(e.Addr))
		}
		chain.Add(nft.In(set, nft.SourceAddr), nft.Goto(name))
	}
	chain.Add(nft.GotoRandom(names...))
}

// blockExternalTraffic adds verdict v, to reject or to drop, for external traffic to a Service that this node does not
// serve.
func (p *nftProxy) blockExternalTraffic(s Service, v nft.Verdict) {
	for _, ip := range s.LoadBalancerIPs {
		p.t.Lookup(mapNoEndpoints).Put(v, s.keyAt(ip)...)
	}
	if s.NodePort != 0 {
		p.t.Lookup(mapNoEndpointPorts).Put(v, nft.L4(s.Protocol), s.NodePort)
	}
}

// nftBaseName returns hash-namespace/name/protocol/port, kube-proxy's name of a service.
func (s Service) nftBaseName() string {
	base := s.Namespace + "/" + s.Name + "/" + s.Protocol + "/" + s.PortName
	return base32Hash(base)[:8] + "-" + base
}

// nftChainName returns the name of a chain of the Service: service-x, local-x or external-x.
func (s Service) nftChainName(kind string) string { return kind + "-" + s.nftBaseName() }

// nftEndpointName returns the name of the chain (endpoint-x) or set (affinity-x) of one endpoint. It replaces colons, which
// nftables does not allow in names.
func (s Service) nftEndpointName(kind string, e Endpoint) string {
	at := strings.ReplaceAll(e.Addr.Addr().String(), ":", ".")
	base := s.Namespace + "/" + s.Name + "/" + s.Protocol + "/" + s.PortName + "__" + at + "/" + formatPort(e.Addr.Port())
	return kind + "-" + base32Hash(base)[:8] + "-" + base
}
