// Package follow notes when transactions pass the points of network namespaces: sockets, netfilter hooks, queues and
// devices. It is what a journey is made from.
//
// Open loads programs for the kernel's tracepoints and finds which netfilter hooks have functions. Attach puts the
// programs in place; from then on all transactions are followed, one at a time, as far as the buffer has room. Read takes them off
// and returns the events. The programs only look, and only at packets of the given namespaces and ports. They end with
// the process.
//
// Probes cost time, about 0.1 us each. A record has the part that its probe sees itself. Never follow what is being timed.
package follow

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target bpfel -tags linux -type record -type host programs follow.bpf.c -- -I../include -Wall -Werror -mcpu=v3
