/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What every program of the lab knows about a frame: the layouts of the headers, safe access to them, and the few
 * edits that a router makes. Addresses and ports are in network byte order unless a name says "host".
 *
 *	0            14                  34
 *	| ethhdr     | iphdr (ihl words) | ports, tcphdr ...
 */
#ifndef LAB_PACKET_H
#define LAB_PACKET_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

/* A file of programs for devices without Ethernet headers says 0 first. */
#ifndef ETH_HLEN
#define ETH_HLEN	14
#endif
#define ETH_ALEN	6
#define ETH_P_IP	0x0800
#define ETH_P_ARP	0x0806
#define ETH_P_IPV6	0x86dd

#define IPPROTO_ICMP	1
#define IPPROTO_IPIP	4
#define IPPROTO_TCP	6
#define IPPROTO_UDP	17

#define AF_INET		2
#define SOCK_STREAM	1
#define SOCK_DGRAM	2

#define TC_ACT_OK	0
#define TC_ACT_SHOT	2
#define TC_ACT_REDIRECT	7
#define PACKET_HOST	0

/* Kernel 6.3; older kernels answer EINVAL to the flag. */
#ifndef BPF_FIB_LOOKUP_SKIP_NEIGH
#define BPF_FIB_LOOKUP_SKIP_NEIGH (1U << 2)
#endif

#define inlined static __attribute__((always_inline)) inline

#define offset_of(type, member) __builtin_offsetof(type, member)

struct ethhdr {
	__u8	dst[ETH_ALEN];
	__u8	src[ETH_ALEN];
	__be16	proto;
};

struct iphdr {
	__u8	ihl : 4, version : 4;
	__u8	tos;
	__be16	tot_len;
	__be16	id;
	__be16	frag_off;
	__u8	ttl;
	__u8	protocol;
	__sum16	check;
	__be32	saddr;
	__be32	daddr;
};

#define IP_DF		0x4000
#define IP_MF		0x2000
#define IP_OFFSET	0x1fff

struct arp_ipv4 {
	__be16	hw_type;
	__be16	proto;
	__u8	hw_len;
	__u8	proto_len;
	__be16	op;
	__u8	sender_mac[ETH_ALEN];
	__be32	sender_ip;
	__u8	target_mac[ETH_ALEN];
	__be32	target_ip;
} __attribute__((packed));

struct l4_ports {
	__be16	src;
	__be16	dst;
};

struct tcphdr {
	__be16	source;
	__be16	dest;
	__be32	seq;
	__be32	ack_seq;
	__u8	res1 : 4, doff : 4;
	__u8	flags;
	__be16	window;
	__sum16	check;
	__be16	urg_ptr;
};

struct udphdr {
	__be16	source;
	__be16	dest;
	__be16	len;
	__sum16	check;
};

struct icmphdr {
	__u8	type;
	__u8	code;
	__sum16	check;
	__be16	id;
	__be16	seq;
};

#define TCP_FIN		0x01
#define TCP_SYN		0x02
#define TCP_RST		0x04
#define TCP_ACK		0x10

#define ICMP_ECHOREPLY		0
#define ICMP_DEST_UNREACH	3
#define ICMP_ECHO		8
#define ICMP_TIME_EXCEEDED	11
#define ICMP_PARAMETERPROB	12

#define NSEC_PER_SEC	1000000000ULL

struct mac {
	__u8 addr[ETH_ALEN];
};

/* header makes len bytes readable and returns where the frame starts, or NULL if the frame is shorter. */
inlined void *header(struct __sk_buff *skb, __u32 len)
{
	void *data = (void *)(long)skb->data;
	void *end = (void *)(long)skb->data_end;

	if (data + len <= end)
		return data;
	if (bpf_skb_pull_data(skb, len))
		return 0;
	data = (void *)(long)skb->data;
	end = (void *)(long)skb->data_end;
	return data + len <= end ? data : 0;
}

/* ipv4 returns the IPv4 header of a frame that holds one whole, or NULL. Pointers taken earlier are void. */
inlined struct iphdr *ipv4(struct __sk_buff *skb)
{
	void *data = header(skb, ETH_HLEN + sizeof(struct iphdr));
	struct iphdr *ip;

	if (!data)
		return 0;
	ip = data + ETH_HLEN;
	if (ip->version != 4 || ip->ihl < 5)
		return 0;
	return ip;
}

