//go:build ignore

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The programs of one endpoint. They are loaded once per pod, with the pod's own constants, policy and tail calls;
 * all other tables are the node's.
 *
 *	pod                     node's namespace                                another pod, or away
 *	eth0 ── lxc ingress, or netkit peer ─► from_container
 *	                          │ tail call
 *	                       ip: source check, [service], flow, policy out
 *	                          │
 *	                          ├─ local pod: TTL, MACs ─ tail call by endpoint id ─► policy (of that pod):
 *	                          │                             flow, policy in, redirect_peer ─► its eth0
 *	                          ├─ tunnel:  set_tunnel_key, redirect ─► cilium_vxlan
 *	                          ├─ native:  fib_lookup, redirect_neigh ─► eth0
 *	                          └─ legacy, or the node itself: up the stack
 */
#include "lb.h"
#include "policy.h"
#include "neighbour.h"
#include "nodeport.h"

struct endpoint_config {
	__be32	ip[4];
	__u32	identity;
	__u32	ifindex;
	__u16	id;
	struct mac host_mac; /* of the host's end; what the answer for the gateway says */
	__u8	netkit;      /* the pod's device is one: from_container runs as the pod sends */
	__u8	pad[3];
};

volatile const struct endpoint_config self;

/* Who a pod is to itself when a service led it to itself: 169.254.42.1, or an address of the prefix that RFC 9780 keeps
 * for dummies, 100:0:0:1::2a01.
 */
#ifdef IPV6
#define LOOPBACK ((struct addr){{ bpf_htonl(0x01000000), bpf_htonl(1), 0, bpf_htonl(0x2a01) }})
#else
#define LOOPBACK ((struct addr){{ bpf_htonl(0xa9fe2a01) }})
#endif

enum { CALL_IP = 1, CALL_NEIGHBOUR = 2, CALL_IP_CONT = 3, CALL_REVERSE = 4, CALL_ARRIVE = 5, CALL_ADMIT = 6 };

/* begin is how the pod's program does. */
inlined int begin(struct __sk_buff *skb)
{
	clear_cb(skb);
	pull(skb);
	if (self.netkit)
		skb->cb[CB_NOT_INGRESS] = 1;
	switch (skb->protocol) {
	case bpf_htons(L3_PROTO):
		bpf_tail_call(skb, &cilium_calls, CALL_IP);
		return drop(skb, DIR_EGRESS, DROP_MISSED_TAIL_CALL);
#ifndef IPV6
	case bpf_htons(ETH_P_ARP):
		bpf_tail_call(skb, &cilium_calls, CALL_NEIGHBOUR);
		return drop(skb, DIR_EGRESS, DROP_MISSED_TAIL_CALL);
#endif
	}
	return drop(skb, DIR_EGRESS, DROP_UNKNOWN_L3);
}

SEC("tc")
int from_container(struct __sk_buff *skb)
{
	return begin(skb);
}

/* from_container_marked says who sends, which to_netdev of a node that encrypts asks. */
SEC("tc")
int from_container_marked(struct __sk_buff *skb)
{
	skb->mark = identity_mark(self.identity);
	return begin(skb);
}

/* handle_neighbour answers for the gateway. */
SEC("tc")
int handle_neighbour(struct __sk_buff *skb)
{
	struct mac own;
	int i;

	/* Byte by byte: a copy that casts volatile away would see the zeros of the source file. */
	for (i = 0; i < ETH_ALEN; i++)
		own.addr[i] = self.host_mac.addr[i];
	return answer_neighbour(skb, &own);
}

/* packet_lb translates a packet for a service that the pod's socket did not translate. */
inlined int packet_lb(struct __sk_buff *skb, struct ct_buffer *b)
{
	struct lb_key key = { .address = b->tuple.daddr, .dport = b->tuple.dport, .proto = b->tuple.proto };
	struct lb_service *svc;
	struct lb_backend *backend;
	__u16 rev_nat;
	__u32 id;
	int ret;

	if (b->tuple.proto == PROTO_ICMP)
		return 0;
	svc = lb_service(&key, SCOPE_INTERNAL);
	if (!svc)
		return 0;
	rev_nat = svc->rev_nat;
	id = lb_flow(skb, &key, svc, &b->tuple, b->l4, 0);
	backend = lb_backend(id);
	if (!backend)
		return DROP_NO_SERVICE;
	b->state.rev_nat = rev_nat;
	ret = lb_dnat(skb, &b->tuple, b->l4, backend->address, backend->port);
	if (ret)
		return -ret;
	if (same(backend->address, constant(self.ip))) {
		/* A pod that is its own backend must not see itself as the client, or it would answer itself. */
		b->state.flags |= CTF_LOOPBACK;
		ret = lb_snat(skb, &b->tuple, b->l4, LOOPBACK, b->tuple.sport);
	}
	return -ret;
}

