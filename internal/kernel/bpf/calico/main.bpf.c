//go:build ignore

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What happens to a packet on each kind of device. One main and one accepted program per kind.
 *
 *	pod ── cali in: from_workload ─┬─ open flow, pod of this node ──redirect_peer──► inside that pod
 *	                               ├─ new flow, pod of this node ──fib, redirect_neigh──► cali out: to_workload ─► pod
 *	                               ├─ pod behind the tunnel ──tunnel key 4096──► vxlan out: to_tunnel
 *	                               ├─ elsewhere ──fib, redirect_neigh──► eth0 out: to_host
 *	                               ├─ itself, by a service ──netfilter gives it the node's source──► cali out ─► the pod
 *	                               └─ this node, or to be masqueraded: up the stack, marked
 *	wire ── eth0 in: from_host ──► the same choices; VXLAN of known nodes goes to the kernel's device
 *	        vxlan in: from_tunnel ──► the same choices
 *	node's own UDP to a service ── bpfout in: from_service ──► the same choices
 */
#include "flow.h"
#include "nodeport.h"

#define TUNNEL_VNI 4096
#define VXLAN_PORT 4789

#define UNSEEN (-1)

/* parse fills st in. Returns 0, or the counter to drop under, or UNSEEN for what concerns the link alone. */
inlined int parse(struct __sk_buff *skb, struct state *st, int kind)
{
	struct l4_ports ports;
	struct icmphdr icmp;
	struct ip_facts f;

	if (read_ip(skb, &f))
		return DROP_MALFORMED;
	st->src = f.src;
	st->dst = f.dst;
	st->proto = f.proto;
	st->sport = 0;
	st->dport = 0;
	st->tcp_flags = 0;
	st->nat = NAT_NONE;
	st->nat_flags = 0;
	clear(&st->tunnel_ip);
	st->fwd_ifindex = 0;
	st->fwd_flags = 0;
	st->route_flags = 0;
	clear(&st->route_hop);
	st->l4 = f.l4;
	if (kind != FROM_WORKLOAD && is_link_address(&st->dst))
		return UNSEEN;
	if (f.later)
		return DROP_FRAGMENT;
	switch (st->proto) {
	case IPPROTO_TCP:
		if (bpf_skb_load_bytes(skb, st->l4 + offset_of(struct tcphdr, flags), &st->tcp_flags, 1))
			return DROP_MALFORMED;
		/* fallthrough */
	case IPPROTO_UDP:
		if (bpf_skb_load_bytes(skb, st->l4, &ports, sizeof(ports)))
			return DROP_MALFORMED;
		st->sport = ports.src;
		st->dport = ports.dst;
		return 0;
	case IPPROTO_CONTROL:
		if (bpf_skb_load_bytes(skb, st->l4, &icmp, sizeof(icmp)))
			return DROP_MALFORMED;
		return keeps_link(&f, icmp.type) ? UNSEEN : 0;
	}
	return DROP_PROTOCOL;
}

/* translate applies what the flow or the new choice of a backend says, to the packet and to st. */
inlined int translate(struct __sk_buff *skb, struct state *st)
{
	if (st->nat == NAT_DNAT) {
		if (set_port(skb, st->l4, 2, st->orig_dport, st->nat_port, st->proto) ||
		    set_destination(skb, &st->orig_dst, &st->nat_ip, st->l4, st->proto))
			return -1;
	} else if (st->nat == NAT_SNAT) {
		if (set_port(skb, st->l4, 0, st->sport, st->nat_port, st->proto) ||
		    set_source(skb, &st->src, &st->nat_ip, st->l4, st->proto))
			return -1;
	}
	return 0;
}

inlined int by_fib(struct __sk_buff *skb, const struct state *st, __u32 mark)
{
	struct bpf_fib_lookup fib = {};
	struct bpf_redir_neigh hop = {};
	ip_t *ip = ip_header(skb);
	long ret;

	if (!ip)
		return drop(DROP_MALFORMED);
	if (!take_hop(skb, ip))
		return drop(DROP_TTL);
	ip = ip_header(skb);
	if (!ip)
		return drop(DROP_MALFORMED);
	fib_between(&fib, &ip->saddr, &ip->daddr);
	fib.ifindex = skb->ingress_ifindex;
	ret = bpf_fib_lookup(skb, &fib, sizeof(fib), BPF_FIB_LOOKUP_SKIP_NEIGH);
	if (ret == -22)
		ret = bpf_fib_lookup(skb, &fib, sizeof(fib), 0);
	if (ret != BPF_FIB_LKUP_RET_SUCCESS && ret != BPF_FIB_LKUP_RET_NO_NEIGH)
		return drop(DROP_NO_ROUTE);
	skb->mark = mark;
	hop_of(&hop, &fib);
	count(PASSED_IN);
	return bpf_redirect_neigh(fib.ifindex, &hop, sizeof(hop), 0);
}

/* route_to notes what is known of an address. */
inlined void route_to(struct state *st, const addr_t *dst)
{
	struct route_value *r = route_of(dst);

	if (r) {
		st->route_flags = r->flags;
		st->route_hop = r->next_hop;
	} else {
		st->route_flags = 0;
		clear(&st->route_hop);
	}
}

