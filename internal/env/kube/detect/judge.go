package detect

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnibench/cnibench/internal/measure/netstate"
	"github.com/cnibench/cnibench/internal/profile"
)

// claimProofs compares the claims of a verdict with the observations in s, and returns a proof for each comparison.
func claimProofs(v Verdict, s Snapshot, g Ground) []Proof {
	var proofs []Proof
	if g.Profile != "" {
		proofs = append(proofs, profileProof(v, g.Profile))
	}
	for _, seen := range s.Seen {
		proofs = append(proofs, placementProof(s, seen))
		if seen.Host {
			proofs = append(proofs, nodeProofs(v, s, seen)...)
		} else {
			proofs = append(proofs, podProofs(v, s, seen)...)
		}
	}
	return proofs
}

func profileProof(v Verdict, want string) Proof {
	p := Proof{What: "profile", Claimed: want, Seen: v.Profile, Result: OK}
	switch {
	case v.Profile == "":
		p.Result, p.Why = notProven, v.Title
	case v.Profile != want:
		p.Result, p.Why = mismatch, "the cluster runs "+v.Title
	}
	return p
}

// placementProof checks that a pod runs on its intended node: the boot id that the pod reads is that of the node.
func placementProof(s Snapshot, seen seenAtEnd) Proof {
	p := Proof{What: "placement", Where: seen.Pod, Claimed: seen.Node}
	i := slices.IndexFunc(s.Nodes, func(n corev1.Node) bool { return n.Name == seen.Node })
	var same []string // other nodes with the pod's kernel
	for _, n := range s.Nodes {
		if n.Status.NodeInfo.BootID == seen.BootID && n.Name != seen.Node {
			same = append(same, n.Name)
		}
	}
	switch {
	case i < 0:
		p.Why = "the API server does not list node " + seen.Node
		return p
	case seen.BootID == "" || s.Nodes[i].Status.NodeInfo.BootID == "":
		p.Why = "the identity of the kernel is not visible"
		return p
	case seen.BootID != s.Nodes[i].Status.NodeInfo.BootID:
		p.Result, p.Seen = mismatch, cmp.Or(fewNames(same), "another kernel")
		p.Why = "the pod's kernel is not the node's: a runtime with virtual machines, or another node"
		return p
	}
	p.Result, p.Seen = OK, seen.Node
	if len(same) > 0 {
		p.Why = "not certain: " + fewNames(same) + " share its kernel"
	}
	return p
}

// machineCount returns how many different kernels the nodes run on, by boot id. It returns 0 if a node's boot id is unknown.
func machineCount(nodes []corev1.Node) int {
	boots := map[string]bool{}
	for _, n := range nodes {
		if n.Status.NodeInfo.BootID == "" {
			return 0
		}
		boots[n.Status.NodeInfo.BootID] = true
	}
	return len(boots)
}

// podProofs returns the proofs about a pod: the kind of its device, and whether its MTU leaves room for the encapsulation.
// If it cannot tell which device the pod uses, it returns a single proof that says so.
func podProofs(v Verdict, s Snapshot, seen seenAtEnd) []Proof {
	d, mtu, ok := seen.Way()
	if !ok {
		return []Proof{{What: "device of the pod", Where: seen.Pod, Why: "it has no default route and not exactly one device"}}
	}
	kind := Proof{What: "device of the pod", Where: seen.Pod, Seen: d.Kind, Result: OK}
	known, fits := profile.Lookup(v.Profile)
	kind.Claimed = cmp.Or(v.podDevice(), known.PodDevice)
	switch {
	case kind.Claimed == d.Kind || kind.Claimed == "" && !fits:
	case kind.Claimed == "netkit" && v.CNI == calico && d.Kind == "veth":
		kind.Result, kind.Why = doubtful, "the plugin makes veth devices where the kernel has no netkit (Linux before 6.7)"
	default:
		kind.Result = mismatch
	}
	room := Proof{What: "MTU of the pod", Where: seen.Pod, Seen: strconv.Itoa(mtu)}
	under := 0
	for _, h := range s.hostObservations() {
		if _, m, ok := h.Way(); ok && h.Node == seen.Node {
			under = m
		}
	}
	switch {
	case under == 0:
		room.Why = "the MTU of " + seen.Node + " was not seen"
	case !fits:
		room.Why = "the CNI's overhead per packet is not known"
	default:
		reserved := known.ReservedOn(s.underlayFamily(seen.Node))
		most := under - reserved
		room.Claimed = fmt.Sprintf("at most %d", most)
		if room.Result = OK; mtu > most { // upstream Canal's default; the proof of the path shows whether large packets pass
			room.Result, room.Why = doubtful, fmt.Sprintf("%d bytes are added to a packet between nodes, and the node's device carries %d: connections must discover the smaller path MTU", reserved, under)
		} else if mtu < most {
			room.Why = fmt.Sprintf("%d bytes below the largest that fits", most-mtu)
		}
	}
	return []Proof{kind, room}
}

