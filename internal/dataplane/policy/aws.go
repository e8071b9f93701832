package policy

import (
	"fmt"
	"net/netip"

	"github.com/cnibench/cnibench/internal/dataplane/ruleset"
	"github.com/cnibench/cnibench/internal/kernel/nft"
)

// AWSConfig is the input for the rules of the AWS VPC CNI. They translate the source address of packets from pods to
// addresses outside the VPC.
type AWSConfig struct {
	// VPC has the address ranges of the VPC. Packets to them keep the pod's address.
	VPC []netip.Prefix
	// NodeAddr is the primary address of the node's first interface, which replaces pods' addresses outside the VPC.
	NodeAddr netip.Addr
}

// AWSMark is the mark of connections that must leave by the node's first interface. AWSVeth is the prefix of the names of
// the node's ends of pods' devices.
const (
	AWSMark = 0x80
	AWSVeth = "eni"

	tableAWS     = "aws-cni"
	chainAWSSNAT = "AWS-SNAT-CHAIN-0"
	// awsPriority is the priority of the chain that marks connections. It runs after kube-proxy has translated Services, so
	// that it sees the address of the pod and not of the Service.
	awsPriority = nft.DNATPriority + 10
)

// addAWS adds the plugin's iptables rules to node. They translate source addresses, and mark connections that entered by the
// first interface, so that their replies leave by it.
func addAWS(node *ruleset.Ruleset, c AWSConfig) {
	nat := node.Table(ruleset.NAT)
	nat.Chain("POSTROUTING").Append(`-m comment --comment "AWS SNAT CHAIN" -j ` + chainAWSSNAT)
	snat := nat.Chain(chainAWSSNAT)
	for _, p := range c.VPC {
		snat.Append("-d " + p.String() + ` -m comment --comment "AWS SNAT CHAIN" -j RETURN`)
	}
	snat.Append(`! -o vlan+ -m comment --comment "AWS, SNAT" -m addrtype ! --dst-type LOCAL -j SNAT --to-source ` + c.NodeAddr.String() + " --random-fully")
	mangle := node.Table(ruleset.Mangle).Chain("PREROUTING")
	const primary = ` -m comment --comment "AWS, primary ENI" `
	mark := fmt.Sprintf("%#x", AWSMark)
	restore := "-j CONNMARK --restore-mark --nfmask " + mark + " --ctmask " + mark
	mangle.Append(
		"-i eth0"+primary+"-m addrtype --dst-type LOCAL --limit-iface-in -j CONNMARK --set-xmark "+mark+"/"+mark,
		"-i "+AWSVeth+"+"+primary+restore,
		"-i vlan+"+primary+restore,
	)
}

// awsTable returns the plugin's nftables table. It marks connections of pods to addresses outside the VPC.
func awsTable(c AWSConfig) *nft.Table {
	const mark = "snat-mark"
	t := nft.NewTable(nft.IPv4, tableAWS)
	t.Base("nat-prerouting", nft.Hook{Type: "nat", Hook: "prerouting", Priority: awsPriority}).
		Add(nft.DestLocal, nft.Return).
		Add(nft.Is(nft.InDevice, AWSVeth+"*"), nft.Count, nft.Jump(mark)).
		Add(nft.Count, nft.RestoreConnMark(AWSMark))
	chain := t.Chain(mark)
	for _, p := range c.VPC {
		chain.Add(nft.Count, nft.Is(nft.DestAddr, p), nft.Return)
	}
	chain.Add(nft.Count, nft.SetConnMark(AWSMark))
	return t
}
