// Package ipip carries IPv4 in IPv4 between nodes by two eBPF programs, for kernels without the ipip driver. A report
// with its results must state that: it is a stand-in, not tunl0.
//
// To raise it on a node:
//
//  1. make a veth pair without ARP, both ends up; the end that stands for the tunnel device gets the tunnel's address,
//     the wire's MTU less 20, and rp_filter 0;
//  2. Load with the names of that end and of the node's device;
//  3. for each other node: SetPeer(its pods' prefix, its address), and a route for the prefix to the tunnel device;
//  4. Close, or let the process end.
//
// The pods' own routes need the smaller MTU too: the device silently drops a packet that is too big for the wire after
// encapsulation.
package ipip

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target bpfel -tags linux programs ipip.bpf.c -- -I../include -Wall -Werror -mcpu=v3
