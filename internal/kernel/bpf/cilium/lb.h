/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Services: a frontend is slot 0 of its address; the other slots name backends. Who asks (a socket, a pod's packet, a
 * packet from outside) decides the scope and how the backend is picked; the tables are the same.
 */
#ifndef LAB_CILIUM_LB_H
#define LAB_CILIUM_LB_H

#include "conntrack.h"

/* lb_any_port finds the frontend that answers for all other ports of an address. The lab has none, and the question is asked of each
 * packet from outside.
 */
inlined struct lb_service *lb_any_port(const struct lb_key *key)
{
	struct lb_key any = *key;

	any.dport = 0;
	any.proto = 0;
	return bpf_map_lookup_elem(&cilium_lb_services, &any);
}

/* lb_service finds the frontend, in the wanted scope. A frontend with one set of backends has the external scope only. */
inlined struct lb_service *lb_service(struct lb_key *key, __u8 scope)
{
	struct lb_service *svc;

	key->slot = 0;
	key->scope = SCOPE_EXTERNAL;
	svc = bpf_map_lookup_elem(&cilium_lb_services, key);
	if (!svc && scope == SCOPE_EXTERNAL)
		return lb_any_port(key);
	if (!svc || scope == SCOPE_EXTERNAL || !(svc->flags & SVC_TWO_SCOPES))
		return svc;
	key->scope = scope;
	return bpf_map_lookup_elem(&cilium_lb_services, key);
}

inlined struct lb_backend *lb_backend(__u32 id)
{
	return id ? bpf_map_lookup_elem(&cilium_lb_backends, &id) : 0;
}

/* lb_slot returns the id of backend number n (counted from 0) of a service, 0 if the slot is empty. */
inlined __u32 lb_slot(struct lb_key *key, const struct lb_service *svc, __u32 n)
{
	struct lb_service *slot;

	if (!svc->count)
		return 0;
	key->slot = 1 + n % svc->count;
	slot = bpf_map_lookup_elem(&cilium_lb_services, key);
	key->slot = 0;
	return slot ? slot->backend_id : 0;
}

inlined __u32 lb_random(struct lb_key *key, const struct lb_service *svc)
{
	return lb_slot(key, svc, bpf_get_prandom_u32());
}

/* lb_maglev asks the service's own table: the same flow finds the same backend at every node. */
inlined __u32 lb_maglev(const struct lb_service *svc, const struct ct_key *t)
{
	__u16 id = svc->rev_nat;
	void *inner = bpf_map_lookup_elem(&cilium_lb_maglev, &id);
	struct maglev_table *table;
	__u32 zero = 0, at;

	if (!inner)
		return 0;
	table = bpf_map_lookup_elem(inner, &zero);
	if (!table)
		return 0;
	/* The frontend's address is left out: the flow is the client's, whichever node it enters by. */
	at = flow_hash(t->saddr, ((__u32)t->sport << 16) | t->dport, t->proto, 0xc7a5f0e1) % MAGLEV_SIZE;
	/* The verifier does not follow the division; the compiler must not know that it need not be checked. */
	asm volatile("" : "+r"(at));
	if (at >= MAGLEV_SIZE)
		return 0;
	return table->backend[at];
}

inlined struct client client_of(struct addr a)
{
	struct client c = {};

	__builtin_memcpy(&c, &a, sizeof(a));
	return c;
}

inlined __u32 lb_affine(const struct lb_service *svc, struct client client, __u8 by_cookie)
{
	struct affinity_key key = { .client = client, .rev_nat = svc->rev_nat, .by_cookie = by_cookie };
	struct affinity_value *v;

	if (!(svc->flags & SVC_AFFINITY))
		return 0;
	v = bpf_map_lookup_elem(&cilium_lb_affinity, &key);
	if (!v || v->last_used + svc->backend_id <= now_seconds())
		return 0;
	return v->backend_id;
}

inlined void lb_remember(const struct lb_service *svc, struct client client, __u8 by_cookie, __u32 backend)
{
	struct affinity_key key = { .client = client, .rev_nat = svc->rev_nat, .by_cookie = by_cookie };
	struct affinity_value v = { .last_used = now_seconds(), .backend_id = backend };

	if (svc->flags & SVC_AFFINITY)
		bpf_map_update_elem(&cilium_lb_affinity, &key, &v, BPF_ANY);
}

/* lb_dnat sends the packet to the backend and turns the tuple to match. */
inlined int lb_dnat(struct __sk_buff *skb, struct ct_key *t, __u32 l4, struct addr address, __be16 port)
{
	if (l4 && set_port(skb, l4, 2, t->dport, port, t->proto))
		return -DROP_WRITE_ERROR;
	if (set_destination(skb, t->daddr, address, l4, t->proto))
		return -DROP_WRITE_ERROR;
	t->daddr = address;
	t->dport = port;
	return 0;
}

/* lb_snat makes the packet come from another address and port, which is how a reply is given its frontend back. */
inlined int lb_snat(struct __sk_buff *skb, struct ct_key *t, __u32 l4, struct addr address, __be16 port)
{
	if (l4 && set_port(skb, l4, 0, t->sport, port, t->proto))
		return -DROP_WRITE_ERROR;
	if (set_source(skb, t->saddr, address, l4, t->proto))
		return -DROP_WRITE_ERROR;
	t->saddr = address;
	t->sport = port;
	return 0;
}

/* lb_reverse gives a reply the address that the client spoke to. */
inlined int lb_reverse(struct __sk_buff *skb, struct ct_key *t, __u32 l4, __u16 rev_nat)
{
	struct lb_frontend *f = bpf_map_lookup_elem(&cilium_lb_reverse_nat, &rev_nat);

	if (!f)
		return 0;
	return lb_snat(skb, t, l4, f->address, f->port);
}

/* lb_flow picks the backend of a flow and keeps to it: a service entry in the flow table remembers the choice for as
 * long as the backend exists. Returns the backend's id, or 0 if there is none.
 */
inlined __u32 lb_flow(struct __sk_buff *skb, struct lb_key *key, const struct lb_service *svc, const struct ct_key *t,
		      __u32 l4, int maglev)
{
	struct ct_key k = *t;
	struct ct_entry *known, e = {};
	__u8 tcp_flags;
	__u32 id;

	k.flags = CT_SERVICE;
	tcp_flags = tcp_flags_of(skb, t->proto, l4);
	known = bpf_map_lookup_elem(ct_map(t->proto), &k);
	if (known && known->rev_nat == svc->rev_nat && known->lifetime >= now_seconds() &&
	    ct_touch(skb, known, now_seconds(), t->proto, tcp_flags, 1) && lb_backend(known->backend_id))
		return known->backend_id;
	id = lb_affine(svc, client_of(t->saddr), 0);
	if (!lb_backend(id)) {
		id = maglev ? lb_maglev(svc, t) : lb_random(key, svc);
		if (!lb_backend(id))
			return 0;
	}
	lb_remember(svc, client_of(t->saddr), 0, id);
	e.packets = 1;
	e.bytes = skb->len;
	e.backend_id = id;
	e.rev_nat = svc->rev_nat;
	e.lifetime = now_seconds() + ct_lifetime(t->proto, 1, 0);
	bpf_map_update_elem(ct_map(t->proto), &k, &e, BPF_ANY);
	return id;
}

#endif
