//go:build ignore

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The first program on every device and side: it knows which device that is, writes it down and jumps.
 *
 *	packet ─► preamble (this device) ─► main (devices of its kind) ─► policy ─► accepted
 */
#include "state.h"

volatile const struct iface_config iface;

SEC("tc")
int preamble(struct __sk_buff *skb)
{
	struct state *st = state();

	if (!st)
		return drop(DROP_JUMP);
	st->iface.host_ip = iface.host_ip;
	st->iface.tunnel = iface.tunnel;
	st->iface.policy = iface.policy;
	st->iface.kind = iface.kind;
	st->iface.dsr = iface.dsr;
	bpf_tail_call(skb, &cali_jump, JUMP_MAIN(iface.kind));
	return drop(DROP_JUMP);
}

char __license[] SEC("license") = "Dual BSD/GPL";
