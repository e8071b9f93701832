package policy

import (
	"fmt"
	"slices"

	"github.com/cnibench/cnibench/internal/dataplane/ruleset"
	"github.com/cnibench/cnibench/internal/kernel/nft"
)

// direction has what differs between the rules for a pod's egress and ingress.
type direction struct {
	// endpoint, profile and policy are the prefixes of names of chains; word is the direction in comments.
	endpoint, profile, policy, word string
	// option (iptables) and device (nftables) match the pod's device.
	option string
	device nft.Field
	// peer is the side of the packet that has the address of the other end.
	peer side
}

var (
	egress     = direction{"cali-fw-", "cali-pro-", "cali-po-", "egress", "-i", nft.InDevice, destination}
	ingress    = direction{"cali-tw-", "cali-pri-", "cali-pi-", "ingress", "-o", nft.OutDevice, source}
	directions = []direction{egress, ingress}
)

// writeDispatch writes the chain that finds a pod's own chain by its device: in nftables by a map, in iptables by a
// tree of two levels. Devices that share the next character after the common prefix get a chain of their own. Every
// rule is a goto, so a packet never returns to try the others.
func (f *felix) writeDispatch(chain string, d direction) {
	if f.nftables != nil {
		f.writeDispatchMap(chain, d)
		return
	}
	names := slices.Sorted(slices.Values(f.c.Devices))
	common := len(commonPrefix(names))
	branchOf := func(name string) string { return name[:min(len(name), common+1)] }
	root := f.chainIn(ruleset.Filter, chain)
	for len(names) > 0 {
		branch, n := branchOf(names[0]), 1
		for n < len(names) && branchOf(names[n]) == branch {
			n++
		}
		if n == 1 {
			root.addGoto(d.endpoint+names[0], newClause(d.option+" "+names[0]))
		} else {
			sub := chain + "-" + branch[common:]
			root.addGoto(sub, newClause(d.option+" "+branch+"+"))
			leaf := f.chainIn(ruleset.Filter, sub)
			for _, name := range names[:n] {
				leaf.addGoto(d.endpoint+name, newClause(d.option+" "+name))
			}
			leaf.setComment("Unknown interface").addRule(drop)
		}
		names = names[n:]
	}
	root.setComment("Unknown interface").addRule(drop)
}

// commonPrefix returns the common prefix of sorted names. For a single name, that is the whole name.
func commonPrefix(sorted []string) string {
	if len(sorted) == 0 {
		return ""
	}
	first, last := sorted[0], sorted[len(sorted)-1]
	i := 0
	for i < len(first) && i < len(last) && first[i] == last[i] {
		i++
	}
	return first[:i]
}

// writeEndpoint writes the chain of a pod for one direction: cali-fw-X for egress, cali-tw-X for ingress. An allowed packet
// returns with the accept mark, because the chain of another pod and the rest of FORWARD follow.
func (f *felix) writeEndpoint(device string, d direction) {
	chain := f.chainIn(ruleset.Filter, d.endpoint+device).
		addRule(accept, established).
		addRule(drop, invalid).
		addRule(clearMarkClause(markVerdict))
	if d.word == egress.word {
		chain.setComment("Drop VXLAN encapped packets originating in workloads").addRule(drop, vxlanPacket)
		chain.setComment("Drop IPinIP encapped packets originating in workloads").addRule(drop, ipipPacket)
	}
	if names := f.c.policyChainNames(d); len(names) > 0 {
		chain.setComment("Start of tier default").addRule(clearMarkClause(markPass))
		for _, name := range names {
			chain.addJump(name, markClearClause(markPass))
			chain.setComment("Return if policy accepted").addRule(ret, markSetClause(markAccept))
		}
		chain.setComment("End of tier default. Drop if no policies passed packet").addRule(drop, markClearClause(markPass))
	}
	for _, profile := range profileNames {
		chain.addJump(d.profile + profile)
		chain.setComment("Return if profile accepted").addRule(ret, markSetClause(markAccept))
	}
	chain.setComment("Drop if no profiles matched").addRule(drop)
}

// profileNames are the Calico profiles of a pod: the profile of its namespace, and the profile of its service account.
// Packets never reach the second, because the first allows everything.
var profileNames = []string{"kns." + namespace, "ksa." + namespace + ".default"}

