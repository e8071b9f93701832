/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Constants of a load, and what all tc programs of a node do alike: count, drop, look up, deliver, leave the node. */
#ifndef LAB_CILIUM_NODE_H
#define LAB_CILIUM_NODE_H

#include "maps.h"

/* The loader writes these before the verifier sees the program, so that branches not taken are not there at all. */
struct node_config {
	__be32	node_ip[4];     /* of eth0 */
	__be32	gateway[4];     /* address of cilium_host, the pods' next hop */
	__be32	native_cidr[4]; /* inside it nothing is masqueraded */
	__be32	native_mask[4];
	__u32	overlay;     /* interface index; 0: there is none */
	__u8	host_routing;  /* deliver with redirect_peer, leave with redirect_neigh */
	__u8	tunnel;        /* encapsulate towards other nodes */
	__u8	masquerade;
	__u8	packet_lb;     /* translate services packet by packet at the pod */
	__u8	nodeport;      /* serve frontends for packets from outside */
	__u8	dsr;
	__u8	maglev;
	__u8	pad;
	__u16	nat_min;       /* host order */
	__u16	nat_max;
	__u32	wireguard;     /* interface index of the device that encrypts; 0: there is none */
	__u32	net, host;     /* of cilium_net and cilium_host, between which IPsec takes packets */
	struct mac net_mac;    /* of cilium_net */
	__u16	pad2;
};

volatile const struct node_config node;

/* identity_mark is the mark of a packet whose sender is known. */
#define MARK_IDENTITY	0x0f00

inlined __u32 identity_mark(__u32 identity)
{
	return identity << 16 | (identity >> 16 & 0xff) | MARK_IDENTITY;
}

/* Meaning of the words that travel with the packet through tail calls. */
enum { CB_SRC_IDENTITY = 0, CB_NOT_INGRESS = 1, CB_FROM_TUNNEL = 2, CB_SEEN = 3 };

inlined void clear_cb(struct __sk_buff *skb)
{
	skb->cb[0] = 0;
	skb->cb[1] = 0;
	skb->cb[2] = 0;
	skb->cb[3] = 0;
	skb->cb[4] = 0;
}

inlined void count_bytes(__u64 bytes, __u8 direction, __u8 reason)
{
	struct metrics_key key = { .reason = reason, .direction = direction };
	struct counter *c = bpf_map_lookup_elem(&cilium_metrics, &key);

	if (c) {
		c->packets++;
		c->bytes += bytes;
	} else {
		struct counter first = { .packets = 1, .bytes = bytes };

		bpf_map_update_elem(&cilium_metrics, &key, &first, BPF_ANY);
	}
}

inlined void count(struct __sk_buff *skb, __u8 direction, __u8 reason)
{
	count_bytes(skb->len, direction, reason);
}

enum trace_point { TO_LXC = 0, TO_STACK = 3, TO_OVERLAY = 4, TO_NETWORK = 11 };

/* trace sends the message about a packet that an agent would show: where it was seen, between whom, and its beginning. */
inlined void trace(struct __sk_buff *skb, enum trace_point at, __u32 from, __u32 to, __u16 endpoint, __u32 device)
{
	struct {
		__u8	type, point;
		__u16	line;
		__u32	hash, length;
		__u16	captured;
		__u8	version, extension;
		__u32	from, to;
		__u16	endpoint;
		__u8	reason, flags;
		__u32	device, original[4], pad;
		__u64	id;
	} m = {
		.type = 4, .point = at, .hash = bpf_get_hash_recalc(skb), .length = skb->len, .version = 2,
		.from = from, .to = to, .endpoint = endpoint, .device = device,
	};
	__u64 captured = skb->len < 128 ? skb->len : 128;

	m.captured = captured;
	bpf_perf_event_output(skb, &cilium_events, captured << 32 | BPF_F_CURRENT_CPU, &m, sizeof(m));
}

/* pull reads a packet's header in, needed or not, as Cilium's programs at devices begin. */
inlined void pull(struct __sk_buff *skb)
{
	bpf_skb_pull_data(skb, ETH_HLEN + sizeof(ip_header));
}

/* received counts a packet that entered the node, and pulls its header in. */
inlined void received(struct __sk_buff *skb)
{
	pull(skb);
	count(skb, DIR_INGRESS, RECEIVED);
}

inlined int drop(struct __sk_buff *skb, __u8 direction, __u8 reason)
{
	count(skb, direction, reason);
	return TC_ACT_SHOT;
}

inlined struct endpoint_info *endpoint(struct addr ip)
{
	struct endpoint_key key = { .family = FAMILY };

	spread(key.ip, ip);
	return bpf_map_lookup_elem(&cilium_lxc, &key);
}

