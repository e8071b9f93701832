/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The network protocol, of which each object file knows one: the same C is compiled for IPv4, and with IPV6 defined for
 * IPv6. What the two do differently with a packet is here, in dsr.h and in neighbour.h; the rest of the programs speaks of
 * addresses and headers without saying whose.
 */
#ifndef LAB_CILIUM_L3_H
#define LAB_CILIUM_L3_H

#include "packet6.h"

#ifdef IPV6

#define WORDS 4
#define FAMILY 2
#define L3_PROTO ETH_P_IPV6
#define PROTO_ICMP IPPROTO_ICMPV6

typedef struct ipv6hdr ip_header;

#else

#define WORDS 1
#define FAMILY 1
#define L3_PROTO ETH_P_IP
#define PROTO_ICMP IPPROTO_ICMP

typedef struct iphdr ip_header;

#endif

/* An address of the object's family. Where tables have room for either, IPv4 takes the first of four words. */
struct addr {
	__be32	w[WORDS];
};

#define ADDR_BITS (WORDS * 32)

inlined int same(struct addr a, struct addr b)
{
	int i, differ = 0;

#pragma unroll
	for (i = 0; i < WORDS; i++)
		differ |= a.w[i] ^ b.w[i];
	return !differ;
}

/* constant reads an address that the loader wrote. Word by word: a copy that casts volatile away would see the zeros of
 * the source file.
 */
inlined struct addr constant(const volatile __be32 *w)
{
	struct addr a;
	int i;

#pragma unroll
	for (i = 0; i < WORDS; i++)
		a.w[i] = w[i];
	return a;
}

/* spread writes an address where there is room for either family. */
inlined void spread(__be32 *room, struct addr a)
{
	int i;

#pragma unroll
	for (i = 0; i < WORDS; i++)
		room[i] = a.w[i];
}

/* What stands behind the network header. */
struct transport {
	__u32	offset; /* in the frame */
	__u8	proto;
	__u8	fragment; /* part of a packet in several */
	__u8	later;    /* not the first part: it has no transport header */
	__u8	pad;
	__be32	id;       /* of the fragmented packet */
};

#ifdef IPV6

inlined ip_header *ip_of(struct __sk_buff *skb)
{
	return ipv6(skb);
}

inlined struct addr source(const ip_header *ip)
{
	struct addr a = {{ ip->saddr.w[0], ip->saddr.w[1], ip->saddr.w[2], ip->saddr.w[3] }};

	return a;
}

inlined struct addr destination(const ip_header *ip)
{
	struct addr a = {{ ip->daddr.w[0], ip->daddr.w[1], ip->daddr.w[2], ip->daddr.w[3] }};

	return a;
}

inlined __u8 next_protocol(const ip_header *ip)
{
	return ip->nexthdr;
}

inlined int is_multicast(struct addr a)
{
	return (a.w[0] & bpf_htonl(0xff000000)) == bpf_htonl(0xff000000);
}

/* is_on_link says of a source that it is not meant to be seen behind this wire: fe80::/10, or none yet. */
inlined int is_on_link(struct addr a)
{
	return (a.w[0] & bpf_htonl(0xffc00000)) == bpf_htonl(0xfe800000) || !(a.w[0] | a.w[1] | a.w[2] | a.w[3]);
}

/* transport_of finds the transport header. Returns -1 for a header that is no good. */
inlined int transport_of(struct __sk_buff *skb, const ip_header *ip, struct transport *t)
{
	struct ipv6_upper up;

	if (ipv6_upper(skb, ip, &up))
		return -1;
	t->offset = up.offset;
	t->proto = up.proto;
	t->fragment = up.fragment;
	t->later = up.later;
	t->id = up.id;
	return 0;
}

/* take_hop is what a router takes; false if there is none left. */
inlined int take_hop(struct __sk_buff *skb, const ip_header *ip)
{
	return dec_hop_limit(skb, ip);
}

inlined int set_source(struct __sk_buff *skb, struct addr old, struct addr new, __u32 l4, __u8 proto)
{
	struct in6 from, to;

	__builtin_memcpy(&from, &old, sizeof(from));
	__builtin_memcpy(&to, &new, sizeof(to));
	return set_address6(skb, offset_of(struct ipv6hdr, saddr), from, to, l4, proto);
}

