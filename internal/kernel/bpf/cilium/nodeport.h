/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The way in from outside: a packet for a frontend on eth0 is sent to a backend, and its reply is given the frontend's
 * address back.
 *
 *	C ─► A:port            backend on A             backend on B, SNAT              backend on B, DSR
 *	forward                DNAT; deliver            DNAT, SNAT to A; to B           DNAT, option on the first; to B
 *	who remembers          A: (C>pod) NODE_PORT     A: (C>pod) NODE_PORT, snat      B: (C>pod) DSR with A:port
 *	reply                  A at the pod: source     B ─► A: snat back, source       B at the pod: source A:port,
 *	                       A:port, to C             A:port, to C                    straight to C
 */
#ifndef LAB_CILIUM_NODEPORT_H
#define LAB_CILIUM_NODEPORT_H

#include "lb.h"

#define SNAT_TRIES 24

/* SNAT_POLITE is how many of them leave a port to a flow that has just closed. */
#define SNAT_POLITE 4

/* MARK_SNAT_DONE is on a packet that bears a source of the node's because snat_out has been here: it is not the node's own. */
#define MARK_SNAT_DONE 0x1500
/* MARK_OVERLAY is on what a tunnel sends. */
#define MARK_OVERLAY 0x0400

/* TUNNEL_PORT is where VXLAN's outer packets go, which are not translated. */
#define TUNNEL_PORT 8472

/* nodeport_inherit copies to a pod's new flow what the node's edge has noted about it. */
inlined void nodeport_inherit(const struct ct_key *t, struct ct_entry *fresh)
{
	struct ct_key key = *t;
	struct ct_entry *e;

	key.flags = CT_OUT;
	e = bpf_map_lookup_elem(ct_map(t->proto), &key);
	if (!e || !(e->flags & (CTF_NODE_PORT | CTF_DSR)))
		return;
	fresh->flags |= e->flags & (CTF_NODE_PORT | CTF_DSR);
	fresh->rev_nat = e->rev_nat;
	fresh->nat_addr = e->nat_addr;
	fresh->nat_port = e->nat_port;
}

/* nodeport_note keeps an edge's note about a flow up to date: made on its first packet, made anew when it reopens. */
inlined int nodeport_note(struct __sk_buff *skb, const struct ct_key *t, __u32 l4, const struct ct_entry *note)
{
	struct ct_key key = *t;
	__u8 tcp_flags = tcp_flags_of(skb, t->proto, l4);
	struct ct_entry *e;

	key.flags = CT_OUT;
	e = bpf_map_lookup_elem(ct_map(t->proto), &key);
	if (e && e->rev_nat == note->rev_nat && same(e->nat_addr, note->nat_addr) && e->nat_port == note->nat_port &&
	    ct_touch(skb, e, now_seconds(), t->proto, tcp_flags, 1))
		return 0;
	return ct_create(skb, t, CT_OUT, note);
}

/* snat_take takes a translated port from the flow that holds it, if that flow has ended: it was reset, its entry has
 * run out or, at last, both of its sides have closed. The last acknowledgement of a flow that has just closed may still
 * be under way, which is why other ports are tried first.
 *
 * created is the lock: who sets it to 0 hands the port on, and until then nobody takes the entry for its own.
 */
static __attribute__((noinline)) int snat_take(const struct ct_key *rev, struct nat_entry *held, int at_last)
{
	struct ct_key key = {
		.saddr = held->addr, .sport = held->port, .daddr = rev->saddr, .dport = rev->sport,
		.proto = rev->proto, .flags = CT_OUT,
	};
	struct ct_entry *e = bpf_map_lookup_elem(ct_map(rev->proto), &key);
	__u16 both = CTF_RX_CLOSING | CTF_TX_CLOSING;
	__u64 created = held->created;

	if (e && e->lifetime >= now_seconds() && !((e->tx_flags_seen | e->rx_flags_seen) & TCP_RST) &&
	    (!at_last || (e->flags & both) != both))
		return 0;
	if (!created || __sync_val_compare_and_swap(&held->created, created, 0) != created)
		return 0;
	bpf_map_delete_elem(&cilium_snat, &key);
	return 1;
}

inlined __u16 snat_clamp(__u32 port)
{
	__u32 range = (__u32)node.nat_max - node.nat_min + 1;

	if (port >= node.nat_min && port <= node.nat_max)
		return port;
	return node.nat_min + port % range;
}

/* snat_reserve finds a port for a flow, the client's own if it is free, and notes both directions. It is a global
 * function, so that the verifier walks the search once, and not for every kind of packet that comes here.
 */
