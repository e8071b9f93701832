//go:build ignore

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Notes when a transaction passes the points of a lab. It only looks: no packet is changed, dropped or redirected.
 *
 *	send ─► netfilter ─► queue ─► transmit ═ veth ═► arrive ─► receive ─► netfilter ─► ... ─► TCP ─► wake ─► deliver
 *
 * Every program asks first whether a followed transaction is under way, then whether the packet is in a namespace of the
 * lab, then whether it belongs to the measured flow, under whatever headers. There is one transaction at a time, so
 * whatever passes between two sends of the client belongs to the first of them.
 */
#include "packet.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define core __attribute__((preserve_access_index))

typedef _Bool bool;
enum { false, true };

struct ns_common { unsigned int inum; } core;

typedef int nf_hookfn(void *priv, void *skb, const void *state);

struct nf_hook_entry { nf_hookfn *hook; void *priv; } core;
struct nf_hook_entries { __u16 num_hook_entries; struct nf_hook_entry hooks[]; } core;
enum nf_hook_ops_type { NF_HOOK_OP_UNDEFINED, NF_HOOK_OP_NF_TABLES };
struct nf_hook_ops { int priority; enum nf_hook_ops_type hook_ops_type : 8; } core;

/* Of nftables and of iptables: what the private data of their hooks are. */
struct nft_table { char *name; } core;
struct nft_chain { struct nft_table *table; char *name; } core;
struct xt_table { char name[32]; } core;

#define HOOKS 5
#define MOST_ENTRIES 16

struct netns_nf { struct nf_hook_entries *hooks_ipv4[HOOKS]; struct nf_hook_entries *hooks_ipv6[HOOKS]; } core;
struct net { struct ns_common ns; struct netns_nf nf; } core;

typedef struct { struct net *net; } possible_net_t;

struct Qdisc { void *enqueue; } core;
struct netdev_queue { struct Qdisc *qdisc; } core;
struct net_device { int ifindex; possible_net_t nd_net; struct netdev_queue *_tx; } core;
struct sk_buff { struct net_device *dev; unsigned char *head, *data; __u16 network_header; } core;
struct sock_common { __be16 skc_dport; __u16 skc_num; possible_net_t skc_net; } core;
struct sock { struct sock_common __sk_common; __u16 sk_protocol; } core;
struct nf_hook_state { __u8 hook; struct net *net; } core;
struct bpf_nf_ctx { const struct nf_hook_state *state; struct sk_buff *skb; } core;

enum point { SEND = 1, QUEUE, TRANSMIT, ARRIVE, RECEIVE, HOOK_BEGIN, HOOK_END, SOCKET, WAKE, DELIVER };

enum { REQUEST = 1, RESPONSE = 2 };

#define SYN 2

struct settings {
	__u32	client;		/* inode of the client's namespace */
	__u32	room;		/* bytes in the buffer beyond which no transaction begins */
	__u16	ports[4];	/* of the server and of Services before it, host byte order */
	__u8	protocol;	/* IPPROTO_TCP, or IPPROTO_ICMP for either version */
	__u8	begin;		/* point at which a transaction begins */
	__u8	connects;	/* whether that is a connection's first packet */
	__u8	family;		/* 4 or 6 */
};

volatile const struct settings settings;

/* Written by the program that begins transactions: how many are followed, and how many are not, since the buffer is full. lost counts
 * records without room. queues says that a device of the lab has a queueing discipline.
 */
__u64 lost;
__u32 sampled, passed;
__u8 active, armed, queues;

/* Counts the probes since the last record that passed what is followed and noted nothing: they cost time, too. */
__u8 vain;

struct record {
	__u64	time;		/* CLOCK_MONOTONIC in ns */
	__u32	transaction;
	__u32	netns;		/* inode */
	__u32	ifindex;
	__u32	sequence;	/* of TCP or ICMP */
	__u16	length;		/* payload in bytes */
	__u16	took;		/* ns from time to the end of the probe, but for the call and the return */
	__u8	point, hook;
	__u8	direction;
	__u8	flags;		/* of TCP */
	__u8	depth;		/* of encapsulation */
	__u8	vain;		/* probes before it, since the record before, that noted nothing */
	__u8	unused[6];
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
	__type(value, struct record);
} follow_records SEC(".maps");

/* One entry in a list of netfilter hooks: function and private data are addresses. */
struct entry {
	__u64	function, data;
	__s32	priority;
	__u32	unused;
	__u8	table[32], chain[32];
};

