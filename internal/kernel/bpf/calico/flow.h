/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* One entry per flow for both directions, with a leg for each. The device at a leg's source approves that leg; when
 * both legs are approved the flow needs no further look at policy or route. A flow to a service has a second entry,
 * NAT_FWD, from the tuple that the client uses to the one that the backend sees.
 */
#ifndef LAB_CALICO_FLOW_H
#define LAB_CALICO_FLOW_H

#include "state.h"

inlined int lower(const addr_t *src, const addr_t *dst, __be16 sport, __be16 dport)
{
	return same(src, dst) ? sport < dport : below(src, dst);
}

inlined void ct_key_of(struct ct_key *k, __u8 proto, const addr_t *src, const addr_t *dst, __be16 sport,
		       __be16 dport)
{
	int first = lower(src, dst, sport, dport);

	k->proto = proto;
	k->addr_a = first ? *src : *dst;
	k->addr_b = first ? *dst : *src;
	k->port_a = first ? sport : dport;
	k->port_b = first ? dport : sport;
}

inlined void leg_see(struct leg *leg, struct __sk_buff *skb, __u8 tcp_flags)
{
	__u32 seen = leg->flags;

	leg->packets++;
	leg->bytes += skb->len;
	if (tcp_flags & TCP_SYN)
		seen |= LEG_SYN;
	if (tcp_flags & TCP_ACK)
		seen |= LEG_ACK;
	if (tcp_flags & TCP_FIN)
		seen |= LEG_FIN;
	if (tcp_flags & TCP_RST)
		seen |= LEG_RST;
	if (seen != leg->flags)
		leg->flags = seen;
}

/* ct_recycles says whether the packet opens a connection where both sides of the last one on its tuple have ended theirs. */
inlined int ct_recycles(const struct state *st, const struct ct_value *v)
{
	const __u32 ended = LEG_FIN | LEG_RST;

	return (st->tcp_flags & (TCP_SYN | TCP_ACK)) == TCP_SYN && v->a_to_b.flags & ended && v->b_to_a.flags & ended;
}

inlined int is_egress(int kind)
{
	return kind == TO_WORKLOAD || kind == TO_HOST || kind == TO_TUNNEL;
}

/* ct_find looks the flow up, counts the packet, and says in st what is to be done about addresses. An opener that finds
 * its flow ended begins a new one, which at a service may get another backend. A NAT_REV entry that is found first is no
 * opener's: whoever opens a connection to a service meets NAT_FWD before.
 */
inlined int ct_find(struct __sk_buff *skb, struct state *st, int kind)
{
	struct leg *src, *dst, *own;
	struct ct_value *v;
	struct ct_key k = {};
	int first;

	ct_key_of(&k, st->proto, &st->src, &st->dst, st->sport, st->dport);
	v = bpf_map_lookup_elem(&MAP(ct), &k);
	if (!v)
		return CT_NEW;
	v->last_seen = bpf_ktime_get_ns();
	first = lower(&st->src, &st->dst, st->sport, st->dport);
	if (v->type == CT_NAT_FWD) {
		struct ct_key rev = *ct_rev(v);

		v = bpf_map_lookup_elem(&MAP(ct), &rev);
		if (!v || v->type != CT_NAT_REV)
			return CT_NEW;
		if (ct_recycles(st, v)) {
			bpf_map_delete_elem(&MAP(ct), &k);
			bpf_map_delete_elem(&MAP(ct), &rev);
			return CT_NEW;
		}
		v->last_seen = bpf_ktime_get_ns();
		st->nat_flags = v->flags & CTV_SELF;
		first = same(&rev.addr_a, &st->src) && rev.port_a == st->sport;
		/* An answer that has its frontend's address back already is left alone. */
		if (!first && !(same(&rev.addr_b, &st->src) && rev.port_b == st->sport)) {
			first = same(&rev.addr_b, &st->dst) && rev.port_b == st->dport;
		} else {
			st->nat = NAT_DNAT;
			st->nat_ip = first ? rev.addr_b : rev.addr_a;
			st->nat_port = first ? rev.port_b : rev.port_a;
		}
	} else if (v->type == CT_NAT_REV) {
		if (!((first ? v->a_to_b.flags : v->b_to_a.flags) & LEG_OPENER)) {
			st->nat = NAT_SNAT;
			st->nat_ip = v->orig_ip;
			st->nat_port = v->orig_port;
			st->nat_flags = v->flags;
			st->tunnel_ip = v->tun_ip;
		}
	} else if (ct_recycles(st, v)) {
		bpf_map_delete_elem(&MAP(ct), &k);
		return CT_NEW;
	} else if (v->flags & CTV_TO_NODE && (first ? v->a_to_b.flags : v->b_to_a.flags) & LEG_OPENER) {
		st->nat_flags = v->flags;
		st->tunnel_ip = v->tun_ip;
	}
	src = first ? &v->a_to_b : &v->b_to_a;
	dst = first ? &v->b_to_a : &v->a_to_b;
	leg_see(src, skb, st->tcp_flags);
	if (st->tcp_flags & TCP_RST)
		v->rst_seen = bpf_ktime_get_ns();
	own = is_egress(kind) ? dst : src;
	st->fwd_ifindex = dst->ifindex;
	st->fwd_flags = dst->flags;
	if (!(own->flags & LEG_APPROVED))
		return CT_UNAPPROVED;
	if ((st->tcp_flags & (TCP_SYN | TCP_ACK)) == TCP_SYN)
		return CT_SYN_AGAIN;
	return src->flags & dst->flags & LEG_APPROVED ? CT_BYPASS : CT_ESTABLISHED;
}

