//go:build ignore

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What AWS's network policy agent has on the node's end of a pod's veth:
 *
 *	pod ─► veth ingress: handle_egress ─► stack          pod ◄─ veth egress: handle_ingress ◄─ stack
 *
 * Both find a connection by what its first packet had, and only that packet searches the rules. As in the agent, headers
 * are not made readable first, IPv4 options are not skipped, and what cannot be parsed passes.
 */
#include "packet.h"

#define IPPROTO_SCTP	132
#define ANY_PROTOCOL	254
#define NO_PROTOCOL	255

#define PORT_ENTRIES	24
#define PREFIXES	65536
#define FLOWS		(512 * 1024)
#define EVENT_BYTES	(512 * 1024)

enum pod_state { POLICIES_APPLIED, DEFAULT_ALLOW };
enum state_key { NETWORK_POLICIES, CLUSTER_POLICIES };
enum tier { NETWORK_TIER = 2, DEFAULT_TIER = 4 };

struct prefix {
	__u32	bits;
	__be32	addr;
};

/* Ports in host byte order: 0 is any port, and an end below the start is none. */
struct port_entry {
	__u32	protocol;
	__u32	start;
	__u32	end;
};

struct port_entries {
	struct port_entry entry[PORT_ENTRIES];
};

struct cluster_entries {
	__u32	entry[PORT_ENTRIES][4];
};

struct flow {
	__be32	saddr;
	__u16	sport; /* host byte order */
	__u16	zero1;
	__be32	daddr;
	__u16	dport;
	__u8	protocol;
	__u8	zero2;
	__be32	owner;
	__u32	ifindex;
};

struct flow_state {
	__u64	last_seen;
	__u8	states; /* of the pod, when the flow was allowed */
	__u8	zero[7];
};

struct event {
	__be32	saddr;
	__u32	sport;
	__be32	daddr;
	__u32	dport;
	__u32	protocol;
	__u32	verdict;
	__u32	bytes;
	__u8	egress;
	__u8	tier;
	__u16	zero;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, FLOWS);
	__type(key, struct flow);
	__type(value, struct flow_state);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, EVENT_BYTES);
} events SEC(".maps");

#define TABLES(direction)						\
struct {								\
	__uint(type, BPF_MAP_TYPE_HASH);				\
	__uint(map_flags, BPF_F_NO_PREALLOC);				\
	__uint(max_entries, 2);						\
	__type(key, __u32);						\
	__type(value, __u8);						\
} direction##_state SEC(".maps");					\
struct {								\
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);				\
	__uint(map_flags, BPF_F_NO_PREALLOC);				\
	__uint(max_entries, PREFIXES);					\
	__type(key, struct prefix);					\
	__type(value, struct port_entries);				\
} direction##_peers SEC(".maps");					\
struct {								\
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);				\
	__uint(map_flags, BPF_F_NO_PREALLOC);				\
	__uint(max_entries, PREFIXES);					\
	__type(key, struct prefix);					\
	__type(value, struct cluster_entries);				\
} direction##_cluster SEC(".maps")

TABLES(ingress);
TABLES(egress);

/* read_ports is false if the frame has less than a whole transport header of that size. */
inlined int read_ports(struct flow *flow, const struct l4_ports *ports, const void *end, __u32 size)
{
	if ((const void *)ports + size > end)
		return 0;
	flow->sport = bpf_ntohs(ports->src);
	flow->dport = bpf_ntohs(ports->dst);
	return 1;
}

inlined int is_allowed(const struct port_entries *ports, const struct flow *flow)
{
	for (int i = 0; i < PORT_ENTRIES; i++) {
		const struct port_entry *e = &ports->entry[i];

		if (e->protocol == NO_PROTOCOL)
			return 0;
		if ((e->protocol == ANY_PROTOCOL || e->protocol == flow->protocol) &&
		    (e->start == 0 || flow->dport == e->start || (flow->dport > e->start && flow->dport <= e->end)))
			return 1;
	}
	return 0;
}

inlined int report(struct event *event, enum tier tier, int allowed)
{
	event->tier = tier;
	event->verdict = allowed;
	bpf_ringbuf_output(&events, event, sizeof(*event), 0);
	return allowed ? TC_ACT_OK : TC_ACT_SHOT;
}

