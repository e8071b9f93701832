/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The tables of a node, with the types and key layouts that decide what a lookup costs. Sizes are set by the loader.
 *
 *	per node      lxc, ipcache, ct/ct_any, policystats, metrics, frags, lb_*, snat, call_policy
 *	per endpoint  policy, calls, scratch  (the object file of an endpoint's programs owns them)
 *	per object    calls, scratch
 */
#ifndef LAB_CILIUM_MAPS_H
#define LAB_CILIUM_MAPS_H

#include "l3.h"

/* Tables whose keys are addresses bear the number of their family, as Cilium's do. */
#ifdef IPV6
#define cilium_ct cilium_ct6
#define cilium_ct_any cilium_ct_any6
#define cilium_frags cilium_frags6
#define cilium_snat cilium_snat6
#define cilium_lb_services cilium_lb6_services
#define cilium_lb_backends cilium_lb6_backends
#define cilium_lb_reverse_nat cilium_lb6_reverse_nat
#define cilium_lb_affinity cilium_lb6_affinity
#define cilium_lb_reverse_sk cilium_lb6_reverse_sk
#define cilium_lb_maglev cilium_lb6_maglev
#else
#define cilium_ct cilium_ct4
#define cilium_ct_any cilium_ct_any4
#define cilium_frags cilium_frags4
#define cilium_snat cilium_snat4
#define cilium_lb_services cilium_lb4_services
#define cilium_lb_backends cilium_lb4_backends
#define cilium_lb_reverse_nat cilium_lb4_reverse_nat
#define cilium_lb_affinity cilium_lb4_affinity
#define cilium_lb_reverse_sk cilium_lb4_reverse_sk
#define cilium_lb_maglev cilium_lb4_maglev
#endif

/* Why something was counted. What passes and the drop reasons, from 130 on, share the metrics table. */
enum reason {
	FORWARDED = 0,
	RECEIVED = 3, /* by a program at a device's beginning, before it is known where to */
	DECRYPTING = 12, /* come out of the device that encrypts */
	ENCRYPTING = 13, /* on the way into it */
	SOCKET_FORGOTTEN = 14, /* no packet: a socket that spoke to a service ended */
	DROP_INVALID_SIP = 132,
	DROP_POLICY = 133,
	DROP_INVALID = 134,
	DROP_CT_INVALID_HDR = 135,
	DROP_CT_UNKNOWN_PROTO = 137,
	DROP_UNKNOWN_L3 = 139,
	DROP_MISSED_TAIL_CALL = 140,
	DROP_WRITE_ERROR = 141,
	DROP_UNKNOWN_ENDPOINT = 148,
	DROP_CT_CREATE_FAILED = 155,
	DROP_INVALID_EXTHDR = 156,
	DROP_FRAG_NOT_FOUND = 157,
	DROP_NO_SERVICE = 158,
	DROP_NO_TUNNEL_KEY = 159,
	DROP_NAT_NO_MAPPING = 161,
	DROP_NO_FIB = 169,
	DROP_TTL_EXCEEDED = 196,
	DROP_NO_NODE = 197,
	LINK_LOCAL = 250, /* a pod's messages to its own wire end there; nothing is lost */
};

enum direction { DIR_INGRESS = 1, DIR_EGRESS = 2, DIR_SERVICE = 3 };

enum identity { ID_UNKNOWN = 0, ID_HOST = 1, ID_WORLD = 2, ID_REMOTE_NODE = 6 };

struct endpoint_key {
	__be32	ip[4];
	__u8	family; /* FAMILY */
	__u8	pad8;
	__u16	pad16;
};

#define ENDPOINT_HOST 1 /* the address is one of the node itself */

struct endpoint_info {
	__u32	ifindex;
	__u16	pad;
	__u16	id;
	__u32	flags;
	__u32	identity;
	struct mac mac;      /* the pod's */
	__u16	pad1;
	struct mac node_mac; /* of the host's end */
	__u16	pad2;
	__u32	pad3[2];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65535);
	__type(key, struct endpoint_key);
	__type(value, struct endpoint_info);
} cilium_lxc SEC(".maps");