// writeProfiles writes the chains of the namespace's Calico profile. This default policy allows everything.
func (f *felix) writeProfiles() {
	if len(f.c.Devices) == 0 {
		return
	}
	for _, d := range directions {
		f.chainIn(ruleset.Filter, d.profile+profileNames[0]).
			setComment("Profile "+profileNames[0]+" "+d.word).addRule(setMarkClause(markAccept)).
			addRule(ret, markSetClause(markAccept))
	}
}

// policyChainName returns the name of the chain of policy i: a prefix and a hash, as Calico shortens long names.
func policyChainName(d direction, i int) string {
	return d.policy + "_" + hashPrefix(fmt.Sprintf("policy %d", i), 19)
}

// policySetName returns the name of the set with the peers that policy i allows, without the prefix that
// CalicoConfig.ipsetName adds.
func policySetName(d direction, i int) string {
	return "s:" + hashPrefix(fmt.Sprintf("selector of policy %d %s", i, d.word), 22)
}

// writePolicies writes the chains of all policies, also of policies that select no pod.
func (f *felix) writePolicies() {
	for i := range f.c.Policies + f.c.PoliciesUnselected {
		for _, d := range directions {
			chain, name := f.chainIn(ruleset.Filter, policyChainName(d, i)), fmt.Sprintf("Policy %s/knp.default.p%d %s", namespace, i, d.word)
			match := []clause{f.memberClause(policySetName(d, i), d.peer)}
			if f.c.isLastPolicy(i) {
				chain.setComment(name).addRule(drop, tcpPacket, newClause(fmt.Sprintf("-m multiport --dports %d", DeniedPort), nft.Is(nft.DestPort, uint16(DeniedPort))))
			} else {
				match = []clause{tcpPacket, match[0], newClause("-m multiport --dports 1024:65535", nft.PortsFrom(1024))}
			}
			chain.setComment(name).addRule(setMarkClause(markAccept), match...).addRule(ret, markSetClause(markAccept))
		}
	}
}

// policyChainNames returns the names of the chains of the policies that select the pods, in order.
func (c CalicoConfig) policyChainNames(d direction) []string {
	var names []string
	if c.Churned {
		names = append(names, policyChainName(d, churned))
	}
	for i := range c.Policies {
		names = append(names, policyChainName(d, i))
	}
	return names
}

// churned is the index, in policyChainName, of the policy that churn creates and deletes.
const churned = -1

// writeChurnedPolicy writes the chains of the policy that churn creates and deletes. The policy denies TCP to
// ChurnedPort and leaves everything else to the policies after it; without other policies, it allows everything else.
func (f *felix) writeChurnedPolicy() {
	for _, d := range directions {
		chain := f.chainIn(ruleset.Filter, policyChainName(d, churned)).setComment(fmt.Sprintf("Policy %s/knp.default.churned %s", namespace, d.word)).
			addRule(drop, tcpPacket, newClause(fmt.Sprintf("-m multiport --dports %d", ChurnedPort), nft.Is(nft.DestPort, uint16(ChurnedPort))))
		if f.c.Policies == 0 {
			chain.addRule(setMarkClause(markAccept)).addRule(ret, markSetClause(markAccept))
		}
	}
}

// ChurnedPort is the TCP port that the churned policy denies. No workload needs it.
const ChurnedPort = 10

// DeniedPort is the TCP port that policies deny in both directions. No workload needs it, and it shows that the
// policies are in force.
const DeniedPort = 9

// isLastPolicy reports whether policy i is the last policy that selects the pods. This policy allows all but DeniedPort.
func (c CalicoConfig) isLastPolicy(i int) bool { return i == c.Policies-1 }

// PodChange returns the input of iptables-restore --noflush by which Felix adds and removes pods: the chains that find a
// pod's own chain by its device, and the chains of the pods that only one of the configurations has. before and after must
// not differ otherwise, and must not be in nftables mode.
func PodChange(before, after CalicoConfig) string {
	return ruleset.Change(podChains(before, after.Devices), podChains(after, before.Devices))
}

// podChains returns the chains that depend on the pods of a node. It omits the pods' own chains for devices in known.
func podChains(c CalicoConfig, known []string) *ruleset.Ruleset {
	node := ruleset.New()
	f := felix{c: c, iptables: node}
	if c.BPF {
		f.writeBPFRules()
		return node
	}
	f.writeDispatch("cali-from-wl-dispatch", egress)
	f.writeDispatch("cali-to-wl-dispatch", ingress)
	for _, device := range c.Devices {
		if !slices.Contains(known, device) {
			f.writeEndpoint(device, egress)
			f.writeEndpoint(device, ingress)
		}
	}
	return node
}
