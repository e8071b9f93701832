/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Answers for the gateway, which has no device of its own on a pod's wire: to ARP, or to neighbour solicitations. */
#ifndef LAB_CILIUM_NEIGHBOUR_H
#define LAB_CILIUM_NEIGHBOUR_H

#include "node.h"

#ifdef IPV6

/* is_neighbour_message: neither a source check nor a flow is made for these. */
inlined int is_neighbour_message(struct __sk_buff *skb, const ip_header *ip)
{
	__u8 type;

	if (ip->nexthdr != IPPROTO_ICMPV6 || bpf_skb_load_bytes(skb, ETH_HLEN + sizeof(struct ipv6hdr), &type, 1))
		return 0;
	return type == ICMP6_NEIGHBOUR_SOLICIT || type == ICMP6_NEIGHBOUR_ADVERT;
}

/* advertise turns a solicitation into the answer, from the gateway whoever was asked for: the MAC is the same. */
inlined int advertise(struct __sk_buff *skb, struct ipv6hdr *ip, const struct nd_message *asked, const struct mac *own,
		      __be32 flags)
{
	struct nd_message answer = {
		.type = ICMP6_NEIGHBOUR_ADVERT, .flags = flags, .target = asked->target,
		.option = ND_OPT_TARGET_MAC, .option_len = 1, .mac = *own,
	};
	struct addr gateway = constant(node.gateway);
	struct mac asker;

	/* The answer takes the room of the question, which has one option: its sender's MAC. */
	if (ip->payload_len != bpf_htons(sizeof(answer)))
		return drop(skb, DIR_EGRESS, DROP_INVALID);
	ip->daddr = ip->saddr;
	__builtin_memcpy(&ip->saddr, &gateway, sizeof(gateway));
	answer.check = checksum6(&ip->saddr, &ip->daddr, IPPROTO_ICMPV6, &answer, sizeof(answer));
	if (bpf_skb_load_bytes(skb, offset_of(struct ethhdr, src), &asker, sizeof(asker)) ||
	    bpf_skb_store_bytes(skb, ETH_HLEN, ip, sizeof(*ip), 0) ||
	    bpf_skb_store_bytes(skb, ETH_HLEN + sizeof(*ip), &answer, sizeof(answer), 0))
		return drop(skb, DIR_EGRESS, DROP_WRITE_ERROR);
	set_macs(skb, &asker, own);
	count(skb, DIR_EGRESS, FORWARDED);
	return bpf_redirect(skb->ifindex, 0);
}

/* answer_neighbour looks at what a pod sends to find its neighbours. */
inlined int answer_neighbour(struct __sk_buff *skb, const struct mac *own)
{
	struct nd_message asked = {};
	struct endpoint_info *ep;
	struct addr target;
	struct ipv6hdr ip;

	if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)) ||
	    bpf_skb_load_bytes(skb, ETH_HLEN + sizeof(ip), &asked, offset_of(struct nd_message, option)))
		return drop(skb, DIR_EGRESS, DROP_INVALID);
	/* An advertisement is for the stack, which has asked. */
	if (asked.type != ICMP6_NEIGHBOUR_SOLICIT)
		return TC_ACT_OK;
	/* Who has no address yet asks whether it may take one; silence means yes. */
	if (is_unspecified6(&ip.saddr))
		return drop(skb, DIR_EGRESS, LINK_LOCAL);
	__builtin_memcpy(&target, &asked.target, sizeof(target));
	if (same(target, constant(node.gateway)))
		return advertise(skb, &ip, &asked, own, bpf_htonl(ND_ROUTER | ND_SOLICITED));
	ep = endpoint(target);
	if (!ep)
		return drop(skb, DIR_EGRESS, LINK_LOCAL);
	if (ep->flags & ENDPOINT_HOST)
		return TC_ACT_OK;
	return advertise(skb, &ip, &asked, own, bpf_htonl(ND_SOLICITED | ND_OVERRIDE));
}

#else

inlined int is_neighbour_message(struct __sk_buff *skb, const ip_header *ip)
{
	return 0;
}

/* answer_neighbour looks at what a pod sends to find its neighbours. */
inlined int answer_neighbour(struct __sk_buff *skb, const struct mac *own)
{
	struct arp_ipv4 *arp;
	struct ethhdr *eth;
	struct mac asker;
	__be32 target;
	void *data = header(skb, ETH_HLEN + sizeof(struct arp_ipv4));

	if (!data)
		return drop(skb, DIR_EGRESS, DROP_INVALID);
	eth = data;
	arp = data + ETH_HLEN;
	if (arp->op != bpf_htons(1) || arp->target_ip != node.gateway[0])
		return TC_ACT_OK;
	__builtin_memcpy(&asker, arp->sender_mac, sizeof(asker));
	target = arp->target_ip;
	__builtin_memcpy(eth->dst, &asker, ETH_ALEN);
	__builtin_memcpy(eth->src, own, ETH_ALEN);
	arp->op = bpf_htons(2);
	__builtin_memcpy(arp->target_mac, &asker, ETH_ALEN);
	arp->target_ip = arp->sender_ip;
	__builtin_memcpy(arp->sender_mac, own, ETH_ALEN);
	arp->sender_ip = target;
	count(skb, DIR_EGRESS, FORWARDED);
	return bpf_redirect(skb->ifindex, 0);
}

#endif

#endif