inlined __u32 l4_offset(const struct iphdr *ip)
{
	return ETH_HLEN + ip->ihl * 4;
}

inlined int is_fragment(const struct iphdr *ip)
{
	return (ip->frag_off & bpf_htons(IP_MF | IP_OFFSET)) != 0;
}

inlined int is_first_fragment(const struct iphdr *ip)
{
	return (ip->frag_off & bpf_htons(IP_OFFSET)) == 0;
}

/* dec_ttl takes one from the TTL and mends the checksum; false if the packet has no hop left. */
inlined int dec_ttl(struct __sk_buff *skb, const struct iphdr *ip)
{
	__u8 old = ip->ttl, new = old - 1;

	if (old <= 1)
		return 0;
	/* The helper takes at least two bytes: TTL is the first of its word, so zero-extended on little endian. */
	bpf_l3_csum_replace(skb, ETH_HLEN + offset_of(struct iphdr, check), old, new, 2);
	bpf_skb_store_bytes(skb, ETH_HLEN + offset_of(struct iphdr, ttl), &new, 1, 0);
	return 1;
}

inlined void set_macs(struct __sk_buff *skb, const struct mac *dst, const struct mac *src)
{
	bpf_skb_store_bytes(skb, offset_of(struct ethhdr, src), src, ETH_ALEN, 0);
	bpf_skb_store_bytes(skb, offset_of(struct ethhdr, dst), dst, ETH_ALEN, 0);
}

/* l4_check is where the checksum of a protocol lies, from the start of its header; 0 if it has none. */
inlined __u32 l4_check(__u8 proto)
{
	switch (proto) {
	case IPPROTO_TCP:
		return offset_of(struct tcphdr, check);
	case IPPROTO_UDP:
		return offset_of(struct udphdr, check);
	}
	return 0;
}

/* l4_csum_flags: a UDP checksum of zero means none and has to stay zero. */
inlined __u64 l4_csum_flags(__u8 proto)
{
	return proto == IPPROTO_UDP ? BPF_F_MARK_MANGLED_0 : 0;
}

/* set_address writes one address of the IPv4 header (at, from the start of it) and mends both checksums. l4 is the
 * offset of the transport header in the frame, or 0 for a fragment that has none.
 */
inlined int set_address(struct __sk_buff *skb, __u32 at, __be32 old, __be32 new, __u32 l4, __u8 proto)
{
	if (old == new)
		return 0;
	if (l4 && l4_check(proto) &&
	    bpf_l4_csum_replace(skb, l4 + l4_check(proto), old, new, BPF_F_PSEUDO_HDR | l4_csum_flags(proto) | 4))
		return -1;
	if (bpf_l3_csum_replace(skb, ETH_HLEN + offset_of(struct iphdr, check), old, new, 4))
		return -1;
	return bpf_skb_store_bytes(skb, ETH_HLEN + at, &new, 4, 0) ? -1 : 0;
}

/* set_port writes one port (at: 0 source, 2 destination) and mends the transport checksum. */
inlined int set_port(struct __sk_buff *skb, __u32 l4, __u32 at, __be16 old, __be16 new, __u8 proto)
{
	if (old == new || !l4_check(proto))
		return 0;
	if (bpf_l4_csum_replace(skb, l4 + l4_check(proto), old, new, l4_csum_flags(proto) | 2))
		return -1;
	return bpf_skb_store_bytes(skb, l4 + at, &new, 2, 0) ? -1 : 0;
}

inlined __u32 now_seconds(void)
{
	return bpf_ktime_get_ns() / NSEC_PER_SEC;
}

inlined __u32 rol32(__u32 w, __u32 by)
{
	return (w << by) | (w >> (32 - by));
}

/* hash3 is Bob Jenkins' mix of three words: good enough to spread flows, and cheap. */
inlined __u32 hash3(__u32 a, __u32 b, __u32 c, __u32 seed)
{
	const __u32 start = 0xdeadbeef + (3 << 2) + seed;

	a += start;
	b += start;
	c += start;
	c ^= b; c -= rol32(b, 14);
	a ^= c; a -= rol32(c, 11);
	b ^= a; b -= rol32(a, 25);
	c ^= b; c -= rol32(b, 16);
	a ^= c; a -= rol32(c, 4);
	b ^= a; b -= rol32(a, 14);
	c ^= b; c -= rol32(b, 24);
	return c;
}

#endif
