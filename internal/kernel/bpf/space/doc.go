// Package space records the network namespace of the packet that a CPU handles. One program stores it when a device
// receives a packet, another adds it to each sample of package perf. Both need a kernel with BTF.
package space

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target bpfel -tags linux programs space.bpf.c -- -I../include -Wall -Werror -mcpu=v3
