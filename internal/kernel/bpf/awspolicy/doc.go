// Package awspolicy is the dataplane of AWS's network policy agent. Per packet it has the agent's hooks, kinds and sizes of
// tables, and order of lookups. It is written for measuring, from the outside behaviour; it has no agent.
//
//	pod eth0 ── eni1a2b3c4d5e6 [ingress: handle_egress, egress: handle_ingress] ─ node's stack
//
// The programs are filters of the device's clsact qdisc: the agent does not use tcx. What a packet costs:
//
//	state of the pod        hash 2: cluster policies, then network policies
//	established, forward    LRU hash 1, the time of the packet is written in place
//	established, reply      LRU hash 2, the same
//	new connection          LRU hash 2, LPM 1 of cluster policies, LPM 1 of network policies, a walk of up to 24 port
//	                        entries, one new entry, one event in the ring buffer
//	denied                  the same without the entry, for every packet
//
// A connection between pods of one node has an entry for each pod. The kernel's conntrack tracks it, too. No process reads
// the events: the agent's logs of them are off by default. The buffer is full after about 13,000 events, and further ones
// are refused.
//
// All pods of a node share their tables, as pods of one workload do. Not here: rules of cluster policies, the mode strict, IPv6, and
// the sweep every 300 s that deletes entries of ended connections.
package awspolicy

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target bpfel -tags linux programs agent.bpf.c -- -I../include -Wall -Werror -mcpu=v3
