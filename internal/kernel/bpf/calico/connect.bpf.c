//go:build ignore

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* TCP to a service is translated in connect(): the service's address never reaches a device. UDP is not; from_workload
 * translates it packet by packet.
 *
 *	process in the node's cgroup ─► connect4: frontend ─► backend, in the socket
 */
#include "state.h"

#define EHOSTUNREACH 113

SEC("cgroup/connect4")
int connect4(struct bpf_sock_addr *ctx)
{
	struct nat_be_value to = {};
	int ret;

	if (ctx->type != SOCK_STREAM)
		return 1;
	/* The client's address is not known before the route is; affinity sees the zero address, one per node. */
	ret = nat_backend(0, ctx->user_ip4, (__be16)ctx->user_port, IPPROTO_TCP, 0, 0, &to);
	if (!ret)
		return 1;
	if (ret < 0) {
		bpf_set_retval(-EHOSTUNREACH);
		return 0;
	}
	ctx->user_ip4 = to.addr;
	ctx->user_port = to.port;
	return 1;
}

char __license[] SEC("license") = "Dual BSD/GPL";
