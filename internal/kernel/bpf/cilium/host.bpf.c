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
#include "nodeport.h"

enum { CALL_NETDEV = 1, CALL_OVERLAY = 2, CALL_HOST = 3, CALL_NAT_EGRESS = 4, CALL_DSR = 5, CALL_NAT_INGRESS = 6 };

/* GO_ON means that the packet is nobody's frontend and takes the ordinary way. */
#define GO_ON (-2)


/* dsr_accept reads the option of a packet that another node balanced and notes what the reply's source must be. */
inlined int dsr_accept(struct __sk_buff *skb, const struct iphdr *ip, const struct ct_key *t, __u32 l4)
{
	struct ct_entry note = {};
	struct dsr_option opt;

	if (ip->ihl < 7 || bpf_skb_load_bytes(skb, ETH_HLEN + sizeof(struct iphdr), &opt, sizeof(opt)))
		return 0;
	if (opt.type != DSR_OPTION_TYPE || opt.len != DSR_OPTION_LEN)
		return 0;
	note.flags = CTF_DSR;
	note.nat_addr = opt.addr;
	note.nat_port = opt.port;
	return nodeport_note(skb, t, l4, &note);
}

inlined int balance(struct __sk_buff *skb, struct ct_buffer *b, struct lb4_key *key, const struct lb4_service *svc)
{
	struct ct_entry note = {};
	struct lb4_backend *backend;
	struct endpoint_info *ep;
	__u16 rev_nat = svc->rev_nat;
	int ret, dsr = node.dsr && (svc->flags & SVC_DSR);
	__be32 frontend = b->tuple.daddr;
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
	struct iphdr *ip = ipv4(skb);
	struct lb4_service *svc;
	struct lb4_key key = {};
	struct ct_key rev;
	struct ct_buffer *b;
	__u32 zero = 0;
	int ret;

	b = bpf_map_lookup_elem(&cilium_scratch, &zero);
	if (!ip || !b)
		return drop(skb, DIR_INGRESS, DROP_INVALID);
	ret = ct_tuple(skb, ip, &b->tuple, &b->l4);
	if (ret == DROP_CT_UNKNOWN_PROTO)
		return GO_ON;
	if (ret)
		return drop(skb, DIR_INGRESS, ret);
	if (b->tuple.proto != IPPROTO_ICMP) {
		if (node.dsr) {
			ip = ipv4(skb);
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
	rev = b->tuple;
	rev.flags = CT_IN;
	if (!bpf_map_lookup_elem(&cilium_snat4, &rev))
		return GO_ON;
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
	ret = snat_out(skb, &b->tuple, b->l4, node.tunnel && peer && peer->tunnel ? node.gateway : node.node_ip);
	if (ret)
		return drop(skb, DIR_INGRESS, -ret);
	if (node.tunnel && peer && peer->tunnel)
		return encapsulate(skb, peer->tunnel, ID_WORLD, DIR_EGRESS);
	return route(skb, DIR_EGRESS);
}

/* dsr sends a balanced packet to another node with the client's address; the first packet of a TCP flow, and every
 * one of UDP, says in an option what the client spoke to.
 */
SEC("tc")
int dsr(struct __sk_buff *skb)
{
	struct dsr_option opt = { .type = DSR_OPTION_TYPE, .len = DSR_OPTION_LEN };
	struct ct_buffer *b;
	struct iphdr *ip = ipv4(skb);
	__u8 tcp_flags = TCP_SYN;
	__u16 old_len, new_len;
	__u32 zero = 0;
	__s64 sum;

	b = bpf_map_lookup_elem(&cilium_scratch, &zero);
	if (!b || !ip)
		return drop(skb, DIR_INGRESS, DROP_INVALID);
	if (b->tuple.proto == IPPROTO_TCP &&
	    bpf_skb_load_bytes(skb, b->l4 + offset_of(struct tcphdr, flags), &tcp_flags, 1))
		return drop(skb, DIR_INGRESS, DROP_INVALID);
	if ((tcp_flags & (TCP_SYN | TCP_ACK)) != TCP_SYN)
		return route(skb, DIR_EGRESS);
	ip = ipv4(skb);
	if (!ip || ip->ihl != 5)
		return drop(skb, DIR_INGRESS, DROP_INVALID);
	opt.port = b->state.nat_port;
	opt.addr = b->state.nat_addr;
	old_len = ip->tot_len;
	new_len = bpf_htons(bpf_ntohs(old_len) + DSR_OPTION_LEN);
	if (bpf_skb_adjust_room(skb, DSR_OPTION_LEN, BPF_ADJ_ROOM_NET, BPF_F_ADJ_ROOM_NO_CSUM_RESET))
		return drop(skb, DIR_INGRESS, DROP_WRITE_ERROR);
	if (bpf_skb_store_bytes(skb, ETH_HLEN + sizeof(struct iphdr), &opt, sizeof(opt), 0))
		return drop(skb, DIR_INGRESS, DROP_WRITE_ERROR);
	ip = ipv4(skb);
	if (!ip)
		return drop(skb, DIR_INGRESS, DROP_INVALID);
	{
		__u32 was[2] = { 0x45, old_len }, is[4] = { 0x47, new_len, 0, 0 };

		__builtin_memcpy(&is[2], &opt, sizeof(opt));
		sum = bpf_csum_diff(was, sizeof(was), is, sizeof(is), 0);
	}
	ip->ihl = 7;
	ip->tot_len = new_len;
	if (bpf_l3_csum_replace(skb, ETH_HLEN + offset_of(struct iphdr, check), 0, sum, 0))
		return drop(skb, DIR_INGRESS, DROP_WRITE_ERROR);
	return route(skb, DIR_EGRESS);
}

inlined int to_pod(struct __sk_buff *skb, __u32 identity);

/* nat_ingress takes a reply back to whom it is for: a client outside, under the frontend's address, or a pod of this
 * node that was masqueraded.
 */
SEC("tc")
int nat_ingress(struct __sk_buff *skb)
{
	struct ct_key turned;
	struct ct_entry *e;
	struct ct_buffer *b;
	__u8 tcp_flags = 0;
	__u32 zero = 0;
	int ret;

	b = bpf_map_lookup_elem(&cilium_scratch, &zero);
	if (!b)
		return drop(skb, DIR_INGRESS, DROP_INVALID);
	ret = snat_back(skb, &b->tuple, b->l4);
	if (ret < 0)
		return drop(skb, DIR_INGRESS, -ret);
	ct_turn(&b->tuple, &turned, CT_OUT);
	e = bpf_map_lookup_elem(ct_map(turned.proto), &turned);
	if (!e || !(e->flags & CTF_NODE_PORT)) {
		__u32 identity = identity_of(b->tuple.saddr);

		return to_pod(skb, identity);
	}
	if (turned.proto == IPPROTO_TCP && b->l4)
		bpf_skb_load_bytes(skb, b->l4 + offset_of(struct tcphdr, flags), &tcp_flags, 1);
	ct_touch(skb, e, turned.proto, tcp_flags, 0);
	ret = lb_reverse(skb, &b->tuple, b->l4, e->rev_nat);
	if (ret)
		return drop(skb, DIR_INGRESS, -ret);
	return route(skb, DIR_EGRESS);
}

/* to_pod delivers to a pod of this node, and gives everything else to the stack. */
inlined int to_pod(struct __sk_buff *skb, __u32 identity)
{
	struct iphdr *ip = ipv4(skb);
	struct endpoint_info *ep;

	if (!ip)
		return drop(skb, DIR_INGRESS, DROP_INVALID);
	ep = endpoint(ip->daddr);
	if (!ep || ep->flags & ENDPOINT_HOST) {
		/* A frame out of a tunnel carries a MAC of another node; the stack would think it is for somebody else. */
		if (skb->cb[CB_FROM_TUNNEL])
			bpf_skb_change_type(skb, PACKET_HOST);
		count(skb, DIR_INGRESS, FORWARDED);
		return TC_ACT_OK;
	}
	ip = ipv4(skb);
	if (!ip)
		return drop(skb, DIR_INGRESS, DROP_INVALID);
	return deliver(skb, ip, ep, identity, DIR_INGRESS);
}

SEC("tc")
int from_netdev(struct __sk_buff *skb)
{
	clear_cb(skb);
	if (skb->protocol != bpf_htons(ETH_P_IP)) {
		count(skb, DIR_INGRESS, FORWARDED);
		return TC_ACT_OK;
	}
	bpf_tail_call(skb, &cilium_calls, CALL_NETDEV);
	return drop(skb, DIR_INGRESS, DROP_MISSED_TAIL_CALL);
}

SEC("tc")
int handle_netdev(struct __sk_buff *skb)
{
	struct iphdr *ip;
	__u32 identity;
	int ret;

	if (node.nodeport || node.masquerade) {
		ret = nodeport(skb);
		if (ret != GO_ON)
			return ret;
	}
	ip = ipv4(skb);
	if (!ip)
		return drop(skb, DIR_INGRESS, DROP_INVALID);
	identity = identity_of(ip->saddr);
	if (!node.host_routing) {
		/* Legacy: the stack routes it to cilium_host, and from_host delivers. */
		count(skb, DIR_INGRESS, FORWARDED);
		return TC_ACT_OK;
	}
	return to_pod(skb, identity);
}

/* masquerade gives a pod's packet to the world the node's address. */
inlined int masquerade(struct __sk_buff *skb)
{
	struct ipcache_entry *peer;
	struct endpoint_info *ep;
	struct ct_key t, turned;
	struct iphdr *ip = ipv4(skb);
	__u32 l4;
	int ret;

	if (!ip || (ip->daddr & node.native_mask) == node.native_cidr)
		return TC_ACT_OK;
	ep = endpoint(ip->saddr);
	if (!ep || ep->flags & ENDPOINT_HOST)
		return TC_ACT_OK;
	ip = ipv4(skb);
	if (!ip)
		return TC_ACT_OK;
	peer = ipcache(ip->daddr);
	/* Behind a tunnel another node has no way back to the pod's own address. */
	if (peer && peer->identity != ID_WORLD && peer->identity != ID_UNKNOWN &&
	    !(node.tunnel && peer->identity == ID_REMOTE_NODE))
		return TC_ACT_OK;
	ip = ipv4(skb);
	if (!ip)
		return TC_ACT_OK;
	ret = ct_tuple(skb, ip, &t, &l4);
	if (ret)
		return ret == DROP_CT_UNKNOWN_PROTO ? TC_ACT_OK : drop(skb, DIR_EGRESS, ret);
	ct_turn(&t, &turned, CT_IN);
	if (bpf_map_lookup_elem(ct_map(t.proto), &turned))
		return TC_ACT_OK; /* the answer of a pod that was asked from outside */
	ret = snat_out(skb, &t, l4, node.node_ip);
	return ret ? drop(skb, DIR_EGRESS, -ret) : TC_ACT_OK;
}

SEC("tc")
int to_netdev(struct __sk_buff *skb)
{
	if (node.masquerade && skb->protocol == bpf_htons(ETH_P_IP)) {
		int ret = masquerade(skb);

		if (ret != TC_ACT_OK)
			return ret;
	}
	count(skb, DIR_EGRESS, FORWARDED);
	return TC_ACT_OK;
}

SEC("tc")
int from_overlay(struct __sk_buff *skb)
{
	clear_cb(skb);
	if (skb->protocol != bpf_htons(ETH_P_IP)) {
		count(skb, DIR_INGRESS, FORWARDED);
		return TC_ACT_OK;
	}
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
	if (bpf_skb_get_tunnel_key(skb, &key, sizeof(key), 0))
		return drop(skb, DIR_INGRESS, DROP_NO_TUNNEL_KEY);
	return to_pod(skb, key.tunnel_id);
}

SEC("tc")
int to_overlay(struct __sk_buff *skb)
{
	count(skb, DIR_EGRESS, FORWARDED);
	return TC_ACT_OK;
}

/* from_host sees what the node's stack sends towards pods: its own packets, and under legacy routing those of others. */
SEC("tc")
int from_host(struct __sk_buff *skb)
{
	clear_cb(skb);
	if (skb->protocol != bpf_htons(ETH_P_IP))
		return TC_ACT_OK;
	skb->cb[CB_FROM_HOST] = 1;
	bpf_tail_call(skb, &cilium_calls, CALL_HOST);
	return drop(skb, DIR_EGRESS, DROP_MISSED_TAIL_CALL);
}

SEC("tc")
int handle_host(struct __sk_buff *skb)
{
	struct ipcache_entry *peer;
	struct endpoint_info *ep;
	struct iphdr *ip = ipv4(skb);
	__u32 identity;

	if (!ip)
		return drop(skb, DIR_EGRESS, DROP_INVALID);
	identity = identity_of(ip->saddr);
	ip = ipv4(skb);
	if (!ip)
		return drop(skb, DIR_EGRESS, DROP_INVALID);
	ep = endpoint(ip->daddr);
	if (ep && !(ep->flags & ENDPOINT_HOST)) {
		ip = ipv4(skb);
		if (!ip)
			return drop(skb, DIR_EGRESS, DROP_INVALID);
		return deliver(skb, ip, ep, identity, DIR_EGRESS);
	}
	ip = ipv4(skb);
	if (!ip)
		return drop(skb, DIR_EGRESS, DROP_INVALID);
	peer = ipcache(ip->daddr);
	if (node.tunnel && peer && peer->tunnel)
		return encapsulate(skb, peer->tunnel, identity, DIR_EGRESS);
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