/* leg_approve notes at the leg of this device that the flow may pass it. */
inlined void leg_approve(struct leg *leg, __u32 ifindex, int kind)
{
	leg->ifindex = ifindex;
	leg->flags |= LEG_APPROVED | (kind == FROM_WORKLOAD || kind == TO_WORKLOAD ? LEG_WORKLOAD : 0);
}

/* ct_approve finds the flow again, after policy, by the tuple that the backend sees. */
inlined int ct_approve(struct __sk_buff *skb, const struct state *st, int kind)
{
	struct ct_key k = {};
	struct ct_value *v;
	int first, egress = is_egress(kind);

	ct_key_of(&k, st->proto, &st->src, &st->dst, st->sport, st->dport);
	v = bpf_map_lookup_elem(&MAP(ct), &k);
	if (v && v->type == CT_NAT_FWD) {
		k = *ct_rev(v);
		v = bpf_map_lookup_elem(&MAP(ct), &k);
		if (!v)
			return -1;
		first = (same(&k.addr_a, &st->src) && k.port_a == st->sport) || (same(&k.addr_b, &st->dst) && k.port_b == st->dport);
	} else {
		first = lower(&st->src, &st->dst, st->sport, st->dport);
	}
	if (!v)
		return -1;
	leg_approve(first == !egress ? &v->a_to_b : &v->b_to_a, skb->ifindex, kind);
	return 0;
}

/* ct_create remembers a new flow. Behind a service it writes both entries. */
inlined int ct_create(struct __sk_buff *skb, const struct state *st, int kind, __u8 flags)
{
	struct ct_value v = {}, fwd = {};
	struct ct_key k = {}, client = {};
	int first = lower(&st->src, &st->dst, st->sport, st->dport), egress = is_egress(kind);
	struct leg leg = { .bytes = skb->len, .packets = 1, .flags = LEG_OPENER };

	ct_key_of(&k, st->proto, &st->src, &st->dst, st->sport, st->dport);
	v.last_seen = bpf_ktime_get_ns();
	v.flags = flags;
	if (st->tcp_flags & TCP_SYN)
		leg.flags |= LEG_SYN;
	if (first)
		v.a_to_b = leg;
	else
		v.b_to_a = leg;
	leg_approve(first == !egress ? &v.a_to_b : &v.b_to_a, skb->ifindex, kind);
	v.tun_ip = st->tunnel_ip;
	/* The node's own packets come from no device that could approve them. */
	if (egress && !(skb->mark & MARK_SEEN)) {
		if (first)
			v.a_to_b.flags |= LEG_APPROVED;
		else
			v.b_to_a.flags |= LEG_APPROVED;
	}
	if (st->nat == NAT_DNAT) {
		v.type = CT_NAT_REV;
		v.orig_ip = st->orig_dst;
		v.orig_port = st->orig_dport;
		fwd.type = CT_NAT_FWD;
		fwd.last_seen = v.last_seen;
		*ct_rev(&fwd) = k;
		ct_key_of(&client, st->proto, &st->src, &st->orig_dst, st->sport, st->orig_dport);
		if (bpf_map_update_elem(&MAP(ct), &client, &fwd, BPF_ANY))
			return -1;
	}
	return bpf_map_update_elem(&MAP(ct), &k, &v, BPF_ANY) ? -1 : 0;
}

#endif