struct ipcache_key {
	__u32	prefixlen; /* IPCACHE_STATIC + bits of the address */
	__u16	cluster;
	__u8	pad;
	__u8	family;
	__be32	ip[4];
};

#define IPCACHE_STATIC 32

struct ipcache_entry {
	__u32	identity;
	__be32	tunnel[4]; /* node to encapsulate to, of either family */
	__u16	pad;
	__u8	key; /* not 0: packets for it are encrypted */
	__u8	flags;
};

#define HAS_TUNNEL	(1 << 1)
#define TUNNEL_V6	(1 << 2) /* the tunnel's own packets are IPv6 */

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 512000);
	__type(key, struct ipcache_key);
	__type(value, struct ipcache_entry);
} cilium_ipcache SEC(".maps");

/* What IPsec knows of other nodes, by each of their addresses. */
struct node_key {
	__u16	pad1;
	__u8	pad2;
	__u8	family;
	__be32	ip[4];
};

struct node_entry {
	__u16	id;
	__u8	key; /* the newest that it has */
	__u8	pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, struct node_key);
	__type(value, struct node_entry);
} cilium_node_map SEC(".maps");

/* The newest key of this node. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u8);
} cilium_encrypt_state SEC(".maps");

/* A flow in the direction of its first packet, seen from one side. Of the IPv6 one, tables take all but the last two
 * bytes; left aligned, it is copied by words.
 */
struct ct_key {
	struct addr saddr;
	struct addr daddr;
	__be16	sport;
	__be16	dport;
	__u8	proto;
	__u8	flags; /* CT_OUT, CT_IN, CT_SERVICE, | CT_RELATED */
#ifdef IPV6
	__u16	pad;
};

#define CT_KEY_SIZE 38
#else
} __attribute__((packed));

#define CT_KEY_SIZE 14
#endif

#define CT_OUT		0
#define CT_IN		1
#define CT_RELATED	2
#define CT_SERVICE	4

#define CTF_RX_CLOSING	(1 << 0)
#define CTF_TX_CLOSING	(1 << 1)
#define CTF_NODE_PORT	(1 << 2) /* came through this node's service frontend */
#define CTF_DSR		(1 << 3) /* reply leaves with nat_addr:nat_port as its source */
#define CTF_SEEN_NON_SYN (1 << 4)
#define CTF_FROM_TUNNEL	(1 << 5)
#define CTF_LOOPBACK	(1 << 6) /* client and backend are the same pod */

struct ct_entry {
	__u64	packets;
	__u64	bytes;
	__u64	backend_id; /* of a service entry */
	__u32	lifetime;   /* seconds of the monotonic clock */
	__u16	flags;
	__u16	rev_nat;
	struct addr nat_addr;
	__be16	nat_port;
	__u8	tx_flags_seen;
	__u8	rx_flags_seen;
	__u32	src_identity;
	__u32	tx_reported; /* seconds of the monotonic clock: when the last message about this direction was sent */
	__u32	rx_reported;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 524288);
	__uint(key_size, CT_KEY_SIZE);
	__type(value, struct ct_entry);
} cilium_ct SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 262144);
	__uint(key_size, CT_KEY_SIZE);
	__type(value, struct ct_entry);
} cilium_ct_any SEC(".maps");

struct policystats_key {
	__u16	endpoint;
	__u8	egress;
	__u8	prefixlen;
	__u32	identity;
	__u8	proto;
	__u8	pad;
	__be16	dport;
};

struct counter {
	__u64	packets;
	__u64	bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_PERCPU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct policystats_key);
	__type(value, struct counter);
} cilium_policystats SEC(".maps");

struct metrics_key {
	__u8	reason;
	__u8	direction;
	__u16	pad;
	__u32	pad32;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1024);
	__type(key, struct metrics_key);
	__type(value, struct counter);
} cilium_metrics SEC(".maps");

