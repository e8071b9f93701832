/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The programs are compiled twice, with IPVER6 defined for IPv6. Everything in which the two differ is in ipv4.h and
 * ipv6.h; tables and objects of one family know nothing of the other.
 *
 * Addresses are passed by pointer: the compiler reads a struct that is passed by value byte by byte.
 */
#ifndef LAB_CALICO_FAMILY_H
#define LAB_CALICO_FAMILY_H

#ifdef IPVER6
#include "packet6.h"

typedef struct in6 addr_t;
#else
#include "packet.h"

typedef __be32 addr_t;
#endif

/* What the headers say about a packet before anything of its transport is read. */
struct ip_facts {
	addr_t	src;
	addr_t	dst;
	__u32	l4; /* where the transport header is in the frame */
	__u8	proto;
	__u8	hops;
	__u8	later; /* a fragment after the first, without transport header */
};

#ifdef IPVER6
#include "ipv6.h"
#else
#include "ipv4.h"
#endif

#endif
