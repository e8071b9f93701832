/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What a packet carries from program to program, and the tables of a node.
 *
 *	preamble (one per device and side: its constants) ─► main (one per kind of device) ─► policy (one per workload and
 *	side, generated) ─► accepted (one per kind)
 *
 * The state lies in a per-CPU array; packets of one CPU do not interleave inside a hook.
 */
#ifndef LAB_CALICO_STATE_H
#define LAB_CALICO_STATE_H

#include "family.h"

/* Kinds of hook. "from" is ingress, "to" egress; host is the data device, tunnel the VXLAN device, service the device to
 * which the node routes its own packets for services.
 */
enum kind { FROM_WORKLOAD, TO_WORKLOAD, FROM_HOST, TO_HOST, FROM_TUNNEL, TO_TUNNEL, FROM_SERVICE, KINDS };

/* Slots of the jump table. */
#define JUMP_MAIN(kind)		(kind)
#define JUMP_ACCEPTED(kind)	(8 + (kind))
#define JUMP_DENIED		16
#define JUMP_NODEPORT		17
#define JUMP_POLICY		32 /* and up: one per workload and side */

#define MARK_MASK	0xff00000
#define MARK_SEEN	0x1000000
#define MARK_BYPASS	0x3000000
#define MARK_SELF	0x3600000
#define MARK_NAT_OUT	0x3800000

struct iface_config {
	addr_t	host_ip;
	__u32	tunnel; /* index of the VXLAN device, 0: none */
	__u32	policy; /* slot, 0: none */
	__u8	kind;
	__u8	dsr;
	__u16	pad;
};

/* The fields that generated policy reads come first; policy_linux.go knows their offsets. */
struct state {
	addr_t	src;
	addr_t	dst; /* after translation of a service */
	__be16	sport;
	__be16	dport;
	__u8	proto;
	__u8	tcp_flags;
	__u8	ct;    /* enum ct_result */
	__u8	nat;   /* enum nat */
	__u32	accepted; /* slot to go to when policy allows */
	addr_t	nat_ip;
	__be16	nat_port;
	__u16	nat_flags;
	addr_t	orig_dst; /* before translation */
	__be16	orig_dport;
	__u16	pad;
	__u32	l4;
	__u32	fwd_ifindex;
	__u32	fwd_flags;
	__u32	route_flags;
	addr_t	route_hop;
	addr_t	tunnel_ip; /* the node that a service packet came from */
	struct iface_config iface;
};

enum nat { NAT_NONE, NAT_DNAT, NAT_SNAT };

enum ct_result { CT_NEW, CT_UNAPPROVED, CT_SYN_AGAIN, CT_ESTABLISHED, CT_BYPASS };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct state);
} cali_state SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u32);
} cali_jump SEC(".maps");

enum count {
	PASSED_IN, PASSED_OUT, DROP_MALFORMED, DROP_DENIED, DROP_SOURCE, DROP_NO_BACKEND, DROP_CREATE, DROP_NO_ROUTE,
	DROP_TTL, DROP_WRITE, DROP_JUMP, DROP_PROTOCOL, DROP_FRAGMENT, DROP_TOO_BIG, COUNTS
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNTS);
	__type(key, __u32);
	__type(value, __u64);
} cali_counters SEC(".maps");

inlined void count(__u32 what)
{
	__u64 *n = bpf_map_lookup_elem(&cali_counters, &what);

	if (n)
		(*n)++;
}

inlined int drop(__u32 why)
{
	count(why);
	return TC_ACT_SHOT;
}

inlined struct state *state(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&cali_state, &zero);
}

/* ---- flows ---- */

/* The key has no direction: the lower end comes first. */
struct ct_key {
	__u32	proto;
	addr_t	addr_a;
	addr_t	addr_b;
	__be16	port_a;
	__be16	port_b;
};

enum ct_type { CT_NORMAL, CT_NAT_FWD, CT_NAT_REV };

#define LEG_SYN		(1 << 0)
#define LEG_ACK		(1 << 1)
#define LEG_FIN		(1 << 2)
#define LEG_RST		(1 << 3)
#define LEG_APPROVED	(1 << 4) /* the device at this leg's source has let the flow pass */
#define LEG_OPENER	(1 << 5)
#define LEG_WORKLOAD	(1 << 6) /* that device leads to a pod of this node */

struct leg {
	__u64	bytes;
	__u32	packets;
	__u32	seqno;
	__u32	flags;
	__u32	ifindex;
};

#define CTV_VIA_TUNNEL	(1 << 0) /* the reply goes back through the node in tun_ip */
#define CTV_DSR		(1 << 1)
#define CTV_TO_NODE	(1 << 2) /* the flow is wrapped to the node in tun_ip, which serves it */
#define CTV_SELF	(1 << 3) /* a pod's own to itself: it has to come back from another address, the node's */

struct ct_value {
	__u64	rst_seen;
	__u64	last_seen; /* ns */
	__u8	type;
	__u8	flags;
	__u8	pad[6];
	struct leg a_to_b; /* of a NAT_FWD entry, over both legs: ct_rev, the key of its NAT_REV entry */
	struct leg b_to_a;
	addr_t	tun_ip;
	addr_t	orig_ip; /* NAT_REV: what the client spoke to */
	__be16	orig_port;
	__u16	pad16;
	__u32	pad32;
};

