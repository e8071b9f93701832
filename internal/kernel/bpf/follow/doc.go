// Package follow records when transactions pass the points of network namespaces: sockets, netfilter hooks, queues and
// devices. Package journey reconstructs the path of a transaction from these records.
//
// Open loads programs for the kernel's tracepoints and finds which netfilter hooks have functions. Attach attaches the
// programs; from then on all transactions are followed, one at a time, while the buffer has room. Read detaches them
// and returns the events. The programs change nothing, and only read packets of the given namespaces and ports. They
// end with the process.
//
// Probes cost time, about 0.1 us each. A record includes the time of its own probe that the probe can measure. Never
// follow a trial that is being timed.
package follow

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target bpfel -tags linux -type record -type host programs follow.bpf.c -- -I../include -Wall -Werror -mcpu=v3
