// Package policy writes the rules by which CNIs forward, police and masquerade a node's traffic, with the
// default policy: everything is allowed, and every packet walks the chains. The input is values, the output text or
// tables for packages kernel/ipt and kernel/nft.
//
//	node := policy.Node{
//		Services: &service.Config{...},         // kubelet and kube-proxy
//		Flannel:  &policy.FlannelConfig{...},   // nil unless flannel or canal
//		Calico: &policy.CalicoConfig{           // nil unless Calico or canal
//			Devices:   []string{"cali0a1b2c3d4e5"},
//			VXLAN:     true,
//			NodeAddrs: []netip.Addr{nodeAddr, tunnelAddr}, Peers: []netip.Addr{otherNode},
//			Pools:     []netip.Prefix{clusterCIDR},
//		},
//	}
//	rules, sets := node.Render()            // sets for ipset restore, to be loaded before rules; "" for none
//	tables := node.Tables()                 // what ProxyNFT and CalicoConfig.NFTables move into nftables
//
// The profiles are settings of it:
//
//	flannel         Flannel
//	canal           Flannel, Calico without VXLAN and Pools: flannel encapsulates and masquerades
//	calico-vxlan    Calico with VXLAN, Pools
//	calico-underlay Calico without VXLAN, with Pools
//	calico-nftables as calico-vxlan with NFTables, and ProxyNFT
//	calico-ipip     Calico with IPIP, Pools
//	cilium-*        Cilium, without Services: BPF programs serve them
//	calico-ebpf*    Calico with BPF, without Services
//	aws-vpc         AWS
//	azure           Azure
//	kindnet*        Kindnet
//	kube-router     KubeRouter
//
// The path of a forwarded packet on a Calico node, in this order ("wl" is a workload, a pod):
//
//	raw PREROUTING     cali-PREROUTING        marks cleared, outer VXLAN untracked, pods' source addresses checked
//	mangle PREROUTING  cali-PREROUTING        established: accepted
//	nat PREROUTING     cali-PREROUTING, KUBE-SERVICES
//	filter FORWARD     cali-FORWARD           from-wl-dispatch ─► cali-fw-X, to-wl-dispatch ─► cali-tw-Y;
//	                                          established packets are accepted there
//	                   KUBE-*, FLANNEL-FWD, then Calico's tail: packets that policy marked are accepted
//	mangle POSTROUTING cali-POSTROUTING
//	nat POSTROUTING    KUBE-POSTROUTING, FLANNEL-POSTRTG, cali-POSTROUTING
package policy

import (
	"github.com/cnibench/cnibench/internal/dataplane/ruleset"
	"github.com/cnibench/cnibench/internal/dataplane/service"
	"github.com/cnibench/cnibench/internal/kernel/nft"
)

// Node has all inputs for the netfilter tables of one node. A nil part is not installed. Every node has kubelet's rules.
type Node struct {
	// IPv6 means that rules, sets and tables are for IPv6. All parts must be of the same family.
	IPv6     bool
	Services *service.Config
	Flannel  *FlannelConfig
	Calico   *CalicoConfig
	// ProxyNFT means that kube-proxy is in nftables mode. The rules of kubelet and flannel remain in iptables.
	ProxyNFT bool
	// ProxyIPVS means that kube-proxy is in ipvs mode. The number of its rules does not depend on the Services.
	ProxyIPVS bool
	// Cilium has the input for the iptables rules that Cilium needs in addition to its BPF programs.
	Cilium *CiliumConfig
	AWS    *AWSConfig
	Azure  *AzureConfig
	// KubeRouter has the input for the rules of kube-router, in which each packet walks a list of the node's pods.
	KubeRouter *KubeRouterConfig
	// Kindnet has the input for the rules of kindnet, or of kind's daemon.
	Kindnet *KindnetConfig
}

// Ruleset returns the node's iptables rules in the order of a running node, and the sets that they use, as ipset restore
// input.
//
// kubelet and kube-proxy are first and insert at the top; flannel appends. Calico is last: it inserts its jumps above
// all others and appends only rules that must follow the others.
func (n Node) Ruleset() (rules *ruleset.Ruleset, sets string) {
	rules = ruleset.New()
	service.AddKubelet(rules, n.IPv6)
	switch {
	case n.Services == nil || n.ProxyNFT:
	case n.ProxyIPVS:
		sets = service.AddIPVS(rules, *n.Services)
	default:
		service.Add(rules, *n.Services)
	}
	if n.Cilium != nil {
		addCilium(rules, *n.Cilium)
	}
	if n.AWS != nil {
		addAWS(rules, *n.AWS)
	}
	if n.KubeRouter != nil {
		sets += addKubeRouter(rules, *n.KubeRouter)
	}
	if n.Azure != nil {
		addAzure(rules, *n.Azure)
	}
	if n.Kindnet != nil && n.Kindnet.Kindnetd {
		addMasqAgent(rules, "kind", n.Kindnet.Pods...)
	}
	if n.Flannel != nil {
		addFlannel(rules, *n.Flannel)
	}
	if n.Calico != nil && !n.Calico.NFTables {
		sets += addCalico(rules, *n.Calico)
	}
	return rules, sets
}

// Tables returns the node's nftables tables in the order of a running node: kube-proxy's table, then the CNI's tables.
// Of two base chains with the same hook and priority, the one that was added later runs first. So, as in iptables,
// Calico polices a packet before kube-proxy checks for Services without endpoints.
func (n Node) Tables() []*nft.Table {
	var tables []*nft.Table
	if n.Services != nil && n.ProxyNFT {
		tables = append(tables, service.NFTables(*n.Services))
	}
	if n.Calico != nil && n.Calico.NFTables {
		tables = append(tables, CalicoNFT(*n.Calico))
	}
	if n.AWS != nil {
		tables = append(tables, awsTable(*n.AWS))
	}
	if n.Kindnet != nil {
		if !n.Kindnet.Kindnetd {
			tables = append(tables, kindnetMasqTable(*n.Kindnet))
		}
		tables = append(tables, kindnetPolicyTable())
		if n.Kindnet.Threshold > 0 {
			tables = append(tables, kindnetFastpathTable(*n.Kindnet))
		}
	}
	return tables
}

// Render returns the node's iptables rules as iptables-restore input, and the sets as ipset restore input.
func (n Node) Render() (rules, sets string) {
	r, sets := n.Ruleset()
	return r.String(), sets
}