__attribute__((noinline)) int snat_reserve(const struct ct_key *t, struct nat_entry *to)
{
	struct ct_key rev = { .flags = CT_IN }, fwd;
	struct nat_entry back = {}, *held;
	int i, taken = 0;
	__u32 port;

	if (!t || !to)
		return -DROP_NAT_NO_MAPPING; /* for the verifier */
	rev.saddr = t->daddr;
	rev.daddr = to->addr;
	rev.sport = t->dport;
	rev.proto = t->proto;
	back.addr = t->saddr;
	back.port = t->sport;
	port = bpf_ntohs(t->sport);
	fwd = *t;
	fwd.flags = CT_OUT;
	back.created = bpf_ktime_get_ns();
	for (i = 0; i < SNAT_TRIES && !taken; i++) {
		if (t->proto == PROTO_ICMP)
			rev.dport = t->sport;
		else
			rev.dport = bpf_htons(snat_clamp(port));
		held = bpf_map_lookup_elem(&cilium_snat, &rev);
		if (!held) {
			taken = !bpf_map_update_elem(&cilium_snat, &rev, &back, BPF_NOEXIST);
		} else if ((held->created && same(held->addr, t->saddr) && held->port == t->sport) ||
			   snat_take(&rev, held, i >= SNAT_POLITE)) {
			taken = !bpf_map_update_elem(&cilium_snat, &rev, &back, BPF_ANY);
		}
		port = bpf_get_prandom_u32() & 0xffff;
	}
	if (!taken)
		return -DROP_NAT_NO_MAPPING;
	to->created = back.created;
	to->port = rev.dport;
	if (bpf_map_update_elem(&cilium_snat, &fwd, to, BPF_ANY))
		return -DROP_NAT_NO_MAPPING;
	return 0;
}

/* snat_restore makes one half of a translation again where the table has forgotten it. */
inlined void snat_restore(struct addr from, __be16 sport, struct addr to, __be16 dport, __u8 proto, __u8 flags,
			  const struct nat_entry *half)
{
	struct ct_key key = { .saddr = from, .daddr = to, .sport = sport, .dport = dport, .proto = proto, .flags = flags };

	if (!bpf_map_lookup_elem(&cilium_snat, &key))
		bpf_map_update_elem(&cilium_snat, &key, half, BPF_NOEXIST);
}

/* snat_out translates the source of a packet that leaves as one of the node's own. */
inlined int snat_out(struct __sk_buff *skb, struct ct_key *t, __u32 l4, struct addr addr)
{
	struct ct_key fwd = *t;
	struct nat_entry *known, to = { .addr = addr };
	int ret;

	fwd.flags = CT_OUT;
	known = bpf_map_lookup_elem(&cilium_snat, &fwd);
	if (known && same(known->addr, addr)) {
		struct nat_entry back = { .created = bpf_ktime_get_ns(), .addr = t->saddr, .port = t->sport };

		to = *known;
		snat_restore(t->daddr, t->dport, to.addr, to.port, t->proto, CT_IN, &back);
	} else {
		ret = snat_reserve(t, &to);
		if (ret)
			return ret;
	}
	if (same(t->saddr, to.addr) && t->sport == to.port)
		return 0;
	return lb_snat(skb, t, l4, to.addr, to.port);
}

/* is_own says that an address is one of the node's. */
inlined int is_own(struct addr a)
{
	return same(a, constant(node.node_ip)) || same(a, constant(node.gateway));
}

/* own_touch tells the flow table about a packet of the node's own flow: of what leaves (tx), or of an answer. Pods' flows are in
 * the table already. It is a function of its own for its stack.
 */
static __attribute__((noinline)) int own_touch(struct __sk_buff *skb, const struct ct_key *key, __u32 l4, int tx)
{
	__u8 tcp_flags = tcp_flags_of(skb, key->proto, l4);
	struct ct_entry *e, fresh = {};

	e = bpf_map_lookup_elem(ct_map(key->proto), key);
	if (e) {
		__u32 now = now_seconds();

		ct_report(e, now, tcp_flags, tx);
		ct_touch(skb, e, now, key->proto, tcp_flags, tx);
		return 0;
	}
	return tx ? ct_remember(skb, key, &fresh) : 0;
}

/* snat_back undoes snat_out for a packet that comes back, whose translation held is. Returns 0 or -reason. */
inlined int snat_back(struct __sk_buff *skb, struct ct_key *t, __u32 l4, const struct nat_entry *held)
{
	struct nat_entry to = *held, out = { .created = to.created, .addr = t->daddr, .port = t->dport };

	snat_restore(to.addr, to.port, t->saddr, t->sport, t->proto, CT_OUT, &out);
	if (is_own(to.addr)) {
		struct ct_key flow = {
			.saddr = to.addr, .sport = to.port, .daddr = t->saddr, .dport = t->sport, .proto = t->proto, .flags = CT_OUT,
		};

		own_touch(skb, &flow, l4, 0);
	}
	if (same(t->daddr, to.addr) && t->dport == to.port)
		return 0;
	return lb_dnat(skb, t, l4, to.addr, to.port);
}

#endif