/* forward is where a packet that came in goes. */
inlined int forward(struct __sk_buff *skb, struct state *st, int kind)
{
	__u32 mark = st->ct == CT_BYPASS ? MARK_BYPASS : MARK_SEEN;
	struct route_value *from;

	if (translate(skb, st))
		return drop(DROP_WRITE);
	if (st->nat_flags & CTV_SELF && kind == FROM_WORKLOAD && st->nat == NAT_DNAT) {
		skb->mark = MARK_SELF;
		count(PASSED_IN);
		return TC_ACT_OK;
	}
	if (st->ct == CT_BYPASS && st->fwd_flags & LEG_WORKLOAD) {
		ip_t *ip = ip_header(skb);

		if (!ip || !take_hop(skb, ip))
			return drop(DROP_TTL);
		/* A frame out of a tunnel is still addressed to a device of the other node. */
		if (kind == FROM_TUNNEL)
			bpf_skb_change_type(skb, PACKET_HOST);
		count(PASSED_IN);
		return bpf_redirect_peer(st->fwd_ifindex, 0);
	}
	if (st->nat_flags & CTV_VIA_TUNNEL && kind == FROM_WORKLOAD)
		return nodeport_return(skb, st);
	if (!st->route_flags || st->nat == NAT_DNAT) {
		route_to(st, st->nat == NAT_DNAT ? &st->nat_ip : &st->dst);
	}
	if ((st->route_flags & (ROUTE_LOCAL | ROUTE_HOST)) == (ROUTE_LOCAL | ROUTE_HOST)) {
		if (kind == FROM_TUNNEL)
			bpf_skb_change_type(skb, PACKET_HOST);
		skb->mark = mark;
		count(PASSED_IN);
		return TC_ACT_OK;
	}
	if (st->route_flags & ROUTE_TUNNELED && st->iface.tunnel) {
		if (set_key(skb, TUNNEL_VNI, &st->route_hop))
			return drop(DROP_WRITE);
		skb->mark = mark;
		count(PASSED_IN);
		return bpf_redirect(st->iface.tunnel, 0);
	}
	/* Whoever called the pod from outside the pools is answered as the pod. */
	if (kind == FROM_WORKLOAD && !(st->route_flags & ROUTE_IN_POOL) && !(st->fwd_flags & LEG_OPENER) && st->nat != NAT_SNAT) {
		from = route_of(&st->src);
		if (from && from->flags & ROUTE_NAT_OUT) {
			skb->mark = MARK_NAT_OUT;
			count(PASSED_IN);
			return TC_ACT_OK;
		}
	}
	return by_fib(skb, st, mark);
}

/* go is the end of every packet that may pass. */
inlined int go(struct __sk_buff *skb, struct state *st, int kind)
{
	struct route_value *r;

	if (!is_egress(kind))
		return forward(skb, st, kind);
	if (translate(skb, st))
		return drop(DROP_WRITE);
	if (kind == TO_TUNNEL && !(skb->mark & MARK_SEEN)) {
		/* The node's own packet was routed here; nobody has said yet to which node it goes. */
		r = route_of(&st->dst);
		if (!r || !(r->flags & ROUTE_TUNNELED))
			return drop(DROP_NO_ROUTE);
		if (set_key(skb, TUNNEL_VNI, &r->next_hop))
			return drop(DROP_WRITE);
	}
	count(PASSED_OUT);
	return TC_ACT_OK;
}

/* rpf: a pod speaks with its own address through its own device; nobody else speaks with a pod's of this node. */
inlined int rpf(struct __sk_buff *skb, const struct state *st, int kind)
{
	struct route_value *r = route_of(&st->src);
	__u32 own = ROUTE_LOCAL | ROUTE_WORKLOAD;

	if (kind == FROM_WORKLOAD)
		return r && (r->flags & own) == own && r->ifindex == skb->ifindex;
	return !r || (r->flags & own) != own;
}

inlined int new_flow(struct __sk_buff *skb, struct state *st, int kind)
{
	struct nat_be_value to = {};
	int ret;

	st->orig_dst = st->dst;
	st->orig_dport = st->dport;
	if (kind == FROM_WORKLOAD || kind == FROM_HOST || kind == TO_HOST || kind == FROM_SERVICE) {
		ret = st->proto == IPPROTO_CONTROL ? 0 : nat_backend(&st->src, &st->dst, st->dport, st->proto,
								  kind == FROM_HOST, is_set(&st->tunnel_ip), &to);
		if (ret < 0)
			return drop(DROP_NO_BACKEND);
		if (ret) {
			st->nat = NAT_DNAT;
			st->nat_ip = to.addr;
			st->nat_port = to.port;
			st->dst = to.addr;
			st->dport = to.port;
			if (kind == FROM_WORKLOAD && same(&st->src, &to.addr))
				st->nat_flags = CTV_SELF;
		}
	}
	if (!is_egress(kind)) {
		if (!rpf(skb, st, kind))
			return drop(DROP_SOURCE);
		route_to(st, &st->dst);
		if (kind == FROM_HOST && st->nat == NAT_DNAT && !(st->route_flags & ROUTE_LOCAL) && !is_set(&st->tunnel_ip)) {
			/* A backend elsewhere: the packet goes there as it is, and that node picks. */
			bpf_tail_call(skb, &cali_jump, JUMP_NODEPORT);
			return drop(DROP_JUMP);
		}
	}
	if (st->iface.policy) {
		bpf_tail_call(skb, &cali_jump, st->iface.policy);
		return drop(DROP_JUMP);
	}
	bpf_tail_call(skb, &cali_jump, JUMP_ACCEPTED(kind));
	return drop(DROP_JUMP);
}

