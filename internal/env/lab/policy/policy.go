// Package policy writes the rules by which flannel and Calico forward, police and masquerade a node's traffic, with the
// default policy: everything is allowed, and every packet still walks the chains. It is values in, text or tables out;
// packages kernel/ipt and kernel/nft load the result.
//
//	node := policy.Node{
//		Services: &service.Config{...},         // kubelet and kube-proxy
//		Flannel:  &policy.FlannelConfig{...},   // nil unless flannel or canal
//		Calico: &policy.CalicoConfig{           // nil unless Calico or canal
//			Endpoints: []policy.Endpoint{{Device: "cali0a1b2c3d4e5", Addr: podAddr}},
//			VXLAN:     true,
//			NodeAddrs: []netip.Addr{nodeAddr, tunnelAddr}, Peers: []netip.Addr{otherNode},
//			Pools:     []netip.Prefix{clusterCIDR}, NATOutgoing: true,
//		},
//	}
//	rules, sets := node.Render()            // sets for ipset restore, to be loaded before rules; "" for none
//	tables := node.Tables()                 // what ProxyNFT and CalicoConfig.NFTables move into nftables
//
// The profiles are settings of it:
//
//	flannel         Flannel
//	canal           Flannel, Calico without VXLAN, Pools and NATOutgoing: flannel encapsulates and masquerades
//	calico-vxlan    Calico with VXLAN, Pools, NATOutgoing
//	calico-underlay Calico without VXLAN, with Pools, NATOutgoing
//	calico-nftables as calico-vxlan with NFTables, and ProxyNFT
//	calico-ipip     Calico with IPIP, Pools, NATOutgoing
//	cilium-*        Cilium and Kubelet, without Services: BPF programs serve them
//	calico-ebpf*    CalicoBPF and Kubelet, without Services
//
// What a forwarded packet of a Calico node meets, in this order (each box a chain that a built-in chain jumps to; "wl"
// is a workload, a pod):
//
//	raw PREROUTING     cali-PREROUTING        marks cleared, outer VXLAN untracked, pods' source addresses checked
//	mangle PREROUTING  cali-PREROUTING        established: accepted
//	nat PREROUTING     cali-PREROUTING, KUBE-SERVICES
//	filter FORWARD     cali-FORWARD           from-wl-dispatch ─► cali-fw-X, to-wl-dispatch ─► cali-tw-Y;
//	                                          established packets are accepted there and go no further
//	                   KUBE-*, FLANNEL-FWD, then Calico's tail: what policy marked is accepted
//	mangle POSTROUTING cali-POSTROUTING
//	nat POSTROUTING    KUBE-POSTROUTING, FLANNEL-POSTRTG, cali-POSTROUTING
package policy

import (
	"github.com/cnibench/cnibench/internal/env/lab/ruleset"
	"github.com/cnibench/cnibench/internal/env/lab/service"
	"github.com/cnibench/cnibench/internal/kernel/nft"
)

// Node is everything that programs the netfilter tables of one node. A nil part is not installed.
type Node struct {
	// IPv6 says that the rules are for ip6tables, the sets and tables of IPv6. The parts must be of the same family.
	IPv6     bool
	Services *service.Config
	Flannel  *FlannelConfig
	Calico   *CalicoConfig
	// ProxyNFT has kube-proxy program nftables. kubelet's rules are in iptables all the same, and so are flannel's.
	ProxyNFT bool
	// ProxyIPVS has kube-proxy in ipvs mode: its rules are few and constant, and the Services themselves are no rules.
	ProxyIPVS bool
	// Kubelet has kubelet's rules where there is no kube-proxy, whose Services are nil then.
	Kubelet bool
	// Cilium and CalicoBPF are what dataplanes of BPF programs leave in iptables.
	Cilium    *CiliumConfig
	CalicoBPF *CalicoBPFConfig
}

// Ruleset returns the node's iptables rules in the order in which they stand on a running node, and the sets that they
// name.
//
// kubelet and kube-proxy come first and insert at the top; flannel appends; Calico, which keeps its jumps above
// everybody else's, comes last and appends only what must stay behind the others.
func (n Node) Ruleset() (rules *ruleset.Ruleset, sets string) {
	rules = ruleset.New()
	if n.Services != nil || n.Kubelet {
		service.AddKubelet(rules, n.IPv6)
	}
	switch {
	case n.Services == nil || n.ProxyNFT:
	case n.ProxyIPVS:
		sets = service.AddIPVS(rules, *n.Services)
	default:
		service.Add(rules, *n.Services)
	}
	if n.Cilium != nil {
		AddCilium(rules, *n.Cilium)
	}
	if n.CalicoBPF != nil {
		AddCalicoBPF(rules, *n.CalicoBPF)
	}
	if n.Flannel != nil {
		AddFlannel(rules, *n.Flannel)
	}
	if n.Calico != nil && !n.Calico.NFTables {
		sets += AddCalico(rules, *n.Calico)
	}
	return rules, sets
}

// Tables returns the node's own nftables tables in the order in which they come to be on a running node: kube-proxy's,
// then Calico's. Of two base chains with the same hook and priority the later runs first, so Calico polices a packet
// before kube-proxy looks for Services without endpoints, as in iptables.
func (n Node) Tables() []*nft.Table {
	var tables []*nft.Table
	if n.Services != nil && n.ProxyNFT {
		tables = append(tables, service.NFTables(*n.Services))
	}
	if n.Calico != nil && n.Calico.NFTables {
		tables = append(tables, CalicoNFT(*n.Calico))
	}
	return tables
}

// Render returns the node's iptables rules as one iptables-restore input, and the sets as ipset restore input.
func (n Node) Render() (rules, sets string) {
	r, sets := n.Ruleset()
	return r.String(), sets
}
