/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What of the programs knows that it handles IPv6; ipv4.h has the same names. Included by family.h. */
#ifndef LAB_CALICO_IPV6_H
#define LAB_CALICO_IPV6_H

typedef struct ipv6hdr ip_t;

#define MAP(name)	cali_v6_##name
#define ADDR_BITS	128
#define ETH_P_OWN	ETH_P_IPV6
#define ETH_P_OTHER	ETH_P_IP
#define IPPROTO_CONTROL	IPPROTO_ICMPV6
#define ENCAP_L3_OWN	BPF_F_ADJ_ROOM_ENCAP_L3_IPV6

/* Types of ICMPv6 that keep the link: who listens to which group, and neighbour and router discovery. */
#define MLD_QUERY	130
#define MLD_DONE	132
#define ND_FIRST	133 /* router solicitation */
#define ND_LAST		137 /* redirect */
#define MLD_REPORT2	143

inlined int same(const addr_t *a, const addr_t *b)
{
	return same6(a, b);
}

/* below is some order of addresses, the same everywhere. It begins with the words that differ most often. */
inlined int below(const addr_t *a, const addr_t *b)
{
	if (a->w[3] != b->w[3])
		return a->w[3] < b->w[3];
	if (a->w[2] != b->w[2])
		return a->w[2] < b->w[2];
	if (a->w[1] != b->w[1])
		return a->w[1] < b->w[1];
	return a->w[0] < b->w[0];
}

inlined int is_set(const addr_t *a)
{
	return (a->w[0] | a->w[1] | a->w[2] | a->w[3]) != 0;
}

inlined void clear(addr_t *a)
{
	a->w[0] = 0;
	a->w[1] = 0;
	a->w[2] = 0;
	a->w[3] = 0;
}

/* ip_header returns the frame's IP header, or NULL if there is none that is whole. */
inlined ip_t *ip_header(struct __sk_buff *skb)
{
	return ipv6(skb);
}

/* read_ip takes the facts from the header and those behind it; -1 for a malformed one. */
inlined int read_ip(struct __sk_buff *skb, struct ip_facts *f)
{
	struct ipv6hdr *ip = ipv6(skb);
	struct ipv6_upper up = {};

	if (!ip)
		return -1;
	f->src = ip->saddr;
	f->dst = ip->daddr;
	f->hops = ip->hop_limit;
	if (ipv6_upper(skb, ip, &up))
		return -1;
	f->proto = up.proto;
	f->l4 = up.offset;
	f->later = up.later;
	return 0;
}

/* keeps_link says whether a control packet is about the link alone, which no program judges. The hop limits are those
 * that the receiver insists on, and that no packet has which a router forwarded.
 */
inlined int keeps_link(const struct ip_facts *f, __u8 type)
{
	if (type >= ND_FIRST && type <= ND_LAST)
		return f->hops == 255;
	return ((type >= MLD_QUERY && type <= MLD_DONE) || type == MLD_REPORT2) && f->hops == 1;
}

/* is_link_address says whether an address has no meaning beyond the link (fe80::/10, or a group of that scope) and is
 * left to the kernel.
 */
inlined int is_link_address(const addr_t *a)
{
	return (a->w[0] & bpf_htonl(0xffc00000)) == bpf_htonl(0xfe800000) ||
	       (a->w[0] & bpf_htonl(0xff0f0000)) == bpf_htonl(0xff020000);
}

/* take_hop is what a router does to the header; false if the packet has no hop left. */
inlined int take_hop(struct __sk_buff *skb, const ip_t *ip)
{
	return dec_hop_limit(skb, ip);
}

/* rewrite writes one address (at, from the start of the header) and mends the transport's checksum; the header has none. */
inlined int rewrite(struct __sk_buff *skb, __u32 at, const addr_t *old, const addr_t *new, __u32 l4, __u8 proto)
{
	__u64 flags = BPF_F_PSEUDO_HDR | l4_csum_flags(proto);
	__u32 check = l4_check6(proto);
	__s64 diff;
	long ret;

	if (same(old, new))
		return 0;
	if (check) {
		diff = bpf_csum_diff((__be32 *)old->w, sizeof(*old), (__be32 *)new->w, sizeof(*new), 0);
		if (diff < 0)
			return -1;
		ret = bpf_l4_csum_replace(skb, l4 + check, 0, diff, flags | BPF_F_IPV6);
		if (ret == -22)
			ret = bpf_l4_csum_replace(skb, l4 + check, 0, diff, flags);
		if (ret)
			return -1;
	}
	return bpf_skb_store_bytes(skb, ETH_HLEN + at, new, sizeof(*new), 0) ? -1 : 0;
}

inlined int set_source(struct __sk_buff *skb, const addr_t *old, const addr_t *new, __u32 l4, __u8 proto)
{
	return rewrite(skb, offset_of(ip_t, saddr), old, new, l4, proto);
}

inlined int set_destination(struct __sk_buff *skb, const addr_t *old, const addr_t *new, __u32 l4, __u8 proto)
{
	return rewrite(skb, offset_of(ip_t, daddr), old, new, l4, proto);
}

inlined void fib_between(struct bpf_fib_lookup *fib, const addr_t *src, const addr_t *dst)
{
	fib->family = AF_INET6;
	*(addr_t *)fib->ipv6_src = *src;
	*(addr_t *)fib->ipv6_dst = *dst;
}

inlined void hop_of(struct bpf_redir_neigh *hop, const struct bpf_fib_lookup *fib)
{
	hop->nh_family = AF_INET6;
	*(addr_t *)hop->ipv6_nh = *(const addr_t *)fib->ipv6_dst;
}

/* set_key tells the VXLAN device where the packet goes. The outer datagram has a checksum, as IPv6 wants it. */
inlined int set_key(struct __sk_buff *skb, __u32 vni, const addr_t *node)
{
	struct bpf_tunnel_key key = {};

	key.tunnel_id = vni;
	*(addr_t *)key.remote_ipv6 = *node;
	key.tunnel_ttl = 64;
	return bpf_skb_set_tunnel_key(skb, &key, sizeof(key), BPF_F_TUNINFO_IPV6) ? -1 : 0;
}

/* packet_length is what the header says of the packet with itself. */
inlined __u16 packet_length(const ip_t *ip)
{
	return bpf_ntohs(ip->payload_len) + sizeof(*ip);
}

/* outer_header is the header around a UDP datagram; length counts the header. */
inlined ip_t outer_header(const addr_t *src, const addr_t *dst, __u16 length)
{
	ip_t outer = {};

	outer.version_class_label = bpf_htonl(0x60000000);
	outer.payload_len = bpf_htons(length - sizeof(outer));
	outer.nexthdr = IPPROTO_UDP;
	outer.hop_limit = 64;
	outer.saddr = *src;
	outer.daddr = *dst;
	return outer;
}

#endif
