package sample

import (
	"slices"
	"strings"
)

// Task is a task of the machine that is not one of a run's agents: a kernel thread, or a thread of a program.
type Task struct {
	// Command is its name, for a kernel worker with the queue that it served last: "kworker/1:1-wg-crypt-wg0".
	Command string `json:"command"`
	// CPU is the CPU on which it ran last, -1 if unknown.
	CPU int `json:"cpu"`
	// Ns is the CPU time that it used.
	Ns int64 `json:"ns"`
}

// queues are names, or prefixes of names, of work queues that carry packets or maintain the tables that packets need.
var queues = []string{
	"wg-crypt-", "wg-kex-", // WireGuard encrypts, decrypts and agrees on keys
	"pencrypt", "pdecrypt", "cryptd", "xfrm", // IPsec
	"events_power_efficient", // conntrack, neighbours and nftables remove expired entries
	"nf_ft_offload", "nf_flow_table_offload", "tc_ct_flow_table",
	"inet_frag_wq", "mld", "ipv6_addrconf", "kstrp", "tls-strp",
}

// WireGuardThread is the name of the threads of WireGuard in user space.
const WireGuardThread = "wireguard-go"

// threads are prefixes of names of threads that carry packets: the kernel's, and WireGuard's in user space.
var threads = []string{"napi/", "backlog_napi/", "cpumap/", "ipvs-", WireGuardThread}

// OfPath reports whether a task carries packets of a path or maintains their tables: a kernel worker or thread, or
// WireGuard in user space. ksoftirqd is not included, because it is counted by its CPU.
func (t Task) OfPath() bool {
	list, name := threads, t.Command
	if worker, ok := strings.CutPrefix(name, "kworker/"); ok {
		at := strings.IndexAny(worker, "-+") // + while it works
		if at < 0 {
			return false
		}
		list, name = queues, worker[at+1:]
	}
	return slices.ContainsFunc(list, func(beginning string) bool { return strings.HasPrefix(name, beginning) })
}