struct host {
	__u32	surveyed;
	__u32	counts[HOOKS];
	struct entry entries[HOOKS][MOST_ENTRIES];
};

/* The namespaces of the lab by their inode. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, struct host);
} follow_hosts SEC(".maps");

struct packet {
	__u32	sequence;
	__u16	length;
	__u8	direction, flags, depth;
};

inlined bool is_port(__u16 port)
{
	return port && (port == settings.ports[0] || port == settings.ports[1] || port == settings.ports[2] || port == settings.ports[3]);
}

inlined __u8 direction_of(__u16 from, __u16 to)
{
	if (is_port(to))
		return REQUEST;
	return is_port(from) ? RESPONSE : 0;
}

struct tcp_header {
	__be16	source, dest;
	__be32	seq, ack;
	__u8	offset, flags;
};

struct icmp_header {
	__u8	type, code;
	__sum16	check;
	__be16	id, sequence;
};

#define ECHO_REPLY	0
#define ECHO		8
#define ECHO6		128
#define ECHO_REPLY6	129
#define IPPROTO_IPV6	41
#define IPPROTO_ICMPV6	58

/* Reads the transport header of a packet, which has length bytes with it. */
inlined bool transport(const void *l4, __u8 protocol, __u16 length, struct packet *p)
{
	if (protocol == IPPROTO_TCP) {
		const struct tcp_header *h = l4;

		p->direction = direction_of(bpf_ntohs(h->source), bpf_ntohs(h->dest));
		p->sequence = bpf_ntohl(h->seq);
		p->flags = h->flags;
		p->length = length - 4 * (h->offset >> 4);
	} else {
		const struct icmp_header *h = l4;

		p->direction = h->type == ECHO || h->type == ECHO6 ? REQUEST : h->type == ECHO_REPLY || h->type == ECHO_REPLY6 ? RESPONSE : 0;
		p->sequence = bpf_ntohs(h->sequence);
		p->length = length - sizeof(*h);
	}
	return p->direction;
}

/* The beginning of a packet: an IP header and what follows. It is read at once, since each read costs. Behind the
 * end of a short packet is other memory of its buffer.
 */
struct headers {
	__u8	ip[40], l4[20];
};

/* Follows the headers from l3 on until the measured protocol is found; there may be a tunnel's in between. */
inlined bool parse(const unsigned char *l3, struct packet *p)
{
#pragma unroll
	for (int depth = 0; depth < 3; depth++) {
		struct headers h;
		const __u8 *l4;
		__u8 protocol;
		__u16 length;

		if (bpf_probe_read_kernel(&h, sizeof(h), l3))
			return false;
		p->depth = depth;
		if (h.ip[0] >> 4 == 4) {
			__u16 size = 4 * (h.ip[0] & 15);

			l4 = h.ip + 20;
			protocol = h.ip[9];
			length = (__u16)(h.ip[2] << 8 | h.ip[3]) - size;
			l3 += size;
			if (size != 20) { /* options, by which some load balancers pass addresses on */
				if (bpf_probe_read_kernel(h.l4, sizeof(h.l4), l3))
					return false;
				l4 = h.l4;
			}
		} else if (h.ip[0] >> 4 == 6) {
			l4 = h.l4;
			protocol = h.ip[6];
			length = (__u16)(h.ip[4] << 8 | h.ip[5]);
			l3 += 40;
		} else {
			return false;
		}
		if (protocol == IPPROTO_ICMPV6)
			protocol = IPPROTO_ICMP;
		if (protocol == settings.protocol)
			return transport(l4, protocol, length, p);
		if (protocol == IPPROTO_UDP) {
			__u16 port = l4[2] << 8 | l4[3];

			if (port == 4789 || port == 8472) /* VXLAN */
				l3 += 8 + 8 + ETH_HLEN;
			else if (port == 6081) /* Geneve with its options */
				l3 += 8 + 8 + 4 * (l4[8] & 0x3f) + ETH_HLEN;
			else
				return false;
		} else if (protocol != IPPROTO_IPIP && protocol != IPPROTO_IPV6) {
			return false;
		}
	}
	return false;
}

inlined struct host *host_of(__u32 inum)
{
	return bpf_map_lookup_elem(&follow_hosts, &inum);
}

