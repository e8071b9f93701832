package policy

import (
	"net/netip"

	"github.com/cnibench/cnibench/internal/dataplane/ruleset"
	"github.com/cnibench/cnibench/internal/dataplane/service"
)

// FlannelConfig is the input for flannel's rules.
type FlannelConfig struct {
	// ClusterCIDR is the range of the pods of all nodes, PodCIDR the range of the pods of this node.
	ClusterCIDR, PodCIDR netip.Prefix
}

// Names of flannel's chains.
const (
	chainFlannelPostrouting = "FLANNEL-POSTRTG"
	chainFlannelForward     = "FLANNEL-FWD"
)

// addFlannel adds flannel's rules to node, at the end of the built-in chains.
func addFlannel(node *ruleset.Ruleset, c FlannelConfig) {
	masq, forward := ` -m comment --comment "flanneld masq" -j `, ` -m comment --comment "flanneld forward" -j `
	cluster, pods := c.ClusterCIDR.Masked().String(), c.PodCIDR.Masked().String()
	multicast := "224.0.0.0/4"
	if c.ClusterCIDR.Addr().Is6() {
		multicast = "ff00::/8"
	}
	nat := node.Table(ruleset.NAT)
	nat.Chain("POSTROUTING").Append(masq[1:] + chainFlannelPostrouting)
	nat.Chain(chainFlannelPostrouting).Append(
		// kube-proxy masquerades the packets with its mark.
		"-m mark --mark "+service.MasqueradeMark+"/"+service.MasqueradeMark+masq+"RETURN",
		"-s "+pods+" -d "+cluster+masq+"RETURN",
		"-s "+cluster+" -d "+pods+masq+"RETURN",
		"! -s "+cluster+" -d "+pods+masq+"RETURN",
		"-s "+cluster+" ! -d "+multicast+masq+"MASQUERADE --random-fully",
		"! -s "+cluster+" -d "+cluster+masq+"MASQUERADE --random-fully",
	)
	filter := node.Table(ruleset.Filter)
	filter.Chain("FORWARD").Append(forward[1:] + chainFlannelForward)
	filter.Chain(chainFlannelForward).Append("-s "+cluster+forward+"ACCEPT", "-d "+cluster+forward+"ACCEPT")
}
