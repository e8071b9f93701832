/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What is encrypted on its way out of the node, and the marks that say so. */
#ifndef LAB_CILIUM_SEAL_H
#define LAB_CILIUM_SEAL_H

#include "nodeport.h"

/* MARK_KIND has what a packet is; MARK_IDENTITY has the sender's identity in the other bits. */
#define MARK_KIND	0x0f00
#define MARK_HOST	0x0c00 /* written by netfilter on what the node itself sends */
#define MARK_DECRYPTED	0x0d00
#define MARK_ENCRYPTED	0x0e00 /* of the device that encrypts, on its outer packets */

inlined int is_sealed(struct __sk_buff *skb)
{
	return (skb->mark & MARK_KIND) == MARK_ENCRYPTED;
}

/* sender_of is the identity of who sends a packet, by its mark or else by its source; ID_UNKNOWN if nobody announced it. */
inlined __u32 sender_of(struct __sk_buff *skb, const ip_header *ip)
{
	struct ipcache_entry *from;
	__u32 mark = skb->mark;

	if ((mark & MARK_KIND) == MARK_HOST)
		return ID_HOST;
	if ((mark & MARK_KIND) == MARK_IDENTITY)
		return (mark & 0xff) << 16 | mark >> 16;
	from = ipcache(source(ip));
	return from ? from->identity : ID_UNKNOWN;
}

/* is_secret says that a packet is to be encrypted: it is from a pod, and for an address with a key. What nodes send themselves is
 * in the clear, as is what goes to a node's own address, which has no key. Returns the sender, and 0 for what is in the clear.
 */
inlined __u32 is_secret(struct __sk_buff *skb, const ip_header *ip, const struct ipcache_entry *to)
{
	__u32 from = sender_of(skb, ip);

	if (from == ID_HOST || from == ID_WORLD || from == ID_REMOTE_NODE || !to || !to->key)
		return ID_UNKNOWN;
	return from;
}

/* seal sends what is to be encrypted to the device that does so; with a tunnel, all that the tunnel carries. */
inlined int seal(struct __sk_buff *skb)
{
	ip_header *ip;
	__u32 from;

	if (node.tunnel && (skb->mark & MARK_KIND) == MARK_OVERLAY)
		return bpf_redirect(node.wireguard, 0);
	if (skb->protocol != bpf_htons(L3_PROTO))
		return TC_ACT_OK;
	ip = ip_of(skb);
	if (!ip)
		return drop(skb, DIR_EGRESS, DROP_INVALID);
	from = is_secret(skb, ip, ipcache(destination(ip)));
	if (from == ID_UNKNOWN)
		return TC_ACT_OK;
	skb->mark = identity_mark(from);
	return bpf_redirect(node.wireguard, 0);
}

/* node_of is what IPsec knows of the node with an address. */
inlined struct node_entry *node_of(const __be32 *ip)
{
	struct node_key key = { .family = FAMILY };
	int i;

#pragma unroll
	for (i = 0; i < WORDS; i++)
		key.ip[i] = ip[i];
	return bpf_map_lookup_elem(&cilium_node_map, &key);
}

/* to_ipsec leads what is to be encrypted back into the stack by cilium_net. Its mark says by which key, and for which node. The
 * stack encrypts what it forwards with such a mark.
 */
inlined int to_ipsec(struct __sk_buff *skb)
{
	struct ipcache_entry *to;
	struct node_entry *peer;
	ip_header *ip;
	struct mac at;
	__u8 *own, key;
	__u32 from, zero = 0;
	int i;

	if (skb->protocol != bpf_htons(L3_PROTO))
		return TC_ACT_OK;
	ip = ip_of(skb);
	if (!ip)
		return drop(skb, DIR_EGRESS, DROP_INVALID);
	to = ipcache(destination(ip));
	if (!to || !(to->flags & HAS_TUNNEL))
		return TC_ACT_OK;
	from = is_secret(skb, ip, to);
	if (from == ID_UNKNOWN)
		return TC_ACT_OK;
	peer = node_of(to->tunnel);
	own = bpf_map_lookup_elem(&cilium_encrypt_state, &zero);
	if (!peer || !peer->id || !own)
		return drop(skb, DIR_EGRESS, DROP_NO_NODE);
	key = peer->key < *own ? peer->key : *own;
	skb->mark = (__u32)peer->id << 16 | (key & 0xf) << 12 | MARK_ENCRYPTED;
	skb->cb[CB_SRC_IDENTITY] = skb->mark;
	for (i = 0; i < ETH_ALEN; i++)
		at.addr[i] = node.net_mac.addr[i];
	bpf_skb_store_bytes(skb, offset_of(struct ethhdr, dst), &at, ETH_ALEN, 0);
	return bpf_redirect(node.net, BPF_F_INGRESS);
}

/* from_ipsec takes what the wire's program gets of IPsec: what is encrypted goes up the stack with a mark that says from which
 * node, what was decrypted to cilium_host. Returns UNSEEN for everything else.
 */
#define UNSEEN (-3)
#define IPPROTO_ESP 50

inlined int from_ipsec(struct __sk_buff *skb)
{
	struct node_entry *peer;
	ip_header *ip;
	struct addr from;

	if (skb->protocol != bpf_htons(L3_PROTO))
		return UNSEEN;
	if ((skb->mark & MARK_KIND) == MARK_DECRYPTED) {
		skb->mark = 0;
		return bpf_redirect(node.host, 0);
	}
	ip = ip_of(skb);
	if (!ip || next_protocol(ip) != IPPROTO_ESP)
		return UNSEEN;
	from = source(ip);
	peer = node_of(from.w);
	if (!peer || !peer->id)
		return drop(skb, DIR_INGRESS, DROP_NO_NODE);
	skb->mark = (__u32)peer->id << 16 | MARK_DECRYPTED;
	bpf_skb_change_type(skb, PACKET_HOST);
	return TC_ACT_OK;
}

#endif
