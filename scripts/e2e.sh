#!/bin/sh
# Measures real Kubernetes clusters, made on this machine from package registries alone, and tests on them: everything that
# a run does on a cluster, with the faults that it must survive. Takes every cluster down again, and fails if anything is left
# of a run in the cluster, or of a cluster on the machine.
#
#   scripts/e2e.sh                    all kinds of clusters, one after another; one that fails does not keep the others from it
#   scripts/e2e.sh CNI PROXY [TESTS]  one of them: a CNI of the test cluster; iptables, nftables, or none with Cilium; and of
#                                     the tests those that match a pattern; NetworkPolicies are enforced if it names
#                                     TestPolicy
#   scripts/e2e.sh none PROXY         CNIs in turn on one cluster
#
# Results and reports are left in e2e/results.
set -eu
cd "$(dirname "$0")/.."
[ "$(id -u)" -eq 0 ] || { echo "e2e.sh: needs root: it makes nodes of namespaces and cgroups" >&2; exit 2; }

say() { echo "e2e: $*" >&2; }

if [ $# -eq 0 ]; then
	trap 'exit 130' INT TERM
	failed= cilium='none TestDetect|TestCheckLiveConfig|TestPaths'
	for kind in 'none iptables' 'bridge iptables TestDetect|TestPaths' 'flannel-host-gw nftables TestDetect|TestPaths|TestPolicy' \
		"cilium-vxlan $cilium" "cilium-native $cilium" "cilium-native-legacy $cilium" "cilium-native-dsr $cilium" \
		'flannel-vxlan iptables .'; do
		began=$(date +%s)
		sh scripts/e2e.sh $kind || failed="$failed ${kind%% *}"
		say "${kind%% *} took $(($(date +%s) - began)) s"
	done
	[ -z "$failed" ] || { say "failed:$failed"; exit 1; }
	exit 0
fi
[ $# -ge 2 ] || { say "want CNI PROXY [TESTS], or nothing for all"; exit 2; }

cluster=bin/cluster name=e2e
make -s build
CGO_ENABLED=0 go build -o $cluster ./internal/tool/cluster
$cluster build
image=$(bin/cnibench image -o bin/cnibench-image.tar)
CNIBENCH_IMAGE=${image%@*} CNIBENCH_BINARY=$PWD/bin/cnibench CNIBENCH_E2E_TOOL=$PWD/$cluster CNIBENCH_E2E_CLUSTER=$name
export CNIBENCH_IMAGE CNIBENCH_BINARY CNIBENCH_E2E_TOOL CNIBENCH_E2E_CLUSTER
mkdir -p e2e/results
work=$(mktemp -d)

# What of ours could be left on the machine, and is not of another test cluster or of somebody else's run. The cache of builds
# is meant to stay.
machine() {
	{
		ip -o link | cut -d: -f2
		ip netns list 2>/dev/null | cut -d' ' -f1
		find /sys/fs/cgroup -type d -path "*/cnib-e2e-$name-*"
		# Processes that this script has started, or that are in a node of its cluster.
		for process in /proc/[0-9]*; do
			[ "$process" = "/proc/$$" ] && continue
			if grep -qs "cnib-e2e-$name-" "$process/cgroup" || grep -qsz "^CNIBENCH_E2E_CLUSTER=$name\$" "$process/environ"; then
				echo "$(tr '\0' ' ' 2>/dev/null <"$process/cmdline")"
			fi
		done
	} | sort
}
# What of a run could be left in a cluster. A pod that a test has replaced, as of the resolver, has another name and the same owner.
objects() {
	{
		kubectl get namespaces,services,clusterroles,clusterrolebindings,persistentvolumes -A -o name
		kubectl get pods -A --no-headers -o custom-columns=:metadata.generateName,:metadata.name | awk '{ print "pod/" ($1 == "<none>" ? $2 : $1) }'
	} | sort
}

finish() {
	status=$?
	trap - EXIT INT TERM
	$cluster down --name $name >&2 || status=1
	machine >"$work/machine.after"
	# Another cluster that stood before may be gone meanwhile; what is new is ours.
	if comm -13 "$work/machine.before" "$work/machine.after" | grep . >&2; then
		say "left on the machine: see above"
		status=1
	fi
	rm -rf "$work"
	[ $status -eq 0 ] && say "all held; nothing is left" || say "failed"
	exit $status
}
$cluster down --name $name >/dev/null 2>&1 || true # of a run that was killed
machine >"$work/machine.before"
trap finish EXIT
trap 'exit 130' INT TERM

raise() { # raise CNI PROXY [FLAG]
	say "raising $1 with kube-proxy $2"
	proxy=$2
	[ "$proxy" = none ] && proxy=
	$cluster up --name $name --cni "$1" --proxy "$proxy" ${3:-} --image bin/cnibench-image.tar
	KUBECONFIG=$($cluster status --name $name | awk '$1 == "kubeconfig" { print $2 }')
	PATH=$(dirname "$($cluster status --name $name | awk '$1 == "kubectl" { print $2 }')"):$PATH
	CNIBENCH_PROFILE=$1 CNIBENCH_PROXY=$2
	export KUBECONFIG PATH CNIBENCH_PROFILE CNIBENCH_PROXY
}

on() { # on CNI PROXY TESTS
	policies=
	case $1:$3 in cilium-*) ;; *TestPolicy*) policies=--policies ;; esac
	raise "$1" "$2" $policies
	objects >"$work/objects.before"
	bin/cnibench cni detect --image "$CNIBENCH_IMAGE"
	out=e2e/results/$1-$2
	bin/cnibench run --env kubernetes --inspect --force --image "$CNIBENCH_IMAGE" -o "$out.jsonl" \
		--paths host-to-host/cross-node,pod-to-pod/same-node,pod-to-pod/cross-node,pod-to-service/local,pod-to-service/remote,external-to-nodeport/remote \
		--workloads 'stream,rr,crr,stream(udp,rate=100M),http(backends=2)' --repetitions 5 --duration 500ms
	bin/cnibench report -f html "$out.jsonl" >"$out.html"
	bin/cnibench check "$out.jsonl" || [ $? -eq 3 ] # on one machine it has something to say
	go test -tags e2e -count=1 -timeout 60m -v -run "$3" ./e2e
	objects >"$work/objects.after"
	diff "$work/objects.before" "$work/objects.after" || { say "left in the cluster: see above"; exit 1; }
	$cluster down --name $name
}

inTurn() { # inTurn PROXY
	raise none "$1"
	CNIBENCH_RECIPE_KUBECONFIG=$KUBECONFIG go test -tags e2e -count=1 -timeout 20m -v -run 'TestRecipeInTurn|TestCLIInstall' ./e2e
	$cluster down --name $name
}

if [ "$1" = none ]; then
	inTurn "$2"
else
	on "$1" "$2" "${3:-.}"
fi
