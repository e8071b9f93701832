#!/bin/sh
# Plants faults in labs by plain tools and lets "cnibench diagnose" name them: diagnose.sh CNIBENCH [FAULT...]. Prints a row of a
# Markdown table for each; ends with 1 if one was not named. The directory KEEP, if it is set, gets the answers and rows; a row
# that is there is not measured again. A fault lives in a lab of its own, but for conntrack-full, which lowers the machine's
# limit of tracked connections for half a minute.
set -u
program=$1
shift
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0 count=0

at() { place=$1; shift; "$program" lab exec --lab "$lab" "$place" -- "$@" >/dev/null; }

# fault NAME PROFILE VERDICT CAUSE TEXT [FLAG OF lab up]: plants by plant_NAME, cleans up by clean_NAME if there is one.
fault() {
	name=$1 profile=$2 verdict=$3 cause=$4 text=$5
	shift 5
	case " $wanted " in "  " | *" $name "*) ;; *) return ;; esac
	count=$((count + 1)) row=${KEEP:-$dir}/$name.md
	echo "diagnose.sh: fault $count: $name" >&2
	[ -s "$row" ] || ask "$@" >"$row"
	cat "$row"
	! grep -q '\*\*no\*\*' "$row" || bad=1
}

# ask plants the fault of a name and prints its row.
ask() {
	lab=diagnose-$name-$$
	mkfifo "$dir/in"
	"$program" lab up "$profile" --name "$lab" "$@" <"$dir/in" >"$dir/up" 2>&1 &
	up=$!
	exec 3>"$dir/in"
	rm "$dir/in"
	until grep -q 'lab is up' "$dir/up"; do
		kill -0 $up 2>/dev/null || { cat "$dir/up" >&2; exit 1; }
		sleep 0.2
	done
	"plant_$name"
	began=$(date +%s)
	prefix_$name "$program" diagnose --lab "$lab" -q -f json >"$dir/out" 2>"$dir/err"
	code=$?
	took=$(($(date +%s) - began))
	"clean_$name"
	exec 3>&-
	wait $up
	got=$(sed -n 's/^  "verdict": "\(.*\)",$/\1/p' "$dir/out")/$(sed -n 's/^  "cause": "\(.*\)",$/\1/p' "$dir/out")
	answer=$(sed -n 's/^  "answer": "\(.*\)",$/\1/p' "$dir/out")
	mark=yes
	[ "$got" = "$verdict/$cause" ] || { mark="**no** ($got)"; cat "$dir/err" >&2; }
	[ -z "${KEEP:-}" ] || cp "$dir/out" "$KEEP/$name.json"
	echo "| $text | $profile | $answer | $mark | $code, $took s |"
}

wanted=$*
for name in $(sed -n 's/^fault \([a-z0-9_]*\) .*/\1/p' "$0"); do
	eval "plant_$name() { :; }; clean_$name() { :; }; prefix_$name() { \"\$@\"; }"
done