/* Messages about flows. Nobody reads them here, nor in a Cilium without Hubble and monitors: the programs write them and the
 * kernel throws them away.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
} cilium_events SEC(".maps");

/* First fragments leave their ports here for the ones that follow. */
struct frag_key {
	struct addr saddr;
	struct addr daddr;
#ifdef IPV6
	__be32	id;
	__u8	proto;
	__u8	pad[3];
#else
	__be16	id;
	__u8	proto;
	__u8	pad;
#endif
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct frag_key);
	__type(value, struct l4_ports);
} cilium_frags SEC(".maps");

/* Slot: endpoint id -> the program that guards that endpoint's door. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 65535);
	__type(key, __u32);
	__type(value, __u32);
} cilium_call_policy SEC(".maps");

/* ---- services ---- */

struct lb_key {
	struct addr address;
	__be16	dport;
	__u16	slot; /* 0: the frontend; 1..count: backends */
	__u8	proto;
	__u8	scope; /* SCOPE_EXTERNAL or SCOPE_INTERNAL */
	__u8	pad[2];
};

#define SCOPE_EXTERNAL 0
#define SCOPE_INTERNAL 1

#define SVC_AFFINITY	(1 << 0)
#define SVC_NODEPORT	(1 << 1) /* served for packets that come from outside */
#define SVC_TWO_SCOPES	(1 << 2) /* external and internal clients see different backends */
#define SVC_DSR		(1 << 3)

struct lb_service {
	__u32	backend_id; /* slot 0: affinity timeout in seconds */
	__u16	count;
	__u16	rev_nat;
	__u8	flags;
	__u8	pad;
	__u16	qcount;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct lb_key);
	__type(value, struct lb_service);
} cilium_lb_services SEC(".maps");

struct lb_backend {
	struct addr address;
	__be16	port;
	__u8	proto;
	__u8	flags;
	__u16	cluster;
	__u8	zone;
	__u8	pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, struct lb_backend);
} cilium_lb_backends SEC(".maps");

struct lb_frontend {
	struct addr address;
	__be16	port;
	__u16	pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u16);
	__type(value, struct lb_frontend);
} cilium_lb_reverse_nat SEC(".maps");

/* Address, or cookie of the network namespace. */
struct client {
	__u64	w[(WORDS + 1) / 2];
};

struct affinity_key {
	struct client client;
	__u16	rev_nat;
	__u8	by_cookie;
	__u8	pad[5];
};

struct affinity_value {
	__u64	last_used; /* seconds */
	__u32	backend_id;
	__u32	pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct affinity_key);
	__type(value, struct affinity_value);
} cilium_lb_affinity SEC(".maps");

struct reverse_sk_key {
	__u64	cookie;
	struct addr address;
	__be16	port;
	__u16	pad[WORDS == 1 ? 1 : 3];
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct reverse_sk_key);
	__type(value, struct lb_frontend);
} cilium_lb_reverse_sk SEC(".maps");

/* Prime, as the permutation wants it. */
#define MAGLEV_SIZE 16381

struct maglev_table {
	__u32 backend[MAGLEV_SIZE];
};

/* Sizes, not types: of a struct that only an inner map names, clang tells the loader nothing. */
struct maglev_inner {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct maglev_table));
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u16);
	__array(values, struct maglev_inner);
} cilium_lb_maglev SEC(".maps");

/* Source translation: one entry per direction. */
struct nat_entry {
	__u64	created;
	struct addr addr;
	__be16	port;
	__u16	pad[WORDS == 1 ? 1 : 3];
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 524288);
	__uint(key_size, CT_KEY_SIZE);
	__type(value, struct nat_entry);
} cilium_snat SEC(".maps");

/* ---- own to each object file ---- */

struct ct_buffer {
	struct ct_key	tuple;
	__u8		status; /* enum ct_status */
	__u8		egress;
	__u8		report; /* a message about the flow is due */
	__u32		l4;
	struct ct_entry	state;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ct_buffer);
} cilium_scratch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 16);
	__type(key, __u32);
	__type(value, __u32);
} cilium_calls SEC(".maps");

#endif
