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

/* seal sends what is to be encrypted to the device that does so: packets between pods, or all that a tunnel carries. What nodes
 * send themselves is in the clear, as is what goes to a node's own address, which has no key.
 */
inlined int seal(struct __sk_buff *skb)
{
	struct ipcache_entry *to;
	ip_header *ip;
	__u32 from;

	if (node.tunnel && (skb->mark & MARK_KIND) == MARK_OVERLAY)
		return bpf_redirect(node.wireguard, 0);
	if (skb->protocol != bpf_htons(L3_PROTO))
		return TC_ACT_OK;
	ip = ip_of(skb);
	if (!ip)
		return drop(skb, DIR_EGRESS, DROP_INVALID);
	to = ipcache(destination(ip));
	from = sender_of(skb, ip);
	if (from == ID_UNKNOWN || from == ID_HOST || from == ID_WORLD || from == ID_REMOTE_NODE || !to || !to->key)
		return TC_ACT_OK;
	skb->mark = identity_mark(from);
	return bpf_redirect(node.wireguard, 0);
}

#endif