inlined int leave(struct __sk_buff *skb, struct ct_buffer *b, const struct ipcache_entry *peer)
{
	struct endpoint_info *ep;
	ip_header *ip;

	/* The reply of a pod that is its own backend goes back to itself. */
	ep = endpoint(node.packet_lb && same(b->tuple.daddr, LOOPBACK) ? constant(self.ip) : b->tuple.daddr);
	if (ep) {
		if (ep->flags & ENDPOINT_HOST) {
			count(skb, DIR_EGRESS, FORWARDED);
			return TC_ACT_OK;
		}
		ip = ip_of(skb);
		if (!ip)
			return drop(skb, DIR_EGRESS, DROP_INVALID);
		return deliver(skb, ip, ep, self.identity, DIR_EGRESS);
	}
	if (b->report)
		trace(skb, tunnelled(peer) ? TO_OVERLAY : node.host_routing ? TO_NETWORK : TO_STACK, self.identity,
		      peer ? peer->identity : ID_WORLD, self.id, 0);
	if (tunnelled(peer))
		return encapsulate(skb, peer, self.identity, DIR_EGRESS);
	if (node.host_routing)
		return route(skb, DIR_EGRESS);
	count(skb, DIR_EGRESS, FORWARDED);
	return TC_ACT_OK;
}

/* go_on is the second half of a pod's packet, after its flow is known. */
inlined int go_on(struct __sk_buff *skb)
{
	struct ct_buffer *b;
	struct ipcache_entry *peer;
	__u32 zero = 0, identity;
	int ret;

	b = bpf_map_lookup_elem(&cilium_scratch, &zero);
	if (!b)
		return drop(skb, DIR_EGRESS, DROP_INVALID);
	peer = ipcache(b->tuple.daddr);
	identity = peer && peer->identity ? peer->identity : ID_WORLD;
	switch (b->status) {
	case CT_REPLY:
		if (b->state.flags & (CTF_NODE_PORT | CTF_DSR)) {
			bpf_tail_call(skb, &cilium_calls, CALL_REVERSE);
			return drop(skb, DIR_EGRESS, DROP_MISSED_TAIL_CALL);
		}
		break;
	case CT_IS_RELATED:
		break;
	default:
		ret = policy_verdict(skb, self.id, identity, 1, b->tuple.proto, b->tuple.dport);
		if (ret && !(b->state.flags & CTF_LOOPBACK))
			return drop(skb, DIR_EGRESS, ret);
		if (b->status == CT_NEW) {
			b->state.src_identity = self.identity;
			ret = ct_create(skb, &b->tuple, CT_OUT, &b->state);
			if (ret)
				return drop(skb, DIR_EGRESS, -ret);
		}
	}
	return leave(skb, b, peer);
}

SEC("tc")
int handle_ip(struct __sk_buff *skb)
{
	ip_header *ip = ip_of(skb);
	struct ct_buffer *b;
	__u32 zero = 0;
	int ret;

	if (!ip)
		return drop(skb, DIR_EGRESS, DROP_INVALID);
	if (is_neighbour_message(skb, ip)) {
		bpf_tail_call(skb, &cilium_calls, CALL_NEIGHBOUR);
		return drop(skb, DIR_EGRESS, DROP_MISSED_TAIL_CALL);
	}
	if (!same(source(ip), constant(self.ip)))
		return drop(skb, DIR_EGRESS, is_on_link(source(ip)) ? LINK_LOCAL : DROP_INVALID_SIP);
	b = bpf_map_lookup_elem(&cilium_scratch, &zero);
	if (!b)
		return drop(skb, DIR_EGRESS, DROP_INVALID);
	__builtin_memset(&b->state, 0, sizeof(b->state));
	ret = ct_tuple(skb, ip, &b->tuple, &b->l4);
	if (ret)
		return drop(skb, DIR_EGRESS, ret);
	if (node.packet_lb) {
		ret = packet_lb(skb, b);
		if (ret)
			return drop(skb, DIR_EGRESS, ret);
	}
	{
		struct ct_entry found = {};
		__u16 rev_nat = b->state.rev_nat, flags = b->state.flags;

		ret = ct_lookup(skb, &b->tuple, CT_OUT, b->l4, &found, &b->report);
		if (ret < 0)
			return drop(skb, DIR_EGRESS, -ret);
		b->status = ret;
		b->state = found;
		if (ret == CT_NEW) {
			/* What a new flow is to remember is what the service stage found, not an old entry. */
			__builtin_memset(&b->state, 0, sizeof(b->state));
			b->state.rev_nat = rev_nat;
			b->state.flags = flags;
		}
	}
	if (!node.packet_lb)
		return go_on(skb);
	bpf_tail_call(skb, &cilium_calls, CALL_IP_CONT);
	return drop(skb, DIR_EGRESS, DROP_MISSED_TAIL_CALL);
}

SEC("tc")
int handle_ip_cont(struct __sk_buff *skb)
{
	return go_on(skb);
}