// programs maps a CNI to the prefix of the names of its BPF programs.
var programs = map[string]string{cilium: "cil_", calico: "cali_"}

// nodeProofs returns the proofs about a node. They are about the profile's tunnel, devices of other modes, the profile's BPF
// programs, and the mode of kube-proxy.
func nodeProofs(v Verdict, s Snapshot, seen seenAtEnd) []Proof {
	var proofs []Proof
	known, _ := profile.Lookup(v.Profile)
	if known.Tunnel != nil {
		proofs = append(proofs, tunnelProof(*known.Tunnel, v, seen))
	}
	for _, name := range known.Absent {
		if d, there := seen.Device(name); there {
			p := Proof{What: "no tunnel", Where: seen.Node, Claimed: "no " + name, Seen: deviceText(d), Result: mismatch}
			if v.Profile == "cilium-native-dsr" && name == "cilium_geneve" { // DSR may carry the client's address in Geneve
				p.Result, p.Why = OK, "DSR with Geneve dispatch has it"
			}
			if why := s.ciliumTunnelReason(); v.CNI == cilium && why != "" {
				p.Result, p.Why = OK, why
			}
			proofs = append(proofs, p)
		}
	}
	if known.Policy == "ebpf" {
		proofs = append(proofs, programProof(programs[v.CNI], seen))
	}
	return append(proofs, proxyProof(v, seen))
}

func deviceText(d netstate.Device) string {
	text := d.Name + " " + d.Kind
	if d.VNI > 0 {
		text += fmt.Sprintf(" VNI %d", d.VNI)
	}
	if d.Port > 0 {
		text += fmt.Sprintf(" port %d", d.Port)
	}
	if d.External {
		text += " external"
	}
	return fmt.Sprintf("%s MTU %d", text, d.MTU)
}

func tunnelProof(want profile.Tunnel, v Verdict, seen seenAtEnd) Proof {
	p := Proof{What: "tunnel of the node", Where: seen.Node, Claimed: want.Devices[0] + " " + want.Kind, Result: mismatch, Seen: "no such device"}
	if want.External {
		p.Claimed += " external"
	}
	for _, d := range seen.Devices {
		// The VNI is part of the name of flannel's device. Nodes without IPv4 have the device of IPv6 alone.
		flannels := strings.HasPrefix(want.Devices[0], "flannel.") && (strings.HasPrefix(d.Name, "flannel.") || strings.HasPrefix(d.Name, "flannel-v6."))
		if !slices.Contains(want.Devices, d.Name) && d.Name != want.Device6 && !(flannels && d.Kind == want.Kind) {
			continue
		}
		p.Seen = deviceText(d)
		if d.Kind == want.Kind && (d.External == want.External || want.Kind != "vxlan") && (!want.Addressed || len(d.Addresses) > 0) {
			p.Result = OK
		}
		return p
	}
	if v.CNI == calico && strings.HasSuffix(v.Encapsulation.Value, "between subnets") || v.CNI == calico && v.Encapsulation.Value == "none" {
		p.Result, p.Why = notProven, "encapsulation "+v.Encapsulation.Value+" does not require it"
	}
	return p
}

func programProof(prefix string, seen seenAtEnd) Proof {
	p := Proof{What: "BPF programs on devices", Where: seen.Node, Claimed: prefix + "*"}
	if seen.Programs == nil {
		p.Why = seen.Missing(netstate.WhatPrograms)
		return p
	}
	count, unnamed := 0, 0
	for _, x := range *seen.Programs {
		if strings.HasPrefix(x.Name, prefix) {
			count++
		}
		if strings.HasPrefix(x.Name, "#") {
			unnamed++
		}
	}
	p.Seen = fmt.Sprintf("%d of %d", count, len(*seen.Programs))
	switch {
	case count > 0:
		p.Result = OK
	case unnamed > 0:
		p.Why = "the programs' names are not visible"
	default:
		p.Result = mismatch
	}
	return p
}

