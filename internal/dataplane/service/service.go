// Package service writes the rules by which a node serves Kubernetes Services: those of kube-proxy in iptables,
// nftables or ipvs mode, and the few that kubelet adds. The input is values, the output text or a table; packages
// kernel/ipt, kernel/nft and kernel/ipvs load the result.
//
//	cfg := service.Config{
//		ClusterCIDR: netip.MustParsePrefix("10.42.0.0/16"),
//		Services: []service.Service{{
//			Namespace: "bench", Name: "web", PortName: "http", Protocol: "tcp",
//			VIP: netip.MustParseAddr("10.43.0.10"), Port: 80, NodePort: 30080,
//			Endpoints: []service.Endpoint{{Addr: netip.MustParseAddrPort("10.42.0.2:8080"), Local: true}},
//		}},
//	}
//	service.Add(node, cfg)         // into a ruleset, together with other generators
//	table := service.NFTables(cfg) // the same in nftables mode
//
// The path of a connection's first packet in iptables mode, all in table nat:
//
//	PREROUTING, OUTPUT ─► KUBE-SERVICES ─► KUBE-SVC-x ─► KUBE-SEP-y: DNAT        by cluster address
//	                          │ last rule, address of the node
//	                          └─► KUBE-NODEPORTS ─► KUBE-EXT-x ─► KUBE-SVC-x     traffic policy Cluster, masqueraded
//	                                                     └──────► KUBE-SVL-x     traffic policy Local, source kept
//	POSTROUTING ─► KUBE-POSTROUTING: masquerades packets with mark 0x4000
//
// In nftables mode the path does not grow with the number of Services. The table is kube-proxy's own:
//
//	nat-prerouting, nat-output ─► services: map service-ips ─► service-x: DNAT by a map from a random number
//	                                        map service-nodeports ─► external-x ─► service-x, marked
//	                                                                     └───────► local-x, source kept
//	nat-postrouting ─► masquerading: packets with the mark or in the set hairpin-connections
//
// In ipvs mode the kernel's load balancer serves connections. A dummy device has all cluster addresses, so every packet
// for a Service enters INPUT, where IPVS accepts it:
//
//	PREROUTING ─► KUBE-SERVICES: marked if it comes from outside, by the set KUBE-CLUSTER-IP; KUBE-NODE-PORT the same
//	INPUT ─► KUBE-IPVS-FILTER ─► virtual server ─► OUTPUT ─► POSTROUTING ─► KUBE-POSTROUTING
//
// Chain names are kube-proxy's own: in iptables mode a prefix and 16 characters of base32 of a SHA-256 over service,
// port and protocol (and endpoint), in nftables mode 8 of them and the names themselves. iptables mode also has
// kube-proxy's comments, unless kube-proxy omits them (above 1,000 endpoints). Comments cost memory, loading time and,
// in the legacy flavour, a match for every packet.
package service

import (
	"crypto/sha256"
	"encoding/base32"
	"net/netip"
	"slices"
)

// Config is the configuration of one node's kube-proxy, for one version of IP.
type Config struct {
	// IPv6 means that all addresses are IPv6. The rules are then for ip6tables, or in a table of family ip6.
	IPv6 bool
	// ClusterCIDR has all pod addresses, by which kube-proxy recognises traffic from pods. Without a ClusterCIDR, kube-proxy
	// does not masquerade traffic to cluster addresses.
	ClusterCIDR netip.Prefix
	// Services are rendered in this order. On a real node the order is random, but the cost of a connection depends on the
	// position of its service.
	Services []Service
	// NoLocalhostNodePorts means that node ports are not served at 127.0.0.0/8. By default, kube-proxy serves them there,
	// except in nftables mode.
	NoLocalhostNodePorts bool
	// NodePortAddr is the address at which node ports are served in nftables mode; kube-proxy's default is the node's primary
	// address.
	NodePortAddr netip.Addr
	// ServiceCIDR has all cluster addresses. The nftables mode drops packets to unused addresses of it.
	ServiceCIDR netip.Prefix
}

// Service is one port of a Service.
type Service struct {
	// Namespace, Name and PortName are DNS labels; PortName may be empty.
	Namespace, Name, PortName string
	// Protocol is "tcp", "udp" or "sctp".
	Protocol string
	// VIP is the cluster address.
	VIP netip.Addr
	// Port is the port at VIP, NodePort the port at every node, 0 for none.
	Port, NodePort uint16
	// ExternalTrafficPolicyLocal limits external traffic to endpoints of the entered node, without masquerading.
	ExternalTrafficPolicyLocal bool
	// SessionAffinity keeps a client at the endpoint that it used in the last three hours.
	SessionAffinity bool
	// Endpoints may be empty; then connections are refused.
	Endpoints []Endpoint
	// Shared means that in nftables mode Services with the same endpoints may share one map that chooses an endpoint.
	Shared bool
	// LoadBalancerIPs are external addresses that the node also serves.
	LoadBalancerIPs []netip.Addr
}

// Endpoint is one backend.
type Endpoint struct {
	Addr netip.AddrPort
	// Local means that the backend is on this node.
	Local bool
}

// Sysctls returns the settings of kube-proxy and kubelet that are per network namespace, by path below /proc/sys. It omits
// settings for the whole machine, such as the size of the conntrack table.
func Sysctls(c Config) map[string]string {
	s := map[string]string{
		c.family().forwarding:                                "1",
		"net/netfilter/nf_conntrack_tcp_timeout_established": "86400",
		"net/netfilter/nf_conntrack_tcp_timeout_close_wait":  "3600",
	}
	if !c.NoLocalhostNodePorts && !c.IPv6 {
		s["net/ipv4/conf/all/route_localnet"] = "1"
	}
	return s
}

