package policy

import (
	"github.com/cnibench/cnibench/internal/env/lab/ruleset"
)

// CalicoBPFConfig is what Felix leaves in iptables when BPF programs police, translate and forward.
type CalicoBPFConfig struct {
	// Endpoints are the pods of this node.
	Endpoints []Endpoint
	// VXLAN is true when Calico encapsulates: then outer packets are untracked.
	VXLAN bool
}

// What the programs write into the mark of a packet that they hand to the stack.
const (
	bpfSeen        = "0x1000000/0x1000000" // some program has judged it
	bpfBypass      = "0x3000000/0x3000000" // nothing more to judge
	bpfFallthrough = "0x5000000/0x5000000" // unknown, from before the programs were there
	bpfLoopback    = "0x3600000/0x3f00000" // from a pod to itself
	bpfNATOutgoing = "0x3800000/0x3f00000" // from a pod to the world
)

// AddCalicoBPF puts into node what is left of Calico's rules beside its programs.
func AddCalicoBPF(node *ruleset.Ruleset, c CalicoBPFConfig) {
	mark := func(m string) string { return "-m mark --mark " + m }
	if raw := node.Table(ruleset.Raw); c.VXLAN {
		for _, chain := range []string{"cali-PREROUTING", "cali-OUTPUT"} {
			at(raw, chain).to("NOTRACK", "-p udp -m multiport --dports "+vxlanPort)
		}
		hang(raw, "PREROUTING", "OUTPUT")
	}
	nat := node.Table(ruleset.NAT)
	at(nat, "cali-POSTROUTING").
		note("MASQUERADE packets from a pod to itself").to("MASQUERADE --random-fully", mark(bpfLoopback)).
		note("BPF SNAT for packets leaving the pools").to("MASQUERADE --random-fully", mark(bpfNATOutgoing))
	hang(nat, "POSTROUTING")
	filter := node.Table(ruleset.Filter)
	at(filter, "cali-FORWARD").
		note("Pre-approved by BPF programs.").to("ACCEPT", mark(bpfBypass)).
		note("From workload without BPF seen mark").to("DROP", "-i cali+", "-m mark ! --mark "+bpfSeen).
		jump("cali-to-wl-dispatch", "-o cali+").
		note("To workload has already been policed").to("ACCEPT", "-i cali+").
		to("ACCEPT", "-i bpfout.cali")
	known := at(filter, "cali-to-wl-dispatch")
	for _, e := range c.Endpoints {
		known.to("RETURN", "-o "+e.Device)
	}
	known.note("Unknown interface").to("DROP")
	at(filter, "cali-INPUT").
		note("Accept packets from flows that pre-date BPF.").to("ACCEPT", mark(bpfFallthrough), established).
		note("Drop packets from unknown flows.").to("DROP", mark(bpfFallthrough))
	hang(filter, "FORWARD", "INPUT")
}
