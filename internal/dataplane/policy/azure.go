package policy

import (
	"net/netip"
	"strings"

	"github.com/cnibench/cnibench/internal/dataplane/ruleset"
)

// AzureConfig is the input for the rules of the Azure CNI: the rules of its daemon and of the masquerading agent of
// AKS.
type AzureConfig struct {
	// Cluster is the range of the pods of all nodes, Pods the range of the pods of this node.
	Cluster, Pods netip.Prefix
	// NodeAddr replaces pods' addresses towards Azure's own services.
	NodeAddr netip.Addr
}

// Azure's DNS server, and the server of instance metadata.
const (
	azureDNS      = "168.63.129.16"
	azureMetadata = "169.254.169.254"
)

// addAzure adds the rules of the Azure CNI and of AKS's masquerading agent to node.
func addAzure(node *ruleset.Ruleset, c AzureConfig) {
	const chain = "SWIFT-POSTROUTING"
	nat := node.Table(ruleset.NAT)
	nat.Chain("POSTROUTING").Append("-j " + chain)
	for _, to := range []string{azureDNS + "/32 -p udp -m udp --dport 53", azureDNS + "/32 -p tcp -m tcp --dport 53", azureMetadata + "/32 -p tcp -m tcp --dport 80"} {
		nat.Chain(chain).Append("-s " + c.Pods.Masked().String() + " -d " + to + " -m addrtype ! --dst-type LOCAL -j SNAT --to-source " + c.NodeAddr.String())
	}
	addMasqAgent(node, "ip", c.Cluster)
}

// addMasqAgent adds the rules of ip-masq-agent (kind "ip") or of kind's copy of it (kind "kind") to node: pods keep their
// address only towards the ranges in pods.
func addMasqAgent(node *ruleset.Ruleset, kind string, pods ...netip.Prefix) {
	chain := strings.ToUpper(kind) + "-MASQ-AGENT"
	comment := `-m comment --comment "` + kind + `-masq-agent: `
	nat := node.Table(ruleset.NAT)
	nat.Chain("POSTROUTING").Append(comment + "ensure nat POSTROUTING directs all non-LOCAL destination traffic to our custom " + chain + ` chain" -m addrtype ! --dst-type LOCAL -j ` + chain)
	for _, p := range pods {
		nat.Chain(chain).Append("-d " + p.Masked().String() + " " + comment + `local traffic is not subject to MASQUERADE" -j RETURN`)
	}
	nat.Chain(chain).Append(comment + `outbound traffic is subject to MASQUERADE (must be last in chain)" -j MASQUERADE`)
}
