/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* May this identity talk to (or be talked to by) this endpoint on this port? One trie per endpoint, whose key puts the
 * fixed part first, so that "any port" and "any protocol" are shorter prefixes.
 *
 *	| identity 32 | direction 8 | protocol 8 | port 16 |
 *	|<---------- always 40 --->|<--- 0, 8, or 9..24 ->|
 */
#ifndef LAB_CILIUM_POLICY_H
#define LAB_CILIUM_POLICY_H

#include "node.h"

struct policy_key {
	__u32	prefixlen;
	__u32	identity; /* 0: any */
	__u8	egress;
	__u8	proto;
	__be16	dport;
};

#define POLICY_FULL 64

struct policy_entry {
	__u16	proxy_port;
	__u8	deny;
	__u8	prefixlen; /* of proto and port: 0..24 */
	__u32	precedence;
};

#define PRECEDENCE_TOP_DENY 0xffffffff

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, struct policy_key);
	__type(value, struct policy_entry);
} cilium_policy SEC(".maps");

inlined void policy_account(struct __sk_buff *skb, __u16 endpoint, const struct policy_key *key, __u32 identity,
			    __u8 prefixlen)
{
	struct policystats_key k = {
		.endpoint = endpoint, .egress = key->egress, .prefixlen = prefixlen, .identity = identity,
	};
	struct counter *c;

	if (prefixlen >= 8)
		k.proto = key->proto;
	if (prefixlen > 8)
		k.dport = key->dport;
	c = bpf_map_lookup_elem(&cilium_policystats, &k);
	if (c) {
		c->packets++;
		c->bytes += skb->len;
	} else {
		struct counter first = { .packets = 1, .bytes = skb->len };

		bpf_map_update_elem(&cilium_policystats, &k, &first, BPF_ANY);
	}
}

/* policy_verdict: the entry of the identity and the one for anybody are both asked; the higher precedence wins, a
 * denial above a permission of the same, then the longer prefix. Nothing found is a denial. Returns 0 or a reason.
 */
inlined int policy_verdict(struct __sk_buff *skb, __u16 endpoint, __u32 identity, __u8 egress, __u8 proto, __be16 dport)
{
	struct policy_key key = {
		.prefixlen = POLICY_FULL, .identity = identity, .egress = egress, .proto = proto, .dport = dport,
	};
	struct policy_entry *own, *any, *best;
	__u32 who = identity;

	own = bpf_map_lookup_elem(&cilium_policy, &key);
	if (own && own->precedence == PRECEDENCE_TOP_DENY)
		return DROP_POLICY;
	key.identity = 0;
	any = bpf_map_lookup_elem(&cilium_policy, &key);
	best = own;
	if (any && (!own || any->precedence > own->precedence ||
		    (any->precedence == own->precedence &&
		     (any->deny > own->deny || (any->deny == own->deny && any->prefixlen > own->prefixlen))))) {
		best = any;
		who = 0;
	}
	if (!best)
		return DROP_POLICY;
	policy_account(skb, endpoint, &key, who, best->prefixlen);
	return best->deny ? DROP_POLICY : 0;
}

#endif
