//go:build ignore

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Service translation where the address is named, not where the packet is: a service's address never reaches a device.
 *
 *	process in the node's cgroup              ─► connect4      service ─► backend, in the socket
 *	unconnected UDP                           ─► sendmsg4      the same for one datagram
 *	   its answer                             ─► recvmsg4      backend ─► service, in what recvfrom() says
 *	getpeername()                             ─► getpeername4  the same
 *	the socket's end                          ─► release4      forgets what connect4 and sendmsg4 remembered
 * With IPv6 each name ends in 6.
 */
#include "lb.h"

#ifdef IPV6
#define HOOK(name) SEC("cgroup/" #name "6") int name##6(struct bpf_sock_addr *ctx)
#else
#define HOOK(name) SEC("cgroup/" #name "4") int name##4(struct bpf_sock_addr *ctx)
#endif

#define CONNECT_OK 1
#define CONNECT_REFUSE 0
#define EHOSTUNREACH 113

/* named and name are the address of a call, read and written by words: the kernel allows no other way. */
inlined struct addr named(struct bpf_sock_addr *ctx)
{
#ifdef IPV6
	struct addr a = {{ ctx->user_ip6[0], ctx->user_ip6[1], ctx->user_ip6[2], ctx->user_ip6[3] }};
#else
	struct addr a = {{ ctx->user_ip4 }};
#endif
	return a;
}

inlined void name(struct bpf_sock_addr *ctx, struct addr a, __be16 port)
{
#ifdef IPV6
	ctx->user_ip6[0] = a.w[0];
	ctx->user_ip6[1] = a.w[1];
	ctx->user_ip6[2] = a.w[2];
	ctx->user_ip6[3] = a.w[3];
#else
	ctx->user_ip4 = a.w[0];
#endif
	ctx->user_port = port;
}

/* sock_backend picks the backend of a socket's service and says in *rev_nat which service it was. Returns 0 if the
 * address is no service, 1 with *chosen filled in, or -1 for a service that has nobody behind it.
 */
inlined int sock_backend(struct bpf_sock_addr *ctx, __u8 proto, struct lb_backend *chosen, __u16 *rev_nat)
{
	struct lb_key key = { .address = named(ctx), .dport = (__be16)ctx->user_port, .proto = proto };
	struct lb_service *svc = lb_service(&key, SCOPE_INTERNAL);
	struct lb_backend *backend;
	struct client client = {};
	__u32 id;

	if (!svc)
		return 0;
	if (svc->flags & SVC_AFFINITY)
		client.w[0] = bpf_get_netns_cookie(ctx);
	id = lb_affine(svc, client, 1);
	backend = lb_backend(id);
	if (!backend) {
		if (!svc->count)
			return -1;
		/* A UDP socket keeps its backend across datagrams, a TCP connection happens once. */
		if (proto == IPPROTO_UDP)
			id = lb_slot(&key, svc, (__u32)bpf_get_socket_cookie(ctx));
		else
			id = lb_random(&key, svc);
		backend = lb_backend(id);
		if (!backend)
			return -1;
	}
	lb_remember(svc, client, 1, id);
	*chosen = *backend;
	*rev_nat = svc->rev_nat;
	return 1;
}

inlined int sock_translate(struct bpf_sock_addr *ctx, __u8 proto, int remember)
{
	struct lb_backend backend = {};
	struct reverse_sk_key key = {};
	struct lb_frontend was = {};
	__u16 rev_nat = 0;
	int ret = sock_backend(ctx, proto, &backend, &rev_nat);

	if (!ret)
		return CONNECT_OK;
	if (ret < 0) {
		bpf_set_retval(-EHOSTUNREACH);
		return CONNECT_REFUSE;
	}
	if (remember) {
		key.cookie = bpf_get_socket_cookie(ctx);
		key.address = backend.address;
		key.port = backend.port;
		was.address = named(ctx);
		was.port = (__be16)ctx->user_port;
		was.pad = rev_nat;
		bpf_map_update_elem(&cilium_lb_reverse_sk, &key, &was, BPF_ANY);
	}
	name(ctx, backend.address, backend.port);
	return CONNECT_OK;
}

inlined void sock_reverse(struct bpf_sock_addr *ctx)
{
	struct reverse_sk_key key = {};
	struct lb_frontend *was;

	key.cookie = bpf_get_socket_cookie(ctx);
	key.address = named(ctx);
	key.port = (__be16)ctx->user_port;
	was = bpf_map_lookup_elem(&cilium_lb_reverse_sk, &key);
	if (!was)
		return;
	name(ctx, was->address, was->port);
}

HOOK(connect)
{
	if (ctx->type == SOCK_STREAM)
		return sock_translate(ctx, IPPROTO_TCP, 1);
	if (ctx->type == SOCK_DGRAM)
		return sock_translate(ctx, IPPROTO_UDP, 1);
	return CONNECT_OK;
}

HOOK(sendmsg)
{
	if (ctx->type == SOCK_DGRAM)
		return sock_translate(ctx, IPPROTO_UDP, 1);
	return CONNECT_OK;
}

HOOK(recvmsg)
{
	sock_reverse(ctx);
	return CONNECT_OK;
}

HOOK(getpeername)
{
	sock_reverse(ctx);
	return CONNECT_OK;
}

/* release runs for every socket of the node, whether it spoke to a service or not. */
#ifdef IPV6
SEC("cgroup/sock_release") int release6(struct bpf_sock *sk)
#else
SEC("cgroup/sock_release") int release4(struct bpf_sock *sk)
#endif
{
	struct reverse_sk_key key = {};

#ifdef IPV6
	if (sk->family != AF_INET6)
		return 1;
	key.address = (struct addr){{ sk->dst_ip6[0], sk->dst_ip6[1], sk->dst_ip6[2], sk->dst_ip6[3] }};
#else
	if (sk->family != AF_INET)
		return 1;
	key.address = (struct addr){{ sk->dst_ip4 }};
#endif
	key.cookie = bpf_get_socket_cookie(sk);
	key.port = sk->dst_port;
	if (!bpf_map_delete_elem(&cilium_lb_reverse_sk, &key))
		count_bytes(0, DIR_EGRESS, SOCKET_FORGOTTEN);
	return 1;
}

char __license[] SEC("license") = "Dual BSD/GPL";
