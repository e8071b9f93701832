/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The fixed-width names that <linux/bpf.h> needs. Ours shadows the system's file, which would pull in headers of the
 * building machine's architecture: programs for the bpf target must compile the same everywhere.
 */
#ifndef LAB_LINUX_TYPES_H
#define LAB_LINUX_TYPES_H

typedef signed char __s8;
typedef unsigned char __u8;
typedef signed short __s16;
typedef unsigned short __u16;
typedef signed int __s32;
typedef unsigned int __u32;
typedef signed long long __s64;
typedef unsigned long long __u64;

typedef __u16 __be16;
typedef __u32 __be32;
typedef __u64 __be64;
typedef __u16 __sum16;
typedef __u32 __wsum;

#define __aligned_u64 __u64 __attribute__((aligned(8)))

#endif
