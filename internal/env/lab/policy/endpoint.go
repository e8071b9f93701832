package policy

import (
	"fmt"
	"sort"
)

// direction is seen from the pod: what it sends (egress) and what it receives (ingress).
type direction struct {
	// endpoint, profile and policy are the prefixes of the chains; word is for comments; peer is "src" or "dst", the
	// side on which the pod's partner stands.
	endpoint, profile, policy, word, peer string
}

var (
	egress  = direction{"cali-fw-", "cali-pro-", "cali-po-", "egress", "dst"}
	ingress = direction{"cali-tw-", "cali-pri-", "cali-pi-", "ingress", "src"}
)

// dispatch writes the chain that finds a pod's own chain by its device: a shallow tree. Devices that share the next
// character after what all have in common get a chain of their own. Every way through is a goto, so a packet never comes
// back here to try the rest.
func (f *felix) dispatch(chain, option, endpointPrefix string) {
	var names []string
	for _, e := range f.c.Endpoints {
		names = append(names, e.Device)
	}
	sort.Strings(names)
	common := len(commonPrefix(names))
	branchOf := func(name string) string { return name[:min(len(name), common+1)] }
	root := at(f.filter, chain)
	for len(names) > 0 {
		branch, n := branchOf(names[0]), 1
		for n < len(names) && branchOf(names[n]) == branch {
			n++
		}
		if n == 1 {
			root.follow(endpointPrefix+names[0], option+" "+names[0])
		} else {
			sub := chain + "-" + branch[common:]
			root.follow(sub, option+" "+branch+"+")
			leaf := at(f.filter, sub)
			for _, name := range names[:n] {
				leaf.follow(endpointPrefix+name, option+" "+name)
			}
			leaf.note("Unknown interface").to("DROP")
		}
		names = names[n:]
	}
	root.note("Unknown interface").to("DROP")
}

// commonPrefix returns what all of the sorted names begin with. One name alone has nothing in common with another: the
// tree then branches nowhere.
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

// endpoint writes cali-fw-X or cali-tw-X. Coming back from it with the accept mark set means allowed so far; there is
// another pod's policy, and the rest of FORWARD, to be passed.
func (f *felix) endpoint(e Endpoint, d direction) {
	chain := at(f.filter, d.endpoint+e.Device).
		to("ACCEPT", established).
		to("DROP", "-m conntrack --ctstate INVALID").
		to("MARK --set-xmark 0x0/" + markVerdict)
	if d == egress {
		chain.note("Drop VXLAN encapped packets originating in workloads").to("DROP", "-p udp -m multiport --dports "+vxlanPort)
		chain.note("Drop IPinIP encapped packets originating in workloads").to("DROP", "-p 4")
	}
	if f.c.Policies > 0 {
		chain.note("Start of tier default").to("MARK --set-xmark 0x0/" + markPass)
		for i := range f.c.Policies {
			chain.jump(policyChain(d, i), isClear(markPass))
			chain.note("Return if policy accepted").to("RETURN", isSet(markAccept))
		}
		chain.note("End of tier default. Drop if no policies passed packet").to("DROP", isClear(markPass))
	}
	for _, profile := range profileNames {
		chain.jump(d.profile + profile)
		chain.note("Return if profile accepted").to("RETURN", isSet(markAccept))
	}
	chain.note("Drop if no profiles matched").to("DROP")
}

// profileNames are the profiles of a pod: its namespace's, and its service account's, which is empty and never reached.
var profileNames = []string{"kns." + namespace, "ksa." + namespace + ".default"}

// profiles writes the default policy: the namespace's profile allows everything.
func (f *felix) profiles() {
	if len(f.c.Endpoints) == 0 {
		return
	}
	for _, d := range []direction{egress, ingress} {
		at(f.filter, d.profile+profileNames[0]).
			note("Profile "+profileNames[0]+" "+d.word).to("MARK --set-xmark "+markAccept+"/"+markAccept).
			to("RETURN", isSet(markAccept))
		at(f.filter, d.profile+profileNames[1])
	}
}

// policyChain names the chain of policy i; long names are shortened to a hash, as every name of a policy is.
func policyChain(d direction, i int) string {
	return d.policy + "_" + digest(fmt.Sprintf("policy %d", i), 19)
}

// policySet names the set with the peers that policy i allows.
func (c CalicoConfig) policySet(d direction, i int) string {
	return c.set("s:") + digest(fmt.Sprintf("selector of policy %d %s", i, d.word), 22)
}

// policies writes the chains of all policies, those that select the pods and those that do not.
func (f *felix) policies() {
	for i := range f.c.Policies + f.c.PoliciesUnselected {
		for _, d := range []direction{egress, ingress} {
			match := []string{inSet(f.c.policySet(d, i), d.peer)}
			if !f.c.allowsAll(i) {
				match = append([]string{"-p tcp"}, append(match, "-m multiport --dports 1024:65535")...)
			}
			chain, name := at(f.filter, policyChain(d, i)), fmt.Sprintf("Policy %s/knp.default.p%d %s", namespace, i, d.word)
			if f.c.allowsAll(i) {
				chain.note(name).to("DROP", "-p tcp", fmt.Sprintf("-m multiport --dports %d", DeniedPort))
			}
			chain.
				note(name).
				to("MARK --set-xmark "+markAccept+"/"+markAccept, match...).
				to("RETURN", isSet(markAccept))
		}
	}
}

// DeniedPort is the TCP port that no pod may use in either direction where policies select it. Nobody needs it, and by
// it can be told that the policies are in force.
const DeniedPort = 9

// allowsAll says that policy i is the last of those that select the pods.
func (c CalicoConfig) allowsAll(i int) bool { return i == c.Policies-1 }
