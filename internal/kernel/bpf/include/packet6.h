/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What packet.h knows about IPv4, for IPv6: there is no checksum of the header, the transport's covers both addresses
 * (ICMPv6 too), and any number of extension headers may lie in between.
 *
 *	0            14              54
 *	| ethhdr     | ipv6hdr       | [extension headers] ports, tcphdr ...
 */
#ifndef LAB_PACKET6_H
#define LAB_PACKET6_H

#include "packet.h"

#define AF_INET6	10

#define IPPROTO_HOPOPTS		0
#define IPPROTO_ROUTING		43
#define IPPROTO_FRAGMENT	44
#define IPPROTO_AH		51
#define IPPROTO_ICMPV6		58
#define IPPROTO_DSTOPTS		60

/* Kernel 6.16; older kernels answer EINVAL to the flag. */
#ifndef BPF_F_IPV6
#define BPF_F_IPV6	(1ULL << 7)
#endif

struct in6 {
	__be32	w[4];
};

/* is_unspecified6 says of a source that its sender has no address yet. */
inlined int is_unspecified6(const struct in6 *a)
{
	return !(a->w[0] | a->w[1] | a->w[2] | a->w[3]);
}

struct ipv6hdr {
	__be32	version_class_label;
	__be16	payload_len;
	__u8	nexthdr;
	__u8	hop_limit;
	struct in6 saddr;
	struct in6 daddr;
};

struct icmp6hdr {
	__u8	type;
	__u8	code;
	__sum16	check;
	__be16	id;
	__be16	seq;
};

#define ICMP6_DEST_UNREACH	1
#define ICMP6_PACKET_TOO_BIG	2
#define ICMP6_TIME_EXCEEDED	3
#define ICMP6_PARAMETERPROB	4
#define ICMP6_ECHO		128
#define ICMP6_ECHOREPLY		129
#define ICMP6_NEIGHBOUR_SOLICIT	135
#define ICMP6_NEIGHBOUR_ADVERT	136

/* A neighbour solicitation or advertisement with the one option that Ethernet needs. */
struct nd_message {
	__u8	type;
	__u8	code;
	__sum16	check;
	__be32	flags;
	struct in6 target;
	__u8	option;
	__u8	option_len; /* in words of eight bytes */
	struct mac mac;
};

#define ND_ROUTER	0x80000000
#define ND_SOLICITED	0x40000000
#define ND_OVERRIDE	0x20000000
#define ND_OPT_SOURCE_MAC 1
#define ND_OPT_TARGET_MAC 2

/* How many extension headers are followed. */
#define IPV6_MAX_HEADERS 4

/* What lies behind the extension headers. A later fragment has no transport header: offset is where its bytes start. */
struct ipv6_upper {
	__u32	offset; /* in the frame */
	__u8	proto;
	__u8	fragment; /* part of a packet in several */
	__u8	later;    /* not the first part */
	__u8	pad;
	__be32	id;       /* of the fragmented packet */
};

inlined int same6(const struct in6 *a, const struct in6 *b)
{
	return a->w[0] == b->w[0] && a->w[1] == b->w[1] && a->w[2] == b->w[2] && a->w[3] == b->w[3];
}

/* ipv6 returns the IPv6 header of a frame that holds one whole, or NULL. Pointers taken earlier are void. */
inlined struct ipv6hdr *ipv6(struct __sk_buff *skb)
{
	void *data = header(skb, ETH_HLEN + sizeof(struct ipv6hdr));
	struct ipv6hdr *ip;

	if (!data)
		return 0;
	ip = data + ETH_HLEN;
	if ((ip->version_class_label & bpf_htonl(0xf0000000)) != bpf_htonl(0x60000000))
		return 0;
	return ip;
}

