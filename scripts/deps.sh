#!/bin/sh
# Installs what is missing to build cnibench and to raise the lab, with the distribution's own package manager.
# Says what it does; does nothing when nothing is missing.
#
#   scripts/deps.sh run     what `make demo` needs
#   scripts/deps.sh test    what `make test` needs besides
#   scripts/deps.sh vm      what `make test-vm` needs
#   scripts/deps.sh e2e     what `make e2e` and `make fidelity` need
set -eu
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
	# The tools that are driven beside our engine, and whose output is read.
	wish iperf3 iperf3 iperf3
	wish wrk wrk wrk
	wish hey hey hey
	wish sockperf sockperf sockperf
	wish ping iputils-ping iputils
	# The HTML report is tried in a browser.
	wish chromium chromium chromium-headless
	wish chromedriver chromium-driver chromedriver
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
fi
if [ "$want" = vm ]; then
	need ip iproute2 iproute
	need ethtool ethtool ethtool
	need qemu-system-x86_64 qemu-system-x86 qemu-system-x86-core
	need busybox busybox-static busybox
	need cpio cpio cpio
	need xz xz-utils xz
	need depmod kmod kmod
fi
[ -n "$missing$wished" ] || exit 0

sudo=""
if [ "$(id -u)" -ne 0 ]; then
	if have sudo; then sudo=sudo; elif [ -z "$missing" ]; then exit 0; else
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
	echo "missing, and no apt-get or dnf to install it with:$missing" >&2
	exit 1
else
	exit 0
fi
if [ -n "$missing" ]; then
	echo "installing:" $(names $missing) >&2
	install $(names $missing)
fi
# One by one, so that a name that a distribution does not have takes none of the others with it.
for package in $(names $wished); do
	echo "installing: $package" >&2
	install "$package" || echo "$package cannot be had here: what needs it is skipped" >&2
done
