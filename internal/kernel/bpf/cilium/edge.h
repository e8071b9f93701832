/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What a packet passes at the edge of a node, on whichever device it comes: frontends, translated sources, then a pod or the
 * stack.
 */
#ifndef LAB_CILIUM_EDGE_H
#define LAB_CILIUM_EDGE_H

#include "dsr.h"

enum { CALL_NETDEV = 1, CALL_OVERLAY = 2, CALL_HOST = 3, CALL_NAT_EGRESS = 4, CALL_DSR = 5, CALL_NAT_INGRESS = 6, CALL_NAT_FWD = 7,
       CALL_SNAT_FWD = 8 };

/* GO_ON means that the packet is nobody's frontend and takes the ordinary way. */
#define GO_ON (-2)

/* dsr_accept reads the option of a packet that another node balanced and notes what the reply's source must be. */
inlined int dsr_accept(struct __sk_buff *skb, const ip_header *ip, const struct ct_key *t, __u32 l4)
{
	struct ct_entry note = {};
	struct dsr_option opt;

	if (!dsr_read(skb, ip, &opt))
		return 0;
	note.flags = CTF_DSR;
	note.nat_addr = opt.addr;
	note.nat_port = opt.port;
	return nodeport_note(skb, t, l4, &note);
}

inlined int balance(struct __sk_buff *skb, struct ct_buffer *b, struct lb_key *key, const struct lb_service *svc)
{
	struct ct_entry note = {};
	struct lb_backend *backend;
	struct endpoint_info *ep;
	__u16 rev_nat = svc->rev_nat;
	int ret, dsr = node.dsr && (svc->flags & SVC_DSR);
	struct addr frontend = b->tuple.daddr;
	__be16 frontend_port = b->tuple.dport;

	backend = lb_backend(lb_flow(skb, key, svc, &b->tuple, b->l4, node.maglev));
	if (!backend)
		return drop(skb, DIR_INGRESS, DROP_NO_SERVICE);
	count(skb, DIR_SERVICE, FORWARDED);
	ret = lb_dnat(skb, &b->tuple, b->l4, backend->address, backend->port);
	if (ret)
		return drop(skb, DIR_INGRESS, -ret);
	ep = endpoint(b->tuple.daddr);
	if (dsr && !ep) {
		b->state.nat_addr = frontend;
		b->state.nat_port = frontend_port;
		bpf_tail_call(skb, &cilium_calls, CALL_DSR);
		return drop(skb, DIR_INGRESS, DROP_MISSED_TAIL_CALL);
	}
	note.flags = CTF_NODE_PORT;
	note.rev_nat = rev_nat;
	note.src_identity = ID_WORLD;
	ret = nodeport_note(skb, &b->tuple, b->l4, &note);
	if (ret)
		return drop(skb, DIR_INGRESS, -ret);
	if (ep)
		return GO_ON;
	bpf_tail_call(skb, &cilium_calls, CALL_NAT_EGRESS);
	return drop(skb, DIR_INGRESS, DROP_MISSED_TAIL_CALL);
}

/* nodeport asks of every packet that enters the node whether it belongs to a service. */
inlined int nodeport(struct __sk_buff *skb)
{
	ip_header *ip = ip_of(skb);
	struct lb_service *svc;
	struct lb_key key = {};
	struct ct_buffer *b;
	__u32 zero = 0;
	int ret;

	if (skb->cb[CB_SEEN]) /* it has been here */
		return GO_ON;
	b = bpf_map_lookup_elem(&cilium_scratch, &zero);
	if (!ip || !b)
		return drop(skb, DIR_INGRESS, DROP_INVALID);
	ret = ct_tuple(skb, ip, &b->tuple, &b->l4);
	if (ret == DROP_CT_UNKNOWN_PROTO)
		return GO_ON;
	if (ret)
		return drop(skb, DIR_INGRESS, ret);
	if (b->tuple.proto != PROTO_ICMP) {
		if (node.dsr) {
			ip = ip_of(skb);
			if (!ip)
				return drop(skb, DIR_INGRESS, DROP_INVALID);
			ret = dsr_accept(skb, ip, &b->tuple, b->l4);
			if (ret)
				return drop(skb, DIR_INGRESS, -ret);
		}
		key.address = b->tuple.daddr;
		key.dport = b->tuple.dport;
		key.proto = b->tuple.proto;
		svc = lb_service(&key, SCOPE_EXTERNAL);
		if (svc && svc->flags & SVC_NODEPORT)
			return balance(skb, b, &key, svc);
	}
	bpf_tail_call(skb, &cilium_calls, CALL_NAT_INGRESS);
	return drop(skb, DIR_INGRESS, DROP_MISSED_TAIL_CALL);
}

/* nat_egress sends a balanced packet to another node as if this node were the client. */
SEC("tc")
int nat_egress(struct __sk_buff *skb)
{
	struct ipcache_entry *peer;
	struct ct_buffer *b;
	__u32 zero = 0;
	int ret;

	b = bpf_map_lookup_elem(&cilium_scratch, &zero);
	if (!b)
		return drop(skb, DIR_INGRESS, DROP_INVALID);
	peer = ipcache(b->tuple.daddr);
	ret = snat_out(skb, &b->tuple, b->l4, constant(tunnelled(peer) ? node.gateway : node.node_ip));
	if (ret)
		return drop(skb, DIR_INGRESS, -ret);
	skb->mark = MARK_SNAT_DONE;
	if (tunnelled(peer))
		return encapsulate(skb, peer, ID_WORLD, DIR_EGRESS);
	return route(skb, DIR_EGRESS);
}

