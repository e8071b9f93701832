//go:build ignore

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* TCP to a service is translated in connect(): the service's address never reaches a device. UDP is not; from_workload
 * translates it packet by packet.
 *
 *	process in the node's cgroup ─► connect4 (connect6): frontend ─► backend, in the socket
 */
#include "state.h"

#define EHOSTUNREACH 113

/* Fields of the context are read and written one by one. */
inlined void wanted(const struct bpf_sock_addr *ctx, addr_t *dst)
{
#ifdef IPVER6
	dst->w[0] = ctx->user_ip6[0];
	dst->w[1] = ctx->user_ip6[1];
	dst->w[2] = ctx->user_ip6[2];
	dst->w[3] = ctx->user_ip6[3];
#else
	*dst = ctx->user_ip4;
#endif
}

inlined void redirect_to(struct bpf_sock_addr *ctx, const addr_t *addr)
{
#ifdef IPVER6
	ctx->user_ip6[0] = addr->w[0];
	ctx->user_ip6[1] = addr->w[1];
	ctx->user_ip6[2] = addr->w[2];
	ctx->user_ip6[3] = addr->w[3];
#else
	ctx->user_ip4 = *addr;
#endif
}

inlined int translate(struct bpf_sock_addr *ctx)
{
	struct nat_be_value to = {};
	addr_t nobody, dst;
	int ret;

	if (ctx->type != SOCK_STREAM)
		return 1;
	/* The client's address is not known before the route is; affinity sees the zero address, one per node. */
	clear(&nobody);
	wanted(ctx, &dst);
	ret = nat_backend(&nobody, &dst, (__be16)ctx->user_port, IPPROTO_TCP, 0, 0, &to);
	if (!ret)
		return 1;
	if (ret < 0) {
		bpf_set_retval(-EHOSTUNREACH);
		return 0;
	}
	redirect_to(ctx, &to.addr);
	ctx->user_port = to.port;
	return 1;
}

#ifdef IPVER6
SEC("cgroup/connect6")
int connect6(struct bpf_sock_addr *ctx)
{
	return translate(ctx);
}
#else
SEC("cgroup/connect4")
int connect4(struct bpf_sock_addr *ctx)
{
	return translate(ctx);
}
#endif

char __license[] SEC("license") = "Dual BSD/GPL";
