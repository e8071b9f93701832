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
// Chain names are kube-proxy's own: in iptables mode a prefix and 16 characters of base32 of a SHA-256 over service, port
// and protocol (and endpoint), in nftables mode 8 of them and the names themselves. iptables mode also has kube-proxy's
// comments, unless kube-proxy omits them (above 1,000 endpoints). Comments cost memory, loading time and, in the legacy
// flavour, a match for every packet.
package service

import (
	"net/netip"
)

// Config is the configuration of one node's kube-proxy, for one version of IP.
type Config struct {
	// IPv6 says that all addresses are IPv6, and the rules for ip6tables or a table of family ip6.
	IPv6 bool
	// ClusterCIDR has all pod addresses, by which kube-proxy recognises traffic from pods.
	ClusterCIDR netip.Prefix
	// Services are rendered in this order. On a real node the order is random, but the cost of a connection depends on the
	// position of its service.
	Services []Service
	// NoLocalhostNodePorts withholds node ports from 127.0.0.0/8; kube-proxy's default is to serve them. The nftables
	// mode never serves them.
	NoLocalhostNodePorts bool
	// NodePortAddr is the address with node ports in nftables mode: by kube-proxy's default the node's primary one.
	NodePortAddr netip.Addr
	// ServiceCIDR has all cluster addresses. The nftables mode drops packets to unused ones.
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
	// ExternalTrafficPolicyLocal limits external traffic to endpoints of the entered node, without masquerading.
	ExternalTrafficPolicyLocal bool
	// SessionAffinity keeps a client at the endpoint that it used in the last three hours.
	SessionAffinity bool
	// Endpoints may be empty; then connections are refused.
	Endpoints []Endpoint
	// LoadBalancerIPs are external addresses that the node also serves.
	LoadBalancerIPs []netip.Addr
}

// Endpoint is one backend.
type Endpoint struct {
	Addr netip.AddrPort
	// Local says that the backend is on this node.
	Local bool
}

// Sysctls returns the settings of kube-proxy and kubelet that are per network namespace, by path below /proc/sys. It omits
// those for the whole machine, such as the size of the conntrack table.
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