plant_mtu() { at node-2/pod-1 ip link set eth0 mtu 9000; }
plant_policy() { at node-2 iptables -I FORWARD -d 10.244.0.0/16 -j DROP; }
plant_backend() { at node-1/pod-2 ip link set eth0 down; }
plant_lossy() { at node-2 iptables -t mangle -A PREROUTING -i eth0 -m statistic --mode random --probability 0.01 -j DROP; }
plant_shaper() { at node-1 tc qdisc add dev eth0 root tbf rate 100mbit burst 64k latency 50ms; }
plant_asymmetric() {
	at switch sysctl -qw net.ipv4.ip_forward=1
	at node-2 ip route add 172.18.0.11/32 via 172.18.0.1
}
plant_conntrack_full() {
	limit=$(cat /proc/sys/net/netfilter/nf_conntrack_max)
	sysctl -qw net.netfilter.nf_conntrack_max=500
}
clean_conntrack_full() { sysctl -qw net.netfilter.nf_conntrack_max="$limit"; }
group=/sys/fs/cgroup/cpu/cnibench-diagnose-$$
plant_cpu_limit() { mkdir "$group" && echo 100000 >"$group/cpu.cfs_period_us" && echo 10000 >"$group/cpu.cfs_quota_us"; }
prefix_cpu_limit() { (sh -c 'echo $PPID' >"$group/cgroup.procs" && "$@"); }
clean_cpu_limit() { sleep 1; rmdir "$group"; }
last=$(($(nproc) - 1))
plant_busy() { sh -c 'while :; do :; done' & burner=$!; }
clean_busy() { kill $burner; }
plant_starved() {
	burners=
	for i in 1 2 3; do
		taskset -c $last nice -n -20 sh -c 'while :; do :; done' &
		burners="$burners $!"
	done
}
clean_starved() { kill $burners; }
# The agents of a steal read a /proc/stat in which a hypervisor took a quarter more than what has passed.
plant_steal() {
	cat >"$dir/steal.c" <<-'END'
		#include <stdio.h>
		#include <stdlib.h>
		#include <string.h>
		#include <time.h>
		#include <unistd.h>
		static long long now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 100LL + t.tv_nsec / 10000000; }
		int main(int argc, char **argv) {
			FILE *to = fopen(argv[1], "w");
			for (long long began = now();; usleep(20000)) {
				char line[4096], cpu[16];
				FILE *from = fopen("/proc/stat", "r");
				rewind(to);
				while (fgets(line, sizeof line, from) && !strncmp(line, "cpu", 3)) {
					long long v[10] = {0};
					sscanf(line, "%15s %lld %lld %lld %lld %lld %lld %lld %lld %lld %lld", cpu, v, v + 1, v + 2, v + 3, v + 4, v + 5, v + 6, v + 7, v + 8, v + 9);
					v[7] += (now() - began) / 4 * (cpu[3] ? 1 : sysconf(_SC_NPROCESSORS_ONLN));
					fprintf(to, "%s", cpu);
					for (int i = 0; i < 10; i++) fprintf(to, " %15lld", v[i]);
					fprintf(to, "\n");
				}
				fflush(to);
				fclose(from);
			}
		}
	END
	gcc -O2 -o "$dir/steal" "$dir/steal.c" || exit 1
	"$dir/steal" "$dir/stat" &
	thief=$!
	until [ -s "$dir/stat" ]; do sleep 0.1; done
}
prefix_steal() { unshare -m sh -c 'mount --bind "$0" /proc/stat && exec "$@"' "$dir/stat" "$@"; }
clean_steal() { kill $thief; }
# unloaded switches off what leaves checksums to a NIC: the packets then have them.
unloaded() { for place in node-1 node-2 node-1/pod-1 node-2/pod-1; do at $place ethtool -K eth0 tx off; done; }
# corrupt PLACE PROTOCOL [DEVICE [HOOK [C]]]: a program at a hook of eth0 or another device flips the last bit of one of 50 packets. C defines
# EVERY, LEAST (bytes), WRONG (it writes the checksum instead), HEADER (that of IPv4), DROP (it drops the packet instead), PORT (to that alone) or TO (the first half of an address). Protocol 0 is TCP and UDP.
corrupt() {
	cat >"$dir/flip.c" <<-'END'
		#include <linux/bpf.h>
		#include <linux/pkt_cls.h>
		static unsigned int (*rnd)(void) = (void *)7;
		static long (*get)(const void *, unsigned, void *, unsigned) = (void *)26;
		static long (*put)(void *, unsigned, const void *, unsigned, unsigned long) = (void *)9;
		#ifndef EVERY
		#define EVERY 50
		#endif
		#ifndef LEAST
		#define LEAST 60
		#endif
		#ifndef PORT
		#define PORT 0
		#endif
		#ifndef TO
		#define TO 0
		#endif
		__attribute__((section("tc"), used)) int flip(struct __sk_buff *s) {
			unsigned char proto = 0, b = 0;
			unsigned short type = 0, port = 0, to = 0, sum = 0x1234;
			get(s, 12, &type, 2);
			unsigned at = type == 8 ? 34 : 54;
			get(s, type == 8 ? 23 : 20, &proto, 1);
			get(s, at + 2, &port, 2);
			get(s, 30, &to, 2);
			if ((type != 8 && type != 0xdd86) || (PROTO ? proto != PROTO : proto != 6 && proto != 17) || rnd() % EVERY || s->len < LEAST ||
				(PORT && port != __builtin_bswap16(PORT)) || (TO && to != __builtin_bswap16(TO)))
				return TC_ACT_UNSPEC;
		#ifdef DROP
			return TC_ACT_SHOT;
		#endif
		#ifdef HEADER
			put(s, 24, &sum, 2, 0);
		#elif defined(WRONG)
			put(s, at + (proto == 6 ? 16 : 6), &sum, 2, 0);
		#else
			get(s, s->len - 1, &b, 1);
			b ^= 1;
			put(s, s->len - 1, &b, 1, 0);
		#endif
			return TC_ACT_UNSPEC;
		}
		char terms[] __attribute__((section("license"), used)) = "GPL";
	END
	clang -O2 -g -target bpf -DPROTO="$2" ${5:-} -I/usr/include/"$(uname -m)"-linux-gnu -c "$dir/flip.c" -o "$dir/flip.o" || exit 1
	at "$1" sh -c "tc qdisc show dev ${3:-eth0} | grep -q clsact || tc qdisc add dev ${3:-eth0} clsact"
	at "$1" tc filter add dev "${3:-eth0}" "${4:-ingress}" pref 1 bpf da obj "$dir/flip.o" sec tc
}
# later PLACE US [PROTOCOL [DEVICE [C]]]: what eth0 or another device receives, or of one protocol of IPv4, is taken by a program over a pair of devices, held, and put back. C defines TO (to the first half of an
# address alone), DNS (questions alone), SYN (of new connections alone), LEAST (bytes), EVERY (one of so many) or RANDOM (up to so late). It needs no netem.
later() {
	cat >"$dir/hold.c" <<-'END'
		#define _GNU_SOURCE
		#include <arpa/inet.h>
		#include <linux/if_packet.h>
		#include <net/if.h>
		#include <poll.h>
		#include <stdlib.h>
		#include <string.h>
		#include <sys/socket.h>
		#include <time.h>
		#include <unistd.h>
		static long long now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000LL + t.tv_nsec; }
		struct frame { struct frame *next; long long at; int n; char data[]; };
		int main(int argc, char **argv) {
			static char buf[70000];
			struct frame *first = 0, **last = &first;
			long long delay = atoll(argv[2]) * 1000, newest = 0;
			int on = 1, room = 64 << 20, fd = socket(AF_PACKET, SOCK_RAW, htons(3));
			struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(3), .sll_ifindex = if_nametoindex(argv[1])};
			setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on);
			setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on);
			setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
			if (bind(fd, (void *)&at, sizeof at)) return 1;
			for (;;) {
				struct pollfd p = {fd, POLLIN};
				long long wait = first ? first->at - now() : 20000000;
				struct timespec t = {0, wait > 0 ? wait : 0};
				int n;
				ppoll(&p, 1, &t, 0);
				while ((n = recv(fd, buf, sizeof buf, MSG_DONTWAIT)) > 0) {
					struct frame *f = malloc(sizeof *f + n);
					f->next = 0; f->at = now() + delay; f->n = n;
		#ifdef RANDOM
					f->at = now() + random() % delay;
					if (f->at < newest) f->at = newest;
					newest = f->at;
		#endif
					 memcpy(f->data, buf, n);
					*last = f; last = &f->next;
				}
				for (struct frame *f; (f = first) && f->at <= now(); free(f)) {
					(void)!write(fd, f->data, f->n);
					if (!(first = f->next)) last = &first;
				}
			}
		}
	END
	cat >"$dir/turn.c" <<-'END'
		#include <linux/bpf.h>
		#include <linux/pkt_cls.h>
		static unsigned int (*rnd)(void) = (void *)7;
		static long (*to)(unsigned, unsigned long) = (void *)23;
		static long (*get)(const void *, unsigned, void *, unsigned) = (void *)26;
		__attribute__((section("out"), used)) int leave(struct __sk_buff *s) {
			if (s->mark == 0xdd) {
				s->mark = 0;
				return TC_ACT_UNSPEC;
			}
			unsigned char proto = 0;
			get(s, 23, &proto, 1);
		#ifdef TO
			unsigned short half = 0;
			get(s, 30, &half, 2);
			if (half != __builtin_bswap16(TO))
				return TC_ACT_UNSPEC;
		#endif
		#ifdef DNS
			unsigned words = 0;
			get(s, 44, &words, 4);
			if (words != __builtin_bswap32(0x01000001))
				return TC_ACT_UNSPEC;
		#endif
		#ifdef SYN
			unsigned char flags = 0;
			get(s, 47, &flags, 1);
			if (proto != 6 || (flags & 0x12) != 2)
				return TC_ACT_UNSPEC;
		#endif
		#ifdef LEAST
			if (s->len < LEAST)
				return TC_ACT_UNSPEC;
		#endif
		#ifdef EVERY
			if (rnd() % EVERY)
				return TC_ACT_UNSPEC;
		#endif
			return PROTO && proto != PROTO ? TC_ACT_UNSPEC : to(HELD, 0);
		}
		__attribute__((section("in"), used)) int enter(struct __sk_buff *s) {
			s->mark = 0xdd;
			return to(DEVICE, BPF_F_INGRESS);
		}
		char terms[] __attribute__((section("license"), used)) = "GPL";
	END
	gcc -O2 ${5:-} -o "$dir/hold" "$dir/hold.c" || exit 1
	at "$1" ip link add held type veth peer name hold
	at "$1" sh -c 'ip link set held up; ip link set hold up; sysctl -qw net.ipv6.conf.held.disable_ipv6=1 net.ipv6.conf.hold.disable_ipv6=1'
	index() { "$program" lab exec --lab "$lab" "$1" -- ip -o link show "$2" | sed 's/:.*//'; }
	clang -O2 -g -target bpf -DPROTO="${3:-0}" -DHELD="$(index "$1" held)" -DDEVICE="$(index "$1" "${4:-eth0}")" ${5:-} -I/usr/include/"$(uname -m)"-linux-gnu -c "$dir/turn.c" -o "$dir/turn.o" || exit 1
	for device in ${4:-eth0}:out held:in; do
		at "$1" tc qdisc add dev ${device%:*} clsact
		at "$1" tc filter add dev ${device%:*} ingress bpf da obj "$dir/turn.o" sec ${device#*:}
	done
	"$program" lab exec --lab "$lab" "$1" -- "$dir/hold" hold "$2" &
	holder=$!
}
plant_backend_late() { later node-1/pod-2 5000; }
plant_pod_late() { later node-2/pod-1 800; }
plant_pod_later() { later node-2/pod-1 3000; }
plant_udp_late() { later node-2/pod-1 5000 17; }
for name in backend_late pod_late pod_later udp_late; do eval "clean_$name() { kill \$holder; }"; done
plant_checksum() { unloaded; corrupt node-2 6; }
plant_checksum_outer() { unloaded; corrupt node-2 17; }
plant_flipped() { corrupt node-2/pod-1 6; }
plant_flipped_veth() { unloaded; corrupt node-2 6 "$(veth node-2/pod-1)"; }
plant_names() { drop node-1 FORWARD -p udp -m string --algo bm --hex-string "|00001c0001|"; }
plant_flipped_udp() { corrupt node-1/pod-1 17; }
plant_flipped_6() { corrupt node-2/pod-1 6; }
plant_lossy_6() { at node-2 ip6tables -t mangle -A PREROUTING -i eth0 -m statistic --mode random --probability 0.01 -j DROP; }
# plant_tunnel sends a wrong checksum in the outer header of VXLAN.
plant_tunnel() {
	cat >"$dir/outer.c" <<-'END'
		#include <linux/bpf.h>
		#include <linux/pkt_cls.h>
		static long (*get)(const void *, unsigned, void *, unsigned) = (void *)26;
		static long (*put)(void *, unsigned, const void *, unsigned, unsigned long) = (void *)9;
		__attribute__((section("tc"), used)) int outer(struct __sk_buff *s) {
			unsigned char proto = 0;
			unsigned short port = 0, sum = 0x1234;
			get(s, 23, &proto, 1);
			get(s, 36, &port, 2);
			if (proto == 17 && (port == __builtin_bswap16(4789) || port == __builtin_bswap16(8472)))
				put(s, 40, &sum, 2, 0);
			return TC_ACT_OK;
		}
		char terms[] __attribute__((section("license"), used)) = "GPL";
	END
	clang -O2 -g -target bpf -I/usr/include/"$(uname -m)"-linux-gnu -c "$dir/outer.c" -o "$dir/outer.o"
	unloaded
	at node-2 tc qdisc add dev eth0 clsact
	at node-2 tc filter add dev eth0 egress bpf da obj "$dir/outer.o" sec tc
}
# Checksums that are wrong in more ways.
plant_sum_udp_cilium() { unloaded; corrupt node-2/pod-1 17 eth0 egress; }
plant_sum_all_tcp() { unloaded; corrupt node-2 6 "$(veth node-2/pod-1)" ingress "-DWRONG -DEVERY=1"; }
plant_sum_large_tcp() { unloaded; corrupt node-2/pod-1 6 eth0 egress "-DWRONG -DEVERY=1 -DLEAST=1000"; }
plant_sum_large_calico() { unloaded; corrupt node-2 0 "$(veth node-2/pod-1)" ingress "-DWRONG -DEVERY=1 -DLEAST=1000"; }
plant_sum_service() { unloaded; corrupt node-1/pod-1 6 eth0 egress "-DWRONG -DEVERY=20 -DTO=0x0a60"; }
plant_sum_service_all() { unloaded; corrupt node-1/pod-1 0 eth0 egress "-DWRONG -DEVERY=1 -DTO=0x0a60"; }
plant_tunnel_late() { later node-2 100000 0 flannel.1; }
plant_pod_200() { later node-2/pod-1 200000; }
plant_backend_400() { later node-1/pod-2 400000; }
plant_tcp_late() { later node-2/pod-1 50000 6; }
plant_udp_400() { later node-2/pod-1 400000 17; }
plant_tcp_node() { later node-2 50000 6; }
plant_veth_flannel() { unloaded; corrupt node-2 6 "$(veth node-2/pod-1)"; }
plant_veth_pod() { at node-2/pod-1 ethtool -K eth0 tx off; corrupt node-2 6 "$(veth node-2/pod-1)"; }
plant_veth_egress() { unloaded; corrupt node-2 6 "$(veth node-2/pod-1)" egress; }
plant_veth_udp() { unloaded; corrupt node-2 17 "$(veth node-2/pod-1)"; }
plant_veth_aws() { unloaded; corrupt node-2 6 "$(veth node-2/pod-1)"; }
plant_sum_rare() { unloaded; corrupt node-2 6 eth0 egress "-DWRONG -DEVERY=1000"; }
plant_sum_icmp() { corrupt node-2 1; }
plant_sum_header() { corrupt node-2 0 eth0 ingress -DHEADER; }
plant_flip_rare() { corrupt node-2/pod-1 6 eth0 ingress -DEVERY=1000; }
plant_sum_6() { unloaded; corrupt node-2/pod-1 6 eth0 egress "-DWRONG -DEVERY=50"; }
plant_nic_flip_tcp() { corrupt node-2 6; }
plant_nic_flip_udp() { corrupt node-2 17; }
plant_late_1() { later node-2/pod-1 1000; }
plant_large_late_node() { later node-2 20000 0 eth0 -DLEAST=1000; }
plant_large_late_pod() { later node-2/pod-1 20000 0 eth0 -DLEAST=1000; }
plant_large_late_400() { later node-2/pod-1 400000 0 eth0 -DLEAST=1000; }
clean_large_late_400() { kill $holder; }
plant_syn_late_pod() { later node-2/pod-1 20000 6 eth0 -DSYN; }
plant_syn_late_node() { later node-2 20000 6 eth0 -DSYN; }
plant_jitter_pod() { later node-2/pod-1 20000 0 eth0 -DRANDOM; }
plant_jitter_node() { later node-2 20000 0 eth0 -DRANDOM; }
plant_rare_pod() { later node-2/pod-1 20000 0 eth0 -DEVERY=100; }
plant_nic_pods() { later node-2 20000 0 eth0 -DTO=0x0af4; }
plant_back_20() { later node-2 20000 0 "$(veth node-2/pod-1)"; }
for name in late_1 large_late_node large_late_pod syn_late_pod syn_late_node jitter_pod jitter_node rare_pod nic_pods back_20; do eval "clean_$name() { kill \$holder; }"; done
# Packets of a tunnel that are put together would not pass the program that holds them.
plant_udp_node() {
	for node in node-1 node-2; do for device in eth0 flannel.1; do at $node ethtool -K $device gso off tso off gro off; done; done
	later node-2 30000 17
}
plant_service_late() { later node-1 20000 6 "$(veth node-1/pod-1)" -DTO=0x0a60; }
plant_dns_200() { later node-2/pod-1 200000 17 eth0 -DDNS; }
plant_dns_2000() { later node-2/pod-1 2000000 17 eth0 -DDNS; }
plant_sum_inner() { unloaded; corrupt node-2 6 flannel.1 egress "-DWRONG -DEVERY=1 -DLEAST=1000"; }
plant_sum_udp_pod() { unloaded; corrupt node-1/pod-1 17 eth0 egress "-DWRONG -DEVERY=1"; }
plant_sum_udp_node() { unloaded; corrupt node-1 17 eth0 egress "-DWRONG -DEVERY=1"; }
plant_offload() { unloaded; for place in node-1 node-2 node-1/pod-1 node-2/pod-1; do at $place ethtool -K eth0 rx off gro off; done; }
plant_bpf_drop() { corrupt node-2 0 "$(veth node-2/pod-1)" ingress "-DDROP -DEVERY=50"; }
plant_blackhole() { at node-1 ip route add blackhole "$(address node-2/pod-1)/32"; }
plant_syn_service() { drop node-1 PREROUTING -p tcp --syn -d 10.96.0.0/12; }
for name in tunnel_late pod_200 backend_400 tcp_late udp_400 tcp_node udp_node service_late dns_200 dns_2000; do eval "clean_$name() { kill \$holder; }"; done
drop() { place=$1; shift; at "$place" iptables -t mangle -I "$@" -j DROP; }
plant_large() { drop node-2 PREROUTING -i eth0 -m length --length 1000: -m statistic --mode random --probability 0.05; }
plant_udp() { drop node-2 PREROUTING -i eth0 -p udp -m statistic --mode random --probability 0.02; }
plant_tcp() { drop node-2 PREROUTING -i eth0 -p tcp -m statistic --mode random --probability 0.01; }
plant_both_ways() { for node in node-1 node-2; do drop $node PREROUTING -i eth0 -m statistic --mode random --probability 0.01; done; }
plant_syn() { drop node-1 FORWARD -p tcp --syn -d "$(address node-1/pod-1)"; }
plant_hole() { drop node-1 PREROUTING -i eth0 -m length --length 1401:; }
# veth PLACE: the other end of a pod's device, on its node.
veth() { "$program" lab exec --lab "$lab" "${1%/*}" -- ip -o route get "$(address "$1")" | sed 's/.* dev \([^ ]*\) .*/\1/'; }
address() { "$program" lab exec --lab "$lab" "$1" -- ip -o -4 addr show dev eth0 | sed 's/.* inet \([0-9.]*\).*/\1/'; }
plant_pod_shaper() { at node-2 tc qdisc add dev "$(veth node-2/pod-1)" root tbf rate 100mbit burst 64k latency 50ms; }
plant_pod_limit() { drop node-2 FORWARD -d "$(address node-2/pod-1)" -m hashlimit --hashlimit-name pod --hashlimit-above 500/sec --hashlimit-burst 100; }
plant_proxy() {
	at node-2 iptables -t nat -N KUBE-SERVICES
	at node-2 iptables -t nat -A PREROUTING -j KUBE-SERVICES
	at node-2 iptables -t nat -N KUBE-SVC-ERIFXISQEP7F7OF4
	at node-2 iptables -t nat -A KUBE-SERVICES -d 10.96.0.10/32 -p tcp --dport 53 -j KUBE-SVC-ERIFXISQEP7F7OF4
}