/* reverse gives the reply of a service client from outside the frontend's address and sends it on its way. */
SEC("tc")
int reverse(struct __sk_buff *skb)
{
	struct ct_buffer *b;
	struct ipcache_entry *peer;
	__u32 zero = 0;
	int ret;

	b = bpf_map_lookup_elem(&cilium_scratch, &zero);
	if (!b)
		return drop(skb, DIR_EGRESS, DROP_INVALID);
	if (b->state.flags & CTF_DSR)
		ret = lb_snat(skb, &b->tuple, b->l4, b->state.nat_addr, b->state.nat_port);
	else
		ret = lb_reverse(skb, &b->tuple, b->l4, b->state.rev_nat);
	if (ret)
		return drop(skb, DIR_EGRESS, -ret);
	peer = ipcache(b->tuple.daddr);
	if (tunnelled(peer))
		return encapsulate(skb, peer, self.identity, DIR_EGRESS);
	/* Passed up the stack the packet would be refused: its source is an address of this node. */
	return route(skb, DIR_EGRESS);
}

/* hand_over is the last step into the pod. redirect_peer lands inside its namespace at once, but only from an ingress
 * hook, which neither the node's own stack nor a netkit device is; else the packet is sent to the host's end, and waits
 * in the backlog for the pod's.
 */
inlined int hand_over(struct __sk_buff *skb)
{
	if (!node.host_routing || skb->cb[CB_NOT_INGRESS])
		return bpf_redirect(self.ifindex, 0);
	/* A frame out of a tunnel is still addressed to a device of the other node. */
	if (skb->cb[CB_FROM_TUNNEL])
		bpf_skb_change_type(skb, PACKET_HOST);
	return bpf_redirect_peer(self.ifindex, 0);
}

/* policy guards this pod's door. The sender's program, on whatever device, ends in a tail call to it. */
SEC("tc")
int policy(struct __sk_buff *skb)
{
	pull(skb);
	if (skb->protocol != bpf_htons(L3_PROTO))
		return drop(skb, DIR_INGRESS, DROP_UNKNOWN_L3);
	bpf_tail_call(skb, &cilium_calls, CALL_ARRIVE);
	return drop(skb, DIR_INGRESS, DROP_MISSED_TAIL_CALL);
}

/* arrive looks up the flow of a packet for this pod. */
SEC("tc")
int arrive(struct __sk_buff *skb)
{
	ip_header *ip = ip_of(skb);
	struct ct_buffer *b;
	struct ct_entry found = {};
	__u32 zero = 0;
	int ret;

	if (!ip)
		return drop(skb, DIR_INGRESS, DROP_INVALID);
	b = bpf_map_lookup_elem(&cilium_scratch, &zero);
	if (!b)
		return drop(skb, DIR_INGRESS, DROP_INVALID);
	ret = ct_tuple(skb, ip, &b->tuple, &b->l4);
	if (ret)
		return drop(skb, DIR_INGRESS, ret);
	ret = ct_lookup(skb, &b->tuple, CT_IN, b->l4, &found, &b->report);
	if (ret < 0)
		return drop(skb, DIR_INGRESS, -ret);
	b->status = ret;
	b->state = found;
	bpf_tail_call(skb, &cilium_calls, CALL_ADMIT);
	return drop(skb, DIR_INGRESS, DROP_MISSED_TAIL_CALL);
}

/* admit lets a packet of a known flow into the pod, or one that a policy allows. */
SEC("tc")
int admit(struct __sk_buff *skb)
{
	__u32 zero = 0, identity = skb->cb[CB_SRC_IDENTITY];
	struct ct_buffer *b;
	struct ct_key tuple;
	__u32 l4;
	int ret;

	b = bpf_map_lookup_elem(&cilium_scratch, &zero);
	if (!b)
		return drop(skb, DIR_INGRESS, DROP_INVALID);
	tuple = b->tuple;
	l4 = b->l4;
	switch (b->status) {
	case CT_REPLY:
		if (node.packet_lb && b->state.rev_nat) {
			if (b->state.flags & CTF_LOOPBACK &&
			    lb_dnat(skb, &tuple, l4, constant(self.ip), tuple.dport))
				return drop(skb, DIR_INGRESS, DROP_WRITE_ERROR);
			if (lb_reverse(skb, &tuple, l4, b->state.rev_nat))
				return drop(skb, DIR_INGRESS, DROP_WRITE_ERROR);
		}
		break;
	case CT_IS_RELATED:
		break;
	default:
		ret = policy_verdict(skb, self.id, identity, 0, tuple.proto, tuple.dport);
		if (ret && !(node.packet_lb && identity == self.identity && same(tuple.saddr, LOOPBACK)))
			return drop(skb, DIR_INGRESS, ret);
		if (b->status == CT_NEW || (b->status == CT_REOPENED && node.nodeport)) {
			struct ct_entry fresh = {};

			fresh.src_identity = identity;
			if (skb->cb[CB_FROM_TUNNEL])
				fresh.flags = CTF_FROM_TUNNEL;
			if (node.nodeport)
				nodeport_inherit(&tuple, &fresh);
			ret = ct_create(skb, &tuple, CT_IN, &fresh);
			if (ret)
				return drop(skb, DIR_INGRESS, -ret);
		}
	}
	count(skb, DIR_INGRESS, FORWARDED);
	if (b->report)
		trace(skb, TO_LXC, identity, self.identity, self.id, self.ifindex);
	return hand_over(skb);
}

char __license[] SEC("license") = "Dual BSD/GPL";
