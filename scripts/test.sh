#!/bin/sh
# Runs every test once and closes with counts; what was skipped is named with its reason.
# Kernel tests need network namespaces: as root they run directly, otherwise in a user namespace where the kernel
# allows one, otherwise they skip and say so. Nothing comes from the cache: the kernel is part of what is tested.
set -eu
cd "$(dirname "$0")/.."

enter=""
if [ "$(id -u)" -ne 0 ]; then
	if unshare -Urnm true 2>/dev/null; then
		enter="unshare -Urnm"
		echo "not root: kernel tests run in a user namespace" >&2
	else
		echo "not root, and no user namespaces: kernel tests will be skipped" >&2
	fi
fi

mkdir -p bin
go build -o bin/testsum ./internal/tool/testsum

# Packages that open sockets or namespaces. Those that measure time run one at a time: two of them on the same CPUs would
# starve each other. The patient ones run tools, or programs of the kernel on packets of their own.
kernel='/internal/(kernel|engine|env/lab|cli|tool|profile|conduct/run)(/|$)'
patient='/internal/(kernel/(bpf|ipt|nft)|profile|tool)(/|$)'
measuring='/internal/tool/(bench|campaign)$'
# Those of the engine that measure time under the race detector, too.
clocked='/internal/engine/(agent|load)$'

# go vet reads every package by itself, beside the tests.
run="go test -json -vet=off -count=1 -timeout 15m"

# alone runs packages one after the other. While one runs, the next are built, and give way to it.
alone() {
	$enter $run -p 4 -toolexec "nice -n 10" -exec "flock -o $beside/turn" "$@" || true
}

# races runs packages under the race detector, which needs a C compiler, by a command. What counts allocations, system calls and
# moments says nothing there, and foreign tools are processes.
races() {
	if command -v cc >/dev/null 2>&1; then
		(export CGO_ENABLED=1 && "$@" -race -short -skip "Allocat|SystemCalls|KeepsItsSchedule|ScheduleKeeps|Tools$")
	else
		echo "no C compiler: the race detector did not run" >&2
	fi
}

# The packages that need nothing of the kernel, and those that measure no time, run beside the others and give way to them:
# those mostly wait. What they print follows when they have ended, since lines of several writers would mix.
beside=$(mktemp -d)
trap 'rm -rf "$beside"' EXIT
trap 'exit 130' INT TERM
mkdir "$beside/t"
export TMPDIR="$beside/t"

nice -n 19 go vet ./... &
vet=$!
trap "kill $vet; exit 130" INT TERM

failed=0
{
	nice -n 19 $run -p 1 $(go list ./... | grep -Ev "$kernel") >"$beside/pure" &
	pure=$!
	patiently="nice -n 19 $enter $run -p 1"
	{
		$patiently $(go list ./... | grep -E "$patient" | grep -Ev "$measuring") || true
		races $patiently $(go list ./internal/conduct/... ./internal/engine/... ./internal/kernel/netns/... | grep -Ev "$clocked") || true
	} >"$beside/patient" &
	trap "kill $pure $!; exit 130" INT TERM
	alone $(go list ./... | grep -E "$kernel" | grep -Ev "$patient") $(go list ./... | grep -E "$measuring")
	races alone $(go list ./internal/engine/... | grep -E "$clocked")
	wait
	cat "$beside/pure" "$beside/patient"
} | bin/testsum $enter $run || failed=$?
wait $vet || failed=1

# Tests have a temporary folder of their own: what they leave there is a fault of theirs. Go's own are those of a killed build.
left=$(ls -A "$TMPDIR" | grep -v '^go-build' || true)
if [ -n "$left" ]; then
	echo "tests left in the temporary folder:" $left >&2
	failed=1
fi
exit $failed
