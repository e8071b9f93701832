package policy

import (
	"github.com/cnibench/cnibench/internal/dataplane/ruleset"
)

// CiliumConfig is the input for the iptables rules that Cilium has in addition to its BPF programs.
type CiliumConfig struct {
	// VXLAN means that Cilium encapsulates. Outer packets are then untracked.
	VXLAN bool
	// WireGuard means that Cilium encrypts by WireGuard. Outer packets are then untracked, and accepted at both ends.
	WireGuard bool
	// IPsec means that Cilium encrypts by the kernel's IPsec. Packets with its marks are untracked and accepted.
	IPsec bool
}

// Marks that Cilium sets on packets, with their masks.
const (
	ciliumMask    = "/0xf00"
	ciliumToProxy = "0x200" + ciliumMask
	// Marks of packets from the proxy to a client, and to a server.
	ciliumProxyReply    = "0xa00/0xfffffeff"
	ciliumProxyUpstream = "0x800/0xe00"

	ciliumOverlay   = "0x400" + ciliumMask
	ciliumFromHost  = "0xc00" + ciliumMask
	ciliumDecrypted = "0xd00" + ciliumMask
	ciliumEncrypt   = "0xe00" + ciliumMask
)

// The UDP ports of Cilium's tunnels.
const (
	ciliumVXLANPort     = "8472"
	ciliumWireGuardPort = "51871"
)

// ciliumChains has Cilium's own chains. Each is called at the top of the built-in chain from.
var ciliumChains = []struct{ table, chain, from string }{
	{ruleset.Raw, "CILIUM_PRE_raw", "PREROUTING"},
	{ruleset.Raw, "CILIUM_OUTPUT_raw", "OUTPUT"},
	{ruleset.Mangle, "CILIUM_PRE_mangle", "PREROUTING"},
	{ruleset.Mangle, "CILIUM_POST_mangle", "POSTROUTING"},
	{ruleset.NAT, "CILIUM_PRE_nat", "PREROUTING"},
	{ruleset.NAT, "CILIUM_OUTPUT_nat", "OUTPUT"},
	{ruleset.NAT, "CILIUM_POST_nat", "POSTROUTING"},
	{ruleset.Filter, "CILIUM_INPUT", "INPUT"},
	{ruleset.Filter, "CILIUM_FORWARD", "FORWARD"},
	{ruleset.Filter, "CILIUM_OUTPUT", "OUTPUT"},
}

// addProxyRules adds the rules that keep packets from and to the L7 proxy out of conntrack. Every node has them, also
// without L7 policies.
func addProxyRules(node *ruleset.Ruleset) {
	untracked := func(text string) string {
		return ` -m comment --comment "cilium: NOTRACK for ` + text + `" -j CT --notrack`
	}
	raw := node.Table(ruleset.Raw)
	raw.Chain("CILIUM_PRE_raw").Append("-m mark --mark " + ciliumToProxy + untracked("proxy traffic"))
	for _, of := range []struct{ mark, text, acceptText string }{
		{ciliumProxyReply, "proxy return traffic", "proxy return traffic"},
		{ciliumProxyUpstream, "L7 proxy upstream traffic", "l7 proxy upstream traffic"},
	} {
		for _, device := range []string{"lxc+", "cilium_host"} {
			raw.Chain("CILIUM_OUTPUT_raw").Append("-o " + device + " -m mark --mark " + of.mark + untracked(of.text))
		}
		node.Table(ruleset.Filter).Chain("CILIUM_OUTPUT").
			Append("-m mark --mark " + of.mark + ` -m comment --comment "cilium: ACCEPT for ` + of.acceptText + `" -j ACCEPT`)
	}
}

// acceptIPsec adds rules for packets with a mark of IPsec: to be encrypted, or decrypted. Table raw excludes them from
// conntrack; tables nat and filter accept them.
func acceptIPsec(node *ruleset.Ruleset) {
	for _, h := range ciliumChains {
		chain := node.Table(h.table).Chain(h.chain)
		for _, mark := range []string{ciliumEncrypt, ciliumDecrypted} {
			match := "-m mark --mark " + mark + ` -m comment --comment "`
			switch {
			case h.table == ruleset.Raw:
				chain.Insert(match + `exclude encrypted traffic from conntrack" -j CT --notrack`)
			case h.table != ruleset.Mangle:
				chain.Append(match + "exclude encrypt/decrypt marks from " + h.table + " " + h.chain + ` chain" -j ACCEPT`)
			}
		}
	}
}

// addCilium adds Cilium's rules to node. Like Cilium, it also calls the chains of table nat that are empty.
func addCilium(node *ruleset.Ruleset, c CiliumConfig) {
	for _, h := range ciliumChains {
		t := node.Table(h.table)
		t.Chain(h.chain)
		t.Chain(h.from).Insert(`-m comment --comment "cilium-feeder: ` + h.chain + `" -j ` + h.chain)
	}
	note := func(text string) string { return ` -m comment --comment "cilium: ` + text + `" -j ` }
	if c.VXLAN {
		for _, chain := range []string{"CILIUM_PRE_raw", "CILIUM_OUTPUT_raw"} {
			node.Table(ruleset.Raw).Chain(chain).Append("-p udp -m udp --dport " + ciliumVXLANPort + note("NOTRACK for tunnel traffic") + "NOTRACK")
		}
	}
	addProxyRules(node)
	filter := node.Table(ruleset.Filter)
	filter.Chain("CILIUM_INPUT").Append("-m mark --mark " + ciliumToProxy + note("ACCEPT for proxy traffic") + "ACCEPT")
	if c.IPsec {
		acceptIPsec(node)
	}
	if c.WireGuard {
		outer := "-p udp -m udp --dport " + ciliumWireGuardPort
		for _, direction := range []string{"PRE", "OUTPUT"} {
			node.Table(ruleset.Raw).Chain("CILIUM_" + direction + "_raw").Append(outer + note("NOTRACK for wireguard traffic") + "CT --notrack")
		}
		for _, direction := range []string{"OUTPUT", "INPUT"} {
			filter.Chain("CILIUM_" + direction).Append(outer + note("ACCEPT for wireguard traffic") + "ACCEPT")
		}
	}
	filter.Chain("CILIUM_FORWARD").Append(
		"-o cilium_host"+note("any->cluster on cilium_host forward accept")+"ACCEPT",
		"-i cilium_host"+note("cluster->any on cilium_host forward accept")+"ACCEPT",
		"-i lxc+"+note("cluster->any on lxc+ forward accept")+"ACCEPT",
		"-i cilium_net"+note("cluster->any on cilium_net forward accept")+"ACCEPT",
	)
	mark := ""
	for _, known := range []string{ciliumEncrypt, ciliumDecrypted, ciliumOverlay} {
		mark += "-m mark ! --mark " + known + " "
	}
	filter.Chain("CILIUM_OUTPUT").Append(mark[:len(mark)-1] + note("host->any mark as from host") + "MARK --set-xmark " + ciliumFromHost)
}