inlined struct ipcache_entry *ipcache(struct addr ip)
{
	struct ipcache_key key = { .prefixlen = IPCACHE_STATIC + ADDR_BITS, .family = FAMILY };

	spread(key.ip, ip);
	return bpf_map_lookup_elem(&cilium_ipcache, &key);
}

/* identity_of is who an address belongs to; what nobody announced is the world. */
inlined __u32 identity_of(struct addr ip)
{
	struct ipcache_entry *e = ipcache(ip);

	return e && e->identity ? e->identity : ID_WORLD;
}

#if !ETH_HLEN
/* add_ethernet puts a header before a packet that came without. */
inlined int add_ethernet(struct __sk_buff *skb)
{
	__be16 proto = skb->protocol;

	return bpf_skb_change_head(skb, sizeof(struct ethhdr), 0) ||
	       bpf_skb_store_bytes(skb, offset_of(struct ethhdr, proto), &proto, sizeof(proto), 0);
}
#endif

/* deliver gives a packet to a pod of this node: as a router would, then on to the program that guards the pod, which
 * runs in the sender's context and does not return here.
 */
inlined int deliver(struct __sk_buff *skb, const ip_header *ip, const struct endpoint_info *ep, __u32 identity,
		    __u8 direction)
{
	__u32 id = ep->id;

	if (!take_hop(skb, ip))
		return drop(skb, direction, DROP_TTL_EXCEEDED);
#if !ETH_HLEN
	if (add_ethernet(skb))
		return drop(skb, direction, DROP_WRITE_ERROR);
#endif
	set_macs(skb, &ep->mac, &ep->node_mac);
	count(skb, direction, FORWARDED);
	skb->cb[CB_SRC_IDENTITY] = identity;
	bpf_tail_call(skb, &cilium_call_policy, id);
	return drop(skb, direction, DROP_MISSED_TAIL_CALL);
}

/* tunnelled says that packets for a peer are encapsulated. */
inlined int tunnelled(const struct ipcache_entry *peer)
{
	return node.tunnel && peer && peer->flags & HAS_TUNNEL;
}

/* encapsulate sends a packet to another node; the tunnel's id says who the sender is. */
inlined int encapsulate(struct __sk_buff *skb, const struct ipcache_entry *peer, __u32 identity, __u8 direction)
{
	struct bpf_tunnel_key key = {};
	__u64 flags = BPF_F_ZERO_CSUM_TX;

	key.tunnel_id = identity;
	if (peer->flags & TUNNEL_V6) {
		__builtin_memcpy(key.remote_ipv6, peer->tunnel, sizeof(key.remote_ipv6));
		flags = BPF_F_TUNINFO_IPV6; /* which has no checksum of its own, so UDP's stays */
	} else {
		key.remote_ipv4 = bpf_ntohl(peer->tunnel[0]);
	}
	key.tunnel_ttl = 64;
	if (bpf_skb_set_tunnel_key(skb, &key, sizeof(key), flags))
		return drop(skb, direction, DROP_WRITE_ERROR);
	count(skb, direction, FORWARDED);
	return bpf_redirect(node.overlay, 0);
}

/* route leaves the node by the kernel's table, past its forwarding path: no netfilter, no conntrack. */
inlined int route(struct __sk_buff *skb, __u8 direction)
{
	struct bpf_fib_lookup fib = {};
	struct bpf_redir_neigh hop = {};
	ip_header *ip = ip_of(skb);
	long ret;

	if (!ip)
		return drop(skb, direction, DROP_INVALID);
	fib_ask(&fib, ip);
	fib.ifindex = skb->ifindex; /* at a netkit device nothing came in by any */
	ret = bpf_fib_lookup(skb, &fib, sizeof(fib), BPF_FIB_LOOKUP_SKIP_NEIGH);
	if (ret == -22)
		ret = bpf_fib_lookup(skb, &fib, sizeof(fib), 0);
	if (ret != BPF_FIB_LKUP_RET_SUCCESS && ret != BPF_FIB_LKUP_RET_NO_NEIGH)
		return drop(skb, direction, DROP_NO_FIB);
	ip = ip_of(skb);
	if (!ip)
		return drop(skb, direction, DROP_INVALID);
	if (!take_hop(skb, ip))
		return drop(skb, direction, DROP_TTL_EXCEEDED);
	fib_hop(&fib, &hop);
	count(skb, direction, FORWARDED);
	return bpf_redirect_neigh(fib.ifindex, &hop, sizeof(hop), 0);
}

#endif
