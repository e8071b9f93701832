package policy

import (
	"github.com/cnibench/cnibench/internal/env/lab/ruleset"
)

// Marks that the programs write on packets for the stack.
const (
	bpfSeen        = "0x1000000/0x1000000" // some program has judged it
	bpfBypass      = "0x3000000/0x3000000" // nothing more to judge
	bpfFallthrough = "0x5000000/0x5000000" // unknown, older than the programs
	bpfLoopback    = "0x3600000/0x3f00000" // from a pod to itself
	bpfNATOutgoing = "0x3800000/0x3f00000" // from a pod to the world
)

// besideBPF writes the rules that Felix keeps in iptables when BPF programs forward packets over VXLAN.
func (f *felix) besideBPF() {
	mark := func(m string) clause { return both("-m mark --mark " + m) }
	for _, name := range []string{"PREROUTING", "OUTPUT"} {
		f.at(ruleset.Raw, "cali-"+name).to(untrack, vxlanPacket)
		f.hook(ruleset.Raw, name)
	}
	f.at(ruleset.NAT, "cali-POSTROUTING").
		note("MASQUERADE packets from a pod to itself").to(masquerade, mark(bpfLoopback)).
		note("BPF SNAT for packets leaving the pools").to(masquerade, mark(bpfNATOutgoing))
	f.hook(ruleset.NAT, "POSTROUTING")
	f.at(ruleset.Filter, "cali-FORWARD").
		note("Pre-approved by BPF programs.").to(accept, mark(bpfBypass)).
		note("From workload without BPF seen mark").to(drop, fromWorkload, both("-m mark ! --mark "+bpfSeen)).
		jump("cali-to-wl-dispatch", toWorkload).
		note("To workload has already been policed").to(accept, fromWorkload).
		to(accept, both("-i bpfout.cali"))
	known := f.at(ruleset.Filter, "cali-to-wl-dispatch")
	for _, device := range f.c.Devices {
		known.to(ret, both("-o "+device))
	}
	known.note("Unknown interface").to(drop)
	f.at(ruleset.Filter, "cali-INPUT").
		note("Accept packets from flows that pre-date BPF.").to(accept, mark(bpfFallthrough), established).
		note("Drop packets from unknown flows.").to(drop, mark(bpfFallthrough))
	f.hook(ruleset.Filter, "FORWARD")
	f.hook(ruleset.Filter, "INPUT")
}
