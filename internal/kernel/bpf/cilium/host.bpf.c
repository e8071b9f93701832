//go:build ignore

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The programs of a node's own devices, loaded once per node.
 *
 *	        ┌──────────── node ───────────────────────────────────────────┐
 *	 wire ──┤ eth0   in: from_netdev ─► [frontend] ─► pod, or the stack   │
 *	        │        out: to_netdev  ◄─ [masquerade]                      │
 *	        │ cilium_vxlan  in: from_overlay ─► pod, or the stack         │
 *	        │               out: to_overlay                               │
 *	 stack ─┤ cilium_host   out: from_host ─► pod, or encapsulate         │
 *	        │               in: to_host       cilium_net  in: to_host     │
 *	        └─────────────────────────────────────────────────────────────┘
 * "pod" is always the tail call to the program that guards it (lxc.bpf.c, policy).
 */
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

SEC("tc")
int from_netdev(struct __sk_buff *skb)
{
	clear_cb(skb);
	received(skb);
	if (skb->protocol != bpf_htons(L3_PROTO))
		return TC_ACT_OK;
	bpf_tail_call(skb, &cilium_calls, CALL_NETDEV);
	return drop(skb, DIR_INGRESS, DROP_MISSED_TAIL_CALL);
}

SEC("tc")
int handle_netdev(struct __sk_buff *skb)
{
	ip_header *ip;
	__u32 identity;
	int ret;

	if (node.nodeport || node.masquerade) {
		ret = nodeport(skb);
		if (ret != GO_ON)
			return ret;
	}
	ip = ip_of(skb);
	if (!ip)
		return drop(skb, DIR_INGRESS, DROP_INVALID);
	identity = identity_of(source(ip));
	if (!node.host_routing) {
		/* Legacy: the stack routes it to cilium_host, and from_host delivers. */
		count(skb, DIR_INGRESS, FORWARDED);
		return TC_ACT_OK;
	}
	return to_pod(skb, identity);
}

/* is_native says that an address is inside the prefix that knows pods by their own. */
inlined int is_native(struct addr a)
{
	int i, differ = 0;

#pragma unroll
	for (i = 0; i < WORDS; i++)
		differ |= (a.w[i] & node.native_mask[i]) ^ node.native_cidr[i];
	return !differ;
}

/* own_flow notes what the node sends of its own accord from a port out of which translated flows are given theirs: the
 * port is reserved, or the packet gets another where a flow of somebody else has it already. Without this the answer to
 * the one would be taken for an answer to the other.
 */
inlined int own_flow(struct __sk_buff *skb, const ip_header *ip, struct addr own)
{
	struct ct_key t = {};
	__u32 l4;
	int ret;

	ret = ct_tuple(skb, ip, &t, &l4);
	if (ret)
		return ret == DROP_CT_UNKNOWN_PROTO ? TC_ACT_OK : drop(skb, DIR_EGRESS, ret);
	if ((t.proto != IPPROTO_TCP && t.proto != IPPROTO_UDP) || bpf_ntohs(t.sport) < node.nat_min)
		return TC_ACT_OK;
	if (node.tunnel && t.proto == IPPROTO_UDP && t.dport == bpf_htons(TUNNEL_PORT))
		return TC_ACT_OK;
	t.flags = CT_OUT;
	ret = own_touch(skb, &t, l4, 1);
	if (!ret)
		ret = snat_out(skb, &t, l4, own);
	return ret ? drop(skb, DIR_EGRESS, -ret) : TC_ACT_OK;
}

