package lab

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/cnibench/cnibench/internal/dataplane/policy"
	"github.com/cnibench/cnibench/internal/dataplane/service"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/kernel/nft"
	"github.com/cnibench/cnibench/internal/plan/condition"
	"github.com/cnibench/cnibench/internal/profile"
)

// Netfilter returns the netfilter rules of the node with this index: kubelet's, kube-proxy's and the dataplane's.
func (s instanceSpec) Netfilter(node int) policy.Node {
	n := s.Nodes[node]
	others := slices.Concat(s.Nodes[:node], s.Nodes[node+1:])
	rules := s.dataplane.Rules(n, others)
	rules.IPv6 = s.Lab.Family == IPv6
	if rules.Calico != nil {
		rules.Calico.Flowtable = s.Flowtable() > 0
		rules.Calico.Policies, rules.Calico.PoliciesUnselected = s.Lab.Policies, s.Lab.PoliciesUnselected
	}
	if rules.Kindnet != nil {
		rules.Kindnet.Threshold = s.Flowtable()
	}
	if rules.KubeRouter != nil {
		rules.KubeRouter.Policies, rules.KubeRouter.PoliciesUnselected = s.Lab.Policies, s.Lab.PoliciesUnselected
		rules.KubeRouter.ServiceCIDR = s.net.services
	}
	if s.Profile.Services == ebpfServices || s.Profile.Services == FileServices {
		return rules
	}
	rules.Services = &service.Config{IPv6: rules.IPv6, ClusterCIDR: s.net.cluster, Services: s.proxyServices(node)}
	if rules.AWS != nil {
		// EKS configures no range for kube-proxy: pods have addresses of the VPC, like everything else.
		rules.Services.ClusterCIDR = netip.Prefix{}
	}
	// Felix uses nftables only when kube-proxy does.
	rules.ProxyNFT = s.Lab.ServiceProxy == condition.ProxyNftables || rules.Calico != nil && rules.Calico.NFTables
	rules.ProxyIPVS = s.Lab.ServiceProxy == condition.ProxyIPVS && !rules.ProxyNFT
	if rules.ProxyIPVS {
		rules.Services.NoLocalhostNodePorts = true
	}
	if rules.ProxyNFT {
		rules.Services.NodePortAddr, rules.Services.NoLocalhostNodePorts = n.Addr.Addr(), true
		rules.Services.ServiceCIDR = s.net.services
	}
	return rules
}

// ProxyNFT reports whether the nodes' kube-proxy is in nftables mode.
func (s instanceSpec) ProxyNFT() bool {
	return len(s.Nodes) > 0 && s.Profile.Name != profile.Raw && s.Netfilter(0).ProxyNFT
}

// ProxyIPVS reports whether the nodes' kube-proxy is in ipvs mode.
func (s instanceSpec) ProxyIPVS() bool {
	return len(s.Nodes) > 0 && s.Profile.Name != profile.Raw && s.Netfilter(0).ProxyIPVS
}

// ServiceEngine returns what serves Services on the nodes: the mode of kube-proxy, or the profile's replacement of it.
func (s instanceSpec) ServiceEngine() condition.ProxyMode {
	switch {
	case s.Profile.Services != "kube-proxy":
		return condition.ProxyMode(s.Profile.Services)
	case s.ProxyNFT():
		return condition.ProxyNftables
	case s.ProxyIPVS():
		return condition.ProxyIPVS
	}
	return condition.ProxyIptables
}

// Flowtable returns the number of packets after which a connection bypasses the nodes' rules by a flowtable. 0
// means never.
func (s instanceSpec) Flowtable() int {
	if s.Profile.Flowtables() == 0 {
		return 0
	}
	return s.Lab.Flowtable
}

// Needs returns the features that the profile and its conditions require, as package kernel/probe names them.
func (s instanceSpec) Needs() []string {
	needs := slices.Clone(s.Profile.Needs)
	if s.ProxyIPVS() {
		needs = append(needs, "ipvs", "ipset")
	}
	if s.Flowtable() > 0 {
		needs = append(needs, "flowtable")
	}
	if s.Profile.Policy == "aws-agent" && s.Lab.Policies+s.Lab.PoliciesUnselected > 0 {
		needs = append(needs, "bpf", "bpf-tc")
	}
	return needs
}

// ebpfServices is the Services engine of a profile whose BPF programs replace kube-proxy.
const ebpfServices = "ebpf"

// FileServices is the Services engine of a profile file with commands of its own for Services (node.services). The lab then
// programs no Service itself.
const FileServices = "file"

