#!/bin/sh
# Kills a run with SIGKILL at random moments, resumes it, and asserts that nothing is left and no finished trial is lost.
#
#   sudo scripts/torture.sh [KILLS]     default 50; bin/cnibench must be built
set -eu
cd "$(dirname "$0")/.."
kills=${1:-50}
work=$(mktemp -d)
out=$work/result.jsonl
trap 'rm -rf "$work"' EXIT

# What of the killed run can be seen on the host: itself, its janitor, agents in its cgroups, the cgroups.
leftovers() {
	[ ! -e "/proc/$pid" ] || echo "process $pid"
	pgrep -fa "janitor .*/cnibench-$pid-" || true
	grep -l "/cnibench-$pid-" /proc/[0-9]*/cgroup 2>/dev/null || true
	find /sys/fs/cgroup -maxdepth 3 -name "cnibench-$pid-*" 2>/dev/null || true
}
world() {
	ip -br link 2>/dev/null | awk '{print $1}'
	iptables-save 2>/dev/null | grep -v '^#' || true
	ls /run/netns 2>/dev/null || true
}

world >"$work/before"
set -- --profiles host,calico-vxlan,flannel-vxlan --paths pod-to-pod/cross-node,pod-to-pod/same-node \
	--workloads rr,stream --repetitions 6 --duration 60ms --warmup 10ms --seed 7 -o "$out"
done_before=0
killed=0
i=0
while [ "$i" -lt "$kills" ]; do
	i=$((i + 1))
	resume=""
	[ ! -s "$out" ] || resume=--resume
	bin/cnibench run "$@" $resume >/dev/null 2>"$work/err" &
	pid=$!
	sleep "$(awk -v s="$i$(date +%N)" 'BEGIN{srand(s); print rand()*2.5}')"
	if kill -9 "$pid" 2>/dev/null; then killed=$((killed + 1)); fi
	wait "$pid" 2>/dev/null || true
	# The janitor and the agents are given two seconds to see that their master is gone.
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		left=$(leftovers)
		[ -z "$left" ] && break
		sleep 0.2
	done
	if [ -n "$left" ]; then
		echo "kill $i left behind:" >&2
		echo "$left" >&2
		exit 1
	fi
	# Whole lines only: what was finished before must still be there.
	now=$(grep -c '"type":"trial"' "$out" 2>/dev/null || true)
	now=${now:-0}
	if [ "$now" -lt "$done_before" ]; then
		echo "kill $i: $done_before trials before, $now after" >&2
		exit 1
	fi
	done_before=$now
done

bin/cnibench run "$@" --resume >/dev/null 2>"$work/err" || { cat "$work/err" >&2; exit 1; }
grep '"type":"trial"' "$out" | sed 's/.*"profile":"\([^"]*\)","path":"\([^"]*\)","workload":"\([^"]*\)".*"repetition":\([0-9]*\).*/\1 \2 \3 \4/' | sort >"$work/trials"
total=$(wc -l <"$work/trials")
unique=$(sort -u "$work/trials" | wc -l)
if [ "$total" -ne "$unique" ]; then
	echo "$((total - unique)) trials are in the file twice" >&2
	exit 1
fi
world >"$work/after"
if ! diff "$work/before" "$work/after" >&2; then
	echo "the host's links, rules or namespaces changed" >&2
	exit 1
fi
echo "$killed kills in $kills tries: nothing left, $total trials, each once"