echo '| fault | profile | answer | right | exit code, time |'
echo '|---|---|---|---|---|'
fault nothing canal fine '' 'nothing at all'
fault nothing_cilium cilium-native fine '' 'nothing at all'
fault nothing_calico calico-vxlan fine '' 'nothing at all'
fault nothing_flannel flannel-vxlan fine '' 'nothing at all'
fault busy canal fine '' 'nothing, beside a program that takes one CPU'
fault mtu calico-vxlan cni mtu "a pod's MTU is 9000"
fault conntrack_full calico-vxlan node conntrack-full '500 tracked connections at most'
fault policy calico-vxlan cni unreachable 'a rule drops what goes to the pods of a node'
fault cpu_limit canal prober cpu-limit 'a CPU limit of 0.1 for the prober'
fault steal canal node cpu-steal "the agents' /proc/stat has steal of a quarter"
fault backend flannel-vxlan service backend 'one of two backends is down'
fault lossy flannel-host-gw node loss 'a rule drops 1 % at a NIC'
fault shaper flannel-vxlan node shaper 'a NIC at 100 Mbit/s (tbf)'
fault delay canal node round-trip 'each node sends 10 ms later' --delay 10ms
fault node_delay canal node round-trip 'one node sends 2 ms later' --plant node-2=delay:2ms
fault one_way canal node round-trip 'one node sends 0.8 ms later' --plant node-2=delay:800us
fault round_3 flannel-vxlan node round-trip 'each node sends 3 ms later' --delay 3ms
fault round_20 calico-vxlan node round-trip 'each node sends 10 ms later' --delay 10ms
fault round_80 cilium-native node round-trip 'each node sends 40 ms later' --delay 40ms
fault round_200 flannel-vxlan node round-trip 'each node sends 100 ms later' --delay 100ms
fault checksum flannel-host-gw node checksum 'one bit of 2 % of TCP packets at a NIC'
fault checksum_outer calico-vxlan node checksum 'one bit of 2 % of UDP packets at a NIC, VXLAN among them'
fault flipped flannel-host-gw cni checksum "one bit of 2 % of TCP packets at a pod's device"
fault flipped_udp calico-vxlan cni checksum "one bit of 2 % of UDP packets at a pod's device"
fault flipped_veth calico-vxlan cni checksum "one bit of 2 % of TCP packets that a pod sends, at its veth"
fault nothing_6 flannel-vxlan fine '' 'nothing at all, over IPv6' --family 6
fault flipped_6 flannel-host-gw cni checksum "one bit of 2 % of TCP packets at a pod's device, over IPv6" --family 6
fault lossy_6 flannel-host-gw node loss 'a rule drops 1 % at a NIC, over IPv6' --family 6
fault names flannel-vxlan cni names 'questions for AAAA are dropped at a node'
fault tunnel flannel-vxlan cni checksum 'one node sends VXLAN with wrong outer checksums'
fault large flannel-host-gw node loss 'a rule drops 5 % of packets of 1,000 bytes and more at a NIC'
fault udp canal node loss 'a rule drops 2 % of UDP at a NIC'
fault tcp flannel-host-gw node loss 'a rule drops 1 % of TCP at a NIC'
fault both_ways flannel-host-gw node loss 'a rule drops 1 % at the NICs of both nodes'
fault syn calico-vxlan cni unreachable 'a rule drops new TCP connections to the pods of one node'
fault hole flannel-host-gw node mtu 'packets of more than 1,400 bytes vanish one way at a NIC'
fault pod_shaper calico-vxlan cni shaper "100 Mbit/s at a pod's veth (tbf)"
fault pod_limit flannel-vxlan cni loss 'a rule limits one pod to 500 packets/s'
fault proxy calico-nftables service proxy-modes 'one node has the rules of two modes of kube-proxy'
fault backend_late flannel-vxlan service backend 'one of two backends receives 5 ms later'
fault pod_late flannel-host-gw cni round-trip 'a pod receives 0.8 ms later'
fault pod_later calico-vxlan cni round-trip 'a pod receives 3 ms later'
fault udp_late flannel-vxlan cni names 'a pod receives UDP 5 ms later'
fault asymmetric flannel-host-gw node asymmetric 'one node answers by a router'
fault sum_udp_cilium cilium-native cni checksum 'one bit of 2 % of UDP packets that a pod sends'
fault sum_all_tcp calico-vxlan cni checksum 'all TCP of a pod has a wrong checksum at its veth'
fault sum_large_tcp flannel-vxlan cni checksum 'a pod sends all TCP packets of 1,000 bytes and more with a wrong checksum'
fault sum_large_calico calico-vxlan cni checksum 'all packets of 1,000 bytes and more have a wrong checksum at a veth'
fault sum_service flannel-vxlan service checksum '5 % of TCP to Services has a wrong checksum'
fault sum_service_all calico-vxlan service checksum 'everything to Services has a wrong checksum'
fault round_400 flannel-vxlan node round-trip 'each node sends 200 ms later' --delay 200ms
fault tunnel_late flannel-vxlan cni round-trip 'the tunnel device of a node receives 100 ms later'
fault pod_200 cilium-native cni round-trip 'a pod receives 200 ms later'
fault backend_400 flannel-vxlan service backend 'one of two backends receives 400 ms later'
fault tcp_late canal cni round-trip 'a pod receives TCP 50 ms later'
fault udp_400 flannel-vxlan cni names 'a pod receives UDP 400 ms later'
fault tcp_node flannel-vxlan node round-trip 'a node receives TCP 50 ms later'
fault udp_node flannel-vxlan node round-trip 'a node receives UDP 30 ms later, VXLAN among it'
fault service_late calico-vxlan service service 'TCP to Services alone is 20 ms later'
fault dns_200 canal cni names 'questions of DNS to a pod are 200 ms later'
fault dns_2000 canal cni names 'questions of DNS to a pod are 2 s later'
fault sum_inner flannel-vxlan cni checksum 'TCP packets of 1,000 bytes and more inside VXLAN have a wrong checksum, one way'
fault sum_udp_pod flannel-host-gw cni checksum 'all UDP that a pod sends has a wrong checksum'
fault sum_udp_node flannel-host-gw node checksum 'all UDP that a node sends has a wrong checksum'
fault offload flannel-vxlan fine '' 'nothing, with all checksums and gro by software'
fault bpf_drop canal cni loss 'a program drops 2 % of what a pod sends'
fault blackhole flannel-host-gw cni unreachable 'a node has a blackhole route to a pod'
fault syn_service calico-vxlan service unreachable 'new TCP connections to Services are dropped'
fault veth_flannel flannel-vxlan cni checksum 'one bit of 2 % of TCP packets from a pod, at its veth'
fault veth_pod flannel-host-gw cni checksum 'the same, and no other device computes checksums itself'
fault veth_egress flannel-vxlan cni checksum 'one bit of 2 % of TCP packets to a pod, at its veth'
fault veth_udp kindnetd cni checksum 'one bit of 2 % of UDP packets from a pod, at its veth'
fault veth_aws aws-vpc cni checksum 'one bit of 2 % of TCP packets from a pod, at its veth'
fault sum_rare flannel-host-gw node checksum 'one of 1,000 TCP packets that a node sends has a wrong checksum'
fault sum_icmp flannel-host-gw node checksum 'one bit of 2 % of ICMP packets at a NIC'
fault sum_header flannel-vxlan node checksum '2 % of packets at a NIC have a wrong checksum of IPv4'
fault flip_rare flannel-vxlan cni checksum "one bit of 0.1 % of TCP packets at a pod's device"
fault sum_6 flannel-host-gw cni checksum '2 % of TCP that a pod sends has a wrong checksum, over IPv6' --family 6
fault nic_flip_tcp flannel-host-gw node checksum 'one bit of 2 % of TCP packets at a NIC, with checksums left to it'
fault nic_flip_udp canal node checksum 'one bit of 2 % of UDP packets at a NIC, with checksums left to it'
fault late_1 flannel-vxlan cni round-trip 'a pod receives 1 ms later'
fault node_1 calico-vxlan node round-trip 'one node sends 1 ms later' --plant node-2=delay:1ms
fault node_200 canal node round-trip 'one node sends 200 ms later' --plant node-2=delay:200ms
fault large_late_node flannel-host-gw node round-trip 'a node receives packets of 1,000 bytes and more 20 ms later'
fault large_late_pod flannel-vxlan cni round-trip 'a pod receives packets of 1,000 bytes and more 20 ms later'
fault large_late_400 flannel-host-gw cni round-trip 'a pod receives packets of 1,000 bytes and more 400 ms later'
fault syn_late_pod canal cni round-trip 'a pod receives new connections 20 ms later'
fault syn_late_node flannel-host-gw node round-trip 'a node receives new connections 20 ms later'
fault jitter_pod flannel-vxlan cni round-trip 'a pod receives up to 20 ms later'
fault jitter_node flannel-host-gw node round-trip 'a node receives up to 20 ms later'
fault rare_pod flannel-vxlan cni round-trip 'a pod receives 1 % of packets 20 ms later'
fault nic_pods flannel-host-gw cni round-trip 'a NIC receives 20 ms later what is for pods'
fault back_20 calico-vxlan cni round-trip 'a pod sends 20 ms later'
fault starved canal prober starved 'three busy loops on the CPU of the load'
fault nothing_aws_vpc aws-vpc fine '' 'nothing at all'
fault nothing_azure azure fine '' 'nothing at all'
fault nothing_bridge bridge fine '' 'nothing at all'
fault nothing_calico_ebpf calico-ebpf fine '' 'nothing at all'
fault nothing_calico_underlay calico-underlay fine '' 'nothing at all'
fault nothing_cilium_vxlan cilium-vxlan fine '' 'nothing at all'
fault nothing_kindnetd kindnetd fine '' 'nothing at all'
fault nothing_kube_router kube-router fine '' 'nothing at all'
fault nothing_macvlan macvlan fine '' 'nothing at all'
fault nothing_ptp ptp fine '' 'nothing at all'
exit $bad
