// Package service writes the rules by which a node serves Kubernetes Services: those of kube-proxy in iptables, nftables
// or ipvs mode, and the few that kubelet adds. It is values in, text or a table out; packages kernel/ipt, kernel/nft and
// kernel/ipvs load the result.
//
//	cfg := service.Config{
//		ClusterCIDR: netip.MustParsePrefix("10.42.0.0/16"),
//		Services: []service.Service{{
//			Namespace: "bench", Name: "web", PortName: "http", Protocol: "tcp",
//			VIP: netip.MustParseAddr("10.43.0.10"), Port: 80, NodePort: 30080,
//			Endpoints: []service.Endpoint{{Addr: netip.MustParseAddrPort("10.42.0.2:8080"), Local: true}},
//		}},
//	}
//	service.Add(node, cfg)         // into a ruleset, beside other generators
//	table := service.NFTables(cfg) // the same in nftables mode
//
// How a packet for a Service walks in iptables mode, all in table nat and only for the first packet of a connection:
//
//	PREROUTING, OUTPUT ─► KUBE-SERVICES ─► KUBE-SVC-x ─► KUBE-SEP-y: DNAT        by cluster address
//	                          │ last rule, address of the node
//	                          └─► KUBE-NODEPORTS ─► KUBE-EXT-x ─► KUBE-SVC-x     traffic policy Cluster, masqueraded
//	                                                     └──────► KUBE-SVL-x     traffic policy Local, source kept
//	POSTROUTING ─► KUBE-POSTROUTING: masquerades what bears mark 0x4000
//
// And in nftables mode, where the way does not grow with the number of Services; the table is kube-proxy's own:
//
//	nat-prerouting, nat-output ─► services: map service-ips ─► service-x: DNAT by a map from a random number
//	                                        map service-nodeports ─► external-x ─► service-x, marked
//	                                                                     └───────► local-x, source kept
//	nat-postrouting ─► masquerading: what is marked, and what is in the set hairpin-connections
//
// And in ipvs mode, where the kernel's own load balancer stands behind the chains. Cluster addresses are the node's own, on
// a device that sends nothing, so every packet for a Service goes to INPUT, where IPVS takes it:
//
//	PREROUTING ─► KUBE-SERVICES: marked if it comes from outside, by the set KUBE-CLUSTER-IP; KUBE-NODE-PORT the same
//	INPUT ─► KUBE-IPVS-FILTER ─► virtual server ─► OUTPUT ─► POSTROUTING ─► KUBE-POSTROUTING
//
// Chain names are kube-proxy's own: in iptables mode a prefix and 16 characters of base32 of a SHA-256 over service, port
// and protocol (and endpoint), in nftables mode 8 of them and the names themselves. The comments of iptables mode are
// kept too, and left out where kube-proxy leaves them out (above 1,000 endpoints): they cost memory, loading time and with
// the legacy flavour a match for every packet.
package service

import (
	"net/netip"
)

// Config is what one node's kube-proxy knows. A kube-proxy serves one version of IP; on a dual-stack node there are two.
type Config struct {
	// IPv6 says that all addresses are IPv6, and the rules for ip6tables or a table of family ip6.
	IPv6 bool
	// ClusterCIDR holds all pod addresses: by it kube-proxy tells a pod's traffic from the rest. The zero prefix means
	// that it cannot tell, and then leaves out the rules that depend on it.
	ClusterCIDR netip.Prefix
	// Services are rendered in the order given. On a node their order is accidental; here it is the caller's, because
	// the position of a service is what its first packet pays for.
	Services []Service
	// MasqueradeAll masquerades all traffic to cluster addresses.
	MasqueradeAll bool
	// NoLocalhostNodePorts withholds node ports from 127.0.0.0/8; kube-proxy's default is to serve them. The nftables
	// mode never serves them.
	NoLocalhostNodePorts bool
	// NodePortAddrs are where the nftables mode serves node ports, by kube-proxy's default the node's primary address
	// alone; empty for every address of the node.
	NodePortAddrs []netip.Addr
	// ServiceCIDR is where cluster addresses come from: the nftables mode drops what goes to one that nobody has. The
	// zero prefix leaves that out.
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
	// Port is the port at VIP; NodePort the one at every node, 0 for none.
	Port, NodePort uint16
	// ExternalTrafficPolicyLocal keeps traffic from outside at endpoints of the node that it reaches, unmasqueraded.
	ExternalTrafficPolicyLocal bool
	// SessionAffinity sends a client address to the endpoint that it used in the last three hours.
	SessionAffinity bool
	// Endpoints may be empty: then the service refuses.
	Endpoints []Endpoint
	// LoadBalancerIPs are addresses outside the cluster that the node also answers for.
	LoadBalancerIPs []netip.Addr
	// SourceRanges limits who may use LoadBalancerIPs; empty for everybody.
	SourceRanges []netip.Prefix
}

// Endpoint is one backend.
type Endpoint struct {
	Addr netip.AddrPort
	// Local says that the backend is on this node.
	Local bool
}

// Sysctls returns the settings that kube-proxy and kubelet make and that a network namespace has of its own, by path
// below /proc/sys. What they set for the whole machine (the size of the conntrack table) is left alone.
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