inlined int main_of(struct __sk_buff *skb, int kind)
{
	struct state *st = state();
	addr_t via;
	int ret, inner = 0;

	if (!st)
		return drop(DROP_JUMP);
	if (skb->protocol != bpf_htons(ETH_P_OWN)) {
		/* ARP is the kernel's business; the other family has no tables here. */
		if (skb->protocol == bpf_htons(ETH_P_OTHER) && kind == FROM_WORKLOAD)
			return drop(DROP_PROTOCOL);
		return TC_ACT_OK;
	}
	if (is_egress(kind) && (skb->mark & MARK_BYPASS) == MARK_BYPASS)
		return TC_ACT_OK;
	ret = parse(skb, st, kind);
	if (ret == UNSEEN) {
		/* A pod's has to show at the stack's door that it came through here. */
		if (kind == FROM_WORKLOAD)
			skb->mark = MARK_SEEN;
		return TC_ACT_OK;
	}
	if (ret) {
		/* What the node's own stack sends or may still put together is not ours to refuse. */
		if (kind != FROM_WORKLOAD && (ret == DROP_PROTOCOL || ret == DROP_FRAGMENT))
			return TC_ACT_OK;
		return drop(ret);
	}
	if ((kind == FROM_HOST || kind == TO_HOST) && st->proto == IPPROTO_UDP && st->dport == bpf_htons(VXLAN_PORT)) {
		via = st->src;
		inner = 1;
		ret = nodeport_vxlan(skb, st, kind);
		if (ret != NODEPORT_INNER)
			return ret;
		ret = parse(skb, st, kind);
		if (ret)
			return drop(ret == UNSEEN ? DROP_PROTOCOL : ret);
	}
	st->accepted = JUMP_ACCEPTED(kind);
	st->orig_dst = st->dst;
	st->orig_dport = st->dport;
	st->ct = ct_find(skb, st, kind);
	if (inner)
		st->tunnel_ip = via;
	if (st->ct == CT_NEW)
		return new_flow(skb, st, kind);
	if (kind == FROM_HOST && st->nat_flags & CTV_TO_NODE) {
		bpf_tail_call(skb, &cali_jump, JUMP_NODEPORT);
		return drop(DROP_JUMP);
	}
	if (st->ct == CT_UNAPPROVED || st->ct == CT_SYN_AGAIN) {
		if (st->nat == NAT_DNAT) {
			st->dst = st->nat_ip;
			st->dport = st->nat_port;
		}
		if (st->iface.policy) {
			bpf_tail_call(skb, &cali_jump, st->iface.policy);
			return drop(DROP_JUMP);
		}
		bpf_tail_call(skb, &cali_jump, JUMP_ACCEPTED(kind));
		return drop(DROP_JUMP);
	}
	return go(skb, st, kind);
}

inlined int accepted_of(struct __sk_buff *skb, int kind)
{
	struct state *st = state();

	if (!st)
		return drop(DROP_JUMP);
	if (st->ct == CT_NEW) {
		__u8 flags = st->nat_flags & CTV_SELF;

		if (is_set(&st->tunnel_ip))
			flags |= st->iface.dsr ? CTV_DSR : CTV_VIA_TUNNEL;
		if (ct_create(skb, st, kind, flags))
			return drop(DROP_CREATE);
	} else if (ct_approve(skb, st, kind)) {
		return drop(DROP_CREATE);
	}
	return go(skb, st, kind);
}

#define HOOK(name, kind)					\
	SEC("tc") int name(struct __sk_buff *skb)		\
	{							\
		return main_of(skb, kind);			\
	}							\
	SEC("tc") int name##_accepted(struct __sk_buff *skb)	\
	{							\
		return accepted_of(skb, kind);			\
	}

HOOK(from_workload, FROM_WORKLOAD)
HOOK(to_workload, TO_WORKLOAD)
HOOK(from_host, FROM_HOST)
HOOK(to_host, TO_HOST)
HOOK(from_tunnel, FROM_TUNNEL)
HOOK(to_tunnel, TO_TUNNEL)
HOOK(from_service, FROM_SERVICE)

SEC("tc")
int denied(struct __sk_buff *skb)
{
	return drop(DROP_DENIED);
}

SEC("tc")
int nodeport(struct __sk_buff *skb)
{
	struct state *st = state();

	if (!st)
		return drop(DROP_JUMP);
	return nodeport_forward(skb, st);
}

char __license[] SEC("license") = "Dual BSD/GPL";