/* judge searches the rules. Cluster policies come first: the lab has none, so an entry that is there allows nothing. */
inlined int judge(struct event *event, const struct flow *flow, __be32 peer, __u8 pod, __u8 states, void *peers, void *cluster)
{
	struct prefix key = { .bits = 32, .addr = peer };
	const struct port_entries *ports;
	int allowed = pod == DEFAULT_ALLOW;
	enum tier tier = DEFAULT_TIER;

	if (bpf_map_lookup_elem(cluster, &key))
		return TC_ACT_SHOT;
	ports = bpf_map_lookup_elem(peers, &key);
	if (ports || !allowed) {
		tier = NETWORK_TIER;
		allowed = ports && is_allowed(ports, flow);
	}
	if (allowed) {
		struct flow_state fresh = { .states = states, .last_seen = bpf_ktime_get_ns() };

		bpf_map_update_elem(&flows, flow, &fresh, BPF_ANY);
	}
	return report(event, tier, allowed);
}

inlined int police(struct __sk_buff *skb, int egress, void *state, void *peers, void *cluster)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	const __u32 network_policies = NETWORK_POLICIES, cluster_policies = CLUSTER_POLICIES;
	const struct ethhdr *eth = data;
	const struct iphdr *ip = data + ETH_HLEN;
	void *l4 = data + ETH_HLEN + sizeof(*ip);
	struct flow flow = {}, reverse = {};
	struct flow_state *known;
	struct event event = {};
	__u8 *pod, *all, states;
	__be32 peer;

	if (l4 > end || eth->proto != bpf_htons(ETH_P_IP) || ip->version != 4)
		return TC_ACT_OK;
	switch (ip->protocol) {
	case IPPROTO_TCP:
		if (!read_ports(&flow, l4, end, sizeof(struct tcphdr)))
			return TC_ACT_OK;
		break;
	case IPPROTO_UDP:
		if (!read_ports(&flow, l4, end, sizeof(struct udphdr)))
			return TC_ACT_OK;
		break;
	case IPPROTO_SCTP:
		if (!read_ports(&flow, l4, end, 12))
			return TC_ACT_OK;
		break;
	}
	flow.saddr = ip->saddr;
	flow.daddr = ip->daddr;
	flow.protocol = ip->protocol;
	flow.owner = egress ? ip->saddr : ip->daddr;
	flow.ifindex = skb->ifindex;
	peer = egress ? ip->daddr : ip->saddr;
	event.saddr = flow.saddr;
	event.sport = flow.sport;
	event.daddr = flow.daddr;
	event.dport = flow.dport;
	event.protocol = flow.protocol;
	event.bytes = skb->len;
	event.egress = egress;

	all = bpf_map_lookup_elem(state, &cluster_policies);
	pod = bpf_map_lookup_elem(state, &network_policies);
	if (!all || !pod)
		return report(&event, 0, 0);
	states = *pod << 4 | *all;
	known = bpf_map_lookup_elem(&flows, &flow);
	if (known) {
		int verdict;

		if (known->states == states) {
			known->last_seen = bpf_ktime_get_ns();
			return TC_ACT_OK;
		}
		/* The policies have begun or ceased to select the pod. */
		verdict = judge(&event, &flow, peer, *pod, states, peers, cluster);
		if (verdict == TC_ACT_SHOT)
			bpf_map_delete_elem(&flows, &flow);
		return verdict;
	}
	reverse.saddr = flow.daddr;
	reverse.sport = flow.dport;
	reverse.daddr = flow.saddr;
	reverse.dport = flow.sport;
	reverse.protocol = flow.protocol;
	reverse.owner = flow.owner;
	reverse.ifindex = flow.ifindex;
	known = bpf_map_lookup_elem(&flows, &reverse);
	if (known) {
		known->last_seen = bpf_ktime_get_ns();
		return TC_ACT_OK;
	}
	return judge(&event, &flow, peer, *pod, states, peers, cluster);
}

SEC("tc")
int handle_ingress(struct __sk_buff *skb)
{
	return police(skb, 0, &ingress_state, &ingress_peers, &ingress_cluster);
}

SEC("tc")
int handle_egress(struct __sk_buff *skb)
{
	return police(skb, 1, &egress_state, &egress_peers, &egress_cluster);
}

char __license[] SEC("license") = "Dual BSD/GPL";
