/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Flows in LRU tables. A packet is looked for as a reply first (its tuple turned round, in the other direction's
 * entries), then as a packet of a flow in its own direction: a reply costs one lookup, a forward packet two.
 *
 *	pod A opens to pod B       entries (A>B, OUT) made at A, (A>B, IN) made at B
 *	  forward at A: (B>A, IN) misses, (A>B, OUT) hits      forward at B: (B>A, OUT) misses, (A>B, IN) hits
 *	  reply   at B: (A>B, IN) hits                         reply   at A: (A>B, OUT) hits
 */
#ifndef LAB_CILIUM_CONNTRACK_H
#define LAB_CILIUM_CONNTRACK_H

#include "node.h"

enum ct_status { CT_NEW, CT_ESTABLISHED, CT_REPLY, CT_IS_RELATED, CT_REOPENED };

enum { LIFETIME_TCP = 8000, LIFETIME_SYN = 60, LIFETIME_CLOSE = 10, LIFETIME_OTHER = 60 };

inlined void *ct_map(__u8 proto)
{
	if (proto == IPPROTO_TCP)
		return &cilium_ct;
	return &cilium_ct_any;
}

inlined void ct_turn(const struct ct_key *t, struct ct_key *turned, __u8 flags)
{
	turned->saddr = t->daddr;
	turned->daddr = t->saddr;
	turned->sport = t->dport;
	turned->dport = t->sport;
	turned->proto = t->proto;
	turned->flags = flags;
}

/* tcp_flags_of reads the flags of a packet, 0 without a TCP header. */
inlined __u8 tcp_flags_of(struct __sk_buff *skb, __u8 proto, __u32 l4)
{
	__u8 flags = 0;

	if (proto == IPPROTO_TCP && l4)
		bpf_skb_load_bytes(skb, l4 + offset_of(struct tcphdr, flags), &flags, 1);
	return flags;
}

inlined __u32 ct_lifetime(__u8 proto, int syn, int seen_non_syn)
{
	if (proto != IPPROTO_TCP)
		return LIFETIME_OTHER;
	return syn && !seen_non_syn ? LIFETIME_SYN : LIFETIME_TCP;
}

/* ct_ports fills in the ports, from the frame, or for a later fragment from what the first one left. Returns 0 or a
 * drop reason. *l4 becomes 0 where the frame has no transport header.
 */
inlined int ct_ports(struct __sk_buff *skb, const struct transport *tp, struct ct_key *t, __u32 *l4)
{
	struct l4_ports ports = {};
	struct frag_key key = {};

	key.saddr = t->saddr;
	key.daddr = t->daddr;
	key.id = tp->id;
	key.proto = tp->proto;
	if (tp->later) {
		struct l4_ports *known = bpf_map_lookup_elem(&cilium_frags, &key);

		if (!known)
			return DROP_FRAG_NOT_FOUND;
		t->sport = known->src;
		t->dport = known->dst;
		*l4 = 0;
		return 0;
	}
	if (bpf_skb_load_bytes(skb, *l4, &ports, sizeof(ports)))
		return DROP_CT_INVALID_HDR;
	t->sport = ports.src;
	t->dport = ports.dst;
	if (tp->fragment)
		bpf_map_update_elem(&cilium_frags, &key, &ports, BPF_ANY);
	return 0;
}

/* ct_tuple reads the flow of a packet. Returns 0 or a drop reason. */
inlined int ct_tuple(struct __sk_buff *skb, const ip_header *ip, struct ct_key *t, __u32 *l4)
{
	struct transport tp;
	struct icmphdr icmp;

	t->saddr = source(ip);
	t->daddr = destination(ip);
	if (transport_of(skb, ip, &tp))
		return DROP_INVALID_EXTHDR;
	t->proto = tp.proto;
	t->sport = 0;
	t->dport = 0;
	t->flags = 0;
	*l4 = tp.offset;
	switch (tp.proto) {
	case IPPROTO_TCP:
	case IPPROTO_UDP:
		return ct_ports(skb, &tp, t, l4);
	case PROTO_ICMP:
		if (tp.later)
			return DROP_FRAG_NOT_FOUND;
		if (bpf_skb_load_bytes(skb, *l4, &icmp, sizeof(icmp)))
			return DROP_CT_INVALID_HDR;
		if (icmp_is_error(icmp.type))
			t->flags = CT_RELATED;
		else if (icmp_echo(icmp.type) == 1)
			t->sport = icmp.id;
		else if (icmp_echo(icmp.type) == 2)
			t->dport = icmp.id;
		return 0;
	}
	return DROP_CT_UNKNOWN_PROTO;
}

/* How long a flow without new TCP flags is silent (monitor-aggregation-interval). */
#define REPORT_SECONDS 5

/* ct_report tells whether a message about a flow is due: one direction showed a TCP flag for the first time, or nothing was
 * told of it for a while.
 */
inlined __u8 ct_report(struct ct_entry *e, __u32 now, __u8 tcp_flags, int tx)
{
	__u8 seen = tx ? e->tx_flags_seen : e->rx_flags_seen;
	__u32 last = tx ? e->tx_reported : e->rx_reported;

	if (last + REPORT_SECONDS >= now && (seen | tcp_flags) == seen)
		return 0;
	if (tx)
		e->tx_reported = now;
	else
		e->rx_reported = now;
	return 1;
}