// proxyServices returns the Services as kube-proxy on the node with this index gets them. A Service with UDP has an entry for
// each protocol.
func (s instanceSpec) proxyServices(node int) []service.Service {
	var out []service.Service
	for _, svc := range s.Services {
		e := service.Service{
			Namespace: "default", Name: svc.Name, PortName: "tcp", Protocol: "tcp",
			VIP: svc.VIP, Port: uint16(svc.Port), NodePort: uint16(svc.NodePort),
			SessionAffinity:            svc.Affinity,
			Shared:                     svc.Idle,
			ExternalTrafficPolicyLocal: svc.NodePort != 0 && s.Lab.TrafficPolicy == condition.TrafficLocal,
		}
		if svc.Balanced.IsValid() {
			e.LoadBalancerIPs = []netip.Addr{svc.Balanced}
		}
		for _, r := range svc.Backends {
			e.Endpoints = append(e.Endpoints, service.Endpoint{
				Addr:  netip.AddrPortFrom(s.Nodes[r.Node].Pods[r.Pod].Addr.Addr(), uint16(svc.TargetPort)),
				Local: r.Node == node,
			})
		}
		for i := range svc.Elsewhere {
			e.Endpoints = append(e.Endpoints, service.Endpoint{Addr: s.net.podlessEndpoint(i, svc.TargetPort)})
		}
		out = append(out, e)
		if svc.UDP {
			e.PortName, e.Protocol = "udp", "udp"
			out = append(out, e)
		}
	}
	return out
}

// loadNetfilter loads the rules of a node into ns, then its settings. Some settings exist only once the rules have loaded
// the conntrack module.
func (l *Lab) loadNetfilter(ctx context.Context, ns *netns.NS, s instanceSpec, node int) error {
	n := s.Netfilter(node)
	if n.ProxyIPVS {
		if err := serveIPVS(ns, *n.Services); err != nil {
			return fmt.Errorf("kube-proxy in ipvs mode: %w", err)
		}
	}
	if err := l.tools.loadRules(ctx, ns, n); err != nil {
		return err
	}
	tables := n.Tables()
	if s.Lab.Conntrack == condition.ConntrackOff {
		tables = append(tables, s.notrackTable(nft.FamilyOf(n.IPv6)))
	}
	if err := nft.Load(ctx, ns, tables...); err != nil {
		return err
	}
	if err := netns.SetSysctls(ns, nodeSettings(n, s.Lab.BridgeNetfilter)); err != nil {
		return fmt.Errorf("settings of the node's daemons: %w", err)
	}
	return nil
}

// notrackTable returns a table that exempts from conntrack the packets between pods and the outer packets of their VXLAN
// tunnel.
func (s instanceSpec) notrackTable(family nft.Family) *nft.Table {
	table := nft.NewTable(family, "cnibench-conntrack")
	for _, hook := range []string{"prerouting", "output"} {
		chain := table.Base(hook, nft.Hook{Type: "filter", Hook: hook, Priority: nft.RawPriority}).
			Add(nft.Is(nft.SourceAddr, s.net.cluster), nft.Is(nft.DestAddr, s.net.cluster), nft.Untrack)
		if t := s.Profile.Tunnel; t != nil && t.Kind == "vxlan" {
			chain.Add(nft.Is(nft.L4Proto, nft.L4("udp")), nft.Is(nft.DestPort, uint16(t.Port)), nft.Untrack)
		}
	}
	return table
}

// loadRules loads a node's IP sets and iptables rules into ns.
func (t tools) loadRules(ctx context.Context, ns *netns.NS, n policy.Node) error {
	rules, sets := n.Render()
	if sets != "" {
		tool, err := t.ipset()
		if err != nil {
			return err
		}
		if err := tool.Restore(ctx, ns, sets); err != nil {
			return err
		}
	}
	tool, err := t.iptables()
	if err != nil {
		return err
	}
	return tool.Restore(ctx, ns, rules)
}

// currentRules returns the iptables rules of ns.
func (t tools) currentRules(ctx context.Context, ns *netns.NS) (string, error) {
	tool, err := t.iptables()
	if err != nil {
		return "", err
	}
	return tool.Save(ctx, ns, "")
}

// nodeSettings returns the sysctls that kubelet, kube-proxy and the dataplane's daemon set.
func nodeSettings(n policy.Node, bridged condition.BridgeNetfilter) []netns.Setting {
	// Kubernetes requires this setting where it exists.
	value := "1"
	if bridged == condition.BridgeNetfilterOff {
		value = "0"
	}
	list := []netns.Setting{{Name: "net/bridge/bridge-nf-call-iptables", Value: value, IfPresent: true}}
	if n.IPv6 {
		list = append(list, netns.Setting{Name: "net/bridge/bridge-nf-call-ip6tables", Value: value, IfPresent: true})
	}
	var settings map[string]string
	if n.Services != nil {
		settings = service.Sysctls(*n.Services)
	}
	if n.ProxyIPVS {
		maps.Copy(settings, service.IPVSSysctls())
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		list = append(list, netns.Setting{Name: name, Value: settings[name]})
	}
	if n.Calico != nil || n.Kindnet != nil && !n.Kindnet.Kindnetd {
		list = append(list, netns.Setting{Name: "net/netfilter/nf_conntrack_acct", Value: "1"})
	}
	return list
}