// proxyProof compares kube-proxy's mode in the verdict with kube-proxy's own answer on a node, and with its rules there.
func proxyProof(v Verdict, seen seenAtEnd) Proof {
	p := Proof{What: "kube-proxy", Where: seen.Node}
	claimed := map[string]string{Yes: v.KubeProxy.Mode, no: "does not run"}[v.KubeProxy.Runs]
	p.Claimed = claimed
	trace := proxyRulesMode(seen)
	switch {
	case seen.ProxyMode != "":
		p.Seen, p.Result = seen.ProxyMode, OK
		if claimed != "" && claimed != seen.ProxyMode {
			p.Result = mismatch
		} else if trace != "" && trace != seen.ProxyMode {
			p.Result, p.Why = mismatch, "it answers "+seen.ProxyMode+", and the node has rules of mode "+trace
		}
	case trace != "":
		p.Seen, p.Result = "rules of mode "+trace, OK
		if claimed != trace {
			p.Result, p.Why = mismatch, "its rules are in the path of the node's traffic"
			if claimed == "" {
				p.Result, p.Why = notProven, "whether it runs is not known, and its rules may be left over"
			}
		}
	case seen.Chains != nil && v.KubeProxy.Runs == no:
		p.Seen, p.Result = "none of its rules", OK
	case seen.Chains != nil && seen.Missing(netstate.WhatLegacy) == "" && v.KubeProxy.Runs == Yes:
		p.Seen, p.Result, p.Why = "none of its rules", mismatch, "it does not answer either: "+seen.Missing(netstate.WhatProxyMode)
	default:
		p.Why = strings.Trim(seen.Missing(netstate.WhatProxyMode)+"; "+seen.Missing(netstate.WhatChains), "; ")
	}
	return p
}

// judgeFrames sets Seen, Result and Why from the captured frames. The frames with the trial's datagrams must have the claimed
// encapsulation. If encryption is claimed, the datagrams must not be readable.
func (p *Proof) judgeFrames(w netstate.Wire, claimed string) {
	kinds := map[string]int{}
	for _, m := range w.Marked {
		name := m.Kind
		switch m.Kind {
		case netstate.VXLAN:
			name = fmt.Sprintf("vxlan port %d", m.Port)
		case netstate.UDP:
			name = fmt.Sprintf("udp port %d", m.Port)
		}
		kinds[name] += m.Frames
	}
	var seen []string
	for name, n := range kinds {
		seen = append(seen, fmt.Sprintf("%s (%d frames)", name, n))
	}
	slices.Sort(seen)
	p.Seen = strings.Join(seen, ", ")
	only := func(kind string) bool {
		return len(w.Marked) > 0 && !slices.ContainsFunc(w.Marked, func(m netstate.Wrapping) bool { return m.Kind != kind })
	}
	base, crosses, _ := strings.Cut(claimed, " ")
	want := cmp.Or(map[string]string{"none": netstate.Bare}[base], base)
	encrypted := base == "wireguard" || base == "ipsec"
	switch {
	case len(w.Marked) == 0 && encrypted && len(w.Sealed) > 0:
		p.Result, p.Seen = OK, fmt.Sprintf("%s, contents not visible", w.Sealed[0].Kind)
		p.Why = "only encrypted frames were seen"
	case len(w.Marked) == 0:
		p.Why = "no frame with the datagrams was seen: another device may carry them"
	case encrypted:
		p.Result, p.Why = mismatch, "the datagrams are readable on the wire"
	case claimed == "":
		p.Result, p.Why = OK, "nothing was claimed"
	case only(want), crosses != "" && only(netstate.Bare):
		p.Result = OK
	default:
		p.Result = mismatch
	}
}

// proofResult is the result of a proof.
type proofResult int

// Results of proofs.
const (
	// notProven means that there was no observation to compare with.
	notProven proofResult = iota
	OK
	// mismatch means that the claim is false. Then the profile is skipped.
	mismatch
	// doubtful means that the claim may be true, but that the configuration makes the cluster's results worse.
	doubtful
)

var results = [...]string{"unproven", "ok", "mismatch", "doubtful"}

func (r proofResult) String() string { return results[r] }

// MarshalText returns the name of the result. It never fails.
func (r proofResult) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Proof compares one claim with an observation.
type Proof struct {
	// What is the subject of the claim. Where is its place: a node, a pod or a path.
	What  string `json:"what"`
	Where string `json:"where,omitempty"`
	// Claimed is the verdict's value, Seen the observed value; Seen is "" if nothing was observed.
	Claimed string      `json:"claimed,omitempty"`
	Seen    string      `json:"seen,omitempty"`
	Result  proofResult `json:"result"`
	// Why explains a result that is not ok.
	Why string `json:"why,omitempty"`
}

func (p Proof) String() string {
	text := p.What
	if p.Where != "" {
		text += " (" + p.Where + ")"
	}
	text += ": " + p.Result.String()
	if p.Result == mismatch || p.Result == doubtful {
		text += fmt.Sprintf(": %s is claimed, %s is seen", p.Claimed, p.Seen)
	}
	if p.Why != "" {
		text += ": " + p.Why
	}
	return text
}

// Mismatches returns the proofs that disprove a claim.
func Mismatches(proofs []Proof) []Proof {
	var bad []Proof
	for _, p := range proofs {
		if p.Result == mismatch {
			bad = append(bad, p)
		}
	}
	return bad
}