inlined int set_destination(struct __sk_buff *skb, struct addr old, struct addr new, __u32 l4, __u8 proto)
{
	struct in6 from, to;

	__builtin_memcpy(&from, &old, sizeof(from));
	__builtin_memcpy(&to, &new, sizeof(to));
	return set_address6(skb, offset_of(struct ipv6hdr, daddr), from, to, l4, proto);
}

/* fib_ask and fib_hop are the question for the kernel's table and what its answer means to redirect_neigh. */
inlined void fib_ask(struct bpf_fib_lookup *fib, const ip_header *ip)
{
	fib->family = AF_INET6;
	__builtin_memcpy(fib->ipv6_src, &ip->saddr, sizeof(ip->saddr));
	__builtin_memcpy(fib->ipv6_dst, &ip->daddr, sizeof(ip->daddr));
}

inlined void fib_hop(const struct bpf_fib_lookup *fib, struct bpf_redir_neigh *hop)
{
	hop->nh_family = fib->family;
	__builtin_memcpy(hop->ipv6_nh, fib->ipv6_dst, sizeof(hop->ipv6_nh));
}

inlined int icmp_is_error(__u8 type)
{
	return type >= ICMP6_DEST_UNREACH && type <= ICMP6_PARAMETERPROB;
}

/* icmp_echo is 1 for a request, 2 for an answer, 0 for anything else. */
inlined int icmp_echo(__u8 type)
{
	return type == ICMP6_ECHO ? 1 : type == ICMP6_ECHOREPLY ? 2 : 0;
}

/* flow_hash mixes an address and two more words. */
inlined __u32 flow_hash(struct addr a, __u32 b, __u32 c, __u32 seed)
{
	return hash3(a.w[3], b, c, hash3(a.w[0], a.w[1], a.w[2], seed));
}

#else

inlined ip_header *ip_of(struct __sk_buff *skb)
{
	return ipv4(skb);
}

inlined struct addr source(const ip_header *ip)
{
	struct addr a = {{ ip->saddr }};

	return a;
}

inlined struct addr destination(const ip_header *ip)
{
	struct addr a = {{ ip->daddr }};

	return a;
}

inlined __u8 next_protocol(const ip_header *ip)
{
	return ip->protocol;
}

/* Of IPv4 no packet comes here that is not meant for one receiver, and none without a source. */
inlined int is_multicast(struct addr a)
{
	return 0;
}

inlined int is_on_link(struct addr a)
{
	return 0;
}

inlined int transport_of(struct __sk_buff *skb, const ip_header *ip, struct transport *t)
{
	t->offset = l4_offset(ip);
	t->proto = ip->protocol;
	t->fragment = is_fragment(ip);
	t->later = !is_first_fragment(ip);
	t->id = ip->id;
	return 0;
}

inlined int take_hop(struct __sk_buff *skb, const ip_header *ip)
{
	return dec_ttl(skb, ip);
}

inlined int set_source(struct __sk_buff *skb, struct addr old, struct addr new, __u32 l4, __u8 proto)
{
	return set_address(skb, offset_of(struct iphdr, saddr), old.w[0], new.w[0], l4, proto);
}

inlined int set_destination(struct __sk_buff *skb, struct addr old, struct addr new, __u32 l4, __u8 proto)
{
	return set_address(skb, offset_of(struct iphdr, daddr), old.w[0], new.w[0], l4, proto);
}

inlined void fib_ask(struct bpf_fib_lookup *fib, const ip_header *ip)
{
	fib->family = AF_INET;
	fib->ipv4_src = ip->saddr;
	fib->ipv4_dst = ip->daddr;
}

inlined void fib_hop(const struct bpf_fib_lookup *fib, struct bpf_redir_neigh *hop)
{
	hop->nh_family = fib->family; /* the lookup rewrites it when the next hop is of another family */
	hop->ipv4_nh = fib->ipv4_dst;
}

inlined int icmp_is_error(__u8 type)
{
	return type == ICMP_DEST_UNREACH || type == ICMP_TIME_EXCEEDED || type == ICMP_PARAMETERPROB;
}

inlined int icmp_echo(__u8 type)
{
	return type == ICMP_ECHO ? 1 : type == ICMP_ECHOREPLY ? 2 : 0;
}

inlined __u32 flow_hash(struct addr a, __u32 b, __u32 c, __u32 seed)
{
	return hash3(a.w[0], b, c, seed);
}

#endif

#endif