/* dsr sends a balanced packet to another node with the client's address; the first packet of a TCP flow, and every
 * one of UDP, says in an option what the client spoke to.
 */
SEC("tc")
int dsr(struct __sk_buff *skb)
{
	struct ct_buffer *b;
	__u8 tcp_flags = TCP_SYN;
	__u32 zero = 0;
	int ret;

	b = bpf_map_lookup_elem(&cilium_scratch, &zero);
	if (!b)
		return drop(skb, DIR_INGRESS, DROP_INVALID);
	if (b->tuple.proto == IPPROTO_TCP)
		tcp_flags = 0;
	if (b->tuple.proto == IPPROTO_TCP && b->l4 &&
	    bpf_skb_load_bytes(skb, b->l4 + offset_of(struct tcphdr, flags), &tcp_flags, 1))
		return drop(skb, DIR_INGRESS, DROP_INVALID);
	if ((tcp_flags & (TCP_SYN | TCP_ACK)) != TCP_SYN)
		return route(skb, DIR_EGRESS);
	ret = dsr_write(skb, b->state.nat_addr, b->state.nat_port);
	if (ret)
		return drop(skb, DIR_INGRESS, ret);
	return route(skb, DIR_EGRESS);
}

/* again begins anew with a packet, which passes the services by. */
inlined int again(struct __sk_buff *skb)
{
	skb->cb[CB_SEEN] = 1;
	bpf_tail_call(skb, &cilium_calls, skb->cb[CB_FROM_TUNNEL] ? CALL_OVERLAY : CALL_NETDEV);
	return drop(skb, DIR_INGRESS, DROP_MISSED_TAIL_CALL);
}

/* nat_ingress gives a reply the address of whom it is for. A client outside gets it under the frontend's address. Replies to a
 * masqueraded pod or to the node itself begin anew. Every packet that no frontend is for comes here, and one that is no such
 * reply begins anew, too.
 */
SEC("tc")
int nat_ingress(struct __sk_buff *skb)
{
	struct ct_key turned, rev;
	ip_header *ip = ip_of(skb);
	struct nat_entry *held;
	struct ct_entry *e;
	struct ct_buffer *b;
	__u32 zero = 0;
	int ret;

	b = bpf_map_lookup_elem(&cilium_scratch, &zero);
	if (!ip || !b)
		return drop(skb, DIR_INGRESS, DROP_INVALID);
	ret = ct_tuple(skb, ip, &b->tuple, &b->l4);
	if (ret)
		return drop(skb, DIR_INGRESS, ret);
	rev = b->tuple;
	rev.flags = CT_IN;
	held = bpf_map_lookup_elem(&cilium_snat, &rev);
	if (!held)
		return again(skb);
	ret = snat_back(skb, &b->tuple, b->l4, held);
	if (ret)
		return drop(skb, DIR_INGRESS, -ret);
	ct_turn(&b->tuple, &turned, CT_OUT);
	e = bpf_map_lookup_elem(ct_map(turned.proto), &turned);
	if (!e || !(e->flags & CTF_NODE_PORT))
		return again(skb);
	ct_touch(skb, e, now_seconds(), turned.proto, tcp_flags_of(skb, turned.proto, b->l4), 0);
	ret = lb_reverse(skb, &b->tuple, b->l4, e->rev_nat);
	if (ret)
		return drop(skb, DIR_INGRESS, -ret);
	return route(skb, DIR_EGRESS);
}

/* to_pod delivers to a pod of this node, and gives everything else to the stack. */
inlined int to_pod(struct __sk_buff *skb, __u32 identity)
{
	ip_header *ip = ip_of(skb);
	struct endpoint_info *ep;

	if (!ip)
		return drop(skb, DIR_INGRESS, DROP_INVALID);
	ep = endpoint(destination(ip));
	if (!ep || ep->flags & ENDPOINT_HOST) {
		/* A frame out of a tunnel carries a MAC of another node; the stack would think it is for somebody else. */
		if (skb->cb[CB_FROM_TUNNEL])
			bpf_skb_change_type(skb, PACKET_HOST);
		count(skb, DIR_INGRESS, FORWARDED);
		return TC_ACT_OK;
	}
	ip = ip_of(skb);
	if (!ip)
		return drop(skb, DIR_INGRESS, DROP_INVALID);
	return deliver(skb, ip, ep, identity, DIR_INGRESS);
}

/* ask_frontend asks of a packet that leaves whether it answers a client of a frontend. The pod's program has given those that do
 * their source, so nothing is left to do.
 */
inlined void ask_frontend(struct __sk_buff *skb)
{
	ip_header *ip = ip_of(skb);
	struct ct_key t = {}, turned = {};
	__u32 l4;

	if (!ip || ct_tuple(skb, ip, &t, &l4))
		return;
	ct_turn(&t, &turned, CT_OUT);
	bpf_map_lookup_elem(ct_map(t.proto), &turned);
}

#endif
