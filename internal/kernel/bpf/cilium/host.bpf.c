//go:build ignore

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The programs of a node's own devices, loaded once per node.
 *
 *	        ┌──────────── node ───────────────────────────────────────────┐
 *	 wire ──┤ eth0   in: from_netdev ─► [frontend] ─► pod, or the stack   │
 *	        │        out: to_netdev  ◄─ [masquerade]                      │
 *	        │ cilium_vxlan  in: from_overlay ─► pod, or the stack         │
 *	        │               out: to_overlay                               │
 *	        │ cilium_wg0    (wireguard.bpf.c, where to_netdev sends what is to be encrypted)
 *	 stack ─┤ cilium_host   out: from_host ─► pod, or encapsulate         │
 *	        │               in: to_host       cilium_net  in: to_host     │
 *	        └─────────────────────────────────────────────────────────────┘
 * "pod" is always the tail call to the program that guards it (lxc.bpf.c, policy).
 */
#include "edge.h"
#include "seal.h"

/* from_wire takes what enters the node. */
inlined int from_wire(struct __sk_buff *skb)
{
	received(skb);
	if (skb->protocol != bpf_htons(L3_PROTO))
		return TC_ACT_OK;
	bpf_tail_call(skb, &cilium_calls, CALL_NETDEV);
	return drop(skb, DIR_INGRESS, DROP_MISSED_TAIL_CALL);
}

SEC("tc")
int from_netdev(struct __sk_buff *skb)
{
	clear_cb(skb);
	return from_wire(skb);
}

/* from_netdev_ipsec is from_netdev of a node with IPsec. */
SEC("tc")
int from_netdev_ipsec(struct __sk_buff *skb)
{
	int ret;

	clear_cb(skb);
	pull(skb);
	ret = from_ipsec(skb);
	return ret == UNSEEN ? from_wire(skb) : ret;
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

/* to_wire translates what leaves the node, if anything is to be. */
inlined int to_wire(struct __sk_buff *skb)
{
	if ((node.masquerade || node.nodeport) && skb->protocol == bpf_htons(L3_PROTO) &&
	    skb->mark != MARK_SNAT_DONE && skb->mark != MARK_OVERLAY) {
		bpf_tail_call(skb, &cilium_calls, CALL_NAT_FWD);
		return drop(skb, DIR_EGRESS, DROP_MISSED_TAIL_CALL);
	}
	count(skb, DIR_EGRESS, FORWARDED);
	return TC_ACT_OK;
}

SEC("tc")
int to_netdev(struct __sk_buff *skb)
{
	clear_cb(skb);
	return to_wire(skb);
}

/* to_netdev_sealing is to_netdev of a node that encrypts. */
SEC("tc")
int to_netdev_sealing(struct __sk_buff *skb)
{
	int ret;

	clear_cb(skb);
	if (is_sealed(skb)) {
		count(skb, DIR_EGRESS, FORWARDED);
		return TC_ACT_OK;
	}
	ret = seal(skb);
	return ret == TC_ACT_OK ? to_wire(skb) : ret;
}

/* to_netdev_ipsec is to_netdev of a node with IPsec. */
SEC("tc")
int to_netdev_ipsec(struct __sk_buff *skb)
{
	int ret;

	clear_cb(skb);
	if (is_sealed(skb)) {
		count(skb, DIR_EGRESS, FORWARDED);
		return TC_ACT_OK;
	}
	ret = to_ipsec(skb);
	return ret == TC_ACT_OK ? to_wire(skb) : ret;
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

/* MARK_PAST_PROXY keeps netfilter from giving a packet to the agent's proxy. */
#define MARK_PAST_PROXY 0x0800

/* to_host_ipsec is to_host of a node with IPsec: it gives answers to clients of frontends their source before they are encrypted. */
SEC("tc")
int to_host_ipsec(struct __sk_buff *skb)
{
	if (!is_sealed(skb) && (skb->cb[CB_SRC_IDENTITY] & MARK_KIND) == MARK_ENCRYPTED)
		skb->mark = skb->cb[CB_SRC_IDENTITY];
	if (is_sealed(skb) && node.nodeport)
		ask_frontend(skb);
	if (!skb->mark && skb->ifindex == node.net)
		skb->mark = MARK_PAST_PROXY;
	count(skb, DIR_INGRESS, FORWARDED);
	return TC_ACT_OK;
}

char __license[] SEC("license") = "Dual BSD/GPL";
