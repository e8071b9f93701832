#!/bin/sh
# How long does a first answer take? Installs the deb of a release in a clean Debian system, runs the quick preset there, and
# says how many seconds after the install its report was complete. More than 60 s fail.
#
#   scripts/first-answer.sh [DEB [SUITE]]    default: the newest deb of `make snapshot` for this machine, and bookworm
#
# debootstrap makes the clean system below bin/; the end removes it. MIRROR names another mirror. The system gets the settings
# by which apt of this machine reaches its mirrors, such as a proxy. The machine should have nothing else to do.
set -eu
deb=${1:+$(realpath -m "$1")}
cd "$(dirname "$0")/.."
limit=60

say() { echo "first-answer: $*" >&2; }
[ "$(id -u)" -eq 0 ] || { say "needs root: debootstrap, chroot and the lab"; exit 2; }
for program in debootstrap dpkg unshare; do
	command -v $program >/dev/null || { say "$program is not installed: apt-get install debootstrap dpkg util-linux"; exit 2; }
done
deb=${deb:-$(ls -t bin/dist/cnibench_*_"$(dpkg --print-architecture)".deb 2>/dev/null | head -1)}
suite=${2:-bookworm}
[ -f "$deb" ] || { say "no package${deb:+ $deb}: make snapshot"; exit 2; }
# Mounts belong to a mount namespace of the script, so they end with it.
if [ -z "${FIRST_ANSWER:-}" ]; then
	FIRST_ANSWER=inside exec unshare --mount --propagation private scripts/first-answer.sh "$deb" "$suite"
fi
mkdir -p bin
root=$(mktemp -d "$PWD/bin/clean-root.XXXXXX")
finish() {
	status=$?
	trap - EXIT INT TERM
	for mount in proc sys dev; do umount -R -l "$root/$mount" 2>/dev/null || true; done
	if grep -qF " $root/" /proc/self/mountinfo; then
		say "$root is left: something is mounted there"
		exit 1
	fi
	rm -rf "$root"
	exit $status
}
trap finish EXIT
trap 'exit 130' INT TERM

say "making a clean $suite"
debootstrap --variant=minbase "$suite" "$root" "${MIRROR:-http://deb.debian.org/debian}" >"$root.log" 2>&1 ||
	{ tail -5 "$root.log" >&2; rm -f "$root.log"; say "debootstrap failed"; exit 1; }
rm -f "$root.log"
{ apt-config dump Acquire; echo 'APT::Sandbox::User "root";'; } >"$root/etc/apt/apt.conf.d/99first-answer"
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
chroot "$root" apt-get update -qq
cp "$deb" "$root/root/cnibench.deb"

now() { date +%s; }
begin=$(now)
chroot "$root" env DEBIAN_FRONTEND=noninteractive apt-get install -qqy --no-install-recommends /root/cnibench.deb >/dev/null 2>"$root/root/install" ||
	{ cat "$root/root/install" >&2; say "the package cannot be installed"; exit 1; }
installed=$(now)
say "installed $(basename "$deb") with what it depends on in $((installed - begin)) s"
status=0
chroot "$root" sh -c 'cd /root && cnibench run --preset quick -o result.jsonl' || status=$?
answered=$(now)
# 4: no difference is decided, which is an answer, too.
[ $status -eq 0 ] || [ $status -eq 4 ] || { say "cnibench run --preset quick ended with exit code $status"; exit 1; }
say "first answer $((answered - installed)) s after the install"
[ $((answered - installed)) -le $limit ] || { say "more than $limit s"; exit 1; }