inlined void note(__u64 now, __u32 inum, __u8 point, __u8 hook, const struct packet *p, const struct net_device *dev)
{
	struct record *r = bpf_ringbuf_reserve(&follow_records, sizeof(*r), 0);
	__u64 took;

	if (!r) {
		__sync_fetch_and_add(&lost, 1);
		return;
	}
	r->time = now;
	r->transaction = sampled;
	r->netns = inum;
	r->sequence = p->sequence;
	r->length = p->length;
	r->point = point;
	r->hook = hook;
	r->direction = p->direction;
	r->flags = p->flags;
	r->depth = p->depth;
	r->vain = vain;
	vain = 0;
	__builtin_memset(r->unused, 0, sizeof(r->unused));
	r->ifindex = dev ? dev->ifindex : 0;
	took = bpf_ktime_get_ns() - now;
	r->took = took < 0xffff ? took : 0xffff;
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
}

/* Decides at the first point of a transaction whether it is followed: all are, so that the next finds the probes' code and data in the
 * caches, as long as there is room for all that it may note.
 */
inlined void begins(void)
{
	active = 0;
	if (!armed)
		return;
	if (bpf_ringbuf_query(&follow_records, BPF_RB_AVAIL_DATA) > settings.room) {
		passed++;
		return;
	}
	sampled++;
	active = 1;
	vain = 0;
}

/* A packet passes a device, or a hook in front of one. */
inlined int passes(__u8 point, __u8 hook, const unsigned char *l3, const struct net_device *dev, const struct net *net)
{
	bool beginning = settings.begin == point;
	__u64 now = bpf_ktime_get_ns();
	struct packet p = {};
	__u32 inum;

	if (!active && !(beginning && armed))
		return 0;
	inum = net->ns.inum;
	if (!host_of(inum) || !parse(l3, &p))
		return 0;
	if (beginning && p.direction == REQUEST && (settings.connects ? p.flags & SYN : p.length) && inum == settings.client)
		begins();
	if (active)
		note(now, inum, point, hook, &p, dev);
	return 0;
}

SEC("tp_btf/net_dev_queue")
int BPF_PROG(on_queue, struct sk_buff *skb)
{
	struct net_device *dev = skb->dev;

	/* A device without a queueing discipline transmits at once. */
	if (!dev->_tx->qdisc->enqueue) {
		if (active && host_of(dev->nd_net.net->ns.inum))
			vain++;
		return 0;
	}
	return passes(QUEUE, 0, skb->head + skb->network_header, dev, dev->nd_net.net);
}

/* Before probes are in place: without queueing disciplines there is none at them. */
SEC("tp_btf/net_dev_queue")
int BPF_PROG(on_survey_queue, struct sk_buff *skb)
{
	struct net_device *dev = skb->dev;

	if (dev->_tx->qdisc->enqueue && host_of(dev->nd_net.net->ns.inum))
		queues = 1;
	return 0;
}

SEC("tp_btf/net_dev_start_xmit")
int BPF_PROG(on_transmit, const struct sk_buff *skb, const struct net_device *dev)
{
	return passes(TRANSMIT, 0, skb->head + skb->network_header, dev, dev->nd_net.net);
}

SEC("tp_btf/netif_rx")
int BPF_PROG(on_arrive, struct sk_buff *skb)
{
	struct net_device *dev = skb->dev;

	return passes(ARRIVE, 0, skb->data, dev, dev->nd_net.net);
}

SEC("tp_btf/netif_receive_skb")
int BPF_PROG(on_receive, struct sk_buff *skb)
{
	struct net_device *dev = skb->dev;

	return passes(RECEIVE, 0, skb->data, dev, dev->nd_net.net);
}

SEC("tp_btf/tcp_probe")
int BPF_PROG(on_socket, struct sock *sk, struct sk_buff *skb)
{
	return passes(SOCKET, 0, skb->head + skb->network_header, skb->dev, sk->__sk_common.skc_net.net);
}

#define NF_ACCEPT 1

SEC("netfilter")
int on_hook_begin(struct bpf_nf_ctx *ctx)
{
	const struct nf_hook_state *state = ctx->state;
	struct sk_buff *skb = ctx->skb;

	passes(HOOK_BEGIN, state->hook, skb->head + skb->network_header, 0, state->net);
	return NF_ACCEPT;
}

