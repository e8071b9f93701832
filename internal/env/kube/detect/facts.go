package detect

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/measure/facts"
)

// machineFacts are the names of the facts about a node that any pod on it can find out.
var machineFacts = []string{facts.Kernel, facts.CPUModel, facts.CPUs, facts.Governor, facts.Virtualization, facts.Clocksource, facts.Mitigations, facts.IRQAccounting}

// Facts returns the verdict, its proofs, and the properties of the nodes as facts.
func Facts(v Verdict, s Snapshot, proofs []Proof) facts.Facts {
	f := facts.Facts{}
	set := func(name, value string) {
		if value != "" {
			f[name] = value
		}
	}
	set(facts.KubeVersion, v.Kubernetes)
	set(facts.KubeDistribution, v.Distribution)
	set(facts.KubeCNI, v.CNI)
	set(facts.KubeCNIVersion, v.Version)
	set(facts.KubeProfile, v.Profile)
	set(facts.KubeBut, strings.Join(v.But, "; "))
	set(facts.KubeProxyMode, map[string]string{Yes: cmp.Or(v.KubeProxy.Mode, Unknown), no: "none"}[v.KubeProxy.Runs])
	set(facts.KubeProxyVersion, v.KubeProxy.Version)
	set(facts.KubeMTU, v.MTU.Value)
	set(facts.KubeEncapsulation, v.Encapsulation.Value)
	set(facts.KubeEncryption, v.Encryption.Value)
	doubts := slices.Clone(v.Doubts)
	var unproven, disproved []string
	unproven = append(unproven, v.Unproven...)
	proved := map[string]bool{}
	proofs = mergeProofs(proofs)
	for _, p := range proofs {
		switch p.Result {
		case OK:
			proved[p.What] = true
		case doubtful:
			proved[p.What] = true
			doubts = append(doubts, strings.Replace(p.String(), ": doubtful", "", 1))
		case mismatch:
			disproved = append(disproved, p.String())
		}
	}
	for _, p := range proofs {
		if p.Result == notProven && !proved[p.What] {
			unproven = append(unproven, strings.Replace(p.String(), ": unproven", "", 1))
		}
	}
	set(facts.KubeDoubts, strings.Join(doubts, "; "))
	set(facts.KubeUnproven, strings.Join(unproven, "; "))
	set(facts.KubeDisproved, strings.Join(disproved, "; "))
	if len(s.Nodes) > 0 {
		set(facts.Nodes, strconv.Itoa(len(s.Nodes)))
	}
	if n := machineCount(s.Nodes); n > 0 {
		set(facts.NodesMachines, strconv.Itoa(n))
	}
	setNodeFacts(s, set)
	// A value that both ends share is a fact of the run, with the same name as in the lab.
	for _, name := range machineFacts {
		if a := f[facts.Node+"client."+name]; a == f[facts.Node+"server."+name] {
			set(name, a)
		}
	}
	var left []string
	for _, h := range s.hostObservations() {
		left = append(left, foreignLeftovers(v.CNI, h.State)...)
	}
	slices.Sort(left)
	set(facts.Leftovers, fewNames(slices.Compact(left)))
	return f
}

// mergeProofs merges proofs that differ only in Where. The Where of the merged proof lists the first four places and counts
// the others.
func mergeProofs(proofs []Proof) []Proof {
	var all []Proof
	where := map[Proof][]string{}
	for _, p := range proofs {
		at := p.Where
		p.Where = ""
		if _, again := where[p]; !again {
			all = append(all, p)
		}
		where[p] = append(where[p], at)
	}
	for i, p := range all {
		all[i].Where = fewNames(where[p])
	}
	return all
}

// setNodeFacts calls set for each fact about the client's and the server's node. The name of the fact contains the role.
func setNodeFacts(s Snapshot, set func(name, value string)) {
	for _, role := range []string{"client", "server"} {
		for _, seen := range s.Seen {
			if seen.Role != role {
				continue
			}
			prefix := facts.Node + role + "."
			for _, name := range machineFacts {
				set(prefix+name, seen.Machine[name])
			}
			if d, mtu, ok := seen.Way(); ok && seen.Host {
				set(prefix+"nic.mtu", strconv.Itoa(mtu))
				if d.SpeedMbit > 0 {
					set(prefix+"nic.speed", fmt.Sprintf("%d Mbit/s", d.SpeedMbit))
				}
			}
			if c := seen.CPU; c != nil && c.Limit != nil && !seen.Host {
				set("cpu.limit."+role, strconv.FormatFloat(*c.Limit, 'g', -1, 64)+" CPUs")
				set("cpu.limit."+role+".of", "pod "+seen.Pod)
			}
			for _, n := range s.Nodes {
				if n.Name == seen.Node {
					set(prefix+"os", n.Status.NodeInfo.OSImage)
					set(prefix+"runtime", n.Status.NodeInfo.ContainerRuntimeVersion)
					set(prefix+"kubelet", n.Status.NodeInfo.KubeletVersion)
				}
			}
		}
	}
}
