//go:build ignore

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* IP in IP without the kernel's driver: a veth end stands for the tunnel device, and two programs do its work.
 *
 *	pod ─► stack: route to the tunnel device ─► tunnel egress: encap ──redirect_neigh──► eth0 ─► wire
 *	pod ◄─ stack: "in" the tunnel device    ◄──redirect(ingress)── eth0 ingress: decap      ◄─ wire
 *
 *	before  | eth |          inner IP | ...        after  | eth | outer IP (proto 4) | inner IP | ...
 *
 * What differs from ipip.ko: the outer packet does not pass the node's OUTPUT and POSTROUTING hooks, nor conntrack, and
 * the next node comes from a table of prefixes instead of the route's next hop.
 */
#include "packet.h"

/* Kernel 6.3; older kernels answer EINVAL to the flag. */
#define ADJ_ROOM_DECAP_L3_IPV4 (1ULL << 7)

struct tunnel_config {
	__be32	node_ip;
	__u32	wire;   /* interface indexes */
	__u32	tunnel;
	struct mac tunnel_mac;
};

volatile const struct tunnel_config config;

enum counter { ENCAPSULATED, DECAPSULATED, DROP_MALFORMED, DROP_NO_PEER, DROP_WRITE, COUNTERS };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} ipip_counters SEC(".maps");

struct peer_key {
	__u32	prefixlen;
	__be32	addr;
};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, struct peer_key);
	__type(value, __be32);
} ipip_peers SEC(".maps");

inlined void count(__u32 what)
{
	__u64 *n = bpf_map_lookup_elem(&ipip_counters, &what);

	if (n)
		(*n)++;
}

inlined int drop(__u32 why)
{
	count(why);
	return TC_ACT_SHOT;
}

inlined __sum16 header_sum(const struct iphdr *ip)
{
	__u64 sum = bpf_csum_diff(0, 0, (__be32 *)ip, sizeof(*ip), 0);

	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

SEC("tc")
int encap(struct __sk_buff *skb)
{
	struct peer_key key = { .prefixlen = 32 };
	struct iphdr outer = {}, *ip;
	__be32 *peer;

	if (skb->protocol != bpf_htons(ETH_P_IP))
		return drop(DROP_MALFORMED);
	ip = ipv4(skb);
	if (!ip)
		return drop(DROP_MALFORMED);
	key.addr = ip->daddr;
	outer.version = 4;
	outer.ihl = 5;
	outer.tos = ip->tos;
	/* A super-packet above 65,535 bytes says 0, and so does its outer header. */
	outer.tot_len = ip->tot_len ? bpf_htons(bpf_ntohs(ip->tot_len) + sizeof(outer)) : 0;
	outer.frag_off = ip->frag_off & bpf_htons(IP_DF);
	outer.ttl = ip->ttl;
	outer.protocol = IPPROTO_IPIP;
	outer.saddr = config.node_ip;
	peer = bpf_map_lookup_elem(&ipip_peers, &key);
	if (!peer)
		return drop(DROP_NO_PEER);
	outer.daddr = *peer;
	outer.check = header_sum(&outer);
	if (bpf_skb_adjust_room(skb, sizeof(outer), BPF_ADJ_ROOM_MAC,
				BPF_F_ADJ_ROOM_ENCAP_L3_IPV4 | BPF_F_ADJ_ROOM_FIXED_GSO))
		return drop(DROP_WRITE);
	if (bpf_skb_store_bytes(skb, ETH_HLEN, &outer, sizeof(outer), 0))
		return drop(DROP_WRITE);
	count(ENCAPSULATED);
	return bpf_redirect_neigh(config.wire, 0, 0, 0);
}

SEC("tc")
int decap(struct __sk_buff *skb)
{
	struct iphdr *ip;
	struct mac dst;
	int i;

	if (skb->protocol != bpf_htons(ETH_P_IP))
		return TC_ACT_OK;
	ip = ipv4(skb);
	if (!ip || ip->protocol != IPPROTO_IPIP || ip->daddr != config.node_ip)
		return TC_ACT_OK;
	if (ip->ihl != 5 || is_fragment(ip))
		return drop(DROP_MALFORMED);
	if (!header(skb, ETH_HLEN + 2 * sizeof(struct iphdr)))
		return drop(DROP_MALFORMED);
	if (bpf_skb_adjust_room(skb, -(__s32)sizeof(struct iphdr), BPF_ADJ_ROOM_MAC,
				BPF_F_ADJ_ROOM_FIXED_GSO | ADJ_ROOM_DECAP_L3_IPV4) &&
	    bpf_skb_adjust_room(skb, -(__s32)sizeof(struct iphdr), BPF_ADJ_ROOM_MAC, BPF_F_ADJ_ROOM_FIXED_GSO))
		return drop(DROP_WRITE);
	/* Byte by byte: a copy that casts volatile away would see the zeros of this file. */
	for (i = 0; i < ETH_ALEN; i++)
		dst.addr[i] = config.tunnel_mac.addr[i];
	if (bpf_skb_store_bytes(skb, offset_of(struct ethhdr, dst), &dst, ETH_ALEN, 0))
		return drop(DROP_WRITE);
	count(DECAPSULATED);
	return bpf_redirect(config.tunnel, BPF_F_INGRESS);
}

char __license[] SEC("license") = "Dual BSD/GPL";
