// Package follow notes when transactions pass the points of network namespaces: sockets, netfilter hooks, queues and
// devices. It is what a journey is made from.
//
// Open loads programs for the kernel's tracepoints and finds which netfilter hooks have functions. Attach puts the
// programs in place; from then on transactions are sampled, one at a time, up to a limit. Read takes the programs off
// and returns the events. The programs only look, and only at packets of the given namespaces and ports. They end with
// the process.
//
// Probes cost time, about 0.2 us each, in every transaction that is sampled. Never follow what is being timed.
package follow

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target bpfel -tags linux -type record -type host programs follow.bpf.c -- -I../include -Wall -Werror -mcpu=v3