/* ct_touch is what every packet does to the entry that it hits. tx says that the packet goes in the entry's direction.
 * Returns false if the flow had ended and the packet opens it anew.
 */
inlined int ct_touch(struct __sk_buff *skb, struct ct_entry *e, __u32 now, __u8 proto, __u8 tcp_flags, int tx)
{
	__u16 both = CTF_RX_CLOSING | CTF_TX_CLOSING;
	int syn = proto == IPPROTO_TCP && (tcp_flags & (TCP_SYN | TCP_ACK)) == TCP_SYN;
	int reopened = 0;

	if (syn && (e->flags & both)) {
		e->flags &= ~(both | CTF_SEEN_NON_SYN);
		e->tx_flags_seen = 0;
		e->rx_flags_seen = 0;
		reopened = 1;
	}
	if (proto == IPPROTO_TCP) {
		if (!(tcp_flags & TCP_SYN))
			e->flags |= CTF_SEEN_NON_SYN;
		if (tx)
			e->tx_flags_seen |= tcp_flags;
		else
			e->rx_flags_seen |= tcp_flags;
	}
	if ((e->flags & both) != both)
		e->lifetime = now + ct_lifetime(proto, syn, e->flags & CTF_SEEN_NON_SYN);
	if (tcp_flags & TCP_RST)
		e->flags |= both;
	else if (tcp_flags & TCP_FIN)
		e->flags |= tx ? CTF_TX_CLOSING : CTF_RX_CLOSING;
	if ((tcp_flags & (TCP_RST | TCP_FIN)) && (e->flags & both) == both)
		e->lifetime = now + LIFETIME_CLOSE;
	__sync_fetch_and_add(&e->packets, 1);
	__sync_fetch_and_add(&e->bytes, skb->len);
	return !reopened;
}

/* ct_lookup finds the flow of a packet that leaves (CT_OUT) or enters (CT_IN) and copies its entry to state.
 * *report is set if a message about it is due.
 */
inlined int ct_lookup(struct __sk_buff *skb, const struct ct_key *t, __u8 direction, __u32 l4, struct ct_entry *state,
		      __u8 *report)
{
	void *map = ct_map(t->proto);
	__u8 related = t->flags & CT_RELATED, tcp_flags = 0;
	struct ct_key key;
	struct ct_entry *e;

	if (t->proto == IPPROTO_TCP && l4 &&
	    bpf_skb_load_bytes(skb, l4 + offset_of(struct tcphdr, flags), &tcp_flags, 1))
		return -DROP_CT_INVALID_HDR;
	ct_turn(t, &key, (direction == CT_OUT ? CT_IN : CT_OUT) | related);
	e = bpf_map_lookup_elem(map, &key);
	if (e) {
		__u32 now = now_seconds();
		int live;

		*report = ct_report(e, now, tcp_flags, 0);
		live = ct_touch(skb, e, now, t->proto, tcp_flags, 0);

		*state = *e;
		if (related)
			return CT_IS_RELATED;
		if (live)
			return CT_REPLY;
		/* An opener on the tuple of an ended flow in the other direction is a flow of its own. */
		return CT_NEW;
	}
	key = *t;
	key.flags = direction | related;
	e = bpf_map_lookup_elem(map, &key);
	*report = 1;
	if (!e)
		return CT_NEW;
	{
		__u32 now = now_seconds();
		int live;

		*report = ct_report(e, now, tcp_flags, 1);
		live = ct_touch(skb, e, now, t->proto, tcp_flags, 1);

		*state = *e;
		if (related)
			return CT_IS_RELATED;
		return live ? CT_ESTABLISHED : CT_REOPENED;
	}
}

/* ct_remember makes the entry of a flow. e has what is known of it beforehand. */
inlined int ct_remember(struct __sk_buff *skb, const struct ct_key *key, struct ct_entry *e)
{
	e->packets = 1;
	e->bytes = skb->len;
	e->tx_reported = now_seconds();
	e->lifetime = e->tx_reported + ct_lifetime(key->proto, 1, 0);
	if (key->proto == IPPROTO_TCP)
		e->tx_flags_seen = TCP_SYN;
	return bpf_map_update_elem(ct_map(key->proto), key, e, BPF_ANY) ? -DROP_CT_CREATE_FAILED : 0;
}

/* ct_create remembers a flow, and with it the ICMP errors that may come about it. state gives what is not counted. */
inlined int ct_create(struct __sk_buff *skb, const struct ct_key *t, __u8 direction, const struct ct_entry *state)
{
	struct ct_entry e = {};
	struct ct_key key = *t;

	e.backend_id = state->backend_id;
	e.flags = state->flags & (CTF_NODE_PORT | CTF_DSR | CTF_FROM_TUNNEL | CTF_LOOPBACK);
	e.rev_nat = state->rev_nat;
	e.nat_addr = state->nat_addr;
	e.nat_port = state->nat_port;
	e.src_identity = state->src_identity;
	key.flags = direction;
	if (ct_remember(skb, &key, &e))
		return -DROP_CT_CREATE_FAILED;
	key.proto = PROTO_ICMP;
	key.sport = 0;
	key.dport = 0;
	key.flags = direction | CT_RELATED;
	if (bpf_map_update_elem(&cilium_ct_any, &key, &e, BPF_ANY))
		return -DROP_CT_CREATE_FAILED;
	return 0;
}

#endif
