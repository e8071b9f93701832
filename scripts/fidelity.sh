#!/bin/sh
# Is the lab true? Raises two real clusters with flannel (VXLAN and host-gw) on this machine, measures them and the lab in one
# run, interleaved, puts the table between the two markers of docs/results/fidelity.md, and takes the clusters down again.
#
#   scripts/fidelity.sh [REPETITIONS [DURATION]]     default 10 of 500ms: 200 cases, about 25 minutes on two CPUs
#
# The machine should have nothing else to do. The result is left in bin/fidelity.jsonl; to write the table again from it:
# bin/cnibench fidelity --format markdown bin/fidelity.jsonl
set -eu
cd "$(dirname "$0")/.."
[ "$(id -u)" -eq 0 ] || { echo "fidelity.sh: needs root: it makes nodes of namespaces and cgroups" >&2; exit 2; }
repetitions=${1:-10} duration=${2:-500ms}

say() { echo "fidelity: $*" >&2; }
cluster=bin/cluster
contexts="vxlan hostgw"
# What kubelets and control planes do shall not be on the CPU that is measured, the last one, which is also the lab's.
last=$(($(nproc --all) - 1))
[ "$last" -gt 0 ] || { say "needs two CPUs or more"; exit 2; }

make -s build
CGO_ENABLED=0 go build -o $cluster ./internal/tool/cluster
$cluster build
image=$(bin/cnibench image -o bin/cnibench-image.tar)
work=$(mktemp -d)
finish() {
	status=$?
	trap - EXIT INT TERM
	for c in $contexts; do $cluster down --name "f$c" >&2 || status=1; done
	rm -rf "$work"
	exit $status
}
trap finish EXIT
trap 'exit 130' INT TERM

KUBECONFIG=
for c in $contexts; do
	cni=flannel-$c
	[ "$c" = hostgw ] && cni=flannel-host-gw
	$cluster up --name "f$c" --cni $cni --proxy iptables --image bin/cnibench-image.tar --daemon-cpus 0 >&2
	# Clusters, users and contexts of one file are called as the cluster's context here, so that two can be read as one.
	config=$($cluster status --name "f$c" | awk '$1 == "kubeconfig" { print $2 }')
	sed "s/cnibench-e2e/$c/g; s/kubernetes-admin/$c/g" "$config" >"$work/$c"
	KUBECONFIG=$KUBECONFIG${KUBECONFIG:+:}$work/$c
done
export KUBECONFIG
rm -f bin/fidelity.jsonl
# Pods may choose reno and nothing better; a buffer of its own makes a stream independent of the sysctls of a namespace. veth
# of a real cluster hands on super-packets, which is the lab's NIC model "ideal". The request gives pods a share of a busy CPU.
# Each run makes 16 Services for TCP and UDP in a cluster, beside the API server's; with 27 more the lab has as many rules.
bin/cnibench fidelity --format markdown --context "$(echo $contexts | tr ' ' ,)" --image "${image%@*}" -o bin/fidelity.jsonl \
	--nic ideal --cpu one --services 27 --load-cpus "$last" --cpu-request 200m \
	--paths host-to-host/cross-node,pod-to-pod/same-node,pod-to-pod/cross-node,pod-to-service/local,pod-to-service/remote \
	--workloads 'rr(congestion=reno),crr(congestion=reno),stream(congestion=reno,buffer=512Ki),stream(udp)' \
	--repetitions "$repetitions" --duration "$duration" >"$work/table"
# The rows are folded below their headings.
awk '/^### / { if (open) print "</details>\n"; print; print "\n<details><summary>The rows</summary>"; open = 1; next }
	{ print }
	END { if (open) print "\n</details>" }' "$work/table" >"$work/folded"
awk -v table="$work/folded" '
	/^<!-- fidelity: end -->$/ { inside = 0; ended = 1 }
	!inside { print }
	/^<!-- fidelity: begin/ { inside = 1; while ((getline line < table) > 0) print line }
	END { exit !ended }' docs/results/fidelity.md >docs/results/fidelity.md.new || { rm -f docs/results/fidelity.md.new; say "docs/results/fidelity.md has no markers"; exit 1; }
mv docs/results/fidelity.md.new docs/results/fidelity.md
say "docs/results/fidelity.md has the table, bin/fidelity.jsonl every trial"