_Static_assert(sizeof(struct ct_key) <= 2 * sizeof(struct leg), "ct_rev has the room of the legs");

inlined struct ct_key *ct_rev(struct ct_value *v)
{
	return (struct ct_key *)&v->a_to_b;
}

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 512000);
	__type(key, struct ct_key);
	__type(value, struct ct_value);
} MAP(ct) SEC(".maps");

/* ---- services ---- */

struct nat_fe_key {
	__u32	prefixlen; /* up to source for any, NAT_FE_FULL with one */
	addr_t	addr;
	__be16	port;
	__u8	proto;
	__u8	pad;
	addr_t	source;
};

#define NAT_FE_FULL (ADDR_BITS + 32 + ADDR_BITS)

#define FE_AFFINITY	(1 << 0)
#define FE_LOCAL_ONLY	(1 << 1) /* packets from outside get a backend of this node or none */

struct nat_fe_value {
	__u32	id;
	__u32	count;
	__u32	local; /* the first ones are of this node */
	__u32	affinity; /* seconds */
	__u32	flags;
};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct nat_fe_key);
	__type(value, struct nat_fe_value);
} MAP(nat_fe) SEC(".maps");

struct nat_be_key {
	__u32	id;
	__u32	ordinal;
};

struct nat_be_value {
	addr_t	addr;
	__be16	port;
	__u16	pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 262144);
	__type(key, struct nat_be_key);
	__type(value, struct nat_be_value);
} MAP(nat_be) SEC(".maps");

struct nat_aff_key {
	addr_t	client;
	__u32	id;
};

struct nat_aff_value {
	__u64	since; /* ns */
	addr_t	addr;
	__be16	port;
	__u16	pad;
#ifdef IPVER6
	__u32	pad32;
#endif
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct nat_aff_key);
	__type(value, struct nat_aff_value);
} MAP(nat_aff) SEC(".maps");

/* ---- routes and sets ---- */

#define ROUTE_WORKLOAD	(1 << 0)
#define ROUTE_LOCAL	(1 << 1)
#define ROUTE_HOST	(1 << 2)
#define ROUTE_TUNNELED	(1 << 3)
#define ROUTE_NAT_OUT	(1 << 4) /* of a source: masquerade towards what is in no pool */
#define ROUTE_IN_POOL	(1 << 5)

struct route_key {
	__u32	prefixlen;
	addr_t	addr;
};

struct route_value {
	__u32	flags;
	addr_t	next_hop; /* node of a remote workload */
	__u32	ifindex;  /* of a local one */
};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 262144);
	__type(key, struct route_key);
	__type(value, struct route_value);
} MAP(routes) SEC(".maps");

/* All sets that policy names live in one trie, apart by their number. */
struct set_key {
	__u32	prefixlen;
	__be64	set;
	addr_t	addr;
	__be16	port;
	__u8	proto;
	__u8	pad;
} __attribute__((packed));

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1048576);
	__type(key, struct set_key);
	__type(value, __u32);
} MAP(ip_sets) SEC(".maps");

inlined struct route_value *route_of(const addr_t *addr)
{
	struct route_key key = { .prefixlen = ADDR_BITS, .addr = *addr };

	return bpf_map_lookup_elem(&MAP(routes), &key);
}

/* nat_backend picks a backend for a new flow: 0 no service, 1 found, -1 nobody serves it. */
inlined int nat_backend(const addr_t *src, const addr_t *dst, __be16 port, __u8 proto, int outside, int local_only,
			struct nat_be_value *to)
{
	struct nat_fe_key key = {
		.prefixlen = NAT_FE_FULL, .addr = *dst, .port = port, .proto = proto, .source = *src,
	};
	struct nat_fe_value *fe = bpf_map_lookup_elem(&MAP(nat_fe), &key);
	struct nat_aff_key who = { .client = *src };
	struct nat_be_key be = {};
	struct nat_be_value *v;
	__u32 n;

	if (!fe)
		return 0;
	n = local_only || (outside && fe->flags & FE_LOCAL_ONLY) ? fe->local : fe->count;
	if (!n)
		return -1;
	who.id = fe->id;
	if (fe->flags & FE_AFFINITY) {
		struct nat_aff_value *known = bpf_map_lookup_elem(&MAP(nat_aff), &who);

		if (known && known->since + fe->affinity * NSEC_PER_SEC > bpf_ktime_get_ns()) {
			to->addr = known->addr;
			to->port = known->port;
			return 1;
		}
	}
	be.id = fe->id;
	be.ordinal = bpf_get_prandom_u32() % n;
	v = bpf_map_lookup_elem(&MAP(nat_be), &be);
	if (!v)
		return -1;
	*to = *v;
	if (fe->flags & FE_AFFINITY) {
		struct nat_aff_value now = { .since = bpf_ktime_get_ns(), .addr = to->addr, .port = to->port };

		bpf_map_update_elem(&MAP(nat_aff), &who, &now, BPF_ANY);
	}
	return 1;
}

#endif
