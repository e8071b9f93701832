/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The way in from outside when the backend is on another node. The packet is not touched but wrapped, and the other
 * node, which knows its own pods, picks the backend.
 *
 *	C ─► A eth0: wrap(C > A:port), VNI 0xca11c0 ─► B eth0: unwrap, DNAT, remember A ─► pod
 *	tunnel: pod ─► B: source A:port again, wrap ─► A eth0: unwrap ─► C
 *	DSR:    pod ─► B: source A:port again ─► C
 */
#ifndef LAB_CALICO_NODEPORT_H
#define LAB_CALICO_NODEPORT_H

#include "flow.h"

#define NODEPORT_VNI 0xca11c0
#define NODEPORT_INNER (-2)

struct vxlanhdr {
	__be32	flags;
	__be32	vni; /* in the upper 24 bits */
};

struct wrapper {
	ip_t		ip;
	struct udphdr	udp;
	struct vxlanhdr	vxlan;
	struct ethhdr	eth;
} __attribute__((packed));

_Static_assert(sizeof(struct wrapper) == sizeof(ip_t) + 30, "what VXLAN takes");

/* wrap puts the packet into VXLAN towards another node and sends it there. The outer datagram has no checksum: only
 * the other node's program reads it.
 */
inlined int wrap(struct __sk_buff *skb, const struct state *st, const addr_t *node)
{
	struct wrapper w = {};
	ip_t *ip = ip_header(skb);
	struct bpf_fib_lookup fib = {};
	struct bpf_redir_neigh hop = {};
	__u16 inner;
	long ret;

	if (!ip)
		return drop(DROP_MALFORMED);
	if (!take_hop(skb, ip))
		return drop(DROP_TTL);
	ip = ip_header(skb);
	if (!ip)
		return drop(DROP_MALFORMED);
	inner = packet_length(ip);
	w.ip = outer_header(&st->iface.host_ip, node, inner + sizeof(w));
	w.udp.source = st->sport ^ st->dport;
	w.udp.dest = bpf_htons(4789);
	w.udp.len = bpf_htons(inner + sizeof(w) - sizeof(w.ip));
	w.vxlan.flags = bpf_htonl(0x08000000);
	w.vxlan.vni = bpf_htonl(NODEPORT_VNI << 8);
	w.eth.proto = bpf_htons(ETH_P_OWN);
	/* The inner addresses are nobody's; the node that unwraps looks at the packet alone. */
	w.eth.dst[0] = 2;
	w.eth.src[0] = 2;
	w.eth.src[5] = 1;
	fib_between(&fib, &st->iface.host_ip, node);
	fib.ifindex = skb->ingress_ifindex;
	fib.tot_len = inner + sizeof(w);
	if (skb->gso_segs > 1)
		fib.tot_len = 0; /* the device cuts it up, and the lookup asks about each piece */
	ret = bpf_fib_lookup(skb, &fib, sizeof(fib), BPF_FIB_LOOKUP_SKIP_NEIGH);
	if (ret == BPF_FIB_LKUP_RET_FRAG_NEEDED)
		return drop(DROP_TOO_BIG);
	if (ret != BPF_FIB_LKUP_RET_SUCCESS && ret != BPF_FIB_LKUP_RET_NO_NEIGH)
		return drop(DROP_NO_ROUTE);
	if (bpf_skb_adjust_room(skb, sizeof(w), BPF_ADJ_ROOM_MAC,
				ENCAP_L3_OWN | BPF_F_ADJ_ROOM_ENCAP_L4_UDP | BPF_F_ADJ_ROOM_FIXED_GSO |
				BPF_F_ADJ_ROOM_ENCAP_L2(sizeof(struct ethhdr)) | BPF_F_ADJ_ROOM_ENCAP_L2_ETH))
		return drop(DROP_WRITE);
	if (bpf_skb_store_bytes(skb, ETH_HLEN, &w, sizeof(w), 0))
		return drop(DROP_WRITE);
	skb->mark = MARK_BYPASS;
	hop_of(&hop, &fib);
	count(PASSED_IN);
	return bpf_redirect_neigh(fib.ifindex, &hop, sizeof(hop), 0);
}

/* nodeport_forward: a new flow goes to the node of the backend that this node would have picked, and stays there. */
inlined int nodeport_forward(struct __sk_buff *skb, struct state *st)
{
	if (st->ct == CT_NEW) {
		st->dst = st->orig_dst;
		st->dport = st->orig_dport;
		st->nat = NAT_NONE;
		st->tunnel_ip = st->route_hop;
		if (ct_create(skb, st, FROM_HOST, CTV_TO_NODE))
			return drop(DROP_CREATE);
	}
	return wrap(skb, st, &st->tunnel_ip);
}

/* nodeport_return: the reply has its frontend's address back, and goes out the way the question came in. */
inlined int nodeport_return(struct __sk_buff *skb, struct state *st)
{
	return wrap(skb, st, &st->tunnel_ip);
}

/* nodeport_vxlan: tunnel packets of known nodes pass to the kernel; those with the services' VNI are opened here.
 * NODEPORT_INNER means go on with what was inside.
 */
inlined int nodeport_vxlan(struct __sk_buff *skb, struct state *st, int kind)
{
	struct route_value *r = route_of(kind == FROM_HOST ? &st->src : &st->dst);
	struct vxlanhdr vx;

	if (!r || !(r->flags & ROUTE_HOST))
		return drop(DROP_SOURCE);
	if (kind != FROM_HOST || !same(&st->dst, &st->iface.host_ip))
		return TC_ACT_OK;
	if (bpf_skb_load_bytes(skb, st->l4 + sizeof(struct udphdr), &vx, sizeof(vx)))
		return drop(DROP_MALFORMED);
	if (vx.vni >> 8 != bpf_htonl(NODEPORT_VNI << 8) >> 8) {
		skb->mark = MARK_SEEN;
		return TC_ACT_OK;
	}
	if (st->l4 != ETH_HLEN + sizeof(ip_t) || !header(skb, ETH_HLEN + sizeof(struct wrapper) + sizeof(ip_t)))
		return drop(DROP_MALFORMED);
	if (bpf_skb_adjust_room(skb, -(__s32)sizeof(struct wrapper), BPF_ADJ_ROOM_MAC, BPF_F_ADJ_ROOM_FIXED_GSO))
		return drop(DROP_WRITE);
	return NODEPORT_INNER;
}

#endif