/* ipv6_upper walks over the extension headers. Returns -1 if they are cut off or too many. */
inlined int ipv6_upper(struct __sk_buff *skb, const struct ipv6hdr *ip, struct ipv6_upper *up)
{
	__u32 offset = ETH_HLEN + sizeof(struct ipv6hdr);
	__u8 proto = ip->nexthdr;
	int i;

	up->fragment = 0;
	up->later = 0;
	up->id = 0;
	for (i = 0; i <= IPV6_MAX_HEADERS; i++) {
		struct {
			__u8	next;
			__u8	len;
			__be16	frag_off; /* of a fragment header, as id is */
			__be32	id;
		} ext;

		if (proto != IPPROTO_HOPOPTS && proto != IPPROTO_ROUTING && proto != IPPROTO_DSTOPTS && proto != IPPROTO_AH &&
		    proto != IPPROTO_FRAGMENT) {
			up->offset = offset;
			up->proto = proto;
			return 0;
		}
		/* Each of them has eight bytes at least. */
		if (bpf_skb_load_bytes(skb, offset, &ext, sizeof(ext)))
			return -1;
		if (proto == IPPROTO_FRAGMENT) {
			up->id = ext.id;
			up->fragment = (ext.frag_off & bpf_htons(0xfff9)) != 0;
			up->later = (ext.frag_off & bpf_htons(0xfff8)) != 0;
			offset += 8;
		} else if (proto == IPPROTO_AH) {
			offset += (ext.len + 2) * 4;
		} else {
			offset += (ext.len + 1) * 8;
		}
		proto = ext.next;
		if (up->later) {
			up->offset = offset;
			up->proto = proto;
			return 0;
		}
	}
	return -1;
}

/* dec_hop_limit takes one from the hop limit; false if the packet has no hop left. */
inlined int dec_hop_limit(struct __sk_buff *skb, const struct ipv6hdr *ip)
{
	__u8 left = ip->hop_limit - 1;

	if (ip->hop_limit <= 1)
		return 0;
	bpf_skb_store_bytes(skb, ETH_HLEN + offset_of(struct ipv6hdr, hop_limit), &left, 1, BPF_F_RECOMPUTE_CSUM);
	return 1;
}

/* l4_check6 is l4_check for IPv6, where ICMP has a checksum that covers the addresses. */
inlined __u32 l4_check6(__u8 proto)
{
	return proto == IPPROTO_ICMPV6 ? offset_of(struct icmp6hdr, check) : l4_check(proto);
}

/* set_address6 writes one address of the IPv6 header (at, from the start of it) and mends the transport checksum. l4 is
 * the offset of the transport header in the frame, or 0 for a fragment that has none.
 */
inlined int set_address6(struct __sk_buff *skb, __u32 at, struct in6 old, struct in6 new, __u32 l4, __u8 proto)
{
	__u32 check = l4_check6(proto);

	if (same6(&old, &new))
		return 0;
	if (l4 && check) {
		__s64 diff = bpf_csum_diff(old.w, sizeof(old), new.w, sizeof(new), 0);
		__u64 flags = BPF_F_PSEUDO_HDR | l4_csum_flags(proto);
		long ret = bpf_l4_csum_replace(skb, l4 + check, 0, diff, flags | BPF_F_IPV6);

		if (ret == -22)
			ret = bpf_l4_csum_replace(skb, l4 + check, 0, diff, flags);
		if (ret)
			return -1;
	}
	return bpf_skb_store_bytes(skb, ETH_HLEN + at, &new, sizeof(new), 0) ? -1 : 0;
}

/* checksum6 is the checksum of a transport header and what follows (body, a multiple of four bytes, its own checksum
 * zero) between two addresses.
 */
inlined __sum16 checksum6(const struct in6 *src, const struct in6 *dst, __u8 proto, const void *body, __u32 len)
{
	struct {
		struct in6 src, dst;
		__be32	len;
		__be32	proto;
	} pseudo = { .src = *src, .dst = *dst, .len = bpf_htonl(len), .proto = bpf_htonl(proto) };
	__u64 sum = bpf_csum_diff(0, 0, (void *)body, len, 0);

	sum = bpf_csum_diff(0, 0, (void *)&pseudo, sizeof(pseudo), sum) & 0xffffffff;
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

#endif
