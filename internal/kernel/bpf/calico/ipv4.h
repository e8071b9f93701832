/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What of the programs knows that it handles IPv4; ipv6.h has the same names. Included by family.h. */
#ifndef LAB_CALICO_IPV4_H
#define LAB_CALICO_IPV4_H

typedef struct iphdr ip_t;

#define MAP(name)	cali_v4_##name
#define ADDR_BITS	32
#define ETH_P_OWN	ETH_P_IP
#define ETH_P_OTHER	ETH_P_IPV6
#define IPPROTO_CONTROL	IPPROTO_ICMP
#define ENCAP_L3_OWN	BPF_F_ADJ_ROOM_ENCAP_L3_IPV4

inlined int same(const addr_t *a, const addr_t *b)
{
	return *a == *b;
}

/* below is some order of addresses, the same everywhere. */
inlined int below(const addr_t *a, const addr_t *b)
{
	return *a < *b;
}

inlined int is_set(const addr_t *a)
{
	return *a != 0;
}

inlined void clear(addr_t *a)
{
	*a = 0;
}

/* ip_header returns the frame's IP header, or NULL if there is none that is whole. */
inlined ip_t *ip_header(struct __sk_buff *skb)
{
	return ipv4(skb);
}

/* read_ip takes the facts from the header; -1 for a malformed one. */
inlined int read_ip(struct __sk_buff *skb, struct ip_facts *f)
{
	struct iphdr *ip = ipv4(skb);

	if (!ip)
		return -1;
	f->src = ip->saddr;
	f->dst = ip->daddr;
	f->proto = ip->protocol;
	f->hops = ip->ttl;
	f->l4 = l4_offset(ip);
	f->later = !is_first_fragment(ip);
	return 0;
}

/* keeps_link says whether a control packet is about the link alone, which no program judges. IPv4 has ARP for that. */
inlined int keeps_link(const struct ip_facts *f, __u8 type)
{
	return 0;
}

/* is_link_address says whether an address has no meaning beyond the link and is left to the kernel. */
inlined int is_link_address(const addr_t *a)
{
	return 0;
}

/* take_hop is what a router does to the header; false if the packet has no hop left. */
inlined int take_hop(struct __sk_buff *skb, const ip_t *ip)
{
	return dec_ttl(skb, ip);
}

inlined int set_source(struct __sk_buff *skb, const addr_t *old, const addr_t *new, __u32 l4, __u8 proto)
{
	return set_address(skb, offset_of(ip_t, saddr), *old, *new, l4, proto);
}

inlined int set_destination(struct __sk_buff *skb, const addr_t *old, const addr_t *new, __u32 l4, __u8 proto)
{
	return set_address(skb, offset_of(ip_t, daddr), *old, *new, l4, proto);
}

inlined void fib_between(struct bpf_fib_lookup *fib, const addr_t *src, const addr_t *dst)
{
	fib->family = AF_INET;
	fib->ipv4_src = *src;
	fib->ipv4_dst = *dst;
}

inlined void hop_of(struct bpf_redir_neigh *hop, const struct bpf_fib_lookup *fib)
{
	hop->nh_family = AF_INET;
	hop->ipv4_nh = fib->ipv4_dst;
}

/* set_key tells the VXLAN device where the packet goes. */
inlined int set_key(struct __sk_buff *skb, __u32 vni, const addr_t *node)
{
	struct bpf_tunnel_key key = {};

	key.tunnel_id = vni;
	key.remote_ipv4 = bpf_ntohl(*node);
	key.tunnel_ttl = 64;
	return bpf_skb_set_tunnel_key(skb, &key, sizeof(key), BPF_F_ZERO_CSUM_TX) ? -1 : 0;
}

/* packet_length is what the header says of the packet with itself. */
inlined __u16 packet_length(const ip_t *ip)
{
	return bpf_ntohs(ip->tot_len);
}

inlined __sum16 header_sum(const ip_t *ip)
{
	__u64 sum = bpf_csum_diff(0, 0, (__be32 *)ip, sizeof(*ip), 0);

	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

/* outer_header is the header around a UDP datagram; length counts the header. */
inlined ip_t outer_header(const addr_t *src, const addr_t *dst, __u16 length)
{
	ip_t outer = {};

	outer.version = 4;
	outer.ihl = 5;
	outer.tot_len = bpf_htons(length);
	outer.frag_off = bpf_htons(IP_DF);
	outer.ttl = 64;
	outer.protocol = IPPROTO_UDP;
	outer.saddr = *src;
	outer.daddr = *dst;
	outer.check = header_sum(&outer);
	return outer;
}

#endif
