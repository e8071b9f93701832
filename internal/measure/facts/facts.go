// Package facts holds the recorded conditions of a run: whatever could make two results incomparable.
//
// Facts are an ordered set of named strings, so that a reader of another version can show what it does not know. The
// values are found by the environments; this package only names, carries and compares them.
package facts

import (
	"maps"
	"slices"
)

// Facts maps a fact's name to its value. An unknown fact is absent, never empty.
type Facts map[string]string

// Names of the facts that every environment records if it can.
const (
	Kernel         = "kernel"          // uname -r
	Architecture   = "architecture"    // GOARCH
	CPUModel       = "cpu.model"       // from /proc/cpuinfo
	ToolVersion    = "tool.version"    // of the tool that an imported result is from
	CPUs           = "cpu.count"       // usable by this process
	Governor       = "cpu.governor"    // cpufreq policy, absent in most virtual machines
	Virtualization = "virtualization"  // "none" or the hypervisor
	Clocksource    = "clocksource"     // tsc, kvm-clock, ...
	Mitigations    = "cpu.mitigations" // kernel command line
	IRQAccounting  = "cpu.irq_time"    // whether interrupt time is outside ("apart") or inside ("in task") a task's CPU clock
	Placement      = "lab.cpu"         // one or split, with the CPUs
	NIC            = "lab.nic"         // wire or ideal
	MTU            = "lab.mtu"
	Congestion     = "tcp.congestion"
	Iptables       = "iptables"
	Version        = "cnibench"
	LoadAverage    = "load_average"           // 1, 5 and 15 minutes, when the run began
	IdleBusy       = "idle.busy"              // busy share of the CPUs of the path before the run
	IdleInterrupt  = "idle.interrupt"         // share of their time in interrupts before the run
	ConntrackMax   = "net.conntrack_max"      // entries, machine-wide
	Backlog        = "net.netdev_max_backlog" // packets per CPU
	Qdisc          = "net.default_qdisc"
	BPFJIT         = "net.bpf_jit" // 0 off, 1 on, 2 on with debugging
	// Tool is the prefix of facts with the versions of tools: tool.iperf3.
	Tool = "tool."
)

// Names of the facts about a cluster: what was detected, and which of it was proved.
const (
	KubeVersion       = "kube.version"        // of the API server
	KubeDistribution  = "kube.distribution"   // who created the cluster, if known
	KubeCNI           = "kube.cni"            // whose dataplane it is
	KubeCNIVersion    = "kube.cni.version"    // its image's tag
	KubeProfile       = "kube.profile"        // the profile of the catalogue that fits
	KubeBut           = "kube.profile.but"    // how the cluster differs from KubeProfile
	KubeProxyMode     = "kube.proxy.mode"     // iptables, nftables, ipvs, none, or unknown
	KubeProxyVersion  = "kube.proxy.version"  // its image's tag
	KubeMTU           = "kube.mtu"            // of the pods, in bytes
	KubeEncapsulation = "kube.encapsulation"  // none, vxlan, geneve, ipip, wireguard
	KubeEncryption    = "kube.encryption"     // none, wireguard, ipsec
	KubeDoubts        = "kube.doubts"         // what contradicts these facts
	KubeUnproven      = "kube.unproven"       // which parts could not be observed
	KubeDisproved     = "kube.disproved"      // which parts were observed to differ
	KubeLeftOut       = "kube.nodes.left_out" // nodes that a run over pairs does not measure, and why
	Nodes             = "nodes"               // how many the cluster has
	NodesMachines     = "nodes.machines"      // how many kernels they run on
	Leftovers         = "leftovers"           // what an earlier CNI left on the nodes
	InTurn            = "profiles.in_turn"    // profiles that were installed one after the other, not at the same time
	// Node is the prefix of facts about the nodes of both ends: node.client.kernel, node.server.nic.speed.
	Node = "node."
)

// Values of IRQAccounting.
const (
	IRQApart  = "apart"
	IRQInTask = "in task"
)

// OfTheMoment reports whether a fact may differ between comparable runs: the load and the idle time when the run
// began, and the nodes that it did not measure.
func OfTheMoment(name string) bool {
	return name == LoadAverage || name == IdleBusy || name == IdleInterrupt || name == KubeLeftOut
}

// Names returns the names in order.
func (f Facts) Names() []string { return slices.Sorted(maps.Keys(f)) }

// Differ returns the names whose values differ between f and g, in order; a missing value differs from a present one.
func (f Facts) Differ(g Facts) []string {
	all := Facts{}
	maps.Copy(all, f)
	maps.Copy(all, g)
	var names []string
	for _, n := range all.Names() {
		a, inF := f[n]
		b, inG := g[n]
		if a != b || inF != inG {
			names = append(names, n)
		}
	}
	return names
}
