//go:build ignore

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The network namespace of the packet that a CPU handles: remembered when a device receives it, added to each sample. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define RELOCATED __attribute__((preserve_access_index))
#define CPUS 512 /* a power of two */

struct ns_common {
	__u32 inum;
} RELOCATED;

struct net {
	struct ns_common ns;
} RELOCATED;

typedef struct {
	struct net *net;
} RELOCATED possible_net_t;

struct net_device {
	possible_net_t nd_net;
} RELOCATED;

struct sk_buff {
	struct net_device *dev;
} RELOCATED;

/* One cache line for each CPU. */
struct {
	__u32 space;
	__u32 pad[15];
} last[CPUS];

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, 4);
	__uint(value_size, 4);
} rings SEC(".maps");

SEC("tp_btf/netif_receive_skb")
int cnibench_space(__u64 *args)
{
	struct sk_buff *skb = (void *)args[0];

	last[bpf_get_smp_processor_id() & (CPUS - 1)].space = skb->dev->nd_net.net->ns.inum;
	return 0;
}

SEC("perf_event")
int cnibench_sample(void *context)
{
	__u32 space = last[bpf_get_smp_processor_id() & (CPUS - 1)].space;

	bpf_perf_event_output(context, &rings, BPF_F_CURRENT_CPU, &space, sizeof(space));
	return 1;
}

char _license[] SEC("license") = "Dual BSD/GPL";