/* masquerade gives a pod's packet to the world the node's address. */
inlined int masquerade(struct __sk_buff *skb, struct ct_buffer *b)
{
	struct ipcache_entry *peer;
	struct endpoint_info *ep;
	struct ct_key turned;
	ip_header *ip = ip_of(skb);
	int ret;

	if (!ip)
		return TC_ACT_OK;
	endpoint(source(ip)); /* whether the node itself sends, which its address says as well */
	if (same(source(ip), constant(node.node_ip)))
		return own_flow(skb, ip, constant(node.node_ip));
	ep = endpoint(source(ip));
	if (!ep || ep->flags & ENDPOINT_HOST)
		return TC_ACT_OK;
	ip = ip_of(skb);
	if (!ip)
		return TC_ACT_OK;
	ret = ct_tuple(skb, ip, &b->tuple, &b->l4);
	if (ret)
		return ret == DROP_CT_UNKNOWN_PROTO ? TC_ACT_OK : drop(skb, DIR_EGRESS, ret);
	ct_turn(&b->tuple, &turned, CT_IN);
	if (bpf_map_lookup_elem(ct_map(b->tuple.proto), &turned))
		return TC_ACT_OK; /* the answer of a pod that was asked from outside */
	if (is_native(b->tuple.daddr))
		return TC_ACT_OK;
	peer = ipcache(b->tuple.daddr);
	/* Behind a tunnel another node has no way back to the pod's own address. */
	if (peer && peer->identity != ID_WORLD && peer->identity != ID_UNKNOWN &&
	    !(node.tunnel && peer->identity == ID_REMOTE_NODE))
		return TC_ACT_OK;
	ret = snat_out(skb, &b->tuple, b->l4, constant(node.node_ip));
	return ret ? drop(skb, DIR_EGRESS, -ret) : TC_ACT_OK;
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

SEC("tc")
int nat_fwd(struct __sk_buff *skb)
{
	ask_frontend(skb);
	bpf_tail_call(skb, &cilium_calls, CALL_SNAT_FWD);
	return drop(skb, DIR_EGRESS, DROP_MISSED_TAIL_CALL);
}

SEC("tc")
int snat_fwd(struct __sk_buff *skb)
{
	ip_header *ip = ip_of(skb);
	struct ct_buffer *b;
	__u32 zero = 0;
	int ret;

	b = bpf_map_lookup_elem(&cilium_scratch, &zero);
	if (!b || !ip)
		return drop(skb, DIR_EGRESS, DROP_INVALID);
	/* The pod that sends is asked for a device of its own to leave by, which pods have on some clouds, and none has here. */
	endpoint(source(ip));
	ret = masquerade(skb, b);
	if (ret != TC_ACT_OK)
		return ret;
	count(skb, DIR_EGRESS, FORWARDED);
	return TC_ACT_OK;
}

SEC("tc")
int to_netdev(struct __sk_buff *skb)
{
	clear_cb(skb);
	if ((node.masquerade || node.nodeport) && skb->protocol == bpf_htons(L3_PROTO) &&
	    skb->mark != MARK_SNAT_DONE && skb->mark != MARK_OVERLAY) {
		bpf_tail_call(skb, &cilium_calls, CALL_NAT_FWD);
		return drop(skb, DIR_EGRESS, DROP_MISSED_TAIL_CALL);
	}
	count(skb, DIR_EGRESS, FORWARDED);
	return TC_ACT_OK;
}

SEC("tc")
int from_overlay(struct __sk_buff *skb)
{
	clear_cb(skb);
	received(skb);
	if (skb->protocol != bpf_htons(L3_PROTO))
		return TC_ACT_OK;
	skb->cb[CB_FROM_TUNNEL] = 1;
	bpf_tail_call(skb, &cilium_calls, CALL_OVERLAY);
	return drop(skb, DIR_INGRESS, DROP_MISSED_TAIL_CALL);
}

SEC("tc")
int handle_overlay(struct __sk_buff *skb)
{
	struct bpf_tunnel_key key = {};
	int ret;

	if (node.nodeport) {
		ret = nodeport(skb);
		if (ret != GO_ON)
			return ret;
	}
	if (bpf_skb_get_tunnel_key(skb, &key, sizeof(key), 0) &&
	    bpf_skb_get_tunnel_key(skb, &key, sizeof(key), BPF_F_TUNINFO_IPV6))
		return drop(skb, DIR_INGRESS, DROP_NO_TUNNEL_KEY);
	return to_pod(skb, key.tunnel_id);
}

SEC("tc")
int to_overlay(struct __sk_buff *skb)
{
	ip_header *ip;

	if (node.nodeport && skb->protocol == bpf_htons(L3_PROTO) && skb->mark != MARK_SNAT_DONE) {
		ask_frontend(skb);
		ip = ip_of(skb);
		if (ip && same(source(ip), constant(node.gateway))) {
			int ret = own_flow(skb, ip, constant(node.gateway));

			if (ret != TC_ACT_OK)
				return ret;
		}
	}
	skb->mark = MARK_OVERLAY;
	count(skb, DIR_EGRESS, FORWARDED);
	return TC_ACT_OK;
}

/* from_host sees what the node's stack sends towards pods: its own packets, and under legacy routing those of others. */
SEC("tc")
int from_host(struct __sk_buff *skb)
{
	clear_cb(skb);
	received(skb);
	if (skb->protocol != bpf_htons(L3_PROTO))
		return TC_ACT_OK;
	skb->cb[CB_NOT_INGRESS] = 1;
	bpf_tail_call(skb, &cilium_calls, CALL_HOST);
	return drop(skb, DIR_EGRESS, DROP_MISSED_TAIL_CALL);
}

SEC("tc")
int handle_host(struct __sk_buff *skb)
{
	struct ipcache_entry *peer;
	struct endpoint_info *ep;
	ip_header *ip = ip_of(skb);
	__u32 identity;

	if (!ip)
		return drop(skb, DIR_EGRESS, DROP_INVALID);
	if (is_multicast(destination(ip)))
		return TC_ACT_OK; /* the stack's talk with its neighbours, of which this device has none */
	identity = identity_of(source(ip));
	ip = ip_of(skb);
	if (!ip)
		return drop(skb, DIR_EGRESS, DROP_INVALID);
	ep = endpoint(destination(ip));
	if (ep && !(ep->flags & ENDPOINT_HOST)) {
		ip = ip_of(skb);
		if (!ip)
			return drop(skb, DIR_EGRESS, DROP_INVALID);
		return deliver(skb, ip, ep, identity, DIR_EGRESS);
	}
	ip = ip_of(skb);
	if (!ip)
		return drop(skb, DIR_EGRESS, DROP_INVALID);
	peer = ipcache(destination(ip));
	if (tunnelled(peer))
		return encapsulate(skb, peer, identity, DIR_EGRESS);
	if (!ep)
		return drop(skb, DIR_EGRESS, DROP_UNKNOWN_ENDPOINT);
	count(skb, DIR_EGRESS, FORWARDED);
	return TC_ACT_OK;
}

SEC("tc")
int to_host(struct __sk_buff *skb)
{
	count(skb, DIR_INGRESS, FORWARDED);
	return TC_ACT_OK;
}

char __license[] SEC("license") = "Dual BSD/GPL";
