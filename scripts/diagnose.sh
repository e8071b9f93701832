#!/bin/sh
# Plants faults in labs by plain tools and lets "cnibench diagnose" name them: diagnose.sh CNIBENCH [FAULT...]. Prints a row of a
# Markdown table for each; ends with 1 if one was not named. A fault lives in a lab of its own, but for conntrack-full, which
# lowers the machine's limit of tracked connections for half a minute.
set -u
program=$1
shift
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0

at() { place=$1; shift; "$program" lab exec --lab "$lab" "$place" -- "$@" >/dev/null; }

# fault NAME PROFILE VERDICT CAUSE TEXT [FLAG OF lab up]: plants by plant_NAME, cleans up by clean_NAME if there is one.
fault() {
	name=$1 profile=$2 verdict=$3 cause=$4 text=$5
	shift 5
	case " $wanted " in "  " | *" $name "*) ;; *) return ;; esac
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
	[ "$got" = "$verdict/$cause" ] || { mark="**no** ($got)" bad=1; cat "$dir/err" >&2; }
	echo "| $text | $profile | $answer | $mark | $code, $took s |"
}

wanted=$*
for name in nothing mtu conntrack_full policy cpu_limit backend lossy shaper delay checksum checksum_outer asymmetric starved; do
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
plant_starved() {
	burners=
	for i in 1 2 3; do
		taskset -c $last nice -n -20 sh -c 'while :; do :; done' &
		burners="$burners $!"
	done
}
clean_starved() { kill $burners; }
# corrupt PLACE PROTOCOL: a program flips a bit in one of 50 packets that eth0 receives. Without offloads the packets have checksums.
corrupt() {
	cat >"$dir/flip.c" <<-'END'
		#include <linux/bpf.h>
		#include <linux/pkt_cls.h>
		static unsigned int (*rnd)(void) = (void *)7;
		static long (*get)(const void *, unsigned, void *, unsigned) = (void *)26;
		static long (*put)(void *, unsigned, const void *, unsigned, unsigned long) = (void *)9;
		__attribute__((section("tc"), used)) int flip(struct __sk_buff *s) {
			unsigned char proto = 0, b = 0;
			unsigned short type = 0;
			get(s, 12, &type, 2);
			get(s, 23, &proto, 1);
			if (type != 8 || proto != PROTO || rnd() % 50 || s->len < 60)
				return TC_ACT_OK;
			get(s, s->len - 1, &b, 1);
			b ^= 1;
			put(s, s->len - 1, &b, 1, 0);
			return TC_ACT_OK;
		}
		char license[] __attribute__((section("license"), used)) = "GPL";
	END
	clang -O2 -g -target bpf -DPROTO="$2" -I/usr/include/"$(uname -m)"-linux-gnu -c "$dir/flip.c" -o "$dir/flip.o"
	for place in node-1 node-2 node-1/pod-1 node-2/pod-1; do at $place ethtool -K eth0 tx off; done
	at "$1" tc qdisc add dev eth0 clsact
	at "$1" tc filter add dev eth0 ingress bpf da obj "$dir/flip.o" sec tc
}
plant_checksum() { corrupt node-2 6; }
plant_checksum_outer() { corrupt node-2 17; }

echo '| fault | profile | answer | right | exit code, time |'
echo '|---|---|---|---|---|'
fault nothing canal fine '' 'nothing at all'
fault mtu calico-vxlan cni mtu "a pod's MTU is 9000"
fault conntrack_full calico-vxlan node conntrack-full '500 tracked connections at most'
fault policy calico-vxlan cni unreachable 'a rule drops what goes to the pods of a node'
fault cpu_limit canal prober cpu-limit 'a CPU limit of 0.1 for the prober'
fault backend flannel-vxlan service backend 'one of two backends is down'
fault lossy flannel-host-gw node loss 'a rule drops 1 % at a NIC'
fault shaper flannel-vxlan node shaper 'a NIC at 100 Mbit/s (tbf)'
fault delay canal node round-trip 'each node sends 10 ms later' --delay 10ms
fault checksum flannel-host-gw node checksum 'one bit of 2 % of TCP packets at a NIC'
fault checksum_outer calico-vxlan node checksum 'one bit of 2 % of UDP packets at a NIC, VXLAN among them'
fault asymmetric flannel-host-gw node asymmetric 'one node answers by a router'
fault starved canal prober starved 'three busy loops on the CPU of the load'
exit $bad
