#!/bin/sh
# Installs what is missing to build cnibench and to raise the lab, with the distribution's own package manager.
# Says what it does; does nothing when nothing is missing.
#
#   scripts/deps.sh run     what `make demo` needs
#   scripts/deps.sh test    what `make test` needs besides
#   scripts/deps.sh vm      what `make test-vm` needs
#   scripts/deps.sh e2e     what `make e2e` and `make fidelity` need
set -eu
cd "$(dirname "$0")/.."
want=${1:-run}

have() { command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ] || [ -x "/sbin/$1" ]; }

missing=""
need() { # need PROGRAM DEBIAN-PACKAGE FEDORA-PACKAGE
	have "$1" || missing="$missing $2:$3"
}

# What a test can do without: it is skipped by name then.
wished=""
wish() { # wish PROGRAM DEBIAN-PACKAGE FEDORA-PACKAGE
	have "$1" || wished="$wished $2:$3"
}

need go golang-go golang
need iptables-restore iptables iptables-nft
need ipset ipset ipset
if [ "$want" = test ]; then
	need ip iproute2 iproute
	need strace strace strace
	need gcc gcc gcc
	# The BPF objects are compiled again and compared.
	need clang clang clang
	need llvm-strip llvm llvm
	[ -e /usr/include/bpf/bpf_helpers.h ] || missing="$missing libbpf-dev:libbpf-devel"
	# Tests that break the lab on purpose use it.
	wish ethtool ethtool ethtool
	wish nft nftables nftables
	# The tools that are driven beside our engine, and whose output is read.
	wish iperf3 iperf3 iperf3
	wish wrk wrk wrk
	wish hey hey hey
	wish sockperf sockperf sockperf
	wish ping iputils-ping iputils
	# The HTML report is tried in a browser.
	wish chromium chromium chromium-headless
	wish chromedriver chromium-driver chromedriver
	wish npm npm nodejs-npm
fi
if [ "$want" = bench ]; then
	need strace strace strace
	need gcc gcc gcc
	need iperf3 iperf3 iperf3
	need wrk wrk wrk
fi
if [ "$want" = e2e ]; then
	need ip iproute2 iproute
	need nft nftables nftables
	need nsenter util-linux util-linux
	need ps procps procps-ng
	# Cilium's agent compiles its programs with the version of its own image.
	need clang-19 clang-19 clang
fi
if [ "$want" = vm ]; then
	need ip iproute2 iproute
	need ethtool ethtool ethtool
	need nft nftables nftables
	need qemu-system-x86_64 qemu-system-x86 qemu-system-x86-core
	need busybox busybox-static busybox
	need cpio cpio cpio
	need xz xz-utils xz
	need depmod kmod kmod
	need ovs-vswitchd openvswitch-switch openvswitch
	need ovn-nbctl ovn-common ovn
	need ovn-northd ovn-central ovn-central
	need ovn-controller ovn-host ovn-host
	need jq jq jq
fi
# A go that is older than 1.21 cannot fetch the toolchain that go.mod names. The module proxy has that toolchain as a
# module, which any go can download; the Makefile puts .toolchain/bin first in PATH.
toolchain() {
	wanted=$(sed -n 's/^go //p' go.mod)
	PATH="$PWD/.toolchain/bin:$PATH"
	# A go that knows toolchains downloads what go.mod names and then reports that version.
	[ "$(go env GOVERSION 2>/dev/null)" != "go$wanted" ] || return 0
	have_go=$(cd / && go env GOVERSION | sed 's/^go//')
	[ "$(printf '%s\n' "$wanted" "$have_go" | sort -V | head -1)" != "$wanted" ] || return 0
	name=golang.org/toolchain@v0.0.1-go$wanted.$(go env GOOS)-$(go env GOARCH)
	echo "go $have_go is older than go.mod's $wanted: downloading $name" >&2
	dir=$(cd / && go mod download -json "$name" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
	if [ ! -f "$dir/bin/go" ]; then
		echo "go $have_go cannot download go $wanted: install go $wanted or later, and put it first in PATH" >&2
		exit 1
	fi
	# Modules are stored read-only and without the executable bit.
	rm -rf .toolchain && cp -r "$dir" .toolchain && chmod -R u+w .toolchain
	chmod +x .toolchain/bin/* .toolchain/pkg/tool/*/*
}

packages() {
	[ -n "$missing$wished" ] || return 0
	sudo=""
	if [ "$(id -u)" -ne 0 ]; then
		if have sudo; then sudo=sudo; elif [ -z "$missing" ]; then return 0; else
			echo "missing:$missing; run as root or install them" >&2
			exit 1
		fi
	fi
	if have apt-get; then
		names() { for m in $*; do echo "${m%%:*}"; done; }
		install() { DEBIAN_FRONTEND=noninteractive $sudo apt-get install -qy --no-install-recommends "$@"; }
		$sudo apt-get update -q
	elif have dnf; then
		names() { for m in $*; do echo "${m##*:}"; done; }
		install() { $sudo dnf install -qy "$@"; }
	elif [ -n "$missing" ]; then
		echo "missing, and neither apt-get nor dnf can install it:$missing" >&2
		exit 1
	else
		return 0
	fi
	if [ -n "$missing" ]; then
		echo "installing:" $(names $missing) >&2
		install $(names $missing)
	fi
	# One by one, so that a name that a distribution does not have takes none of the others with it.
	for package in $(names $wished); do
		echo "installing: $package" >&2
		install "$package" || echo "$package is not available: tests that need it are skipped" >&2
	done
}

# The rules that the HTML report's accessibility is tested by; the test is skipped without them.
axe() {
	[ "$want" = test ] && have chromium && have npm || return 0
	[ ! -e "$(npm root --global)/axe-core" ] || return 0
	echo "installing: axe-core" >&2
	npm install --global --silent axe-core@4 || echo "axe-core is not available: tests that need it are skipped" >&2
}

packages
axe
toolchain
