//go:build ignore

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The programs of cilium_wg0, a device at layer 3: packets have no Ethernet header there, so ETH_HLEN is 0. A packet for a
 * pod is given one before it is delivered.
 *
 *	pod ─► to_netdev of eth0 ─► cilium_wg0  out: to_wireguard ─► encrypted ─► eth0, with a mark ─► wire
 *	wire ─► eth0 ─► stack ─► decrypted ─► cilium_wg0  in: from_wireguard ─► [frontend] ─► pod
 * With a tunnel the packets here are the tunnel's: from_wireguard gives them to the stack, and nothing looks at what leaves.
 */
#define ETH_HLEN 0

#include "edge.h"
#include "seal.h"

SEC("tc")
int from_wireguard(struct __sk_buff *skb)
{
	ip_header *ip;

	clear_cb(skb);
	skb->mark = MARK_DECRYPTED;
	if (node.tunnel)
		return TC_ACT_OK;
	pull(skb);
	if (skb->protocol != bpf_htons(L3_PROTO))
		return TC_ACT_OK;
	ip = ip_of(skb);
	if (!ip)
		return drop(skb, DIR_INGRESS, DROP_INVALID);
	skb->cb[CB_SRC_IDENTITY] = identity_of(source(ip));
	count(skb, DIR_INGRESS, DECRYPTING);
	bpf_tail_call(skb, &cilium_calls, CALL_NETDEV);
	return drop(skb, DIR_INGRESS, DROP_MISSED_TAIL_CALL);
}

SEC("tc")
int handle_wireguard(struct __sk_buff *skb)
{
	if (node.nodeport || node.masquerade) {
		int ret = nodeport(skb);

		if (ret != GO_ON)
			return ret;
	}
	return to_pod(skb, skb->cb[CB_SRC_IDENTITY]);
}

/* to_wireguard gives answers to clients of frontends their source, as on every way out; nothing else is translated here. */
SEC("tc")
int to_wireguard(struct __sk_buff *skb)
{
	clear_cb(skb);
	if (node.nodeport && skb->protocol == bpf_htons(L3_PROTO))
		ask_frontend(skb);
	count(skb, DIR_EGRESS, ENCRYPTING);
	return TC_ACT_OK;
}

char __license[] SEC("license") = "Dual BSD/GPL";