SEC("netfilter")
int on_hook_end(struct bpf_nf_ctx *ctx)
{
	const struct nf_hook_state *state = ctx->state;
	struct sk_buff *skb = ctx->skb;

	passes(HOOK_END, state->hook, skb->head + skb->network_header, 0, state->net);
	return NF_ACCEPT;
}

/* A socket of the measured flow does something. Of the client's, what goes out is a request and what comes in is not. A call in vain
 * finds nothing to receive: io_uring asks before it waits.
 */
inlined int acts(__u8 point, const struct sock *sk, bool out, bool in_vain)
{
	__u64 now = bpf_ktime_get_ns();
	struct packet p = {};
	bool beginning = settings.begin == point;
	bool client, server;
	__u32 inum;

	if (!active && !(beginning && armed))
		return 0;
	inum = sk->__sk_common.skc_net.net->ns.inum;
	if (settings.protocol == IPPROTO_TCP) {
		client = is_port(bpf_ntohs(sk->__sk_common.skc_dport));
		server = is_port(sk->__sk_common.skc_num);
	} else {
		/* The server's kernel answers echoes without a socket. */
		client = inum == settings.client && (sk->sk_protocol == IPPROTO_ICMP || sk->sk_protocol == IPPROTO_ICMPV6);
		server = false;
	}
	if (client == server)
		return 0;
	if (in_vain) {
		if (active)
			vain++;
		return 0;
	}
	if (!host_of(inum))
		return 0;
	p.direction = client == out ? REQUEST : RESPONSE;
	if (beginning && client && inum == settings.client)
		begins();
	if (active)
		note(now, inum, point, 0, &p, 0);
	return 0;
}

SEC("tp_btf/tcp_sendmsg_locked")
int BPF_PROG(on_send, const struct sock *sk)
{
	return acts(SEND, sk, true, false);
}

SEC("tp_btf/sk_data_ready")
int BPF_PROG(on_wake, const struct sock *sk)
{
	return acts(WAKE, sk, false, false);
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(on_deliver, struct sock *sk, int ret)
{
	return acts(DELIVER, sk, false, ret <= 0);
}

/* Reads the names of the table and the chain that are called. Those of iptables count for its own function only, which the
 * reader knows by its address.
 */
inlined void name(struct entry *e, bool nftables)
{
	const struct nft_chain *chain = (const void *)e->data;
	const struct xt_table *table = (const void *)e->data;

	if (!e->data)
		return;
	if (nftables) {
		bpf_probe_read_kernel_str(e->table, sizeof(e->table), BPF_CORE_READ(chain, table, name));
		bpf_probe_read_kernel_str(e->chain, sizeof(e->chain), BPF_CORE_READ(chain, name));
	} else {
		bpf_probe_read_kernel_str(e->table, sizeof(e->table), &table->name);
	}
}

/* Reads which functions are registered at the hooks of a namespace. */
inlined void survey(struct host *h, const struct net *net)
{
	h->surveyed = 1;
	for (int i = 0; i < HOOKS; i++) {
		const struct nf_hook_entries *all = settings.family == 6 ? net->nf.hooks_ipv6[i] : net->nf.hooks_ipv4[i];
		__u16 n;

		if (!all)
			continue;
		n = all->num_hook_entries;
		h->counts[i] = n;
		for (int j = 0; j < MOST_ENTRIES; j++) {
			struct { __u64 function, data; } pair;
			struct entry *e = &h->entries[i][j];
			const struct nf_hook_ops *ops = 0;
			const char *hooks = (const char *)all + __builtin_preserve_field_info(all->hooks[0], 0);

			if (j >= n)
				break;
			bpf_probe_read_kernel(&pair, sizeof(pair), hooks + j * sizeof(pair));
			e->function = pair.function;
			e->data = pair.data;
			/* The descriptions follow the functions, in the same order. */
			bpf_probe_read_kernel(&ops, sizeof(ops), hooks + n * sizeof(pair) + j * sizeof(ops));
			e->priority = BPF_CORE_READ(ops, priority);
			name(e, BPF_CORE_READ_BITFIELD_PROBED(ops, hook_ops_type) == NF_HOOK_OP_NF_TABLES);
		}
	}
}

SEC("tp_btf/netif_receive_skb")
int BPF_PROG(on_survey, struct sk_buff *skb)
{
	const struct net *net = skb->dev->nd_net.net;
	__u32 inum = net->ns.inum;
	struct host *h = host_of(inum);

	if (h && !h->surveyed)
		survey(h, net);
	return 0;
}
