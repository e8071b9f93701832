#!/bin/sh
# Runs every test and closes with counts; what was skipped is named with its reason.
# Kernel tests need network namespaces: as root they run as they are, otherwise in a user namespace where the kernel
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

go vet ./...
mkdir -p bin
go build -o bin/testsum ./internal/tool/testsum

events=$(mktemp)
trap 'rm -f "$events"' EXIT

# One package at a time: kernel tests of two packages on the same CPUs would starve each other.
tests() {
	$enter go test -json -count=1 -p 1 -timeout 15m "$@" || true
}

# A few tests that fail run a second time, alone: the machine may have been busy with something else. The sum names them.
again() {
	bin/testsum -failed <"$events" | while read -r package names; do
		echo '{"Action":"again"}'
		tests -run "$names" "$package" </dev/null
		echo '{"Action":"onward"}'
	done
}

# The race detector needs a C compiler; it watches the packages in which goroutines meet. What it finds needs no second run.
races() {
	if command -v cc >/dev/null 2>&1; then
		CGO_ENABLED=1 tests -race -short ./internal/conduct/... ./internal/engine/... ./internal/kernel/netns/...
	else
		echo "no C compiler: the race detector did not run" >&2
	fi
}

{
	tests ./... | tee "$events"
	again
	races
} | bin/testsum