// family has the differences between the rules for IPv4 and IPv6.
type family struct {
	// localhost holds the addresses of the loopback.
	localhost netip.Prefix
	// forwarding is the setting that makes a machine a router.
	forwarding string
}

var (
	ipv4 = family{netip.MustParsePrefix("127.0.0.0/8"), "net/ipv4/ip_forward"}
	ipv6 = family{netip.MustParsePrefix("::1/128"), "net/ipv6/conf/all/forwarding"}
)

func (c Config) family() family {
	if c.IPv6 {
		return ipv6
	}
	return ipv4
}

// singlePrefix returns the text of the prefix that contains only a.
func singlePrefix(a netip.Addr) string { return netip.PrefixFrom(a, a.BitLen()).String() }

// Names of the chains that do not depend on a service.
const (
	chainServices         = "KUBE-SERVICES"
	ChainExternalServices = "KUBE-EXTERNAL-SERVICES"
	chainNodePorts        = "KUBE-NODEPORTS"
	chainPostrouting      = "KUBE-POSTROUTING"
	chainMarkMasq         = "KUBE-MARK-MASQ"
	chainForward          = "KUBE-FORWARD"
	chainProxyFirewall    = "KUBE-PROXY-FIREWALL"
	chainFirewall         = "KUBE-FIREWALL"
	chainProxyCanary      = "KUBE-PROXY-CANARY"
	chainKubeletCanary    = "KUBE-KUBELET-CANARY"
	chainHint             = "KUBE-IPTABLES-HINT"
)

// EverySync has the chains that kube-proxy writes completely in every sync, whatever has changed. kube-proxy writes
// other chains only if their Service has changed.
var EverySync = []string{chainServices, ChainExternalServices, chainForward, chainNodePorts, chainProxyFirewall, chainPostrouting, chainMarkMasq}

// MasqueradeMark is the bit in the packet mark for packets that KUBE-POSTROUTING masquerades.
const MasqueradeMark = "0x4000"

// affinitySeconds is Kubernetes' default time for which a client keeps its endpoint.
const affinitySeconds = "10800"

// portName returns namespace/name:port as kube-proxy writes and hashes it, without the colon if the port has no name.
func (s Service) portName() string {
	if s.PortName == "" {
		return s.Namespace + "/" + s.Name
	}
	return s.Namespace + "/" + s.Name + ":" + s.PortName
}

func base32Hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base32.StdEncoding.EncodeToString(sum[:])[:16]
}

// ServiceChain returns the name of the chain that distributes connections to all endpoints: KUBE-SVC-x.
func (s Service) ServiceChain() string { return "KUBE-SVC-" + s.portProtoHash() }

// LocalChain returns the name of the chain that distributes connections to the endpoints of this node: KUBE-SVL-x.
func (s Service) LocalChain() string { return "KUBE-SVL-" + s.portProtoHash() }

// ExternalChain returns the name of the chain for traffic to a node port or a load balancer address: KUBE-EXT-x.
func (s Service) ExternalChain() string { return "KUBE-EXT-" + s.portProtoHash() }

// EndpointChain returns the name of the chain with the DNAT to e: KUBE-SEP-y.
func (s Service) EndpointChain(e Endpoint) string {
	return "KUBE-SEP-" + base32Hash(s.portName()+s.Protocol+e.Addr.String())
}

func (s Service) portProtoHash() string { return base32Hash(s.portName() + s.Protocol) }

// writeExternalRules writes the rules for traffic from outside the cluster: node port and load balancer addresses.
func (p *proxy) writeExternalRules(s Service) {
	name := s.portName()
	for _, ip := range s.LoadBalancerIPs {
		p.nat.Chain(chainServices).Append(commentMatch(name+" loadbalancer IP") + s.addressMatch(ip) + "-j " + s.ExternalChain())
	}
	if s.NodePort != 0 {
		p.nat.Chain(chainNodePorts).Append(commentMatch(name) + s.nodePortMatch() + "-j " + s.ExternalChain())
	}
	if s.ExternalTrafficPolicyLocal {
		p.writeExternalLocal(s)
		return
	}
	p.nat.Chain(s.ExternalChain()).Append(
		commentMatch("masquerade traffic for "+name+" external destinations")+"-j "+chainMarkMasq,
		"-j "+s.ServiceChain(),
	)
}

// writeExternalLocal writes the external chain of a Service with traffic policy Local. Pods and the node itself may use
// every endpoint. Other clients use only the endpoints of this node, and keep their source address.
func (p *proxy) writeExternalLocal(s Service) {
	name, chain := s.portName(), p.nat.Chain(s.ExternalChain())
	if p.c.ClusterCIDR.IsValid() {
		chain.Append("-s " + p.c.ClusterCIDR.Masked().String() + " " + commentMatch("pod traffic for "+name+" external destinations") + "-j " + s.ServiceChain())
	}
	chain.Append(
		commentMatch("masquerade LOCAL traffic for "+name+" external destinations")+"-m addrtype --src-type LOCAL -j "+chainMarkMasq,
		commentMatch("route LOCAL traffic for "+name+" external destinations")+"-m addrtype --src-type LOCAL -j "+s.ServiceChain(),
	)
	local := s.localEndpoints()
	if len(local) == 0 {
		p.blockExternal(s, commentMatch(name+" has no local endpoints"), "DROP")
		return
	}
	chain.Append("-j " + s.LocalChain())
	p.writeEndpointChoice(p.nat.Chain(s.LocalChain()), s, local)
}

// localEndpoints returns the endpoints of this node.
func (s Service) localEndpoints() []Endpoint {
	return slices.DeleteFunc(slices.Clone(s.Endpoints), func(e Endpoint) bool { return !e.Local })
}
