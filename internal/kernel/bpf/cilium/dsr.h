/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* How one node tells another which address a client spoke to, in the first packet of a flow: by an option of the IPv4
 * header, or by one of the destination options that IPv6 puts into a header of their own.
 *
 *	IPv4   | iphdr of 5 words | 9a 08 port addr |                           ports ...
 *	IPv6   | ipv6hdr, next 60 | next 02 | 1b 14 addr port 00 00 |           ports ...
 */
#ifndef LAB_CILIUM_DSR_H
#define LAB_CILIUM_DSR_H

#include "nodeport.h"

#ifdef IPV6

/* Option 27: skipped by who does not know it. The whole header is three words of eight bytes. */
struct dsr_option {
	__u8	nexthdr;
	__u8	words;
	__u8	type;
	__u8	len;
	struct addr addr;
	__be16	port;
	__u16	pad;
};

#define DSR_OPTION_TYPE 0x1b
#define DSR_OPTION_LEN 20
#define DSR_OPTION_WORDS 2 /* behind the first */

/* dsr_read returns whether the packet has the option. */
inlined int dsr_read(struct __sk_buff *skb, const ip_header *ip, struct dsr_option *opt)
{
	if (ip->nexthdr != IPPROTO_DSTOPTS ||
	    bpf_skb_load_bytes(skb, ETH_HLEN + sizeof(struct ipv6hdr), opt, sizeof(*opt)))
		return 0;
	return opt->words == DSR_OPTION_WORDS && opt->type == DSR_OPTION_TYPE && opt->len == DSR_OPTION_LEN;
}

/* dsr_write puts the option into the packet. Returns 0 or a drop reason. */
inlined int dsr_write(struct __sk_buff *skb, struct addr addr, __be16 port)
{
	struct dsr_option opt = {
		.words = DSR_OPTION_WORDS, .type = DSR_OPTION_TYPE, .len = DSR_OPTION_LEN, .addr = addr, .port = port,
	};
	ip_header *ip = ip_of(skb);

	if (!ip)
		return DROP_INVALID;
	opt.nexthdr = ip->nexthdr;
	if (bpf_skb_adjust_room(skb, sizeof(opt), BPF_ADJ_ROOM_NET, BPF_F_ADJ_ROOM_NO_CSUM_RESET))
		return DROP_WRITE_ERROR;
	if (bpf_skb_store_bytes(skb, ETH_HLEN + sizeof(struct ipv6hdr), &opt, sizeof(opt), 0))
		return DROP_WRITE_ERROR;
	ip = ip_of(skb);
	if (!ip)
		return DROP_INVALID;
	ip->nexthdr = IPPROTO_DSTOPTS;
	ip->payload_len = bpf_htons(bpf_ntohs(ip->payload_len) + sizeof(opt));
	return 0;
}

#else

/* Option 26 with the copy bit. */
struct dsr_option {
	__u8	type;
	__u8	len;
	__be16	port;
	struct addr addr;
};

#define DSR_OPTION_TYPE 0x9a
#define DSR_OPTION_LEN 8

/* dsr_read returns whether the packet has the option. */
inlined int dsr_read(struct __sk_buff *skb, const ip_header *ip, struct dsr_option *opt)
{
	if (ip->ihl < 7 || bpf_skb_load_bytes(skb, ETH_HLEN + sizeof(struct iphdr), opt, sizeof(*opt)))
		return 0;
	return opt->type == DSR_OPTION_TYPE && opt->len == DSR_OPTION_LEN;
}

/* dsr_write puts the option into the packet. Returns 0 or a drop reason. */
inlined int dsr_write(struct __sk_buff *skb, struct addr addr, __be16 port)
{
	struct dsr_option opt = { .type = DSR_OPTION_TYPE, .len = DSR_OPTION_LEN, .port = port, .addr = addr };
	ip_header *ip = ip_of(skb);
	__u16 old_len, new_len;
	__s64 sum;

	if (!ip || ip->ihl != 5)
		return DROP_INVALID;
	old_len = ip->tot_len;
	new_len = bpf_htons(bpf_ntohs(old_len) + DSR_OPTION_LEN);
	if (bpf_skb_adjust_room(skb, DSR_OPTION_LEN, BPF_ADJ_ROOM_NET, BPF_F_ADJ_ROOM_NO_CSUM_RESET))
		return DROP_WRITE_ERROR;
	if (bpf_skb_store_bytes(skb, ETH_HLEN + sizeof(struct iphdr), &opt, sizeof(opt), 0))
		return DROP_WRITE_ERROR;
	ip = ip_of(skb);
	if (!ip)
		return DROP_INVALID;
	{
		__u32 was[2] = { 0x45, old_len }, is[4] = { 0x47, new_len, 0, 0 };

		__builtin_memcpy(&is[2], &opt, sizeof(opt));
		sum = bpf_csum_diff(was, sizeof(was), is, sizeof(is), 0);
	}
	ip->ihl = 7;
	ip->tot_len = new_len;
	if (bpf_l3_csum_replace(skb, ETH_HLEN + offset_of(struct iphdr, check), 0, sum, 0))
		return DROP_WRITE_ERROR;
	return 0;
}

#endif

#endif
