#!/bin/sh
# Is the lab true? For each CNI of the test cluster, raises a real cluster on this machine, measures it and the lab in one run,
# interleaved, and takes the cluster down again. Keeps every row with the profiles, and sums them up in docs/results/fidelity.md.
#
#   scripts/fidelity.sh [-r REPETITIONS] [-d DURATION] [CNI...]     default: 10 of 500ms, every CNI: 15 minutes each on two CPUs
#   scripts/fidelity.sh -t                                          the table alone, with the results that are there
#
# The machine should have nothing else to do. Results are left in bin/fidelity-CNI.jsonl; dataplanes without one keep their rows.
set -eu
cd "$(dirname "$0")/.."
say() { echo "fidelity: $*" >&2; }
repetitions=10 duration=500ms measure=1
while getopts r:d:t flag; do
	case $flag in
	r) repetitions=$OPTARG ;;
	d) duration=$OPTARG ;;
	t) measure= ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || set -- bridge ptp flannel-vxlan flannel-host-gw kube-router cilium-vxlan cilium-native cilium-native-legacy cilium-native-dsr

raise() { # raise CNI
	$cluster up --name fidelity --nodes 2 --cni "$1" --image bin/cnibench-image.tar --daemon-cpus 0 >&2
	KUBECONFIG=$($cluster status --name fidelity | awk '$1 == "kubeconfig" { print $2 }')
	export KUBECONFIG
}

# Pods may choose reno and nothing better; a buffer of its own makes a stream independent of the sysctls of a namespace. veth
# of a real cluster hands on super-packets, which is the lab's NIC model "ideal". The request gives pods a share of a busy CPU.
# Each run makes 16 Services for TCP and UDP in a cluster, beside the API server's; with 27 more the lab has as many rules.
compare() { # compare CNI
	bin/cnibench fidelity --force --inspect --context cnibench-e2e --image "${image%@*}" -o "bin/fidelity-$1.jsonl" \
		--nic ideal --cpu one --services 27 --load-cpus "$last" --cpu-request 200m \
		--paths host-to-host/cross-node,pod-to-pod/same-node,pod-to-pod/cross-node,pod-to-service/local,pod-to-service/remote \
		--workloads 'rr(congestion=reno),crr(congestion=reno),stream(congestion=reno,buffer=512Ki),stream(udp)' \
		--repetitions "$repetitions" --duration "$duration" >/dev/null
}

make -s build
CGO_ENABLED=0 go build -o bin/campaign ./internal/tool/campaign
if [ -n "$measure" ]; then
	[ "$(id -u)" -eq 0 ] || { say "needs root: it makes nodes of namespaces and cgroups"; exit 2; }
	# What kubelets and control planes do shall not be on the CPU that is measured, the last one, which is also the lab's.
	last=$(($(nproc --all) - 1))
	[ "$last" -gt 0 ] || { say "needs two CPUs or more"; exit 2; }
	cluster=bin/cluster
	CGO_ENABLED=0 go build -o $cluster ./internal/tool/cluster
	image=$(bin/cnibench image -o bin/cnibench-image.tar)
	finish() {
		status=$?
		trap - EXIT INT TERM
		$cluster down --name fidelity >&2 || status=1
		exit $status
	}
	trap finish EXIT
	trap 'exit 130' INT TERM
	for cni; do
		raise "$cni"
		compare "$cni"
		$cluster down --name fidelity >&2
	done
fi
# Without a new result the table is that of the comparisons which are kept.
bin/campaign fidelity -keep bin -document docs/results/fidelity.md bin/cnibench
say "docs/results/fidelity.md has the table, internal/profile/fidelity.tsv every row, bin/fidelity-*.jsonl every trial"
